// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of foreground deletion and of orphaning.

// What the garbage collector has to do, and cannot.
const (
	waitsForDependents = "waits for its %s"
	deleteDependents   = "the garbage collector has to delete its blocking dependents"
	endForeground      = "the garbage collector has to finish its deletion"
	removeForeground   = "the garbage collector has to remove the finalizer foregroundDeletion"
	cannotRemoveIt     = "the garbage collector cannot remove the finalizer foregroundDeletion"
	typeUnlisted       = "the garbage collector cannot list objects of its type"
	unlistedBlockers   = "might wait for blocking dependents that could not be listed"
	noneFound          = "no blocking dependent was found, but %s"
)

// A cycle of owners.
const (
	blocksItself   = "it is in foreground deletion and blocks itself"
	cycleOf        = "%d objects in foreground deletion block each other"
	theCycle       = "the cycle"
	moreReferences = "and %d more references"
	breakCycle     = "take this object out of foreground deletion, which breaks the cycle: this object is deleted, and the rest of the cycle after it"
)

// Dependents that were created after the deletion of their owner.
const (
	createdLate    = "a controller or user created %s after the deletion, and might create more"
	recreatedLate  = "%[2]s, the controller of such owners, recreates its dependents: %[1]s after the deletion"
	creationBy     = "%s, by %s"
	aUser          = "a user"
	findCreator    = "find and stop the creator of its dependents until the owner is deleted"
	stopItsCreator = "stop %s, which creates its dependents, until the owner is deleted"
	stopController = "stop %s, with everything else that it does, until the owner is deleted; then scale it up again"
)

// collectorCannot says what the garbage collector cannot do, for certain or not.
var collectorCannot = map[bool]string{
	true:  "the garbage collector cannot %s",
	false: "the garbage collector might not be able to %s",
}

// deniedSays is for a dependent that it can neither delete nor release.
var deniedSays = map[bool]string{
	true:  collectorCannot[true] + ", and retries ever more rarely, up to 17 minutes apart",
	false: collectorCannot[false] + ": you cannot",
}

// tasks say what it has to do with a dependent, of the owner and of the dependent.
func (e edge) tasks() (ofOwner, ofDependent string) {
	if e.refused == "UPDATE" {
		return "remove the reference of its dependent " + e.dependent.Identity().String(), "remove its reference to " + e.owner.Identity().String()
	}
	return "delete its dependent " + e.dependent.Identity().String(), "delete it"
}

// ignored says why the garbage collector ignores a dependent, by the reason of one of its references.
func ignored(owner graph.Node, ref graph.Reference) string {
	const ignores = "; the garbage collector cannot resolve that owner, and ignores the dependent"
	has := ref.Dependent.Identity().String() + " also references"
	if ref.UID == owner.UID() {
		has = ref.Dependent.Identity().String() + " references its owner as"
	}
	switch ref.Reason {
	case graph.Unresolvable:
		return fmt.Sprintf("%s %s %s, which the server does not serve", has, ref.APIVersion, ref.Kind) + ignores
	case graph.InvalidName:
		return fmt.Sprintf("%s %s/%s, a name that no object can have", has, ref.Kind, ref.Name) + ignores
	}
	return ref.Dependent.Identity().String() + " is cluster-scoped and cannot have a namespaced owner: the garbage collector has given up on it"
}

// Dependents, and references that are wrong.
const (
	ownerUnread       = "its owner %s could not be looked up, so it is not known whether it is deleted"
	crossesNamespaces = "its reference to %s crosses namespaces, which is invalid: it gives no ownership, but still blocks the owner"
	dropInvalid       = "remove the invalid reference; the owner then no longer waits for the dependent"
	keepDependent     = "take the owner out of foreground deletion: %s; the dependent is kept"
	deleteDependent   = "delete the dependent, which the owner waits for"
	lostDependent     = "the dependent, which the garbage collector ignores"
	lostOthersToo     = "the dependent, which the garbage collector ignores and which %s also owns"
	dropUnresolvable  = "remove the reference that cannot be resolved"
	dropNamespaced    = "remove the reference that a cluster-scoped object cannot have"
)

// What follows when a dependent has lost a reference that could not be resolved, to the owner in the last two.
const (
	thenDeletesIt    = "; at its next attempt, up to 17 minutes later, the garbage collector deletes the dependent"
	thenReleasesIt   = "; at its next attempt, up to 17 minutes later, the garbage collector also removes the one to the owner, and keeps the dependent because %s owns it"
	thenOwnerless    = ", which is the one to the owner: the dependent is kept without an owner, and the owner no longer waits for it"
	thenOthersDecide = ", which is the one to the owner: the owner no longer waits for the dependent, and the other references decide whether the dependent is kept"
)

// Orphaning.
const (
	orphanDependents = "the garbage collector has to orphan its dependents"
	notYetOrphaned   = "its dependents are not orphaned yet"
	orphanFinalizer  = "its finalizer orphan cannot be removed"
	referencesKept   = "%s; it is not known why the references are not removed"
	orphaningDenied  = "%s, but the references cannot be removed: to delete it in another way now would delete the dependents that have no other owner"
	removeNow        = "remove the reference now, once nothing rejects that any more; the garbage collector retries within 17 minutes"
	theLists         = "the lists"
)

// referencing says how many dependents still reference an owner.
func referencing(n int) string {
	if n == 1 {
		return "1 dependent still references it"
	}
	return evidence.Number(n, "dependent") + " still reference it"
}
