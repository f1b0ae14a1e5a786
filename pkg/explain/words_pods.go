// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is said of pods, of their nodes, and of objects that wait for pods.

// Why a pod is not deleted yet.
const (
	waitsForKubelet   = "waits for its kubelet"
	waitsForKubeletOn = "waits for the kubelet of node %s"
	mirrorsStatic     = "it mirrors a static pod"
	mirrorIsRemade    = "it mirrors a static pod: deleting the mirror does not stop that pod, and the kubelet recreates the mirror"
	withoutNode       = "it has no node; the pod garbage collector has to delete it"
	nodeIsGone        = "its node %s does not exist"
	podGCTurn         = "the pod garbage collector has to delete it"
	inGracePeriod     = "it is in its grace period"
	endsAboutNow      = "its grace period is over; its kubelet is about to end it"
)

// kubeletRejected says whether a write of the kubelet is rejected for certain.
var kubeletRejected = map[bool]string{
	true:  "the API server rejects a write that its kubelet has to make",
	false: "the API server might reject a write that its kubelet has to make",
}

// nodeGoneSays is for the pods of a node that does not exist.
var nodeGoneSays = map[Verdict]string{
	Progressing: "the node does not exist; the pod garbage collector deletes its pods within two minutes",
	Unknown:     "the node does not exist, and it is not known whether the pod garbage collector, which deletes its pods, works",
	Stuck:       "the node does not exist, and the pod garbage collector, which deletes its pods, does not work",
}

// outOfServiceSays is for a node that does not report and is marked out-of-service.
var outOfServiceSays = map[Verdict]string{
	Progressing: "the node does not report and is marked out-of-service: the pod garbage collector deletes its terminating pods within a minute",
	Unknown:     "the node does not report and is marked out-of-service, but it is not known whether the pod garbage collector, which deletes its terminating pods, works",
}

// A node that does not report, or might not, and one that a program stands for.
const (
	nodeSilent        = "the node does not report: its pods are kept until it recovers, is deleted, or is marked out-of-service"
	nodeLeaseFresh    = "the node is not ready, but its lease has not expired: its kubelet might be running"
	nodeReportUnknown = "the node is not ready, and it is not known whether its kubelet reports"
	virtualSilent     = "the node is virtual: %s acts as its kubelet, and does not report"
	virtualKubelet    = "a virtual kubelet"
	virtualKubeletOf  = "the virtual kubelet of %s"
)

// unended says what a kubelet that reports has not done with a pod.
type unended int

const (
	containersRun unended = iota
	teardownFails
	leftovers
	byVirtual // by the program that acts as the kubelet of a virtual node
	nothingRuns
)

var unendedSays = map[unended]string{
	containersRun: "its kubelet has not stopped its containers, %[1]s after the grace period",
	teardownFails: "its containers have ended, but its kubelet fails to tear down the rest of the pod, %[1]s after the grace period",
	leftovers:     "its containers have ended, but its kubelet has not cleaned up the volumes or cgroups of the pod, %[1]s after the grace period",
	byVirtual:     "its node is virtual: %[2]s acts as its kubelet, and has not ended it, %[1]s after the grace period",
	nothingRuns:   "none of its containers is known to run, but its kubelet has not ended it, %[1]s after the grace period",
}

// Facts.
const (
	isRunning      = "container %s is running"
	deletionUnseen = "%d of %d: its kubelet has not seen the deletion"
	sandboxRemoved = "False: its sandbox was removed"
)

// What to do about a pod, and what is lost.
const (
	seeKubelet       = "see the kubelet's events; its log on the node says what fails"
	waitForPodGC     = "wait: the pod garbage collector deletes the pod within two minutes of the deletion of its node, if kube-controller-manager works"
	removeFromAPI    = "remove the pod from the API without waiting for its kubelet, once you are certain that nothing of it runs any more"
	repairNode       = "see the node's state: repair the machine or its kubelet; its pods then end"
	repairVirtual    = "see the node's state: repair %s; the pods of the node then end"
	markOutOfService = "only if the machine is proven to be off: mark the node out-of-service, so that its terminating pods are deleted and their volumes detached; remove the taint afterwards"
	moveManifest     = "move the pod's manifest out of its directory on node %s (usually /etc/kubernetes/manifests); the kubelet then ends the pod and its mirror"
	deletePod        = "delete the pod, %s"
	scaleToZero      = "scale %s to 0 (it recreates pods that are only deleted), %s"
	awaitPod         = "wait until the pod completes, %s"
	thenDeleted      = "after which %s is deleted"
	recreateThePod   = "recreate it"
	scaleUpAgain     = "scale it up again"

	lostContainers   = "its containers, which keep running if the machine does"
	lostOnNode       = "containers that might still run and write, and mounts on the node"
	lostWrittenTwice = "two pods might write the same data if the machine still runs"
	lostClaims       = "the claims of all its pods, which it deletes when scaled down (persistentVolumeClaimRetentionPolicy), with their data unless their volumes are retained"
)

// might says what the controller of an object might do, nothing without one.
func might(controller *metav1.OwnerReference, do string) string {
	if controller == nil {
		return ""
	}
	return fmt.Sprintf("; its controller %s/%s might %s", controller.Kind, controller.Name, do)
}

// Why a pod is kept after its deletion, or might be, by its node.
const (
	nodeMissing    = "; its node %s does not exist, so the pod garbage collector removes the pod within a few minutes"
	nodeUnread     = "; the pod ends when the kubelet of node %s ends it, but whether that kubelet works could not be read"
	kubeletUnknown = "; the pod ends when the kubelet of node %s ends it, but it is not known whether that kubelet works"
	kubeletSilent  = "; the pod is kept until node %s, which does not report, recovers, is deleted, or is marked out-of-service"
)

// A pod that a Job has to count.
const (
	notOfAJob           = "its controller is not a Job"
	jobCounts           = "its Job has to count it"
	jobControllerCounts = "the job controller has to count it in the status of Job/%s/%s"
	jobless             = "no Job controls it any more; the job controller has to remove the finalizer"
	jobGone             = "its Job does not exist; the job controller has to remove the finalizer"
	neverCounted        = "it has the job controller's finalizer, but its controller is not a Job: the job controller never removes the finalizer"
	jobManagedBy        = "%s manages the Job and has to count its pods; the job controller does not"
	uncountable         = "remove the finalizer; no Job counts the pod"
	repairJobManager    = "see the Job: repair the controller that spec.managedBy names; it then counts the pods and removes the finalizer"
	deleteJob           = "delete the Job; the job controller then removes the finalizer from its pods"
	lostJobResult       = "the result of the Job"
)

// Objects that wait for pods.
const (
	podUses           = "it uses %s and is not being deleted"
	podUsesUntilDone  = "it uses %s until it completes, and is not being deleted"
	reservedForPod    = "it is reserved for a pod"
	reservedForObject = "it is reserved for %s/%s"
	reservedElsewhere = "it is reserved for an object that is not a pod; the controller that reserved it has to release it"
	deviceFree        = "no pod uses it; the ResourceClaim controller has to deallocate it and remove the finalizer"
	groupMightHave    = "might have pods"
	groupPodRuns      = "one of its pods has not ended"
	groupEnded        = "all its pods have ended; the podgroup-protection controller has to remove the finalizer"
)
