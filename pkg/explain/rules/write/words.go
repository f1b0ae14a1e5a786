// SPDX-License-Identifier: Apache-2.0

package write

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Parts that several of them share.
const (
	rejectsAll = ", so the policy rejects every write that it covers, from any sender"
	seePolicy  = "see what the policy requires: "
	seeBinding = "see the binding with its paramRef: "
	// namespaceControllers are the users that the namespace controller may be, without and with
	// --use-service-account-credentials.
	namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"
)

// What refuses the namespace controller, by the words of its condition, where no dry run meets it: the controller is another
// user, and sends other requests.
const (
	ControllerRejected    say.Word = "the requests of the namespace controller are rejected"
	ControllerLacksRights say.Word = "the namespace controller lacks rights that it needs"
	HaveAllowed           say.Word = seePolicy + "make it allow the namespace controller, which is " + namespaceControllers + ", and the deletion resumes within a minute"
	HaveWebhookAllow      say.Word = "see the webhook and its backend: make it allow the namespace controller, which is " + namespaceControllers
	RestoreControllerRole say.Word = "check this with the API server, then restore ClusterRole/system:controller:namespace-controller and its binding: kube-apiserver recreates both when it starts"

	PolicyRejectsController  say.Word = "the policy rejects the deletions of the namespace controller"
	ButNotDryRun             say.Word = ", but accepts a dry run by you: it depends on who sends a request, or on the kind of request"
	PolicyRejectedController say.Word = "the policy rejected the deletions of the namespace controller at its last attempt"
	PolicyUnread             say.Word = "; the policy or its binding could not be read"
	ChangedSinceThen         say.Word = "; whether it still does is not known: the policy, its binding, the namespace or its contents have changed since, or might have"
	LastChanged              say.Word = "last changed %s ago"

	WebhookRejectsController  say.Word = "its webhook %s rejects the deletions of the namespace controller"
	WebhookRejectedController say.Word = "its webhook %s rejected the deletions of the namespace controller at its last attempt"
	WebhookDidNotAnswer       say.Word = "its webhook %s did not answer at the last attempt of the namespace controller"
	DryRunPasses              say.Word = ", but a dry run by you passes now: the deletion resumes within a minute if the webhook was fixed since, but not if only the controller's requests fail"
	NotCheckedNow             say.Word = "; whether that is still so was not checked"

	LacksRight    say.Word = "the namespace controller is not allowed to %s %s: %s lacks that right"
	AtLastAttempt say.Word = " as of its last attempt"
	NoBinding     say.Word = "no binding allows %s to %s %s"
)

// Ways to get past a webhook or a policy, and what they lose.
const (
	ExemptOne    say.Word = "exempt the namespace %s from the %s"
	ExemptAll    say.Word = "exempt the namespaces %s from the %s"
	OnlyAudit    say.Word = "make the binding audit what it would reject, and let it pass"
	AndMore      say.Word = "%s and %d more"
	Unguarded    say.Word = "nothing is checked by the %s %s"
	UnguardedAll say.Word = Unguarded + ", in any namespace: whatever controllers wait to do passes, deletions included"
	// UnguardedLive is of a namespace that is not being deleted.
	UnguardedLive say.Word = Unguarded + ": whatever controllers wait to do there passes, deletions included"
	// Protects is an object of which the deletion is denied on purpose.
	Protects     say.Word = "%s, which the %s protects"
	ProtectsMore say.Word = "%d more objects, which the %s protects"
	Webhook      say.Word = "webhook"
	Webhooks     say.Word = "webhooks"
	Policy       say.Word = "policy"
	FromNowOn    say.Word = "any more"
	WhileItIs    say.Word = "while it is unreachable"
	WhileTheyAre say.Word = "while they are unreachable"
	InThatOne    say.Word = "any more in that namespace"
	InThose      say.Word = "any more in those namespaces"
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
	ChangeObject      say.Word = seePolicy + "change the object so that it complies, and the write is allowed"
	ChangePolicy      say.Word = seePolicy + "it does not look at the object, so no change of the object helps; change the policy so that it allows the write"
	CorrectExpression say.Word = seePolicy + "correct the expression that fails, with has() for a field that might be missing"
	ObjectIsNull      say.Word = "; a DELETE has an oldObject, but its object is null"
	RecreateParams    say.Word = seeBinding + "recreate the object that it names, or correct the reference, and the policy works again"
	ParamsExist       say.Word = seeBinding + "%s, which it names, exists by now, but the API server has not noticed that; if this persists, change the reference"
	ParamsImpossible  say.Word = seeBinding + "%s, which it names, cannot be created in a namespace that is being deleted: change the reference, and the policy works again"
)

// Webhooks that are unreachable, slow, or reject a write.
const (
	AllUnreachable      say.Word = "its webhooks %s are unreachable%s, so every write that one of them covers is rejected (failurePolicy: Fail)"
	OneUnreachable      say.Word = "its webhook %s is unreachable%s, so every write that it covers is rejected (failurePolicy: Fail)"
	NoService           say.Word = ": %s does not exist"
	NoEndpoint          say.Word = ": %s has no ready endpoint"
	NotInTime           say.Word = "its webhook %s did not answer within its timeoutSeconds (%ds; failurePolicy: Fail), so every write that it covers is rejected"
	AnswersSometimes    say.Word = "its webhook %s answers only sometimes (failurePolicy: Fail): %d of %d dry runs passed it, so the write might pass when it is tried again"
	AsksWho             say.Word = "; its conditions depend on who sends the write, so the controller's writes might pass"
	BackendIs           say.Word = "; its backend is %s"
	SomeUnreachable     say.Word = "the unreachable admission webhook %s must allow every write to it"
	SomeRejects         say.Word = "the admission webhook %s rejects the write that the deletion needs"
	ConfigUnread        say.Word = "; its configuration could not be read"
	NotInAPI            say.Word = "; no configuration in the API has a webhook of that name: it is configured by a file on the machines of the control plane, or was removed a moment ago"
	OneOfSeveral        say.Word = "; several configurations have a webhook of that name"
	WebhookRejects      say.Word = "its webhook %s rejects %s"
	MightDelay          say.Word = "its webhook %s might be what delays a %s, which took %s"
	AnswersLate         say.Word = "its webhook %s does not answer in time: every write that it covers passes without it, after %s"
	SeemsToAnswerLate   say.Word = "its webhook %s seems not to answer in time: every write that it covers passes, after %s"
	AnsweredAfter       say.Word = "answered after %s: %s"
	FindWebhook         say.Word = "see one of the configurations, and find out which of them is the blocker"
	MakeURLAnswer       say.Word = "see how the webhook is called, at a URL and not through a Service: make that URL answer, and "
	DeleteLeftover      say.Word = "delete the left-over configuration (a backup is saved)"
	DeleteConfiguration say.Word = "delete the configuration with all its webhooks, if its product was uninstalled"
	ChangeForWebhook    say.Word = "see the object: change it so that the webhook allows the write"
	LetPass             say.Word = "let writes pass the %s %s"
)

// What ends what to do about a webhook.
const (
	BlockedPass  say.Word = "the writes that the webhook blocks then pass"
	NoLongerWait say.Word = "writes no longer wait for the webhook"
)

// How the call of a webhook is corrected. What follows of it comes after.
const (
	CorrectCertificate say.Word = "see the webhook's clientConfig: its caBundle must be the CA that signed the webhook's certificate, and the certificate must be valid for the name of the Service; recreate both, with the product's chart or its certificate manager, and "
	CorrectPort        say.Word = "see the ports of the Service: clientConfig.service.port must be one of them; correct it in the configuration or in the Service, and "
	MakeListen         say.Word = "see the ports of the Service and its endpoints: nothing listens at the port that is called; correct the port, or make the pods listen there, and "
	CorrectPath        say.Word = "see the webhook's clientConfig: something else answers at its path; correct the path, and "
	CheckNetwork       say.Word = "see the webhook's clientConfig and timeoutSeconds: the call gets no answer in time; check the pods, and network policies between the API server and the pods, and "
)

// What refuses a write.
const (
	// AnswerToYou ends the summary of a refusal that only the caller is known to meet.
	AnswerToYou   say.Word = "; this is the answer to you, and the answer to the controller is not known"
	Reason        say.Word = ` ("%s")`
	OneReason     say.Word = ` (for example "%s")`
	NotRemovable  say.Word = "its finalizer %s cannot be removed"
	CoversWrites  say.Word = "the webhook covers writes to it, by its rules and selectors"
	CoversPods    say.Word = "the webhook covers each of its pods, by its rules and selectors"
	ServerRejects say.Word = "the API server rejects %s"
	AddsAgain     say.Word = "a mutating webhook or policy adds the finalizer again whenever it is removed"
	AddsAnother   say.Word = "a mutating webhook or policy adds a finalizer whenever the object is changed; a terminating object cannot get new ones, so every change is rejected"
	ChangesField  say.Word = "%s changes %s whenever the object is updated, and the API server rejects that, so no finalizer can be removed"
	NotOfTheWrite say.Word = "; the write changes metadata alone: if a field is what it rejects, that was changed on the way by %s"
	SomeMutator   say.Word = "a mutating webhook or policy, or a plugin of the API server,"
	NoneMatches   say.Word = "none that could be read matches"
	SpareEnding   say.Word = "make it ignore objects that are being deleted"
	SpareEndingOf say.Word = "make %s ignore objects that are being deleted"
	FieldIs       say.Word = "%s: %s"
	InvalidNow    say.Word = "it is no longer valid as it is, so no update of it is accepted, and no finalizer can be removed"
	CorrectFields say.Word = "open it in an editor and correct the invalid fields: it can then be updated again"
	RelaxSchema   say.Word = "open its definition in an editor and relax the schema, so that the object is valid as it is"
	FromFile      say.Word = "look on the machines of the control plane, in the directory staticManifestsDir of the file that kube-apiserver gets with --admission-control-config-file: it cannot be changed through the API"
	InFile        say.Word = "; it is configured by a file on the machines of the control plane, and is not in the API"
)
