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
	mightHaveUsers   = "might wait for pods that use it"
	usedByEnding     = "a terminating pod uses it"
	usedByPod        = "a pod uses it"
	claimUnused      = "no pod uses it; the pvc-protection controller has to remove the finalizer"
	claimDeletable   = "after which the claim is deleted"
	claimUnprotected = "after which no pod blocks the claim"
)

func claimUsed(claim string) string {
	return "the pod uses the claim " + claim + " and is not being deleted"
}
func claimReleased(claim string) string {
	return "the pod uses the claim " + claim + " and was deleted a moment ago"
}

// claimStillUsed says how many other pods use a claim.
func claimStillUsed(others int) string {
	if others == 1 {
		return "after which 1 other pod still blocks the claim"
	}
	return fmt.Sprintf("after which %d other pods still block the claim", others)
}

func deleteFinishedJob(job, after string) string {
	return "delete the finished Job/" + job + " with its pods, " + after
}
func renewPod(after string, set graph.Identity) string {
	return fmt.Sprintf("delete the pod alone, %s; then %s recreates both, with an empty volume", after, set)
}

// Volumes.
const (
	mightBeBound   = "might be bound"
	isBound        = "it is bound"
	unbound        = "it is not bound; the pv-protection controller has to remove the finalizer"
	claimGone      = "its claim does not exist; the volume controller has to release it"
	deleteClaim    = "delete the claim, once no pod uses it; the volume is then deleted"
	bindsUntilFree = "it is bound, and its driver waits until it is released"
)

func boundTo(namespace, claim string) string {
	return fmt.Sprintf("it is bound to the claim %s/%s", namespace, claim)
}
func claimBinds(volume string) string {
	return "the claim is bound to the volume " + volume + " and is not being deleted"
}

// keepData says to retain a volume, or the storage of one that is being deleted.
func keepData(volume graph.Identity, size string, terminating bool) string {
	size = cmp.Or(size, "of unknown size")
	if terminating {
		return fmt.Sprintf("keep the data first: retain the storage behind %s (%s) when that is deleted", volume, size)
	}
	return fmt.Sprintf("keep the data first: retain %s (%s) when its claim is deleted", volume, size)
}

// driverTask is what a driver or another external controller has to do.
type driverTask struct {
	// verb and object name it.
	verb, done, object string
}

var (
	detachVolume       = driverTask{"detach", "detached", "the volume"}
	deleteStorage      = driverTask{"delete", "deleted", "the storage behind it"}
	deleteSnapshot     = driverTask{"delete", "deleted", "the snapshot behind it"}
	deleteLoadBalancer = driverTask{"delete", "deleted", "its load balancer"}
)

// because says that an object waits for the task.
func (t driverTask) because() string { return t.object + " has to be " + t.done }

// undone says that who has to do it has not, or fails to.
func (t driverTask) undone(by string, fails bool) string {
	if fails {
		return fmt.Sprintf("%s fails to %s %s", by, t.verb, t.object)
	}
	return fmt.Sprintf("%s has not %s %s", by, t.done, t.object)
}

// Drivers.
const (
	detachFromNodes = "it has to be detached from its nodes"
	driverDown      = "; the controller does not run"
	noLeases        = "none exist"
	holderGone      = "does not exist; it is not known whether a driver without a lease runs"
	secretMissing   = "does not exist, but the driver needs it to delete the storage"
	nothingToDelete = "Retain: nothing has to be deleted, and the driver only has to remove the finalizer"
	keepStorage     = "keep the storage behind it, whatever happens to the object: do this before you force anything else"
	seePods         = "look at the pods on the node; once those that use the volume are deleted, it is detached"

	lostStorage    = "the storage behind it: note spec.csi.volumeHandle, the only way to find it again"
	lostAttachment = "the volume stays attached to the node, and attaching it elsewhere might damage its data: only if the storage shows that it is detached"
)

func leasesNamed(name string) string { return "Leases named " + name }
func undetached(driver, node string, fails bool) string {
	return detachVolume.undone("the driver "+driver, fails) + " from node " + node
}
func csiDriver(name string) string { return "the CSI driver " + name }

func stillAttachedTo(volume, node string) string {
	return fmt.Sprintf("the volume %s is attached to node %s, and the attachment is not being deleted: the attach/detach controller deletes it when no pod on that node uses the volume", volume, node)
}

func repairAttacher(driver string) string {
	return "look at the attachments, and repair the controller of " + driver + " or the problem that its message names; it then detaches the volume"
}

func repairProvisioner(driver string) string {
	return "look at the messages and events, and repair the controller of " + driver + " or the problem that they name; it then deletes the storage"
}

func repairSnapshotter(driver string) string {
	return "look at the messages, and repair the controller of " + driver + " or the problem that they name; it then deletes the snapshot"
}

// Snapshots, copies and classes.
const (
	mightBeSnapshotted = "might be the source of a snapshot"
	isSnapshotted      = "a snapshot of it is being taken"
	mightBeCopied      = "might be the source of a claim"
	isCopied           = "a claim is being filled from it"
	contentsFirst      = "its content has to be deleted first"
	completeCopy       = "look at its state and events, and make its controller complete it; then the finalizer is removed"
	abandonCopy        = "delete it, although it is not complete; its controller then removes the finalizer, if that works"

	mightBeUsed  = "might be in use"
	isUsed       = "it is in use"
	classUnused  = "nothing uses it; the vac-protection controller has to remove the finalizer"
	awaitClass   = "look at the progress of its driver; once the change is done, the class is deleted"
	chooseClass  = "look at the other classes, and let the claim name one of them; once its driver has changed the volume, the class is deleted"
	endClassUser = "delete the claim, once no pod uses it; the class is then deleted"
)

func snapshotIncomplete(claim string) string {
	return "it is a snapshot of the claim " + claim + ", and is not complete"
}
func copyIncomplete(source graph.Identity) string {
	return "it is filled from " + source.String() + ", and is not complete"
}
func filledByDriver(driver string) string { return "; " + driver + " has to fill it" }
func classKept(class string) string {
	return "it uses the class " + class + ", and is not being changed to another"
}
func classChanging(class, next string) string {
	return "it still has the class " + class + ", but is being changed to " + next
}

// Load balancers and service addresses.
const (
	cloudController = "the service controller of the cloud-controller-manager"
	repairCloud     = "look at its events, and repair the controller, or give it the rights and the quota that its messages name; it then deletes the load balancer"
	lostBalancer    = "the load balancer with its address and firewall rules, which the provider keeps billing unless it was deleted there"

	addressesUsed  = "addresses in it are in use"
	rangeUnused    = "no address is only in it; the ServiceCIDR controller has to remove the finalizer"
	addRange       = "look at the ranges, and add another that has the address; this one is then deleted within ten seconds"
	replaceService = "delete the Service; a new one gets an address of another range"
	lostAddress    = "the address, for all its clients"
)

func classController(class string) string {
	return "the controller of the load balancer class " + class
}
func onlyIn(address, cidr string) string {
	return fmt.Sprintf("it has the address %s, which is in no range but %s", address, cidr)
}
