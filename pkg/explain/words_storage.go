// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of claims, volumes and snapshots, of load balancers and service addresses.

// Claims.
const (
	mightHaveUsers    = "might wait for pods that use it"
	usedByEnding      = "a terminating pod uses it"
	usedByPod         = "a pod uses it"
	claimUnused       = "no pod uses it; the pvc-protection controller has to remove the finalizer"
	claimUsed         = "the pod uses the claim %s and is not being deleted"
	claimReleased     = "the pod uses the claim %s and was deleted a moment ago"
	claimDeletable    = "after which the claim is deleted"
	claimUnprotected  = "after which no pod blocks the claim"
	claimUsedByOne    = "after which 1 other pod still blocks the claim"
	claimUsedByMore   = "after which %d other pods still block the claim"
	deleteFinishedJob = "delete the finished Job/%s with its pods, %s"
	renewPod          = "delete the pod alone, %s; then %s recreates both, with an empty volume"
)

// Volumes.
const (
	mightBeBound    = "might be bound"
	isBound         = "it is bound"
	boundTo         = "it is bound to the claim %s/%s"
	unbound         = "it is not bound; the pv-protection controller has to remove the finalizer"
	claimGone       = "its claim does not exist; the volume controller has to release it"
	claimBinds      = "the claim is bound to the volume %s and is not being deleted"
	deleteClaim     = "delete the claim, once no pod uses it; the volume is then deleted"
	waitsForRelease = "it is bound, and its driver waits until it is released"
	lostUnknown     = "the data of the claim, unless its volume is retained"
)

func lostData(volume graph.Identity, size string) string {
	return fmt.Sprintf("the data: %s on %s, which is deleted with the claim", cmp.Or(size, "all"), volume)
}

// keepData says to retain a volume, or the storage of one that is being deleted.
func keepData(volume graph.Identity, size string, terminating bool) string {
	what, when := volume.String(), "its claim"
	if terminating {
		what, when = "the storage behind "+what, "that"
	}
	return fmt.Sprintf("keep the data first: retain %s (%s) when %s is deleted", what, cmp.Or(size, "of unknown size"), when)
}

// driverTask is what a driver or another external controller has to do.
type driverTask struct{ verb, done, object string }

var (
	detachVolume       = driverTask{"detach", "detached", "the volume"}
	deleteStorage      = driverTask{"delete", "deleted", "the storage behind it"}
	deleteSnapshot     = driverTask{"delete", "deleted", "the snapshot behind it"}
	deleteLoadBalancer = driverTask{"delete", "deleted", "its load balancer"}
)

// because says that an object waits for the task.
func (t driverTask) because() string { return t.object + " has to be " + t.done }

// undone says that a controller has not done the task, and fails that it fails to.
func (t driverTask) undone() string { return "%s has not " + t.done + " " + t.object }
func (t driverTask) fails() string  { return "%s fails to " + t.verb + " " + t.object }

// Drivers.
const (
	theDriver         = "the driver %s"
	theCSIDriver      = "the CSI driver %s"
	fromNode          = " from node %s"
	detachFromNodes   = "it has to be detached from its nodes"
	stillAttachedTo   = "the volume %s is attached to node %s, and the attachment is not being deleted: the attach/detach controller deletes it when no pod on that node uses the volume"
	driverDown        = "; the controller does not run"
	noLeases          = "none exist"
	holderGone        = "does not exist; it is not known whether a driver without a lease runs"
	secretMissing     = "does not exist, but the driver needs it to delete the storage"
	nothingToDelete   = "Retain: nothing has to be deleted, and the driver only has to remove the finalizer"
	seePods           = "see the pods on the node; once those that use the volume are deleted, it is detached"
	repairAttacher    = "see the attachments: repair the controller of %s or the problem that its message names; it then detaches the volume"
	repairProvisioner = "see the messages and events: repair the controller of %s or the problem that they name; it then deletes the storage"
	repairSnapshotter = "see the messages: repair the controller of %s or the problem that they name; it then deletes the snapshot"
	keepStorage       = "keep the storage behind it, whatever happens to the object: do this before you force anything else"
	lostStorage       = "the storage behind it: note spec.csi.volumeHandle, the only way to find it again"
	lostAttachment    = "the volume stays attached to the node, and attaching it elsewhere might damage its data: only if the storage shows that it is detached"
)

// Snapshots and copies.
const (
	mightBeSnapshotted = "might be the source of a snapshot"
	isSnapshotted      = "a snapshot of it is being taken"
	snapshotIncomplete = "it is a snapshot of the claim %s, and is not complete"
	mightBeCopied      = "might be the source of a claim"
	isCopied           = "a claim is being filled from it"
	copyIncomplete     = "it is filled from %s, and is not complete"
	filledByDriver     = "; %s has to fill it"
	contentsFirst      = "its content has to be deleted first"
	completeCopy       = "see its state and events: make its controller complete it; then the finalizer is removed"
	abandonCopy        = "delete it, although it is not complete; its controller then removes the finalizer, if that works"
)

// Classes of volumes.
const (
	mightBeUsed   = "might be in use"
	isUsed        = "it is in use"
	classUnused   = "nothing uses it; the vac-protection controller has to remove the finalizer"
	classKept     = "it uses the class %s, and is not being changed to another"
	classChanging = "it still has the class %s, but is being changed to %s"
	awaitClass    = "see the progress of its driver; once the change is done, the class is deleted"
	chooseClass   = "see the other classes: let the claim name one of them; once its driver has changed the volume, the class is deleted"
	endClassUser  = "delete the claim, once no pod uses it; the class is then deleted"
)

// Load balancers and service addresses.
const (
	cloudController = "the service controller of the cloud-controller-manager"
	classController = "the controller of the load balancer class %s"
	repairCloud     = "see its events: repair the controller, or give it the rights and the quota that its messages name; it then deletes the load balancer"
	lostBalancer    = "the load balancer with its address and firewall rules, which the provider keeps billing unless it was deleted there"

	addressesUsed  = "addresses in it are in use"
	onlyIn         = "it has the address %s, which is in no range but %s"
	rangeUnused    = "no address is only in it; the ServiceCIDR controller has to remove the finalizer"
	addRange       = "see the ranges: add another that has the address; this one is then deleted within ten seconds"
	replaceService = "delete the Service; a new one gets an address of another range"
	lostAddress    = "the address, for all its clients"
)
