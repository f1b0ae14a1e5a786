// SPDX-License-Identifier: Apache-2.0

package namespace

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Contents that the namespace controller has not deleted, or failed to.
const (
	NotDeleted        say.Word = "the namespace controller has not deleted its contents"
	CannotDelete      say.Word = "the namespace controller cannot delete its contents"
	ContentsUnchecked say.Word = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was not checked, because too many dry runs had been sent"
	ContentsSampled   say.Word = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was checked for only %d, because too many dry runs had been sent"
	FailedBefore      say.Word = "the namespace controller could not delete all contents at its last attempt"
	FailsNow          say.Word = "the namespace controller fails to delete %s"
	AcceptedNow       say.Word = "the namespace controller failed to delete %s at its last attempt; the API server accepts that now, so it resumes within a minute, unless only its own requests are rejected"
	UncheckedNow      say.Word = "the namespace controller failed to delete %s at its last attempt; not checked since"
	ExplainAlone      say.Word = "explain this namespace alone"
	FindRejection     say.Word = "find what rejects the deletion, with a dry run, and fix that; the namespace controller then resumes within a minute"
)

// What the namespace controller has to do, and cannot.
const (
	ToBegin        say.Word = "the namespace controller has to delete its contents"
	ToDelete       say.Word = "the namespace controller has to delete %s in it"
	ToResume       say.Word = "the namespace controller has to resume"
	ToFinish       say.Word = "the namespace controller has to finish the deletion"
	NothingChanged say.Word = ", and nothing has changed for %s"
	UpdateBlocked  say.Word = "; a policy, a webhook or a missing right might block the update of its finalizers"
	NotStarted     say.Word = "the namespace controller has not started"
	MightNotStart  say.Word = ": it might be disabled, it might be waiting for a server that does not respond about this or another namespace (it handles ten at a time), or its writes to the namespace might be rejected"
	LeaseUnread    say.Word = "; the lease of kube-controller-manager could not be read"
	CannotUpdate   say.Word = "the namespace controller cannot update its %s"
	MatchesUpdates say.Word = "the rules and selectors of the webhook match updates of its %s"
)

// Retries of the namespace controller, once the reason of its failure does not exist any more.
const (
	FailureGone   say.Word = "the contents that the namespace controller failed to delete do not exist any more; it retries within a minute"
	RejectionGone say.Word = "nothing rejects the deletions of the namespace controller any more; it retries within a minute"
)

// What a namespace waits for, and one that does not exist.
const (
	Missing          say.Word = "its namespace does not exist"
	LeftBehind       say.Word = "the namespace was finalized by force before it was empty, so nothing in it can be changed"
	Recreate         say.Word = "recreate the namespace, so that changes are possible again; let the controllers finish, then delete the namespace in the ordinary way"
	SpecUnknown      say.Word = "the finalizers in its spec are not known"
	WaitsForContents say.Word = "waits for its contents: %s"
	WaitsForPods     say.Word = "waits for its %s, before the rest of its contents"
	OneBlocksNext    say.Word = "; after that %s will block it: no working controller removes the finalizer %s"
	MoreBlockNext    say.Word = "; after that %s will block it, such as %s: no working controller removes the finalizer %s"
	MightWaitFor     say.Word = "might wait for contents that could not be listed"
	EmptinessUnknown say.Word = "unclear whether it is empty: %s"
	ControllerSays   say.Word = "; the namespace controller says: %s"
	CannotList       say.Word = "the namespace controller cannot list all types"
)

// APIs that do not respond, or make no sense.
const (
	CannotDiscover     say.Word = "the namespace controller cannot discover all types"
	BadVersion         say.Word = "an aggregated API advertises a group version that cannot be parsed"
	RepairAPI          say.Word = "check the aggregated APIs (those with a service), then repair the one that the message names"
	APISilent          say.Word = "the API of this APIService does not respond, so no namespace deletion can finish"
	APIRepaired        say.Word = "namespace deletions resume"
	APIsAnswer         say.Word = "all APIs are available again; the namespace controller retries within a minute"
	UnregisterLeftover say.Word = "delete the left-over registration of the API, whose %s does not exist"
	Unregister         say.Word = "unregister the API, if its product was uninstalled"
	LostStoredBy       say.Word = "everything that the API stored in the namespaces"
)
