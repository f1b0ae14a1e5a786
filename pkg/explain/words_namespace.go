// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
)

// What is said of namespaces and their contents.

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
	cannotUpdate   = "the namespace controller cannot update its %s"
	matchesUpdates = "the rules and selectors of the webhook match updates of its %s"
)

// Retries of the namespace controller, once the reason of its failure does not exist any more.
const (
	failureGone   = "the contents that the namespace controller failed to delete do not exist any more; it retries within a minute"
	rejectionGone = "nothing rejects the deletions of the namespace controller any more; it retries within a minute"
)

// Contents that the namespace controller has not deleted, or failed to.
const (
	contentsUnchecked = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was not checked, because too many dry runs had been sent"
	contentsSampled   = "the namespace controller has not started to delete %s in it; whether something rejects or delays that was checked for only %d, because too many dry runs had been sent"
	failedBefore      = "the namespace controller could not delete all contents at its last attempt"
	failsNow          = "the namespace controller fails to delete %s"
	acceptedNow       = "the namespace controller failed to delete %s at its last attempt; the API server would accept that now, so it resumes within a minute, unless only its own requests are rejected"
	uncheckedNow      = "the namespace controller failed to delete %s at its last attempt; whether the API server would accept that now was not checked"
	explainAlone      = "explain this namespace alone"
	findRejection     = "find out what rejects the deletion, without deleting anything, and repair that; the namespace controller then resumes within a minute"
)

// objects counts objects.
func objects(n int) string { return evidence.Number(n, "object") }

// namespaceSayings are those of the rules about a namespace's controller, and kube-controller-manager.
var namespaceSayings = map[finding.Word]saying{}
