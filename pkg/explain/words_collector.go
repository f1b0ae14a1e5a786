// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of foreground deletion and of orphaning.

// What the garbage collector has to do.
const (
	deleteDependents  = "the garbage collector has to delete its blocking dependents"
	endForeground     = "the garbage collector has to finish its deletion"
	removeForeground  = "the garbage collector has to remove the finalizer foregroundDeletion"
	cannotRemoveIt    = "the garbage collector cannot remove the finalizer foregroundDeletion"
	unlistedBlockers  = "might wait for blocking dependents that could not be listed"
	typeUnlisted      = "the garbage collector cannot list objects of its type"
	orphanDependents  = "the garbage collector has to orphan its dependents"
	notOrphaned       = "its dependents are not orphaned yet"
	orphanFinalizer   = "its finalizer orphan cannot be removed"
	removeNow         = "remove the reference now, once nothing rejects that any more; the garbage collector retries within 17 minutes"
	deleteDependent   = "delete the dependent, which the owner waits for"
	dropInvalid       = "remove the invalid reference; the owner then no longer waits for the dependent"
	lostToCollector   = "the dependent, which the garbage collector ignores"
	breakCycle        = "take this object out of foreground deletion, which breaks the cycle: this object is deleted, and the rest of the cycle after it"
	blocksItself      = "it is in foreground deletion and blocks itself"
	theCycle          = "the cycle"
	theLists          = "the lists"
	unknownController = "find and stop the creator of its dependents until the owner is deleted"
)

func waitsForDependents(n int) string { return "waits for its " + count(n, "blocking dependent") }

// noneFound says that no blocking dependent was found, and what could not be listed.
func noneFound(unlisted string) string { return "no blocking dependent was found, but " + unlisted }

func cycleOf(n int) string {
	if n == 1 {
		return blocksItself
	}
	return fmt.Sprintf("%d objects in foreground deletion block each other", n)
}

func moreReferences(n int) string { return fmt.Sprintf("and %d more references", n) }

// createdLate says that blocking dependents were created after the deletion of their owner, by whom or what.
func createdLate(n int, controller string) string {
	dependents := evidence.Number(n, "blocking dependent")
	if controller == "" {
		return "a controller or user created " + dependents + " after the deletion, and might create more"
	}
	return controller + ", the controller of such owners, recreates its dependents: " + dependents + " after the deletion"
}

// createdBy says when a dependent was created and by which program, empty for a user.
func createdBy(when, program string) string {
	if program == "" {
		program = "a user"
	}
	return when + ", by " + program
}

// stopCreator says to stop a program that creates dependents, empty for one that is not known.
func stopCreator(program string) string {
	if program == "" {
		return unknownController
	}
	return "stop " + program + ", which creates its dependents, until the owner is deleted"
}

func stopController(controller graph.Identity) string {
	return fmt.Sprintf("stop %s, with everything else that it does, until the owner is deleted; then scale it up again", controller)
}

// collectorCannot says that the garbage collector cannot do something, or might not be able to.
func collectorCannot(do string, certain bool) string {
	if certain {
		return "the garbage collector cannot " + do
	}
	return "the garbage collector might not be able to " + do
}

// deniedOwner says of an owner what the garbage collector cannot do with its dependent.
func deniedOwner(e edge, certain bool) string {
	task := "delete its dependent "
	if e.refused == "UPDATE" {
		task = "remove the reference of its dependent "
	}
	return collectorCannot(task+e.dependent.Identity().String(), certain)
}

// deniedDependent says the same of the dependent.
func deniedDependent(e edge, certain bool) string {
	task := "delete it"
	if e.refused == "UPDATE" {
		task = "remove its reference to " + e.owner.Identity().String()
	}
	if certain {
		return collectorCannot(task, true) + ", and retries ever more rarely, up to 17 minutes apart"
	}
	return collectorCannot(task, false) + ": you cannot"
}

// referencesOwner says that a dependent has a reference, besides the one to the owner or as that.
func referencesOwner(owner graph.Node, ref graph.Reference) string {
	if ref.UID == owner.UID() {
		return ref.Dependent.Identity().String() + " references its owner as"
	}
	return ref.Dependent.Identity().String() + " also references"
}

// ignored says why the garbage collector ignores a dependent, by the reason of one of its references.
func ignored(owner graph.Node, ref graph.Reference) string {
	const ignores = "; the garbage collector cannot resolve that owner, and ignores the dependent"
	switch ref.Reason {
	case graph.Unresolvable:
		return fmt.Sprintf("%s %s %s, which the server does not serve", referencesOwner(owner, ref), ref.APIVersion, ref.Kind) + ignores
	case graph.InvalidName:
		return fmt.Sprintf("%s %s/%s, a name that no object can have", referencesOwner(owner, ref), ref.Kind, ref.Name) + ignores
	}
	return ref.Dependent.Identity().String() + " is cluster-scoped and cannot have a namespaced owner: the garbage collector has given up on it"
}

func ownerUnread(ref graph.Reference) string {
	return "its owner " + ownerName(&ref) + " could not be looked up, so it is not known whether it is deleted"
}

func crossesNamespaces(owner graph.Node) string {
	return fmt.Sprintf("its reference to %s crosses namespaces, which is invalid: it gives no ownership, but still blocks the owner", owner.Identity())
}

// outOfForeground says to take an owner out of foreground deletion; goes says when that is deleted.
func outOfForeground(goes string) string {
	return "take the owner out of foreground deletion: " + goes + "; the dependent is kept"
}

// lostDependent is the loss of a dependent, which another owner may keep.
func lostDependent(keeper *graph.Reference) string {
	if keeper == nil {
		return lostToCollector
	}
	return lostToCollector + " and which " + ownerName(keeper) + " also owns"
}

// afterDrop is what follows when a dependent has lost a reference that could not be resolved.
type afterDrop int

const (
	// retried: the garbage collector tries again.
	retried afterDrop = iota
	// ownerless: it was the reference to the owner, and the last one.
	ownerless
	// othersDecide: it was the reference to the owner, and others are left.
	othersDecide
)

// dropUnresolvable says to remove a reference that could not be resolved, and what follows.
func dropUnresolvable(ref graph.Reference, after afterDrop, keeper *graph.Reference) string {
	said := "remove the reference that cannot be resolved"
	if ref.Reason == graph.ClusterScopedDependent {
		said = "remove the reference that a cluster-scoped object cannot have"
	}
	switch {
	case after == ownerless:
		return said + ", which is the one to the owner: the dependent is kept without an owner, and the owner no longer waits for it"
	case after == othersDecide:
		return said + ", which is the one to the owner: the owner no longer waits for the dependent, and the other references decide whether the dependent is kept"
	case keeper != nil:
		return said + "; at its next try, up to 17 minutes later, the garbage collector also removes the one to the owner, and keeps the dependent because " + ownerName(keeper) + " owns it"
	}
	return said + "; at its next try, up to 17 minutes later, the garbage collector deletes the dependent"
}

// referencing says how many dependents still reference an owner.
func referencing(n int) string {
	if n == 1 {
		return "1 dependent still references it"
	}
	return evidence.Number(n, "dependent") + " still reference it"
}

func referencesKept(n int) string {
	return referencing(n) + "; it is not known why the references are not removed"
}

// orphaningDenied says that the references of dependents, if there are any, or the finalizer cannot be removed.
func orphaningDenied(n int) string {
	if n == 0 {
		return orphanFinalizer
	}
	return referencing(n) + ", but the references cannot be removed: to delete it in another way now would delete the dependents that have no other owner"
}
