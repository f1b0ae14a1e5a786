// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// unheld are fields that a file never holds (internal/offline, partsHeld), and which are most of what objects are.
var unheld = func() map[schema.GroupResource]wire.Drop {
	spec := podSpec(container(cut{})).and("tolerations") // of the environment a file has what a program goes by
	return map[schema.GroupResource]wire.Drop{
		{Resource: "pods"}:                        cut{"spec": spec}.drop(reflect.TypeFor[corev1.Pod]()),
		{Group: "apps", Resource: "deployments"}:  template(spec).drop(reflect.TypeFor[appsv1.Deployment]()),
		{Group: "apps", Resource: "statefulsets"}: template(spec).drop(reflect.TypeFor[appsv1.StatefulSet]()),
		{Group: "apps", Resource: "daemonsets"}:   template(spec).drop(reflect.TypeFor[appsv1.DaemonSet]()),
		{Group: "apps", Resource: "replicasets"}:  cut{"spec": cuts("template")}.drop(reflect.TypeFor[appsv1.ReplicaSet]()),
	}
}()

// notHeld is what a file does not hold of an object in protobuf.
func (d *wholeDecoder) notHeld(decoder *wire.Decoder, of *graph.Resource, message []byte) wire.Drop {
	resource, managed := of.GroupResource(), true
	_ = decoder.Item(message, func(o *graph.Object) error { // else decoding it whole says what is wrong
		meta := metav1.ObjectMeta{OwnerReferences: o.OwnerReferences}
		managed = offline.HoldsManagers(resource, o.BeingDeleted() || len(o.Finalizers) > 0, metav1.GetControllerOfNoCopy(&meta) != nil)
		return nil
	})
	if managed {
		return unheld[resource]
	}
	if of := unheld[resource]; of != nil {
		return wire.Drop{1: managedFields[1], 2: of[2]}
	}
	return managedFields
}

// errNewer says that a list has an object with a field that a file holds and Go's type has not.
var errNewer = errors.New("an object has a newer field")

// isNewer reports whether a pod has a schedulingGroup in its spec (k8s.io/api 0.36, core/v1/types.go).
func isNewer(text []byte, packed bool) bool {
	return packed && wire.Has(text, 2, 43) || !packed && bytes.Contains(text, []byte(`"schedulingGroup"`))
}

// printedOf is what kubectl get prints of an object's state, false for a type of which only the server's table tells
// (k8s.io/kubernetes/pkg/printers/internalversion/printers.go, printPod and the like).
func printedOf(o runtime.Object) (Status, bool) {
	ready := func(ready, of int32) (Status, bool) { return Status{Ready: fmt.Sprintf("%d/%d", ready, of)}, true }
	switch o := o.(type) {
	case *corev1.Pod:
		return podStatus(o), true
	case *appsv1.Deployment:
		return ready(o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 0))
	case *appsv1.StatefulSet:
		return ready(o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 0))
	case *appsv1.ReplicaSet:
		return ready(o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 0))
	case *appsv1.DaemonSet:
		return ready(o.Status.NumberReady, o.Status.DesiredNumberScheduled)
	}
	return Status{}, false
}

// podStatus is printPod.
func podStatus(pod *corev1.Pod) Status {
	reason := cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			reason = c.Reason
		}
	}
	total, sidecars := len(pod.Spec.Containers), map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			total++
		}
	}
	ready, waits := initialized(pod, sidecars)
	if waits != "" {
		reason = waits
	}
	if waits == "" || isTrue(pod, corev1.PodInitialized) {
		var running int
		running, reason = containersState(pod, reason)
		ready += running
	}
	switch {
	case pod.DeletionTimestamp == nil:
	case pod.Status.Reason == "NodeLost":
		reason = "Unknown"
	case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
		reason = "Terminating"
	}
	return Status{Ready: fmt.Sprintf("%d/%d", ready, total), Status: reason}
}

// isTrue reports whether a pod has a condition that is true.
func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// containersState is how many containers are ready, and what is said of them, which is otherwise if none says anything.
func containersState(pod *corev1.Pod, otherwise string) (ready int, reason string) {
	reason = otherwise
	failure := ""
	for i := range slices.Backward(pod.Status.ContainerStatuses) {
		c := &pod.Status.ContainerStatuses[i]
		switch state := c.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			reason = state.Waiting.Reason
		case state.Terminated != nil:
			if reason = endOf(state.Terminated); state.Terminated.ExitCode != 0 {
				failure = reason
			}
		case c.Ready && state.Running != nil:
			ready++
		}
	}
	switch {
	case reason != "Completed":
	case ready > 0 && isTrue(pod, corev1.PodReady):
		reason = "Running"
	case failure != "":
		reason = failure
	case ready > 0:
		reason = "NotReady"
	}
	return ready, reason
}

// initialized is how many sidecars are ready before the first init container that has not done its work, and what that waits for.
func initialized(pod *corev1.Pod, sidecars map[string]bool) (ready int, waits string) {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		switch state := c.State; {
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
		case sidecars[c.Name] && ptr.Deref(c.Started, false):
			if c.Ready {
				ready++
			}
		case state.Terminated != nil:
			return ready, "Init:" + endOf(state.Terminated)
		case state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing":
			return ready, "Init:" + state.Waiting.Reason
		default:
			return ready, fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
	}
	return ready, ""
}

// endOf is how a container has ended.
func endOf(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}
