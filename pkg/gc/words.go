// SPDX-License-Identifier: Apache-2.0

package gc

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Why an object is as it is at the end of a run.
const (
	// NoUID is why nothing is written to an object that has none.
	NoUID        say.Word = "it has no UID, so it cannot be told from another object of its name"
	beingDeleted say.Word = "; it was being deleted before"
	unserved     say.Word = "its type is not served any more: unclear whether it still exists"
	endUnseen    say.Word = "its deletion was accepted, but its end was not seen"
	unproved     say.Word = "its Namespace or CustomResourceDefinition is gone, but it could not be proved that this object is gone as well: %v"
	outlives     say.Word = "it still exists, although its Namespace or CustomResourceDefinition is gone"
	ownerUnknown say.Word = "unclear whether its owner %s still exists"
	notReached   say.Word = "it was not reached"
	// EarlierWave is why a wave is held back by InWaves: an object of one before still exists.
	EarlierWave   say.Word = "not deleted, because an object of an earlier wave still exists: %s"
	ownerExists   say.Word = "its owner %s/%s still exists"
	notSent       say.Word = "not sent: %v"
	noAnswer      say.Word = "no answer, and no effect seen: %v"
	refusedLater  say.Word = "refused: %v; an earlier request was not answered, and might still be carried out"
	refused       say.Word = "refused: %v"
	serverAway    say.Word = "its end was not seen: the API server could not be reached for %s"
	nothingKeeps  say.Word = "nothing keeps it, but it was not reached"
	goesWith      say.Word = "deleted with %s, once %s handles it"
	theServer     say.Word = "the API server"
	theNamespaces say.Word = "the namespace controller"
	// OfFinalizers is of the finalizers that keep an object.
	OfFinalizers   say.Word = "finalizer %s"
	ofKubelet      say.Word = "its kubelet must end it"
	begunBefore    say.Word = "its foreground deletion began before this run, and only collect finishes it"
	foregroundLeft say.Word = "its finalizer foregroundDeletion was not removed"
	noBlocker      say.Word = "it has no visible blocker"
	orphansOutside say.Word = "its dependents outside namespace %s are not orphaned"
	notOrphaned    say.Word = "its dependents are not orphaned yet"
	namespaceStays say.Word = "the namespace controller has not ended it"
	specHolds      say.Word = "spec.finalizers has some that the namespace controller does not remove: %s"
	contentsFirst  say.Word = "its contents must be deleted first"
	oneBlocks      say.Word = "a blocking dependent must be deleted first"
	someBlock      say.Word = "%d blocking dependents must be deleted first"
)
