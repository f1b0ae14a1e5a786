// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is said of pods, of their nodes, and of objects that wait for pods.

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

// What to do about a pod, and what is lost.
const (
	recreateThePod = "recreate it"
	scaleUpAgain   = "scale it up again"
)

// might says what the controller of an object might do, nothing without one.
func might(controller *metav1.OwnerReference, do string) string {
	if controller == nil {
		return ""
	}
	return fmt.Sprintf("; its controller %s/%s might %s", controller.Kind, controller.Name, do)
}
