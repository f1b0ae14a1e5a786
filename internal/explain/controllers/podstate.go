// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// podView is what is needed of a pod.
type podView struct {
	Spec   corev1.PodSpec `json:"spec"`
	Status struct {
		Phase                 string            `json:"phase"`
		Reason                string            `json:"reason"`
		Message               string            `json:"message"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name         string         `json:"name"`
	RestartCount int64          `json:"restartCount"`
	State        containerState `json:"state"`
	LastState    containerState `json:"lastState"`
}

type containerState struct {
	Waiting *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"waiting"`
	Running *struct {
		StartedAt string `json:"startedAt"`
	} `json:"running"`
	Terminated *struct {
		Reason   string `json:"reason"`
		Message  string `json:"message"`
		ExitCode int64  `json:"exitCode"`
	} `json:"terminated"`
}

// podState says whether a pod of a controller works.
func (f *liveness) podState(p *unstructured.Unstructured) State {
	var view podView
	name := evidence.Identity(evidence.Pods, p.GetNamespace(), p.GetName())
	if !evidence.Decode(p, &view) {
		return State{Liveness: Unsure, Because: say.Of(podUnknownForm), Pod: p.GetName()}
	}
	s := view.state(name, f.evidence.Now)
	s.Pod = p.GetName()
	if ready, _ := evidence.ConditionOf(p, "Ready"); s.Liveness == Unsure && ready.Status == "True" && s.Because.IsZero() {
		s = f.readyState(p, view, ready.Fact(name))
	}
	if scheduled, ok := evidence.ConditionOf(p, "PodScheduled"); ok && scheduled.Status == "False" && view.Spec.NodeName == "" {
		s = State{Liveness: Dead, Trouble: unscheduled, Because: say.Of(podOnNoNode), Pod: p.GetName(),
			Evidence: []evidence.Fact{scheduled.Fact(name)}}
		if f.evidence.Now.Sub(evidence.Latest(scheduled.Since, p.GetCreationTimestamp().Time)) < placeDelay {
			s.Liveness, s.Because = Unsure, say.Of(podWaitsForNode)
		}
	}
	if s.Liveness == Unsure && s.Because.IsZero() && p.GetDeletionTimestamp() == nil {
		s = f.startState(p, s)
	}
	if d := p.GetDeletionTimestamp(); d != nil && s.Liveness != Dead {
		s = f.endingPod(p, d.Time)
	}
	if s.Because.IsZero() {
		s.Because = say.Of(podNotReady)
		s.Evidence = append(s.Evidence, evidence.At(name, "status.phase", view.Status.Phase))
	}
	s.Unstarted = !view.started()
	return s
}

// started reports whether a container has run.
func (v *podView) started() bool {
	return v.Status.Phase != "Pending" || slices.ContainsFunc(slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses),
		func(c containerStatus) bool {
			return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
		})
}

// startState is a pod that is on a node and not ready: when its kubelet says again and
// again that something is missing, its containers do not start.
func (f *liveness) startState(p *unstructured.Unstructured, s State) State {
	if ready, _ := evidence.ConditionOf(p, "PodReadyToStartContainers"); ready.Status == "True" ||
		f.evidence.Now.Sub(p.GetCreationTimestamp().Time) < startDelay {
		return s
	}
	for _, e := range merged(f.evidence.Events(p.GetNamespace(), p.GetUID())) {
		if e.Type == "Warning" && startFailures[e.Reason] && e.Repeats(startDelay) && f.evidence.Now.Sub(e.Last) <= SameFailure {
			return State{
				Liveness: Dead, Trouble: NotStarted, Pod: p.GetName(), Because: say.Of(podNotStarting, e.Message), Evidence: []evidence.Fact{e.Fact()},
			}
		}
	}
	return s
}

// startFailures are the reasons of events with which a kubelet says that it cannot start
// a pod (kubernetes/pkg/kubelet/events).
var startFailures = map[string]bool{"FailedMount": true, "FailedAttachVolume": true, "FailedMapVolume": true,
	"FailedCreatePodSandBox": true}

// endingPod is a pod that is being deleted. Until it has ended it may still
// work, but most controllers stop as soon as they are asked to.
func (f *liveness) endingPod(p *unstructured.Unstructured, by time.Time) State {
	name := evidence.Identity(evidence.Pods, p.GetNamespace(), p.GetName())
	ready, _ := evidence.ConditionOf(p, "Ready")
	s := State{Liveness: Unsure, Trouble: Leaving, Pod: p.GetName(), Because: say.Of(podDeleted, p.GetName())}
	s.ready = ready.Status == "True"
	if s.late = f.evidence.Now.After(by); s.late {
		s.Because = say.Of(podOverdue, p.GetName())
	}
	s.Evidence = []evidence.Fact{evidence.At(name, "metadata.deletionTimestamp", by.UTC().Format(time.RFC3339))}
	return s
}

// readyState is a pod that says that it is ready. When its node does not report
// that is an old word.
func (f *liveness) readyState(p *unstructured.Unstructured, view podView, ready evidence.Fact) State {
	if view.Spec.NodeName == "" {
		return State{Liveness: Unsure, Because: say.Of(podReadyNoNode), Pod: p.GetName(), Evidence: []evidence.Fact{ready}}
	}
	node, lease := f.evidence.Lease("kube-node-lease", view.Spec.NodeName)
	s := State{Liveness: Alive, Because: say.Of(podReady, p.GetName()), Pod: p.GetName(), Evidence: []evidence.Fact{ready}}
	if node == evidence.LeaseFresh || node != evidence.LeaseStale && f.managerLease() == evidence.LeaseFresh {
		return s
	}
	s.Liveness, s.Because = Unsure, say.Of(podReadyUnsure)
	if node == evidence.LeaseStale {
		s.Because = say.Of(podReadyNodeDown)
	}
	s.Evidence = append(s.Evidence, lease)
	return s
}

// waitingFor are the reasons for which a container does not start.
var waitingFor = map[string]Trouble{
	"CrashLoopBackOff": Crashing, "RunContainerError": Crashing, "CreateContainerError": NotStarted, "CreateContainerConfigError": NotStarted,
	"ImagePullBackOff": noImage, "ErrImagePull": noImage, "InvalidImageName": noImage, "ErrImageNeverPull": noImage,
}

// State says what a pod's containers tell. Unsure without a reason means that
// nothing is wrong with them.
func (v *podView) state(name graph.Identity, now time.Time) State {
	at := func(path, value string) []evidence.Fact {
		return []evidence.Fact{evidence.At(name, path, value)}
	}
	switch {
	case v.Status.Phase == "Failed" || v.Status.Phase == "Succeeded":
		return State{Liveness: Dead, Trouble: ended, Because: v.ending(),
			Evidence: at("status.phase", strings.TrimSpace(v.Status.Phase+" "+v.Status.Reason+" "+v.Status.Message))}
	case len(v.Spec.SchedulingGates) > 0:
		return State{Liveness: Dead, Trouble: unscheduled, Because: say.Of(podGated), Evidence: at("spec.schedulingGates", "not empty")}
	}
	runs := false
	for _, c := range v.Status.ContainerStatuses {
		runs = runs || c.State.Running != nil && !strings.HasSuffix(c.Name, "proxy")
	}
	for _, c := range slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses) {
		if c.State.Waiting != nil && waitingFor[c.State.Waiting.Reason] != noTrouble {
			s := State{Liveness: Dead, Trouble: waitingFor[c.State.Waiting.Reason], Because: say.Of(containerWaits, c.Name, c.State.Waiting.Reason),
				Evidence: at("status.containerStatuses["+c.Name+"].state.waiting", c.describe())}
			switch {
			case s.Trouble == NotStarted && c.State.Waiting.Message != "":
				s.Because = s.Because.And(saying, c.State.Waiting.Message)
			case s.Trouble == Crashing && c.RestartCount > 0:
				s.Because = s.Because.And(inParentheses, c.past())
			}
			if runs {
				s.Liveness = Unsure
			}
			return s
		}
		if c.RestartCount >= manyCrashes && c.failed() && c.startedAfter(now.Add(-startDelay)) {
			return State{Liveness: Unsure, Because: say.Of(justRestarted, c.Name),
				Evidence: at("status.containerStatuses["+c.Name+"]", c.describe())}
		}
	}
	return State{Liveness: Unsure}
}

// ending says how the pod has ended: how the first container did that failed, if one did.
func (v *podView) ending() say.Text {
	for _, c := range slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return say.Of(containerFailed, c.Name, t.ExitCode, cmp.Or(t.Message, t.Reason))
		}
	}
	return say.Of(podEnded)
}

// failed reports whether the container ended with an error before.
func (c *containerStatus) failed() bool {
	return c.LastState.Terminated != nil && c.LastState.Terminated.ExitCode != 0
}

func (c *containerStatus) startedAfter(t time.Time) bool {
	if c.State.Running == nil {
		return false
	}
	started, err := time.Parse(time.RFC3339, c.State.Running.StartedAt)
	return err == nil && started.After(t)
}

func (c *containerStatus) describe() string {
	text := ""
	if c.State.Waiting != nil {
		text = strings.TrimSuffix(c.State.Waiting.Reason+": "+c.State.Waiting.Message, ": ") + "; "
	}
	return text + c.past()
}

// past says how often the container was restarted, and how it ended last.
func (c *containerStatus) past() string {
	text := fmt.Sprintf("%d restarts", c.RestartCount)
	if t := c.LastState.Terminated; t != nil {
		text += fmt.Sprintf(endedWithCode, t.ExitCode, cmp.Or(t.Reason, "no reason"), t.Message)
	}
	return strings.TrimSpace(text)
}
