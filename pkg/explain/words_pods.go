// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of pods, of their nodes, and of objects that wait for pods.

// Reasons why a pod is not deleted yet.
const (
	waitsForKubelet = "waits for its kubelet"
	mirrorsStatic   = "it mirrors a static pod"
	withoutNode     = "it has no node; the pod garbage collector has to delete it"
	podGCTurn       = "the pod garbage collector has to delete it"
)

func waitsForKubeletOn(node string) string { return "waits for the kubelet of node " + node }
func itsNodeIsGone(node string) string     { return "its node " + node + " does not exist" }

// kubeletRejected says that what the kubelet has to write is rejected, or might be.
func kubeletRejected(certain bool) string {
	if certain {
		return "the API server rejects a write that its kubelet has to make"
	}
	return "the API server might reject a write that its kubelet has to make"
}

// A pod in time.
const (
	inGracePeriod  = "it is in its grace period"
	endsAboutNow   = "its grace period is over; its kubelet is about to end it"
	waitForPodGC   = "wait: the pod garbage collector deletes the pod within two minutes of the deletion of its node, if kube-controller-manager works"
	lostContainers = "its containers, which keep running if the machine does"
)

// nodeGoneSays is what is said of the pods of a node that does not exist.
var nodeGoneSays = map[Verdict]string{
	Progressing: "the node does not exist; the pod garbage collector deletes its pods within two minutes",
	Unknown:     "the node does not exist, and it is not known whether the pod garbage collector, which deletes its pods, works",
	Stuck:       "the node does not exist, and the pod garbage collector, which deletes its pods, does not work",
}

// outOfServiceSays is what is said of a node that does not report and is marked out-of-service.
var outOfServiceSays = map[Verdict]string{
	Progressing: "the node does not report and is marked out-of-service: the pod garbage collector deletes its terminating pods within a minute",
	Unknown:     "the node does not report and is marked out-of-service, but it is not known whether the pod garbage collector, which deletes its terminating pods, works",
}

// A node that does not report, or might not.
const (
	nodeSilent        = "the node does not report: its pods are kept until it recovers, is deleted, or is marked out-of-service"
	nodeLeaseFresh    = "the node is not ready, but its lease has not expired: its kubelet might be running"
	nodeReportUnknown = "the node is not ready, and it is not known whether its kubelet reports"

	repairNode       = "look at the node's state, and repair the machine or its kubelet; its pods then end"
	markOutOfService = "only if the machine is proven to be off: mark the node out-of-service, so that its terminating pods are deleted and their volumes detached; remove the taint afterwards"
	lostWrittenTwice = "two pods might write the same data if the machine still runs"
)

const virtualKubelet = "a virtual kubelet"

func virtualKubeletOf(provider string) string { return "the virtual kubelet of " + provider }
func virtualSilent(program string) string {
	return "the node is virtual: " + program + " acts as its kubelet, and does not report"
}
func repairVirtual(program string) string {
	return "look at the node's state, and repair " + program + "; the pods of the node then end"
}

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
	containersRun: "its kubelet has not stopped its containers",
	teardownFails: "its containers have ended, but its kubelet fails to tear down the rest of the pod",
	leftovers:     "its containers have ended, but its kubelet has not cleaned up the volumes or cgroups of the pod",
	byVirtual:     "its node is virtual: %s acts as its kubelet, and has not ended it",
	nothingRuns:   "none of its containers is known to run, but its kubelet has not ended it",
}

func (u unended) words(program string, over time.Duration) string {
	said := unendedSays[u]
	if u == byVirtual {
		said = fmt.Sprintf(said, program)
	}
	return fmt.Sprintf("%s, %s after the grace period", said, duration.HumanDuration(over))
}

// Facts about a pod and its kubelet.
const sandboxRemoved = "False: its sandbox was removed"

func isRunning(container string) string { return "container " + container + " is running" }
func deletionUnseen(observed, generation int64) string {
	return fmt.Sprintf("%d of %d: its kubelet has not seen the deletion", observed, generation)
}

// What to do about a pod.
const (
	seeKubelet     = "look at the kubelet's events; its log on the node says what fails"
	removeFromAPI  = "remove the pod from the API without waiting for its kubelet, once you are certain that nothing of it runs any more"
	lostOnNode     = "containers that might still run and write, and mounts on the node"
	mirrorIsRemade = "it mirrors a static pod: deleting the mirror does not stop that pod, and the kubelet recreates the mirror"
)

func moveManifest(node string) string {
	return "move the pod's manifest out of its directory on node " + node + " (usually /etc/kubernetes/manifests); the kubelet then ends the pod and its mirror"
}

// deletePod says to delete a pod, what follows, and who might recreate it, nil for none.
func deletePod(after string, controller *metav1.OwnerReference) string {
	return "delete the pod, " + after + might(controller, "recreate it")
}

// scaleToZero says to scale a workload down, and what follows.
func scaleToZero(workload graph.Identity, after string) string {
	return fmt.Sprintf("scale %s to 0 (it recreates pods that are only deleted), %s", workload, after)
}
func mightScaleUp(controller *metav1.OwnerReference) string {
	return might(controller, "scale it up again")
}

// might says what the controller of an object might do, nothing without one.
func might(controller *metav1.OwnerReference, do string) string {
	if controller == nil {
		return ""
	}
	return fmt.Sprintf("; its controller %s/%s might %s", controller.Kind, controller.Name, do)
}

const lostClaims = "the claims of all its pods, which it deletes when scaled down (persistentVolumeClaimRetentionPolicy), with their data unless their volumes are retained"

func awaitPod(after string) string               { return "wait until the pod completes, " + after }
func afterWhichDeleted(id graph.Identity) string { return "after which " + id.String() + " is deleted" }

// lingering says why a pod is kept after its deletion: its node is gone, or its kubelet does not work, or might not.
type lingering int

const (
	nodeMissing lingering = iota
	nodeUnread
	kubeletUnknown
	kubeletSilent
)

func (l lingering) words(node string) string {
	switch l {
	case nodeMissing:
		return "; its node " + node + " does not exist, so the pod garbage collector removes the pod within a few minutes"
	case nodeUnread:
		return "; the pod ends when the kubelet of node " + node + " ends it, but whether that kubelet works could not be read"
	case kubeletUnknown:
		return "; the pod ends when the kubelet of node " + node + " ends it, but it is not known whether that kubelet works"
	}
	return "; the pod is kept until node " + node + ", which does not report, recovers, is deleted, or is marked out-of-service"
}

// A pod that a Job has to count.
const (
	notOfAJob        = "its controller is not a Job"
	jobCounts        = "its Job has to count it"
	jobless          = "no Job controls it any more; the job controller has to remove the finalizer"
	jobGone          = "its Job does not exist; the job controller has to remove the finalizer"
	neverCounted     = "it has the job controller's finalizer, but its controller is not a Job: the job controller never removes the finalizer"
	uncountable      = "remove the finalizer; no Job counts the pod"
	repairJobManager = "look at the Job, and repair the controller that spec.managedBy names; it then counts the pods and removes the finalizer"
	deleteJob        = "delete the Job; the job controller then removes the finalizer from its pods"
)

func jobControllerCounts(namespace, job string) string {
	return "the job controller has to count it in the status of Job/" + namespace + "/" + job
}
func jobManagedBy(manager string) string {
	return manager + " manages the Job and has to count its pods; the job controller does not"
}

// Objects that wait for pods.
const (
	reservedForPod    = "it is reserved for a pod"
	deviceFree        = "no pod uses it; the ResourceClaim controller has to deallocate it and remove the finalizer"
	reservedElsewhere = "it is reserved for an object that is not a pod; the controller that reserved it has to release it"
	groupMightHave    = "might have pods"
	groupPodRuns      = "one of its pods has not ended"
	groupEnded        = "all its pods have ended; the podgroup-protection controller has to remove the finalizer"
)

func reservedForObject(resource, name string) string {
	return "it is reserved for " + resource + "/" + name
}
func podUses(id graph.Identity) string { return fmt.Sprintf("it uses %s and is not being deleted", id) }
func podUsesUntilDone(id graph.Identity) string {
	return fmt.Sprintf("it uses %s until it completes, and is not being deleted", id)
}

// podsIn and claimsIn name what could not be read.
func podsIn(namespace string) string   { return "pods in namespace " + namespace }
func claimsIn(namespace string) string { return "claims in namespace " + namespace }

// endedContainers counts containers.
func endedContainers(n int) string { return evidence.Number(n, "ended container") }
