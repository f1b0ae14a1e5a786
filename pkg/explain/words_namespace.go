// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of namespaces and their contents.

// A namespace that does not exist.
const (
	namespaceMissing = "its namespace does not exist"
	leftBehind       = "the namespace does not exist any more, and nothing in it can be changed: it was finalized before it was empty"
	recreateIt       = "recreate the namespace, so that changes are possible again; let the controllers finish, then delete the namespace in the ordinary way"
)

// What a namespace waits for.
const (
	specUnknown      = "the finalizers in its spec are not known"
	waitsForContents = "waits for its contents: %s"
	waitsForPods     = "waits for its %s, before the rest of its contents"
	mightWaitFor     = "might wait for contents that could not be listed"
	emptinessUnknown = "it is not known whether it is empty: %s"
	controllerSays   = "; the namespace controller says: %s"
)

// blocksNext says what will block a namespace once its pods are deleted: so many objects, and the first of them.
func blocksNext(objects int, first graph.Node, finalizer string) string {
	blocker := first.Identity().String() + " will block it"
	if objects > 1 {
		blocker = evidence.Number(objects, "object") + " will block it, such as " + first.Identity().String()
	}
	return fmt.Sprintf("; after that %s: no working controller removes the finalizer %s", blocker, finalizer)
}

// What the namespace controller has to do, and cannot.
const (
	toBegin        = "the namespace controller has to delete its contents"
	toDelete       = "the namespace controller has to delete %s in it"
	toResume       = "the namespace controller has to resume"
	toFinish       = "the namespace controller has to finish the deletion"
	nothingChanged = ", and nothing has changed for %s"
	updateBlocked  = "; a policy, a webhook or a missing right might block the update of its finalizers"
	notStarted     = "the namespace controller has not started: it might be disabled, it might be waiting for a server that does not respond about this or another namespace (it handles ten at a time), or its writes to the namespace might be rejected"
	leaseUnread    = "; the lease of kube-controller-manager could not be read"
	notDeleted     = "the namespace controller has not deleted its contents"
	cannotDelete   = "the namespace controller cannot delete its contents"
	cannotList     = "the namespace controller cannot list all types"
	cannotDiscover = "the namespace controller cannot discover all types"
	cannotUpdate   = "the namespace controller cannot update its %s"
	matchesUpdates = "the rules and selectors of the webhook match updates of its %s"
)

// Retries of the namespace controller, once the reason of its failure does not exist any more.
const (
	failureGone   = "the contents that the namespace controller failed to delete do not exist any more; it retries within a minute"
	rejectionGone = "nothing rejects the deletions of the namespace controller any more; it retries within a minute"
	apisAnswer    = "all APIs are available again; the namespace controller retries within a minute"
)

// APIs that do not respond, or make no sense.
const (
	badVersion   = "an aggregated API advertises a group version that cannot be parsed"
	repairAPI    = "see the aggregated APIs, which are those with a service: repair the one that the message names"
	apiSilent    = "the API of this APIService does not respond, so no namespace deletion can finish"
	apiRepaired  = "namespace deletions resume"
	unregister   = "unregister the API, if its product was uninstalled"
	lostStoredBy = "everything that the API stored in the namespaces"
)

// Contents that the namespace controller has not deleted, or failed to.
const (
	contentsUnchecked = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was not checked, because too many dry runs had been sent"
	contentsSampled   = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was checked for only %d, because too many dry runs had been sent"
	failedBefore      = "the namespace controller could not delete all contents at its last attempt"
	failsNow          = "the namespace controller fails to delete %s"
	acceptedNow       = "the namespace controller failed to delete %s at its last attempt; the API server would accept that now, so it resumes within a minute, unless only its own requests are rejected"
	uncheckedNow      = "the namespace controller failed to delete %s at its last attempt; whether the API server would accept that now was not checked"
	dryRunOfEach      = "a dry-run DELETE of each"
	isAccepted        = "accepted"
	explainAlone      = "explain this namespace alone"
	findRejection     = "find out what rejects the deletion, without deleting anything, and repair that; the namespace controller then resumes within a minute"
)

// objects counts objects.
func objects(n int) string { return evidence.Number(n, "object") }
