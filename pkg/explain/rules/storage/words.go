// SPDX-License-Identifier: Apache-2.0

package storage

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What drivers have to do.
const (
	VolumeAttached    say.Word = "the volume has to be detached"
	DetachUndone      say.Word = "%s has not detached the volume"
	DetachFails       say.Word = "%s fails to detach the volume"
	StorageLeft       say.Word = "the storage behind it has to be deleted"
	StorageUndone     say.Word = "%s has not deleted the storage behind it"
	StorageFails      say.Word = "%s fails to delete the storage behind it"
	TheDriver         say.Word = "the driver %s"
	TheCSIDriver      say.Word = "the CSI driver %s"
	FromNode          say.Word = " from node %s"
	DetachFromNodes   say.Word = "it has to be detached from its nodes"
	StillAttachedTo   say.Word = "the volume %s is attached to node %s, and the attachment is not being deleted: the attach/detach controller deletes it when no pod on that node uses the volume"
	NoLeases          say.Word = "none exist"
	SecretMissing     say.Word = "does not exist, but the driver needs it to delete the storage"
	WaitsForRelease   say.Word = "it is bound, and its driver waits until it is released"
	NothingToDelete   say.Word = "Retain: nothing has to be deleted, and the driver only has to remove the finalizer"
	StorageKept       say.Word = "its driver has to remove the finalizer, and keeps the storage behind it"
	ProtectionLeft    say.Word = "%s has not removed its finalizer; it keeps the storage behind the volume (reclaim policy Retain)"
	ReleaseVolume     say.Word = "see the messages and events: repair the controller of %s or the problem that they name; it then removes the finalizer, and keeps the storage"
	LostVolume        say.Word = "the storage, which the reclaim policy keeps in any case: note spec.csi.volumeHandle, the only way to find it again"
	SeePods           say.Word = "see the pods on the node; once those that use the volume are deleted, it is detached"
	RepairAttacher    say.Word = "see the attachments: repair the controller of %s or the problem that its message names; it then detaches the volume"
	RepairProvisioner say.Word = "see the messages and events: repair the controller of %s or the problem that they name; it then deletes the storage"
	KeepStorage       say.Word = "keep the storage behind it, whatever happens to the object: do this before you force anything else"
	LostStorage       say.Word = "the storage behind it: note spec.csi.volumeHandle, the only way to find it again"
	LostAttachment    say.Word = "the volume stays attached to the node, and attaching it elsewhere might damage its data: only if the storage shows that it is detached"
)

// What becomes of data. KeepData has the volume and its size, KeepBehind the same of a volume that is being deleted.
const (
	LostData    say.Word = "the data: %s on %s, which is destroyed with the claim"
	LostUnknown say.Word = "the data of the claim, unless its volume is retained"
	KeepData    say.Word = "keep the data first: retain %s (%s) when its claim is deleted"
	KeepBehind  say.Word = "keep the data first: retain the storage behind %s (%s) when that is deleted"
	ReviveClaim say.Word = "keep the claim, too, if its deletion is a mistake: it is recreated, bound to its volume"
	AllOf       say.Word = "all"
	UnknownSize say.Word = "of unknown size"
)

// What snapshots, copies and classes wait for.
const (
	MightBeSnapshotted say.Word = "might be the source of a snapshot"
	IsSnapshotted      say.Word = "a snapshot of it is being taken"
	SnapshotIncomplete say.Word = "it is a snapshot of the claim %s, and is not complete"
	MightBeCopied      say.Word = "might be the source of a claim"
	IsCopied           say.Word = "a claim is being filled from it"
	CopyIncomplete     say.Word = "it is filled from %s, and is not complete"
	FilledByDriver     say.Word = "; %s has to fill it"
	ContentsFirst      say.Word = "its content has to be deleted first"
	SnapshotLeft       say.Word = "the snapshot behind it has to be deleted"
	SnapshotUndone     say.Word = "%s has not deleted the snapshot behind it"
	SnapshotFails      say.Word = "%s fails to delete the snapshot behind it"
	CompleteCopy       say.Word = "see its state and events: make its controller complete it; then the finalizer is removed"
	AbandonCopy        say.Word = "delete it, although it is not complete; its controller then removes the finalizer, if that works"
	RepairSnapshotter  say.Word = "see the messages: repair the controller of %s or the problem that they name; it then deletes the snapshot"
	MightBeUsed        say.Word = "might be in use"
	IsUsed             say.Word = "it is in use"
	ClassUnused        say.Word = "nothing uses it; the vac-protection controller has to remove the finalizer"
	ClassKept          say.Word = "it uses the class %s, and is not being changed to another"
	ClassChanging      say.Word = "it still has the class %s, but is being changed to %s"
	AwaitClass         say.Word = "see the progress of its driver; once the change is done, the class is deleted"
	ChooseClass        say.Word = "see the other classes: let the claim name one of them; once its driver has changed the volume, the class is deleted"
	EndClassUser       say.Word = "delete the claim, once no pod uses it; the class is then deleted"
)

// What claims and volumes wait for.
const (
	MightHaveUsers    say.Word = "might wait for pods that use it"
	UsedByEnding      say.Word = "a terminating pod uses it"
	UsedByPod         say.Word = "a pod uses it"
	ClaimUnused       say.Word = "no pod uses it; the pvc-protection controller has to remove the finalizer"
	ClaimUsed         say.Word = "the pod uses the claim %s and is not being deleted"
	ClaimReleased     say.Word = "the pod uses the claim %s and was deleted a moment ago"
	ClaimDeletable    say.Word = "after which the claim is deleted"
	ClaimUnprotected  say.Word = "after which no pod blocks the claim"
	ClaimUsedByOne    say.Word = "after which 1 other pod still blocks the claim"
	ClaimUsedByMore   say.Word = "after which %d other pods still block the claim"
	DeleteFinishedJob say.Word = "delete the finished Job/%s with its pods, %s"
	RenewPod          say.Word = "delete the pod alone, %s; then %s recreates both, with an empty volume"
	MightBeBound      say.Word = "might be bound"
	IsBound           say.Word = "it is bound"
	BoundTo           say.Word = "it is bound to the claim %s/%s"
	Unbound           say.Word = "it is not bound; the pv-protection controller has to remove the finalizer"
	ClaimGone         say.Word = "its claim does not exist; the volume controller has to release it"
	ClaimBinds        say.Word = "the claim is bound to the volume %s and is not being deleted"
	DeleteClaim       say.Word = "delete the claim, once no pod uses it; the volume is then deleted"
)
