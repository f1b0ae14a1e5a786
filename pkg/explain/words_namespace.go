// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/untouched"
)

// What is said of namespaces and their contents, of kube-controller-manager, and of objects of which no deletion was requested.

// namespaceSayings are those of the rules about a namespace's controller, kube-controller-manager, and objects of which no
// deletion was requested.
var namespaceSayings = map[finding.Word]saying{
	namespace.ToBegin:        {text: "the namespace controller has to delete its contents"},
	namespace.ToDelete:       {text: "the namespace controller has to delete %s in it"},
	namespace.ToResume:       {text: "the namespace controller has to resume"},
	namespace.ToFinish:       {text: "the namespace controller has to finish the deletion"},
	namespace.NothingChanged: {text: ", and nothing has changed for %s"},
	namespace.UpdateBlocked:  {text: "; a policy, a webhook or a missing right might block the update of its finalizers"},
	namespace.NotStarted:     {text: "the namespace controller has not started: it might be disabled, it might be waiting for a server that does not respond about this or another namespace (it handles ten at a time), or its writes to the namespace might be rejected"},
	namespace.LeaseUnread:    {text: "; the lease of kube-controller-manager could not be read"},
	namespace.CannotUpdate:   {text: "the namespace controller cannot update its %s"},
	namespace.MatchesUpdates: {text: "the rules and selectors of the webhook match updates of its %s"},
	namespace.FailureGone:    {text: "the contents that the namespace controller failed to delete do not exist any more; it retries within a minute"},
	namespace.RejectionGone:  {text: "nothing rejects the deletions of the namespace controller any more; it retries within a minute"},

	namespace.NotDeleted:        {text: "the namespace controller has not deleted its contents"},
	namespace.CannotDelete:      {text: "the namespace controller cannot delete its contents"},
	namespace.ContentsUnchecked: {text: "the namespace controller has not started to delete %s in it; whether something rejects or delays that was not checked, because too many dry runs had been sent"},
	namespace.ContentsSampled:   {text: "the namespace controller has not started to delete %s in it; whether something rejects or delays that was checked for only %d, because too many dry runs had been sent"},
	namespace.FailedBefore:      {text: "the namespace controller could not delete all contents at its last attempt"},
	namespace.FailsNow:          {text: "the namespace controller fails to delete %s"},
	namespace.AcceptedNow:       {text: "the namespace controller failed to delete %s at its last attempt; the API server would accept that now, so it resumes within a minute, unless only its own requests are rejected"},
	namespace.UncheckedNow:      {text: "the namespace controller failed to delete %s at its last attempt; whether the API server would accept that now was not checked"},
	namespace.ExplainAlone:      {text: "explain this namespace alone"},
	namespace.FindRejection:     {text: "find out what rejects the deletion, without deleting anything, and repair that; the namespace controller then resumes within a minute"},

	rules.MadeAgo:             {text: "%s ago, created by a controller in kube-controller-manager"},
	rules.NotDoneFor:          {text: "%s ago: %s"},
	rules.NoCondition:         {text: "the namespace controller has not set any condition"},
	rules.DependentNotDeleted: {text: "its dependent %s can be deleted, but is not"},
	rules.ForegroundNotEnded:  {text: "it has the finalizer foregroundDeletion, but no blocking dependents"},
	rules.NotOrphaned:         {text: "its dependents are not orphaned"},
	rules.ManagerDead:         {text: "no garbage collector works: kube-controller-manager neither renews its lease nor acts"},
	rules.ManagerUnproven:     {text: "kube-controller-manager does not renew its lease; it is not known whether it works without one, because %s"},
	rules.ManagerLate:         {text: "kube-controller-manager has not acted for a while: one of its controllers might be disabled, might have missed the object, or might be backing off after an error, for up to 17 minutes"},
	rules.ManagerLateUnread:   {text: "kube-controller-manager has not acted for a while, and its lease could not be read"},
	rules.FindManager:         {text: "see kube-controller-manager, if it runs as a pod: find out there, or on the machines of the control plane, why it does not run, and start it"},
	rules.FindHolder:          {text: "see who held the lease last: find out there why kube-controller-manager does not run, and start it"},
	rules.CollectThere:        {text: "do the garbage collector's work there once; the command shows what it will do, and asks first"},
	rules.WaitedShortly:       {text: "this object has not waited for it for long"},
	rules.WorkUnaccepted:      {text: "it is not known that the API server accepts its writes"},
	rules.ContentUnaccepted:   {text: "it is not known that the API server accepts the deletion of the contents"},
	rules.ChangedMeanwhile:    {text: "%s has just changed"},
	rules.InTheFuture:         {text: "its deletion lies in the future"},
	rules.RequestedAhead:      {text: "its deletion was requested %s from now: clocks in the control plane differ, so nothing can be concluded from ages"},
	rules.SyncClocks:          {text: "synchronise the clocks of the control plane machines"},

	collector.BlindAfterRestart: {text: "%s: after a restart, the garbage collector of this server does nothing until it has listed all types, and the list of one fails"},
	collector.ReadableIn:        {text: "%s, in which it can be read"},

	untouched.NamespaceProtected: {text: "the API server does not allow the deletion of this namespace"},
	untouched.WouldBeRefused:     {text: "a DELETE of it would be refused"},
	untouched.RefusedBy:          {text: ", by %s [%s]"},
	untouched.ThenDeleteAgain:    {text: "; then send the DELETE again"},
	untouched.OneTerminating:     {text: "%s in it is being deleted"},
	untouched.SomeTerminating:    {text: "%s in it are being deleted"},
	untouched.ExplainContents:    {text: "explain the terminating objects in it"},
	untouched.WasCreated:         {text: "it was created %s ago: if an object of its name was deleted, that one is gone, and this is another one"},
	untouched.CreatedBy:          {text: "%s created it %s ago: if an object of its name was deleted, that one is gone, and this is another one"},
	untouched.LeaveIt:            {text: "leave it: %s creates it, and recreates it as long as it is needed"},
	untouched.DeleteCreator:      {text: "to get rid of objects of this name, delete %s, or scale it down: as long as it needs one, it creates another", risk: Disruptive},
	untouched.StopCreator:        {text: "to get rid of objects of this name, stop their creator, %s", risk: Disruptive},
}
