// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
)

// All that explain says of writes: webhooks and policies that reject them, types that cannot be converted, dependents
// that cannot be released, and objects of which no deletion was requested.

// Writes that the API server rejects.

const (
	coversWrites = "the webhook covers writes to it, by its rules and selectors"
	coversPods   = "the webhook covers each of its pods, by its rules and selectors"
	notRemovable = "its finalizer %s cannot be removed"
	sentByYou    = "when you send it"
	// whenYou ends the summary of a refusal that only the caller is known to meet.
	whenYou = "; this is the answer to you, and the answer to the controller is not known"

	serverRejects     = "the API server rejects the write that the deletion needs"
	addsAgain         = "a mutating webhook or policy adds the finalizer again whenever it is removed"
	addsAnother       = "a mutating webhook or policy adds a finalizer whenever the object is changed; a terminating object cannot get new ones, so every change is rejected"
	changesField      = "%s changes %s whenever the object is updated, and the API server rejects that, so no finalizer can be removed"
	someMutator       = "a mutating webhook or policy"
	noneMatches       = "none that could be read matches"
	ignoreTerminating = "make it ignore objects that are being deleted"
	invalidNow        = "it is no longer valid as it is, so no update of it is accepted, and no finalizer can be removed"
	correctFields     = "open it in an editor and correct the invalid fields: it can then be updated again"
	relaxSchema       = "open its definition in an editor and relax the schema, so that the object is valid as it is"
	// fromFile is what to do about admission that is configured by a file (KEP-5793).
	fromFile = "look on the machines of the control plane, in the directory staticManifestsDir of the file that kube-apiserver gets with --admission-control-config-file: it cannot be changed through the API"
	inFile   = "; it is configured by a file on the machines of the control plane, and is not in the API"
)

// Webhooks.

const (
	unreachable       = "its webhook %s is unreachable (failurePolicy: Fail), so every write that it covers is rejected"
	allUnreachable    = "its webhooks %s are unreachable (failurePolicy: Fail), so every write that one of them covers is rejected"
	notInTime         = "its webhook %s did not answer within its timeoutSeconds (%ds; failurePolicy: Fail), so every write that it covers is rejected"
	answersSometimes  = "its webhook %s answers only sometimes (failurePolicy: Fail): %d of %d dry runs passed it, so the write might pass when it is tried again"
	failedEachTime    = "failed each of %d times"
	asksWho           = "; its conditions depend on who sends the write, so the controller's writes might pass"
	backendIs         = "; its backend is %s"
	someUnreachable   = "the unreachable admission webhook %s must allow every write to it"
	someRejects       = "the admission webhook %s rejects the write that the deletion needs"
	configUnread      = "; its configuration could not be read"
	notInAPI          = "; no configuration in the API has a webhook of that name: it is configured by a file on the machines of the control plane, or was removed a moment ago"
	oneOfSeveral      = "; several configurations have a webhook of that name"
	webhookRejects    = "its webhook %s rejects the write that the deletion needs"
	mightDelay        = "its webhook %s might be what delays a %s, which took %s"
	answersLate       = "its webhook %s does not answer in time: every write that it covers passes without it, after %s"
	seemsToAnswerLate = "its webhook %s seems not to answer in time: every write that it covers passes, after %s"
	answeredAfter     = "answered after %s: %s"

	findWebhook         = "see one of the configurations, and find out which of them is the blocker"
	makeURLAnswer       = "see how the webhook is called, at a URL and not through a Service: make that URL answer, and " + blockedPass
	deleteConfiguration = "delete the configuration with all its webhooks, if its product was uninstalled"
	changeForWebhook    = "see the object: change it so that the webhook allows the write"
	letPass             = "let writes pass the %s %s"
	fromNowOn           = "any more"
	// blockedPass and noLongerWait end what to do about a webhook.
	blockedPass  = "the writes that the webhook blocks then pass"
	noLongerWait = "writes no longer wait for the webhook"
)

// correction says how the call of a webhook is corrected; the result follows.
var correction = map[admission.WrongCall]string{
	admission.WrongCertificate: "see the webhook's clientConfig: its caBundle must be the CA that signed the webhook's certificate, and the certificate must be valid for the name of the Service; recreate both, with the product's chart or its certificate manager, and ",
	admission.WrongPort:        "see the ports of the Service: clientConfig.service.port must be one of them; correct it in the configuration or in the Service, and ",
	admission.NotListening:     "see the ports of the Service and its endpoints: nothing listens at the port that is called; correct the port, or make the pods listen there, and ",
	admission.WrongPath:        "see the webhook's clientConfig: something else answers at its path; correct the path, and ",
	admission.Late:             "see the webhook's clientConfig and timeoutSeconds: the call gets no answer in time; check the pods, and network policies between the API server and the pods, and ",
}

// webhooks names one webhook or several, and says for how long they are passed over.
func webhooks(count int) (what, in string) {
	if count > 1 {
		return "webhooks", "while they are unreachable"
	}
	return "webhook", "while it is unreachable"
}

// exempt says from what namespaces are exempted, and where that is not guarded then.
func exempt(namespaces []string, from string) (effect, in string) {
	if len(namespaces) == 1 {
		return fmt.Sprintf("exempt the namespace %s from the %s", namespaces[0], from), "any more in that namespace"
	}
	return fmt.Sprintf("exempt the namespaces %s from the %s", strings.Join(namespaces, ", "), from), "any more in those namespaces"
}

// Policies.

const (
	policyRejects     = "the policy rejects the write that the deletion needs"
	expressionFails   = "an expression of the policy fails, so the policy rejects the write that the deletion needs"
	bindingUnusable   = "its binding %s cannot be used" + rejectsAll
	parametersMissing = "%s, with the parameters of its binding %s, does not exist" + rejectsAll
	rejectsAll        = ", so the policy rejects every write that it covers, from any sender"
	paramPlace        = "name %s namespace %s"
	bySelector        = "by a selector"
	ofObject          = "of the object, if it has one"
	onlyAudit         = "make the binding audit what it would reject, and let it pass"
	seePolicy         = "see what the policy requires: "
	changeObject      = seePolicy + "change the object so that it complies, and the write is allowed"
	changePolicy      = seePolicy + "it does not look at the object, so no change of the object helps; change the policy so that it allows the write"
	objectIsNull      = "; a DELETE has an oldObject, but its object is null"
	correctExpression = seePolicy + "correct the expression that fails, with has() for a field that might be missing"
	seeBinding        = "see the binding with its paramRef: "
	recreateParams    = seeBinding + "recreate the object that it names, or correct the reference, and the policy works again"
	paramsExist       = seeBinding + "%s, which it names, exists by now, but the API server has not noticed that; if this persists, change the reference"
	paramsImpossible  = seeBinding + "%s, which it names, cannot be created in a namespace that is being deleted: change the reference, and the policy works again"
)

// What rejects the namespace controller.

const (
	// namespaceControllers are the users that the namespace controller may be, without and with
	// --use-service-account-credentials.
	namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"

	controllerRejected    = "the requests of the namespace controller are rejected"
	controllerLacksRights = "the namespace controller lacks rights that it needs"
	haveAllowed           = seePolicy + "make it allow the namespace controller, which is " + namespaceControllers + ", and the deletion resumes within a minute"
	haveWebhookAllow      = "see the webhook and its backend: make it allow the namespace controller, which is " + namespaceControllers
	restoreControllerRole = "check this with the API server, then restore ClusterRole/system:controller:namespace-controller and its binding: kube-apiserver recreates both when it starts"

	policyRejectsController  = "the policy rejects the deletions of the namespace controller"
	butNotDryRun             = ", but accepts a dry run by you: it depends on who sends a request, or on the kind of request"
	policyRejectedController = "the policy rejected the deletions of the namespace controller at its last attempt"
	policyUnread             = "; the policy or its binding could not be read"
	changedSinceThen         = "; whether it still does is not known: the policy, its binding, the namespace or its contents have changed since, or might have"
	lastChanged              = "last changed %s ago"

	webhookRejectsController  = "its webhook %s rejects the deletions of the namespace controller"
	webhookRejectedController = "its webhook %s rejected the deletions of the namespace controller at its last attempt"
	webhookDidNotAnswer       = "its webhook %s did not answer at the last attempt of the namespace controller"
	dryRunPasses              = ", but a dry run by you passes now: the deletion resumes within a minute if the webhook was fixed since, but not if only the controller's requests fail"
	notCheckedNow             = "; whether that is still so was not checked"

	lacksRight    = "the namespace controller is not allowed to %s %s: %s lacks that right"
	atLastAttempt = " as of its last attempt"
	noBinding     = "no binding allows %s to %s %s"
)

// Types that cannot be converted or decoded.

const (
	unreadable = "it cannot be read: %s"
)

// An object of which no deletion was requested.

const (
	wouldBeRefused  = "a DELETE of it would be refused"
	refusedBy       = wouldBeRefused + ", by %s [%s]"
	thenDeleteAgain = "; then send the DELETE again"
)

// writeSayings are those of the rules about writes that are refused.
var writeSayings = map[finding.Word]saying{}
