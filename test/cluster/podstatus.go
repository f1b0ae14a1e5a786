// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isFinished reports whether a pod will never run again.
func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isJobPod reports whether a Job controls a pod.
func isJobPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// observedStatus returns the status of a pod as it is, for its present
// generation.
func observedStatus(pod *corev1.Pod) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = pod.Generation
	}
	return status
}

// runningStatus returns the status of a pod whose containers all run.
func runningStatus(pod *corev1.Pod, ip string) corev1.PodStatus {
	now := metav1.Now()
	status := observedStatus(pod)
	status.Phase = corev1.PodRunning
	status.StartTime = &now
	status.HostIP, status.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(pod, container, running))
	}
	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		state := terminated(now, now)
		if isSidecar(container) {
			state = running
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(pod, container, state))
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers,
		corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		setCondition(&status, condition, corev1.ConditionTrue, "")
	}
	return status
}

// finishedStatus returns the status of a pod whose containers have all ended
// without an error.
func finishedStatus(pod *corev1.Pod) corev1.PodStatus {
	status := observedStatus(pod)
	status.Phase = corev1.PodSucceeded
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			finish(&list[i])
		}
	}
	setCondition(&status, corev1.PodReady, corev1.ConditionFalse, "PodCompleted")
	setCondition(&status, corev1.ContainersReady, corev1.ConditionFalse, "PodCompleted")
	return status
}

// finish ends a container that has not ended yet.
func finish(container *corev1.ContainerStatus) {
	if container.State.Terminated != nil {
		return
	}
	now := metav1.Now()
	started := now
	if running := container.State.Running; running != nil {
		started = running.StartedAt
	}
	container.State = terminated(started, now)
	container.State.Terminated.ContainerID = container.ContainerID
	container.Ready = false
	container.Started = new(bool)
}

// terminated returns the state of a container that ended without an error.
func terminated(started, finished metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason:     "Completed",
		StartedAt:  started,
		FinishedAt: finished,
	}}
}

// containerStatus returns the status of a container that was started.
func containerStatus(pod *corev1.Pod, container corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{
		Name:        container.Name,
		Image:       container.Image,
		ImageID:     "fake://" + container.Image,
		ContainerID: "fake://" + string(pod.UID) + "/" + container.Name,
		State:       state,
		Ready:       true, // an init container that has ended is ready, too
		Started:     &started,
	}
}

// isSidecar reports whether an init container keeps running.
func isSidecar(container corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// setCondition sets one condition; the time of transition changes only with
// the status.
func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, reason string) {
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		i = len(status.Conditions)
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind})
	}
	condition := &status.Conditions[i]
	if condition.Status != value {
		condition.LastTransitionTime = metav1.Now()
	}
	condition.Status = value
	condition.Reason = reason
	condition.ObservedGeneration = status.ObservedGeneration
}
