// SPDX-License-Identifier: Apache-2.0

package pod

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What waits for pods.
const (
	ReservedForPod    say.Word = "it is reserved for a pod"
	ReservedForObject say.Word = "it is reserved for %s/%s"
	ReservedElsewhere say.Word = "it is reserved for an object that is not a pod; the controller that reserved it has to release it"
	DeviceFree        say.Word = "no pod uses it; the ResourceClaim controller has to deallocate it and remove the finalizer"
	Uses              say.Word = "it uses %s and is not being deleted"
	UsesUntilDone     say.Word = "it uses %s until it completes, and is not being deleted"
	ThenDeleted       say.Word = "after which %s is deleted"
	GroupMightHave    say.Word = "might have pods"
	GroupRuns         say.Word = "one of its pods has not ended"
	GroupEnded        say.Word = "all its pods have ended; the podgroup-protection controller has to remove the finalizer"
)

// What a pod waits for that a Job counts.
const (
	NotOfAJob           say.Word = "its controller is not a Job"
	JobCounts           say.Word = "its Job has to count it"
	JobControllerCounts say.Word = "the job controller has to count it in the status of %s"
	Jobless             say.Word = "no Job controls it any more; the job controller has to remove the finalizer"
	JobGone             say.Word = "its Job does not exist; the job controller has to remove the finalizer"
	NeverCounted        say.Word = "it has the job controller's finalizer, but its controller is not a Job: the job controller never removes the finalizer"
	JobManagedBy        say.Word = "%s manages the Job and has to count its pods; the job controller does not"
	Uncountable         say.Word = "remove the finalizer; no Job counts the pod"
	RepairJobManager    say.Word = "repair the controller that spec.managedBy of the Job names; it then counts the pods and removes the finalizer"
	DeleteJob           say.Word = "delete the Job; the job controller then removes the finalizer from its pods"
	LostJobResult       say.Word = "the result of the Job"
)

// A node that does not report, or does not exist.
const (
	NodeSilent        say.Word = "the node is NotReady%s; its pods are kept until it recovers, is deleted, or is marked out-of-service"
	SilentSince       say.Word = " for %s"
	NodeLeaseFresh    say.Word = "the node is NotReady, but its lease has not expired: its kubelet might be running"
	NodeReportUnknown say.Word = "the node is NotReady; unclear whether its kubelet reports"
	VirtualSilent     say.Word = "the node is virtual, and %s is down"
	RepairNode        say.Word = "repair the machine or its kubelet; its pods then end"
	RepairVirtual     say.Word = "repair %s; the pods of the node then end"
	MarkOutOfService  say.Word = "only if the machine is proven to be off: mark the node out-of-service, so that its pods, live ones included, are deleted and their volumes detached; remove the taint afterwards"
	LostWrittenTwice  say.Word = "two pods might write the same data if the machine still runs"
	TakenOut          say.Word = "the node is NotReady and marked out-of-service: the pod garbage collector deletes its terminating pods within a minute"
	MightBeTakenOut   say.Word = "the node is NotReady and marked out-of-service; unclear whether the pod garbage collector, which deletes its terminating pods, is running"
	NodeIsGone        say.Word = "its node %s does not exist"
	NodeGoneEnds      say.Word = "the node does not exist; the pod garbage collector deletes its pods within two minutes"
	NodeGoneMightEnd  say.Word = "the node does not exist; unclear whether the pod garbage collector, which deletes its pods, is running"
	NodeGoneStays     say.Word = "the node does not exist, and the pod garbage collector, which deletes its pods, is down"
	PodGCTurn         say.Word = "the pod garbage collector has to delete it"
	WaitForPodGC      say.Word = "wait: the pod garbage collector deletes the pod within two minutes of the deletion of its node, if kube-controller-manager is running"
	LostContainers    say.Word = "its containers, which keep running if the machine does"
)

// The programs that act as kubelets of virtual nodes, where a node does not name a product.
const (
	VirtualKubelet   say.Word = "its virtual kubelet"
	VirtualKubeletOf say.Word = "the virtual kubelet of %s"
)

// What a terminating pod waits for.
const (
	WaitsForKubelet   say.Word = "waits for its kubelet"
	WaitsForKubeletOn say.Word = "waits for the kubelet of node %s"
	MirrorsStatic     say.Word = "it mirrors a static pod"
	MirrorIsRemade    say.Word = "it mirrors a static pod: deleting the mirror does not stop that pod, and the kubelet recreates the mirror"
	MoveManifest      say.Word = "move the pod's manifest out of its directory on node %s (usually /etc/kubernetes/manifests); the kubelet then ends the pod and its mirror"
	WithoutNode       say.Word = "it has no node; the pod garbage collector has to delete it"
	InGracePeriod     say.Word = "it is in its grace period"
	EndsAboutNow      say.Word = "its grace period is over; its kubelet is about to end it"
	KubeletRejected   say.Word = "the API server rejects a write that its kubelet has to make"
	MightBeRejected   say.Word = "the API server might reject a write that its kubelet has to make"
	SeeKubelet        say.Word = "check the pod's events, and the kubelet's log on the node, for what fails"
	RemoveFromAPI     say.Word = "remove the pod from the API without waiting for its kubelet, once you are certain that nothing of it runs any more"
	LostOnNode        say.Word = "containers that might still run and write, and mounts on the node"
	IsRunning         say.Word = "container %s is running"
	DeletionUnseen    say.Word = "%d of %d: its kubelet has not seen the deletion"
	SandboxRemoved    say.Word = "False: its sandbox was removed"
)

// What a kubelet that reports has not done with a pod, for how long, and the program of a virtual node.
const (
	ContainersRun say.Word = "its kubelet has not stopped its containers, %[1]s after the grace period"
	TeardownFails say.Word = "its containers have ended, but its kubelet fails to tear down the rest of the pod, %[1]s after the grace period"
	Leftovers     say.Word = "its containers have ended, but its kubelet has not cleaned up the volumes or cgroups of the pod, %[1]s after the grace period"
	ByVirtual     say.Word = "its node is virtual, and %[2]s has not ended it, %[1]s after the grace period"
	NothingRuns   say.Word = "none of its containers is known to run, but its kubelet has not ended it, %[1]s after the grace period"
)

// What ends a pod, and what may become of it.
const (
	AwaitPod       say.Word = "wait until the pod completes, %s"
	DeletePod      say.Word = "delete the pod, %s"
	ScaleToZero    say.Word = "scale %s to 0 (it recreates pods that are only deleted), %s"
	LostClaims     say.Word = "the claims of all its pods, which it deletes when scaled down (persistentVolumeClaimRetentionPolicy), with their data unless their volumes are retained"
	MightRecreate  say.Word = "; its controller %s/%s might recreate it"
	MightScaleUp   say.Word = "; its controller %s/%s might scale it up again"
	NodeMissing    say.Word = "; its node %s does not exist, so the pod garbage collector removes the pod within a few minutes"
	NodeUnread     say.Word = "; the pod ends when the kubelet of node %s ends it, but whether that kubelet works could not be read"
	KubeletUnknown say.Word = "; the pod ends when the kubelet of node %s ends it, but unclear whether that kubelet works"
	KubeletSilent  say.Word = "; the pod is kept until node %s, which is NotReady, recovers, is deleted, or is marked out-of-service"
)
