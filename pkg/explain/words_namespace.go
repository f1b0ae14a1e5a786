// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of namespaces and their contents, and of the instances of a CustomResourceDefinition.

// A namespace that does not exist.
const (
	namespaceMissing = "its namespace does not exist"
	leftBehind       = "the namespace does not exist any more, and nothing in it can be changed: it was finalized before it was empty"
	recreateIt       = "recreate the namespace, so that changes are possible again; let the controllers finish, then delete the namespace in the ordinary way"
)

// What the namespace controller has to do, and has not done.
const (
	specUnknown    = "the finalizers in its spec are not known"
	toBegin        = "the namespace controller has to delete its contents"
	toResume       = "the namespace controller has to resume"
	toFinish       = "the namespace controller has to finish the deletion"
	notDeleted     = "the namespace controller has not deleted its contents"
	cannotDelete   = "the namespace controller cannot delete its contents"
	cannotList     = "the namespace controller cannot list all types"
	cannotDiscover = "the namespace controller cannot discover all types"
	mightWaitFor   = "might wait for contents that could not be listed"
)

func toDelete(objects int) string {
	return "the namespace controller has to delete " + evidence.Number(objects, "object") + " in it"
}
func cannotUpdate(part string) string { return "the namespace controller cannot update its " + part }
func matchesUpdates(part string) string {
	return "the rules and selectors of the webhook match updates of its " + part
}

// notStarted says why the namespace controller might not have started.
func notStarted(leaseUnread bool) string {
	const said = "the namespace controller has not started: it might be disabled, it might be waiting for a server that does not respond about this or another namespace (it handles ten at a time), or its writes to the namespace might be rejected"
	if leaseUnread {
		return said + "; the lease of kube-controller-manager could not be read"
	}
	return said
}

// overdue ends what the namespace controller has to do, when nothing has changed for a while.
func overdue(since time.Duration, empty bool) string {
	said := ", and nothing has changed for " + duration.HumanDuration(since)
	if empty {
		said += "; a policy, a webhook or a missing right might block the update of its finalizers"
	}
	return said
}

// waitsForContents says what a namespace waits for, all that is in it or its pods, and its blocker after that.
func waitsForContents(objects int, next string) string {
	return "waits for its contents: " + evidence.Number(objects, "object") + next
}
func waitsForPods(pods int, next string) string {
	return "waits for its " + count(pods, "pod") + ", before the rest of its contents" + next
}

// blocksNext says what will block a namespace once its pods are deleted: so many objects, and the first of them.
func blocksNext(objects int, first graph.Node, finalizer string) string {
	blockers, such := first.Identity().String()+" will block it", ""
	if objects > 1 {
		blockers, such = evidence.Number(objects, "object")+" will block it", ", such as "+first.Identity().String()
	}
	return "; after that " + blockers + such + ": no working controller removes the finalizer " + finalizer
}

// Retries of the namespace controller, after what it failed at has been repaired.
const (
	failureGone   = "the contents that the namespace controller failed to delete do not exist any more; it retries within a minute"
	rejectionGone = "nothing rejects the deletions of the namespace controller any more; it retries within a minute"
	apisAnswer    = "all APIs are available again; the namespace controller retries within a minute"
)

// APIs that do not respond, or make no sense.
const (
	badVersion   = "an aggregated API advertises a group version that cannot be parsed"
	repairAPI    = "look at the aggregated APIs, which are those with a service, and repair the one that the message names"
	apiSilent    = "the API of this APIService does not respond, so no namespace deletion can finish"
	apiRepaired  = "namespace deletions resume"
	unregister   = "unregister the API, if its product was uninstalled"
	lostStoredBy = "everything that the API stored in the namespaces"
)

// emptinessUnknown says what could not be listed, and what the namespace controller says of it.
func emptinessUnknown(unlisted string, told []string) string {
	said := "it is not known whether it is empty: " + unlisted
	if len(told) > 0 {
		said += "; the namespace controller says: " + strings.Join(told, "; ")
	}
	return said
}

// contentsUnchecked says that the namespace controller has not started, and how many objects could be checked.
func contentsUnchecked(objects, checked int) string {
	said := "the namespace controller has not started to delete " + evidence.Number(objects, "object") + " in it; whether something rejects or delays that was "
	if checked == 0 {
		return said + "not checked, because too many dry runs had been sent"
	}
	return fmt.Sprintf("%schecked for only %d, because too many dry runs had been sent", said, checked)
}

const explainAlone = "explain this namespace alone"

// failure says how the namespace controller failed to delete contents.
type failure int

const (
	failedBefore failure = iota // at its last try, and nothing is left to delete
	failsNow
	acceptedNow // by the API server
	uncheckedNow
)

func (f failure) words(objects int) string {
	failed := "the namespace controller failed to delete " + evidence.Number(objects, "object") + " at its last try; "
	switch f {
	case failsNow:
		return "the namespace controller fails to delete " + evidence.Number(objects, "object")
	case acceptedNow:
		return failed + "the API server would accept that now, so it resumes within a minute, unless only its own requests are rejected"
	case uncheckedNow:
		return failed + "whether the API server would accept that now was not checked"
	}
	return "the namespace controller could not delete all contents at its last try"
}

const (
	dryRunOfEach  = "a dry-run DELETE of each"
	isAccepted    = "accepted"
	findRejection = "find out what rejects the deletion, without deleting anything, and repair that; the namespace controller then resumes within a minute"
)

// Instances of a definition.
const (
	toDeleteInstances = "the API server has to delete its instances"
	instancesUnlisted = "its instances could not be listed"
)

func waitsForInstances(n int) string { return "waits for its " + count(n, "instance") }

// instancesRemain says how many instances the API server still has to delete, and whether that takes too long.
func instancesRemain(n int, late bool) string {
	said := fmt.Sprintf("the API server still has to delete %d of its instances", n)
	if n == 0 {
		said = "its instances are deleted; the API server notices that within about a minute"
	}
	if late {
		said += ", but this takes longer than usual"
	}
	return said
}
