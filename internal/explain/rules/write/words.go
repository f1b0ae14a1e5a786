// SPDX-License-Identifier: Apache-2.0

package write

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Parts that several of them share.
const (
	rejectsAll = ", so the policy rejects every write that it covers, from any sender"
	seePolicy  = "check what the policy requires, then "
	// namespaceControllers are the users that the namespace controller may be, without and with
	// --use-service-account-credentials.
	namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"
)

// What refuses the namespace controller, by the words of its condition, where no dry run meets it: the controller is another
// user, and sends other requests.
const (
	ControllerRejected    say.Word = "the requests of the namespace controller are rejected"
	ControllerLacksRights say.Word = "the namespace controller lacks rights that it needs"
	HaveAllowed           say.Word = seePolicy + "make it allow the namespace controller (" + namespaceControllers +
		"): the deletion resumes within a minute"
	HaveWebhookAllow say.Word = "check the webhook and its backend, then make it allow the namespace controller (" +
		namespaceControllers + ")"
	RestoreControllerRole say.Word = "check this right, then restore the ClusterRole system:controller:namespace-controller and its binding; kube-apiserver recreates both when it starts"

	PolicyRejectsController  say.Word = "the policy rejects the deletions of the namespace controller"
	ButNotDryRun             say.Word = ", but accepts your dry run: it depends on the sender, or on the kind of request"
	PolicyRejectedController say.Word = "the policy rejected the deletions of the namespace controller at its last attempt"
	PolicyUnread             say.Word = "; the policy or its binding could not be read"
	ChangedSinceThen         say.Word = "; unclear whether it still does: the policy, its binding, the namespace or its contents might have changed since"
	LastChanged              say.Word = "last changed %s ago"

	WebhookRejectsController  say.Word = "its webhook %s rejects the deletions of the namespace controller"
	WebhookRejectedController say.Word = "its webhook %s rejected the deletions of the namespace controller at its last attempt"
	WebhookDidNotAnswer       say.Word = "its webhook %s did not answer at the last attempt of the namespace controller"
	DryRunPasses              say.Word = ", but your dry run passes now: the deletion resumes within a minute, unless only the controller's requests fail"
	NotCheckedNow             say.Word = "; not checked since"

	LacksRight    say.Word = "the namespace controller is not allowed to %s %s: %s lacks that right"
	AtLastAttempt say.Word = " as of its last attempt"
	NoBinding     say.Word = "no binding allows %s to %s %s"
)

// Ways to get past a webhook or a policy, and what they lose.
const (
	ExemptOne    say.Word = "exempt the namespace %s from the %s"
	ExemptAll    say.Word = "exempt the namespaces %s from the %s"
	OnlyAudit    say.Word = "set the binding to Audit: it then reports what it would reject, and rejects nothing"
	AndMore      say.Word = "%s and %d more"
	Unguarded    say.Word = "writes bypass the %s %s"
	UnguardedAll say.Word = Unguarded + ", in any namespace: pending deletions resume"
	// UnguardedLive is of a namespace that is not being deleted.
	UnguardedLive say.Word = Unguarded + ": pending deletions resume there"
	// Protects is an object of which the deletion is denied on purpose.
	Protects     say.Word = "%s, which the %s protects"
	ProtectsMore say.Word = "%d more objects, which the %s protects"
	Webhook      say.Word = "webhook"
	Webhooks     say.Word = "webhooks"
	Policy       say.Word = "policy"
	FromNowOn    say.Word = "from now on"
	WhileItIs    say.Word = "while it is unreachable"
	WhileTheyAre say.Word = "while they are unreachable"
	InThatOne    say.Word = "in that namespace"
	InThose      say.Word = "in those namespaces"
)

// Writes that are rejected.
const (
	DeletionOf say.Word = "the deletion of %s"
	UpdateOf   say.Word = "updates of %s"
	AndOthers  say.Word = " and of others"
)

// ValidatingAdmissionPolicies that reject a write.
const (
	PolicyRejects     say.Word = "the policy rejects %s"
	ExpressionFails   say.Word = "an expression of the policy fails, so the policy rejects %s"
	BindingUnusable   say.Word = "its binding %s cannot be used" + rejectsAll
	ParametersMissing say.Word = "%s, with the parameters of its binding %s, does not exist" + rejectsAll
	ParamPlace        say.Word = "name %s namespace %s"
	BySelector        say.Word = "by a selector"
	OfObject          say.Word = "of the object, if it has one"
	ChangeObject      say.Word = seePolicy + "change the object so that it complies"
	ChangePolicy      say.Word = seePolicy +
		"change the policy so that it allows the write; it does not look at the object, so changing that does not help"
	CorrectExpression say.Word = seePolicy + "correct the expression that fails (has() guards a field that might be missing)"
	ObjectIsNull      say.Word = "; in a DELETE, object is null: use oldObject"
	RecreateParams    say.Word = "recreate the object that the paramRef of the binding names, or correct the paramRef"
	ParamsExist       say.Word = "wait: %s exists by now, but the API server has not noticed; if that persists, change the paramRef of the binding"
	ParamsImpossible  say.Word = "change the paramRef of the binding: %s cannot be created in a namespace that is being deleted"
)

// Webhooks that are unreachable, slow, or reject a write.
const (
	AllUnreachable      say.Word = "its webhooks %s are unreachable%s, so every write that one of them covers is rejected (failurePolicy: Fail)"
	OneUnreachable      say.Word = "its webhook %s is unreachable%s, so every write that it covers is rejected (failurePolicy: Fail)"
	NoService           say.Word = ": %s does not exist"
	NoEndpoint          say.Word = ": %s has no ready endpoint"
	NotInTime           say.Word = "its webhook %s did not answer within its timeoutSeconds (%ds; failurePolicy: Fail), so every write that it covers is rejected"
	AnswersSometimes    say.Word = "its webhook %s answers only sometimes (failurePolicy: Fail): %d of %d dry runs passed, so a retry might pass"
	AsksWho             say.Word = "; its conditions depend on who sends the write, so the controller's writes might pass"
	BackendIs           say.Word = "; its backend is %s"
	SomeUnreachable     say.Word = "every write to it is rejected, because the admission webhook %s is unreachable"
	SomeRejects         say.Word = "the admission webhook %s rejects the write that the deletion needs"
	ConfigUnread        say.Word = "; its configuration could not be read"
	NotInAPI            say.Word = "; no configuration in the API has a webhook of that name: it is configured by a file on the machines of the control plane, or was removed a moment ago"
	OneOfSeveral        say.Word = "; several configurations have a webhook of that name"
	WebhookRejects      say.Word = "its webhook %s rejects %s"
	MightDelay          say.Word = "its webhook %s might delay each %s, which took %s"
	AnswersLate         say.Word = "its webhook %s does not answer in time: every write that it covers passes without it, after %s"
	SeemsToAnswerLate   say.Word = "its webhook %s seems not to answer in time: every write that it covers passes, after %s"
	AnsweredAfter       say.Word = "answered after %s: %s"
	FindWebhook         say.Word = "check which of the configurations rejects the write"
	MakeURLAnswer       say.Word = "make the URL of the webhook answer (it is not called through a Service); "
	DeleteLeftover      say.Word = "delete the left-over configuration (a backup is saved)"
	DeleteConfiguration say.Word = "delete the configuration with all its webhooks, if its product was uninstalled"
	ChangeForWebhook    say.Word = "check the object, then change it so that the webhook accepts it"
	LetPass             say.Word = "set failurePolicy: Ignore for the %s %s"
)

// What ends what to do about a webhook.
const (
	BlockedPass  say.Word = "blocked writes then pass"
	NoLongerWait say.Word = "writes no longer wait for the webhook"
)

// How the call of a webhook is corrected. What follows of it comes after.
const (
	CorrectCertificate say.Word = "recreate the webhook's certificate and its caBundle, with the product's chart or its certificate manager: the CA must have signed it, for the name of the Service; "
	CorrectPort        say.Word = "correct clientConfig.service.port, or the ports of the Service: it must be one of them; "
	MakeListen         say.Word = "correct the port that is called, or make the pods listen there: nothing does; "
	CorrectPath        say.Word = "correct the path in the webhook's clientConfig: something else answers there; "
	CheckNetwork       say.Word = "check the webhook's pods, and network policies between the API server and them: the call timed out; "
)

// What refuses a write.
const (
	// AnswerToYou ends the summary of a refusal that only the caller is known to meet.
	AnswerToYou   say.Word = "; tested with your credentials, the controller might get another answer"
	Reason        say.Word = ` ("%s")`
	OneReason     say.Word = ` (for example "%s")`
	NotRemovable  say.Word = "its finalizer %s cannot be removed"
	CoversWrites  say.Word = "the webhook covers writes to it, by its rules and selectors"
	CoversPods    say.Word = "the webhook covers each of its pods, by its rules and selectors"
	ServerRejects say.Word = "the API server rejects %s"
	AddsAgain     say.Word = "a mutating webhook or policy adds the finalizer again whenever it is removed"
	AddsAnother   say.Word = "a mutating webhook or policy adds a finalizer whenever the object is changed; a terminating object cannot get new ones, so every change is rejected"
	ChangesField  say.Word = "%s changes %s whenever the object is updated, and the API server rejects that, so no finalizer can be removed"
	NotOfTheWrite say.Word = "; the write changes only metadata: a rejected field was changed by %s"
	SomeMutator   say.Word = "a mutating webhook or policy, or a plugin of the API server,"
	NoneMatches   say.Word = "none that could be read matches"
	SpareEnding   say.Word = "make it ignore objects that are being deleted"
	SpareEndingOf say.Word = "make %s ignore objects that are being deleted"
	FieldIs       say.Word = "%s: %s"
	InvalidNow    say.Word = "it fails its current schema, so every update is rejected and no finalizer can be removed"
	CorrectFields say.Word = "fix its invalid fields in an editor"
	RelaxSchema   say.Word = "relax the schema of its definition in an editor, so that the object is valid"
	FromFile      say.Word = "change it on the control plane machines: it is in the staticManifestsDir of the file that kube-apiserver gets with --admission-control-config-file, and not in the API"
	InFile        say.Word = "; it is configured by a file on the machines of the control plane, and is not in the API"
)
