// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/write"
)

// All that explain says of writes: webhooks and policies that reject them, types that cannot be converted, dependents
// that cannot be released.

// sentByYou is where a refusal is shown that says nothing of the object.
const sentByYou = "when you send it"

// Types that cannot be converted or decoded.

const (
	unreadable = "it cannot be read: %s"
)

// What some of writeSayings have in common.
const (
	rejectsAll = ", so the policy rejects every write that it covers, from any sender"
	seePolicy  = "see what the policy requires: "
	seeBinding = "see the binding with its paramRef: "
	// namespaceControllers are the users that the namespace controller may be, without and with
	// --use-service-account-credentials.
	namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"
)

// writeSayings are those of the rules about writes that are refused.
var writeSayings = map[finding.Word]saying{
	write.AnswerToYou:   {text: "; this is the answer to you, and the answer to the controller is not known"},
	write.Reason:        {text: ` ("%s")`},
	write.OneReason:     {text: ` (for example "%s")`},
	write.NotRemovable:  {text: "its finalizer %s cannot be removed"},
	write.CoversWrites:  {text: "the webhook covers writes to it, by its rules and selectors"},
	write.CoversPods:    {text: "the webhook covers each of its pods, by its rules and selectors"},
	write.ServerRejects: {text: "the API server rejects the write that the deletion needs"},
	write.AddsAgain:     {text: "a mutating webhook or policy adds the finalizer again whenever it is removed"},
	write.AddsAnother:   {text: "a mutating webhook or policy adds a finalizer whenever the object is changed; a terminating object cannot get new ones, so every change is rejected"},
	write.ChangesField:  {text: "%s changes %s whenever the object is updated, and the API server rejects that, so no finalizer can be removed"},
	write.SomeMutator:   {text: "a mutating webhook or policy"},
	write.NoneMatches:   {text: "none that could be read matches"},
	write.SpareEnding:   {text: "make it ignore objects that are being deleted", risk: Disruptive},
	write.InvalidNow:    {text: "it is no longer valid as it is, so no update of it is accepted, and no finalizer can be removed"},
	write.CorrectFields: {text: "open it in an editor and correct the invalid fields: it can then be updated again"},
	write.RelaxSchema:   {text: "open its definition in an editor and relax the schema, so that the object is valid as it is", risk: Disruptive},
	// Admission that is configured by a file (KEP-5793).
	write.FromFile: {text: "look on the machines of the control plane, in the directory staticManifestsDir of the file that kube-apiserver gets with --admission-control-config-file: it cannot be changed through the API"},
	write.InFile:   {text: "; it is configured by a file on the machines of the control plane, and is not in the API"},

	write.OneUnreachable:      {text: "its webhook %s is unreachable (failurePolicy: Fail), so every write that it covers is rejected"},
	write.AllUnreachable:      {text: "its webhooks %s are unreachable (failurePolicy: Fail), so every write that one of them covers is rejected"},
	write.NotInTime:           {text: "its webhook %s did not answer within its timeoutSeconds (%ds; failurePolicy: Fail), so every write that it covers is rejected"},
	write.AnswersSometimes:    {text: "its webhook %s answers only sometimes (failurePolicy: Fail): %d of %d dry runs passed it, so the write might pass when it is tried again"},
	write.AsksWho:             {text: "; its conditions depend on who sends the write, so the controller's writes might pass"},
	write.BackendIs:           {text: "; its backend is %s"},
	write.SomeUnreachable:     {text: "the unreachable admission webhook %s must allow every write to it"},
	write.SomeRejects:         {text: "the admission webhook %s rejects the write that the deletion needs"},
	write.ConfigUnread:        {text: "; its configuration could not be read"},
	write.NotInAPI:            {text: "; no configuration in the API has a webhook of that name: it is configured by a file on the machines of the control plane, or was removed a moment ago"},
	write.OneOfSeveral:        {text: "; several configurations have a webhook of that name"},
	write.WebhookRejects:      {text: "its webhook %s rejects the write that the deletion needs"},
	write.MightDelay:          {text: "its webhook %s might be what delays a %s, which took %s"},
	write.AnswersLate:         {text: "its webhook %s does not answer in time: every write that it covers passes without it, after %s"},
	write.SeemsToAnswerLate:   {text: "its webhook %s seems not to answer in time: every write that it covers passes, after %s"},
	write.AnsweredAfter:       {text: "answered after %s: %s"},
	write.FindWebhook:         {text: "see one of the configurations, and find out which of them is the blocker"},
	write.MakeURLAnswer:       {text: "see how the webhook is called, at a URL and not through a Service: make that URL answer, and "},
	write.DeleteConfiguration: {text: "delete the configuration with all its webhooks, if its product was uninstalled"},
	write.ChangeForWebhook:    {text: "see the object: change it so that the webhook allows the write"},
	write.BlockedPass:         {text: "the writes that the webhook blocks then pass"},
	write.NoLongerWait:        {text: "writes no longer wait for the webhook"},
	write.CorrectCertificate:  {text: "see the webhook's clientConfig: its caBundle must be the CA that signed the webhook's certificate, and the certificate must be valid for the name of the Service; recreate both, with the product's chart or its certificate manager, and "},
	write.CorrectPort:         {text: "see the ports of the Service: clientConfig.service.port must be one of them; correct it in the configuration or in the Service, and "},
	write.MakeListen:          {text: "see the ports of the Service and its endpoints: nothing listens at the port that is called; correct the port, or make the pods listen there, and "},
	write.CorrectPath:         {text: "see the webhook's clientConfig: something else answers at its path; correct the path, and "},
	write.CheckNetwork:        {text: "see the webhook's clientConfig and timeoutSeconds: the call gets no answer in time; check the pods, and network policies between the API server and the pods, and "},

	write.LetPass:      {text: "let writes pass the %s %s"},
	write.ExemptOne:    {text: "exempt the namespace %s from the %s"},
	write.ExemptAll:    {text: "exempt the namespaces %s from the %s"},
	write.OnlyAudit:    {text: "make the binding audit what it would reject, and let it pass"},
	write.Unguarded:    {text: "nothing is checked by the %s %s"},
	write.Webhook:      {text: "webhook"},
	write.Webhooks:     {text: "webhooks"},
	write.Policy:       {text: "policy"},
	write.FromNowOn:    {text: "any more"},
	write.WhileItIs:    {text: "while it is unreachable"},
	write.WhileTheyAre: {text: "while they are unreachable"},
	write.InThatOne:    {text: "any more in that namespace"},
	write.InThose:      {text: "any more in those namespaces"},

	write.PolicyRejects:     {text: "the policy rejects the write that the deletion needs"},
	write.ExpressionFails:   {text: "an expression of the policy fails, so the policy rejects the write that the deletion needs"},
	write.BindingUnusable:   {text: "its binding %s cannot be used" + rejectsAll},
	write.ParametersMissing: {text: "%s, with the parameters of its binding %s, does not exist" + rejectsAll},
	write.ParamPlace: {made: func(args ...any) string {
		return fmt.Sprintf("name %s namespace %s", cmp.Or(args[0].(string), "by a selector"), cmp.Or(args[1].(string), "of the object, if it has one"))
	}},
	write.ChangeObject:      {text: seePolicy + "change the object so that it complies, and the write is allowed"},
	write.ChangePolicy:      {text: seePolicy + "it does not look at the object, so no change of the object helps; change the policy so that it allows the write"},
	write.CorrectExpression: {text: seePolicy + "correct the expression that fails, with has() for a field that might be missing"},
	write.ObjectIsNull:      {text: "; a DELETE has an oldObject, but its object is null"},
	write.RecreateParams:    {text: seeBinding + "recreate the object that it names, or correct the reference, and the policy works again"},
	write.ParamsExist:       {text: seeBinding + "%s, which it names, exists by now, but the API server has not noticed that; if this persists, change the reference"},
	write.ParamsImpossible:  {text: seeBinding + "%s, which it names, cannot be created in a namespace that is being deleted: change the reference, and the policy works again"},

	write.ControllerRejected:        {text: "the requests of the namespace controller are rejected"},
	write.ControllerLacksRights:     {text: "the namespace controller lacks rights that it needs"},
	write.HaveAllowed:               {text: seePolicy + "make it allow the namespace controller, which is " + namespaceControllers + ", and the deletion resumes within a minute"},
	write.HaveWebhookAllow:          {text: "see the webhook and its backend: make it allow the namespace controller, which is " + namespaceControllers},
	write.RestoreControllerRole:     {text: "check this with the API server, then restore ClusterRole/system:controller:namespace-controller and its binding: kube-apiserver recreates both when it starts"},
	write.PolicyRejectsController:   {text: "the policy rejects the deletions of the namespace controller"},
	write.ButNotDryRun:              {text: ", but accepts a dry run by you: it depends on who sends a request, or on the kind of request"},
	write.PolicyRejectedController:  {text: "the policy rejected the deletions of the namespace controller at its last attempt"},
	write.PolicyUnread:              {text: "; the policy or its binding could not be read"},
	write.ChangedSinceThen:          {text: "; whether it still does is not known: the policy, its binding, the namespace or its contents have changed since, or might have"},
	write.LastChanged:               {text: "last changed %s ago"},
	write.WebhookRejectsController:  {text: "its webhook %s rejects the deletions of the namespace controller"},
	write.WebhookRejectedController: {text: "its webhook %s rejected the deletions of the namespace controller at its last attempt"},
	write.WebhookDidNotAnswer:       {text: "its webhook %s did not answer at the last attempt of the namespace controller"},
	write.DryRunPasses:              {text: ", but a dry run by you passes now: the deletion resumes within a minute if the webhook was fixed since, but not if only the controller's requests fail"},
	write.NotCheckedNow:             {text: "; whether that is still so was not checked"},
	write.LacksRight:                {text: "the namespace controller is not allowed to %s %s: %s lacks that right"},
	write.AtLastAttempt:             {text: " as of its last attempt"},
	write.NoBinding:                 {text: "no binding allows %s to %s %s"},
}
