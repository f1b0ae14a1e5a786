// SPDX-License-Identifier: Apache-2.0

package storage

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What drivers have to do.
const (
	VolumeAttached    say.Word = "the volume has to be detached"
	DetachUndone      say.Word = "%s has not detached the volume"
	DetachFails       say.Word = "%s fails to detach the volume"
	StorageLeft       say.Word = "the backing storage has to be deleted"
	StorageUndone     say.Word = "%s has not deleted the backing storage"
	StorageFails      say.Word = "%s fails to delete the backing storage"
	TheDriver         say.Word = "the driver %s"
	TheCSIDriver      say.Word = "the CSI driver %s"
	FromNode          say.Word = " from node %s"
	DetachFromNodes   say.Word = "it has to be detached from its nodes"
	StillAttachedTo   say.Word = "the volume %s is attached to node %s, and the attachment is not being deleted: the attach/detach controller deletes it when no pod on that node uses the volume"
	NoLeases          say.Word = "none exist"
	SecretMissing     say.Word = "does not exist, but the driver needs it to delete the storage"
	WaitsForRelease   say.Word = "it is bound, and its driver waits until it is released"
	NothingToDelete   say.Word = "Retain: nothing has to be deleted, and the driver only has to remove the finalizer"
	StorageKept       say.Word = "its driver has to remove the finalizer, and keeps the backing storage"
	ProtectionLeft    say.Word = "%s has not removed its finalizer; the backing storage is kept (reclaim policy Retain)"
	ReleaseVolume     say.Word = "check its events, then repair the controller of %s, or the problem that they name; it then removes the finalizer, and keeps the backing storage"
	LostVolume        say.Word = "the backing storage, which the reclaim policy keeps: note spec.csi.volumeHandle to find it again"
	SeePods           say.Word = "check which pods on the node use the volume; once they are deleted, it is detached"
	RepairAttacher    say.Word = "check the attachments, then repair the controller of %s, or the problem that its message names; it then detaches the volume"
	RepairProvisioner say.Word = "check its events, then repair the controller of %s, or the problem that they name; it then deletes the backing storage"
	KeepStorage       say.Word = "first set it to Retain, so that forcing the deletion keeps the backing storage"
	LostStorage       say.Word = "the backing storage, which keeps costing money: note spec.csi.volumeHandle to find it again"
	LostAttachment    say.Word = "the volume stays attached to the node, and attaching it elsewhere might damage its data: only if the storage shows that it is detached"
)

// What becomes of data. KeepData has the volume and its size, KeepBehind the same of a volume that is being deleted.
const (
	LostData    say.Word = "the data: %s on %s, which is destroyed with the claim"
	LostUnknown say.Word = "the data of the claim, unless its volume is retained"
	KeepData    say.Word = "keep the data first: set %s (%s) to Retain"
	KeepBehind  say.Word = "keep the data first: set %s (%s) to Retain, which keeps its backing storage"
	ReviveClaim say.Word = "keep the claim too, if its deletion is a mistake: it is recreated, bound to its volume"
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
	SnapshotLeft       say.Word = "the backing snapshot has to be deleted"
	SnapshotUndone     say.Word = "%s has not deleted the backing snapshot"
	SnapshotFails      say.Word = "%s fails to delete the backing snapshot"
	CompleteCopy       say.Word = "check its state and events, then fix what keeps its controller from completing it; the finalizer is then removed"
	AbandonCopy        say.Word = "delete it, although it is not complete; its controller then removes the finalizer, if it is running"
	RepairSnapshotter  say.Word = "check its messages, then repair the controller of %s, or the problem that they name; it then deletes the backing snapshot"
	MightBeUsed        say.Word = "might be in use"
	IsUsed             say.Word = "it is in use"
	ClassUnused        say.Word = "nothing uses it; the vac-protection controller has to remove the finalizer"
	ClassKept          say.Word = "it uses the class %s, and is not being changed to another"
	ClassChanging      say.Word = "it still has the class %s, but is being changed to %s"
	AwaitClass         say.Word = "check the progress of its driver; once the change is done, the class is deleted"
	ChooseClass        say.Word = "change the claim to another class; once its driver has changed the volume, this class is deleted"
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
	DeleteFinishedJob say.Word = "delete the finished %s with its pods, %s"
	RenewPod          say.Word = "delete the pod alone, %s; then %s recreates both, with an empty volume"
	MightBeBound      say.Word = "might be bound"
	IsBound           say.Word = "it is bound"
	BoundTo           say.Word = "it is bound to the claim %s/%s"
	Unbound           say.Word = "it is not bound; the pv-protection controller has to remove the finalizer"
	ClaimGone         say.Word = "its claim does not exist; the volume controller has to release it"
	ClaimBinds        say.Word = "the claim is bound to the volume %s and is not being deleted"
	DeleteClaim       say.Word = "delete the claim, once no pod uses it; the volume is then deleted"
)
