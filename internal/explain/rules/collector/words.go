// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Dependents, and owners in foreground deletion that wait for them.
const (
	Keeps            say.Word = "%s, which exists, so the garbage collector keeps the dependent"
	OutOfForeground  say.Word = "switch the owner to background deletion: %s; %s"
	NotWaitFor       say.Word = "set blockOwnerDeletion: false on %s; %s"
	DropToOwner      say.Word = "remove the reference to the owner, which then does not wait for %s"
	DropAsCollector  say.Word = "remove its reference to the owner, as the garbage collector tries to do; %s"
	LeftWithoutOwner say.Word = "%s, which has no owner then, so the garbage collector does not delete it"
	DeleteNow        say.Word = "delete %s without waiting for the garbage collector's next attempt"
	FreesOnly        say.Word = "%s alone: %s"
)

// When an owner is deleted that is taken out of foreground deletion.
const (
	AtOnce        say.Word = "it is deleted at once"
	OnceFinalized say.Word = "it is deleted once its other finalizers are removed"
	OnceEmpty     say.Word = "it is deleted once it is empty"
	OnceStopped   say.Word = "it is deleted once its kubelet has stopped it"
)

// What becomes of the dependent then.
const (
	CollectedThen   say.Word = "the garbage collector then deletes %s"
	DeletedItself   say.Word = "%s is terminating until its own blocker is cleared"
	KeptByOther     say.Word = "%s is kept, because %s owns it as well"
	UntilChangeable say.Word = ", and its reference to the owner dangles until it can be changed"
	KeptByRefusal   say.Word = "%s is kept, with a dangling reference, until its deletion is no longer refused"
	DependsOnOwners say.Word = "whether %s is kept depends on its other owners"
)

// What begins a way out that works only if something is not refused.
const (
	IfAllowed   say.Word = "if %s is not refused: "
	OnceAllowed say.Word = "once %s is no longer refused: "
	ChangeOf    say.Word = "a change of %s"
)

// What the garbage collector has to do, and cannot.
const (
	WaitsForDependents say.Word = "waits for its %s"
	DeleteDependents   say.Word = "the garbage collector has to delete its blocking dependents"
	EndForeground      say.Word = "the garbage collector has to finish its deletion"
	RemoveForeground   say.Word = "the garbage collector has to remove the finalizer foregroundDeletion"
	CannotRemoveIt     say.Word = "the garbage collector cannot remove the finalizer foregroundDeletion"
	TypeUnlisted       say.Word = "the garbage collector cannot list objects of its type"
	SeesNot            say.Word = "the garbage collector cannot list objects of its type, so it does not see the deletion"
	Blindly            say.Word = "switch it to background deletion, in the version in which it can be read: %s; once the garbage collector can list its type again, it deletes the dependents that have no other owner"
	ReadableIn         say.Word = "%s, in which it can be read"
	BlindAfterRestart  say.Word = "%s: after a restart, the garbage collector of this server does nothing until it has listed all types, and the list of one fails"
	UnlistedBlockers   say.Word = "might wait for blocking dependents that could not be listed"
	NoneFound          say.Word = "no blocking dependent was found, but %s"
	Cannot             say.Word = "the garbage collector cannot %s"
	Might              say.Word = "the garbage collector might not be able to %s"
	RetriesRarely      say.Word = ", and retries with back-off (up to 17m)"
	YouCannot          say.Word = ": you cannot"
	ReleaseIts         say.Word = "remove the reference of its dependent %s"
	ReleaseFrom        say.Word = "remove its reference to %s"
	DeleteIts          say.Word = "delete its dependent %s"
	DeleteIt           say.Word = "delete it"
)

// A cycle of owners.
const (
	BlocksItself   say.Word = "it is in foreground deletion and blocks itself"
	CycleOf        say.Word = "%d objects in foreground deletion block each other"
	MoreReferences say.Word = "and %d more references"
	BreakCycle     say.Word = "switch this object to background deletion, which breaks the cycle: it is deleted, and the rest of the cycle after it"
)

// Dependents that were created after the deletion of their owner.
const (
	CreatedLate    say.Word = "a controller or user created %s after the deletion, and might create more"
	RecreatedLate  say.Word = "%[2]s, the controller of such owners, recreates its dependents: %[1]s after the deletion"
	CreationBy     say.Word = "%s, by %s"
	FindCreator    say.Word = "find and stop the creator of its dependents until the owner is deleted"
	StopItsCreator say.Word = "stop %s, which creates its dependents, until the owner is deleted"
	StopController say.Word = "stop %s, with everything else that it does, until the owner is deleted; then scale it up again"
)

// A deletion that was interrupted.
const (
	NothingBlocks  say.Word = "nothing blocks it"
	DeletionBroken say.Word = "it is marked as deleted, but nothing blocks it: its deletion was interrupted"
	FinishDeletion say.Word = "complete the deletion"
)

// What orphaning needs.
const (
	OrphanDependents say.Word = "the garbage collector has to orphan its dependents"
	NotYetOrphaned   say.Word = "its dependents are not orphaned yet"
	OrphanFinalizer  say.Word = "its finalizer orphan cannot be removed"
	OneReferences    say.Word = "1 dependent still references it"
	SomeReference    say.Word = "%s still reference it"
	ReferencesKept   say.Word = "%s; unclear why the references are not removed"
	OrphaningDenied  say.Word = "%s, and the references cannot be removed; a delete in another way would now delete the dependents that have no other owner"
	RemoveNow        say.Word = "remove the reference now, once nothing rejects that any more; the garbage collector retries within 17 minutes"
	UpdateOf         say.Word = "update %s"
)

// References that are wrong.
const (
	UnservedOwner     say.Word = "%s %s %s, which the server does not serve"
	InvalidOwner      say.Word = "%s %s, a name that no object can have"
	OfVersion         say.Word = "%s %s"
	OfVersionThough   say.Word = OfVersion + " (%s)"
	NamespacedOwner   say.Word = "it is cluster-scoped and cannot have a namespaced owner: the garbage collector has given up on it"
	AlsoReferences    say.Word = "it also references"
	References        say.Word = "it references its owner as"
	Ignores           say.Word = "; the garbage collector cannot resolve that owner, and ignores the dependent"
	OwnerUnread       say.Word = "its owner %s could not be looked up: unclear whether it exists"
	CrossesNamespaces say.Word = "its reference to %s crosses namespaces, which is invalid, but still blocks the owner"
	DropInvalid       say.Word = "remove the invalid reference; the owner then no longer waits for the dependent"
	KeepDependent     say.Word = "switch the owner to background deletion: %s; the dependent is kept"
	DeleteDependent   say.Word = "delete the dependent, which the owner waits for"
	LostDependent     say.Word = "the dependent, which the garbage collector ignores"
	LostOthersToo     say.Word = "the dependent, which the garbage collector ignores and which %s also owns"
	DropUnresolvable  say.Word = "remove the reference that cannot be resolved"
	DropNamespaced    say.Word = "remove the reference that a cluster-scoped object cannot have"
)

// What follows when a dependent has lost a reference that could not be resolved, to the owner in the last two.
const (
	ThenDeletesIt    say.Word = "; at its next attempt, up to 17 minutes later, the garbage collector deletes the dependent"
	ThenReleasesIt   say.Word = "; at its next attempt, up to 17 minutes later, the garbage collector also removes the one to the owner, and keeps the dependent because %s owns it"
	ThenOwnerless    say.Word = ", which is the one to the owner: the dependent is kept without an owner, and the owner no longer waits for it"
	ThenOthersDecide say.Word = ", which is the one to the owner: the owner no longer waits for the dependent, and the other references decide whether the dependent is kept"
)
