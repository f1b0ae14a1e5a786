// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Pods past their deletion: pkg/kubelet (SyncTerminatingPod,
// PodCouldHaveRunningContainers)
// and pkg/controller/podgc.

// How long a kubelet may take after the grace period, and how long it may take
// to clean up when the containers have ended.
const (
	kubeletDelay = 30 * time.Second
	volumeDelay  = 60 * time.Second
	podGCDelay   = 2 * time.Minute
)

// Terminating says what a terminating pod waits for besides its finalizers: the kubelet of its node. A grace period of zero
// says that the kubelet is done, or that nothing waits for it.
func Terminating(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	o := n.Object()
	if o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0 {
		return nil, true
	}
	end := o.DeletionTimestamp.Time
	full, err := f.Whole(n.Node)
	switch {
	case apierrors.IsNotFound(err):
		return []finding.Blocker{{Because: say.Of(rules.Deleted)}}, true
	case err != nil && f.Now.Before(end):
		return grace(n.Node, nil, say.Of(InGracePeriod), end), true
	case err != nil:
		return rules.Unread(n.Node, say.Of(WaitsForKubelet), "the pod", err), true
	case f.Now.Before(end):
		return inGrace(f, n.Node, full, end), true
	}
	if _, mirror := full.GetAnnotations()["kubernetes.io/config.mirror"]; mirror {
		return []finding.Blocker{{Because: say.Of(MirrorsStatic), Cause: mirrored(n.Node, full)}}, true
	}
	node := evidence.Nested(full, "spec", "nodeName")
	if node == "" {
		return []finding.Blocker{f.Turn(n.Node, finding.PodUnscheduled, say.Of(WithoutNode), f.Now.Sub(end) > podGCDelay)}, true
	}
	machine, err := f.Get(evidence.Nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return nodeGone(f, n.Node, node), true
	case err != nil:
		return rules.Unread(n.Node, say.Of(WaitsForKubelet), "node "+node, err), true
	}
	if c := nodeDown(f, machine); c != nil {
		return []finding.Blocker{{Because: say.Of(WaitsForKubeletOn, node), Cause: c}}, true
	}
	return append(kubelet(f, n.Node, full, machine), kubeletRefused(f, n.Node)...), true
}

// inGrace is a pod whose grace period is not over. Its kubelet ends it only if there is one: without a node the pod garbage
// collector does not wait for the end of the period, and on a node that does not report nothing ends the pod.
func inGrace(f *rules.Facts, n graph.Node, full *unstructured.Unstructured, end time.Time) []finding.Blocker {
	name := evidence.Nested(full, "spec", "nodeName")
	if name != "" {
		node, err := f.Get(evidence.Nodes, "", name)
		if apierrors.IsNotFound(err) {
			return nodeGone(f, n, name)
		}
		if err == nil {
			if c := nodeDown(f, node); c != nil && c.Verdict == finding.Stuck {
				return []finding.Blocker{{Because: say.Of(WaitsForKubeletOn, name), Cause: c}}
			}
		}
	}
	return grace(n, full, say.Of(InGracePeriod), end)
}

// kubeletRefused is a pod whose status the kubelet cannot write, or which the kubelet cannot delete.
func kubeletRefused(f *rules.Facts, n graph.Node) []finding.Blocker {
	if f.Now.Sub(n.Object().DeletionTimestamp.Time) <= kubeletDelay {
		return nil
	}
	var blockers []finding.Blocker
	for _, c := range []*finding.Cause{write.Refusal(f, n, f.Admission.TryStatus(n), "UPDATE"),
		write.Refusal(f, n, f.Admission.TryDelete(n, "pod"), "DELETE")} {
		switch {
		case c == nil:
		case c.Verdict == finding.Stuck:
			blockers = append(blockers, finding.Blocker{Because: say.Of(KubeletRejected), Cause: c})
		default:
			blockers = append(blockers, finding.Blocker{Because: say.Of(MightBeRejected), Cause: c})
		}
	}
	return blockers
}

// grace is a pod that is in time.
func grace(n graph.Node, full *unstructured.Unstructured, summary say.Text, until time.Time) []finding.Blocker {
	c := &finding.Cause{
		Kind: finding.PodGrace, At: n.Identity(), Verdict: finding.Progressing, Until: until, Summary: summary,
		Evidence: []finding.Fact{
			finding.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			finding.Field(n, "metadata.deletionGracePeriodSeconds", fmt.Sprint(*n.Object().DeletionGracePeriodSeconds)),
		},
	}
	if full != nil {
		names, _ := containers(full)
		c.Evidence = append(c.Evidence, running(n, names)...)
	}
	return []finding.Blocker{{Because: say.Of(WaitsForKubelet), Cause: c}}
}

// running are the containers of a pod that run.
func running(n graph.Node, names []string) []finding.Fact {
	var facts []finding.Fact
	for _, name := range names {
		facts = append(facts, finding.FieldSays(n, "status.containerStatuses", IsRunning, name))
	}
	return facts
}

// force removes a pod's object without asking its kubelet.
func force(n graph.Node, leaks say.Text) finding.Way {
	way := finding.Does(remedy.DeleteOf(n.Identity(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), RemoveFromAPI)
	way.Loss = []remedy.Loss{{Kind: remedy.Leaks, Object: n.Identity(), What: leaks}}
	return way
}

// kubelet is a pod past its grace period on a node that reports.
func kubelet(f *rules.Facts, n graph.Node, full, machine *unstructured.Unstructured) []finding.Blocker {
	end := n.Object().DeletionTimestamp.Time
	names, ended := containers(full)
	delay := kubeletDelay
	if len(names) == 0 && ended > 0 {
		delay = volumeDelay
	}
	over := f.Now.Sub(end)
	if over <= delay {
		return grace(n, full, say.Of(EndsAboutNow), end.Add(delay))
	}
	failures := rules.Warnings(f.Reader, n, "FailedKillPod", "FailedPreStopHook", "ExceededGracePeriod")
	kind, state := finding.PodKubeletKill, ContainersRun
	switch {
	case len(names) == 0 && len(failures) > 0:
		state = TeardownFails
	case len(names) == 0 && ended > 0:
		kind, state = finding.PodVolumes, Leftovers
	}
	program := Virtual(machine)
	if !program.IsZero() {
		kind, state = finding.PodVirtualNode, ByVirtual
	}
	node := evidence.Nested(full, "spec", "nodeName")
	renews, lease := f.Lease("kube-node-lease", node)
	verdict := finding.Stuck
	if len(names)+ended == 0 {
		verdict, state = finding.Unknown, NothingRuns
	} else if f.Manager().Lease != evidence.LeaseFresh && renews != evidence.LeaseFresh {
		verdict = finding.Unknown // the node's conditions may be frozen
	}
	c := &finding.Cause{
		Kind: kind, At: n.Identity(), Verdict: verdict, Summary: say.Of(state, duration.HumanDuration(over), program),
		Evidence: append([]finding.Fact{
			finding.Field(n, "metadata.deletionTimestamp", end.UTC().Format(time.RFC3339)), finding.Field(n, "spec.nodeName", node),
		}, running(n, names)...),
		Ways: []finding.Way{finding.See(remedy.Look{Words: "describe pod", Of: n.Identity(), Args: []string{n.Name()}}, SeeKubelet),
			force(n, say.Of(LostOnNode))},
	}
	if len(names) == 0 {
		c.Evidence = append(c.Evidence, finding.Field(n, "status.containerStatuses", evidence.Number(ended, "ended container")))
	}
	if len(names) > 0 {
		c.Decides = say.Of(IsRunning, names[0])
	}
	c.Evidence = append(append(append(c.Evidence, failures...), kubeletEvidence(n, full, machine)...), lease)
	return []finding.Blocker{{Because: say.Of(WaitsForKubelet), Cause: c}}
}

// kubeletEvidence says how far the kubelet has come: whether it has seen the deletion, whether it has removed the sandbox,
// and what is mounted.
func kubeletEvidence(n graph.Node, full, machine *unstructured.Unstructured) []finding.Fact {
	var facts []finding.Fact
	observed, known, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration")
	if known && observed > 0 && observed < full.GetGeneration() {
		facts = append(facts, finding.FieldSays(n, "status.observedGeneration", DeletionUnseen, observed, full.GetGeneration()))
	}
	if c, ok := evidence.ConditionOf(full, "PodReadyToStartContainers"); ok && c.Status == "False" {
		facts = append(facts, finding.FieldSays(n, "status.conditions[PodReadyToStartContainers]", SandboxRemoved))
	}
	if mounted, _, _ := unstructured.NestedStringSlice(machine.Object, "status", "volumesInUse"); len(mounted) > 0 {
		facts = append(facts, finding.At(evidence.Identity(evidence.Nodes, "", machine.GetName()), "status.volumesInUse", fmt.Sprint(mounted)))
	}
	return facts
}

// containers returns the names of the containers that run, and how many have
// ended: none, as long as one is neither running nor ended, because it has not
// started or is about to start again. Of init and ephemeral containers only
// those that run count.
func containers(pod *unstructured.Unstructured) (running []string, ended int) {
	undecided := false
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, s := range statuses {
			status, _ := s.(map[string]any)
			state, _, _ := unstructured.NestedMap(status, "state")
			_, runs := state["running"]
			_, over := state["terminated"]
			if runs {
				running = append(running, evidence.Text(status["name"]))
			}
			if list != "containerStatuses" {
				continue
			}
			if over {
				ended++
			}
			undecided = undecided || !runs && !over
		}
	}
	if undecided {
		ended = 0
	}
	return running, ended
}

// mirrored is the image of a static pod in the API.
func mirrored(n graph.Node, full *unstructured.Unstructured) *finding.Cause {
	node := evidence.Nested(full, "spec", "nodeName")
	return &finding.Cause{
		Kind: finding.PodMirror, At: n.Identity(), Verdict: finding.Stuck, Summary: say.Of(MirrorIsRemade),
		Evidence: []finding.Fact{
			finding.Field(n, "metadata.annotations[kubernetes.io/config.mirror]", full.GetAnnotations()["kubernetes.io/config.mirror"]),
			finding.Field(n, "spec.nodeName", node),
		},
		Ways: []finding.Way{{Effect: say.Of(MoveManifest, node), Risk: finding.Disruptive}},
	}
}
