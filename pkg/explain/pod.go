// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
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

// pod returns what a terminating pod waits for besides its finalizers: the kubelet of its node. A grace period of zero
// says that the kubelet is done, or that nothing waits for it.
func (w *walker) pod(n graph.Node) []hold {
	o := n.Object()
	if o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0 {
		return nil
	}
	end := o.DeletionTimestamp.Time
	full, err := w.evidence.Whole(n)
	switch {
	case apierrors.IsNotFound(err):
		return gone()
	case err != nil && w.evidence.Now.Before(end):
		return []hold{{because: waitsForKubelet, cause: w.grace(n, nil, inGracePeriod, end)}}
	case err != nil:
		return w.unread(n, waitsForKubelet, "the pod", err)
	case w.evidence.Now.Before(end):
		return w.inGrace(n, full, end)
	}
	if _, mirror := full.GetAnnotations()["kubernetes.io/config.mirror"]; mirror {
		return []hold{{because: mirrorsStatic, cause: w.mirror(n, full)}}
	}
	node := evidence.Nested(full, "spec", "nodeName")
	if node == "" {
		return []hold{w.manager(n, withoutNode, w.evidence.Now.Sub(end) > podGCDelay).as(finding.PodUnscheduled)}
	}
	machine, err := w.evidence.Get(nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return w.nodeGone(n, node)
	case err != nil:
		return w.unread(n, waitsForKubelet, "node "+node, err)
	}
	if c := w.nodeDown(machine); c != nil {
		return []hold{{because: fmt.Sprintf(waitsForKubeletOn, node), cause: c}}
	}
	return append(w.kubelet(n, full, machine), w.kubeletRefused(n)...)
}

// inGrace is a pod whose grace period is not over. Its kubelet ends it only if there is one: without a node the pod garbage
// collector does not wait for the end of the period, and on a node that does not report nothing ends the pod.
func (w *walker) inGrace(n graph.Node, full *unstructured.Unstructured, end time.Time) []hold {
	name := evidence.Nested(full, "spec", "nodeName")
	if name != "" {
		node, err := w.evidence.Get(nodes, "", name)
		if apierrors.IsNotFound(err) {
			return w.nodeGone(n, name)
		}
		if err == nil {
			if c := w.nodeDown(node); c != nil && c.Verdict == Stuck {
				return []hold{{because: fmt.Sprintf(waitsForKubeletOn, name), cause: c}}
			}
		}
	}
	return []hold{{because: waitsForKubelet, cause: w.grace(n, full, inGracePeriod, end)}}
}

// kubeletRefused is a pod whose status the kubelet cannot write, or which the kubelet cannot delete.
func (w *walker) kubeletRefused(n graph.Node) []hold {
	if w.evidence.Now.Sub(n.Object().DeletionTimestamp.Time) <= kubeletDelay {
		return nil
	}
	var holds []hold
	for _, try := range []struct {
		reply     admission.Reply
		operation string
	}{{w.asker.TryStatus(n), "UPDATE"}, {w.asker.TryDelete(n, "pod"), "DELETE"}} {
		if c := w.refusal(n, try.reply, try.operation); c != nil && !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
			holds = append(holds, hold{because: kubeletRejected[c.Verdict == Stuck], cause: c})
		}
	}
	return holds
}

// grace is a pod that is in time.
func (w *walker) grace(n graph.Node, full *unstructured.Unstructured, summary string, until time.Time) *Cause {
	return w.cause(finding.PodGrace, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Until, c.Summary = Progressing, until, summary
		c.Evidence = []Evidence{
			evidence.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			evidence.Field(n, "metadata.deletionGracePeriodSeconds", fmt.Sprint(*n.Object().DeletionGracePeriodSeconds)),
		}
		if full != nil {
			running, _ := containers(full)
			for _, name := range running {
				c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", fmt.Sprintf(isRunning, name)))
			}
		}
	})
}

// nodeGone is a pod on a node that does not exist: the pod garbage collector deletes it.
func (w *walker) nodeGone(n graph.Node, node string) []hold {
	overdue := w.evidence.Now.Sub(evidence.Requested(n.Object())) > podGCDelay && w.evidence.Now.Sub(n.Object().DeletionTimestamp.Time) > podGCDelay
	h := w.health()
	idle := h.dead() && len(h.idle) > 0
	verdict := Progressing
	switch {
	case idle && overdue:
		verdict = Stuck
	case h.lease != evidence.LeaseFresh || overdue:
		verdict = Unknown
	}
	c := w.shared(node, finding.PodNodeGone, evidence.Identity(nodes, "", node), func(c *Cause) {
		c.Verdict, c.Summary = verdict, nodeGoneSays[verdict]
		c.Evidence = []Evidence{{Source: "Node/" + node, Value: evidence.DoesNotExist}, h.evidence}
	})
	w.worsen(c, verdict, nodeGoneSays[verdict]) // the one that has waited longest tells
	if !idle {
		w.offerOnce(c, Remedy{Risk: Safe, Effect: waitForPodGC})
	}
	if w.join(c, evidence.Field(n, "spec.nodeName", node)) <= evidence.MaxShown {
		w.offer(c, w.force(n, lostContainers))
	}
	holds := []hold{{because: fmt.Sprintf(nodeIsGone, node), cause: c}}
	if idle {
		holds = append(holds, w.manager(n, podGCTurn, overdue))
	}
	return holds
}

// force removes a pod's object without asking its kubelet.
func (d commands) force(n graph.Node, leaks string) Remedy {
	loss := []remedy.Loss{{Kind: remedy.Leaks, Object: n.Identity(), What: leaks}}
	return Remedy{Risk: Dangerous, Loss: loss, Action: d.delete(n.Identity(), atOnce), Effect: removeFromAPI}
}

// nodeDown says that a node's kubelet does not report, nil when it does.
func (w *walker) nodeDown(node *unstructured.Unstructured) *Cause {
	silence := pod.SilenceOf(w.evidence, node)
	if silence == nil {
		return nil
	}
	at, name, ready, program := silence.Node, node.GetName(), silence.Ready, say(silence.Program)
	k := finding.PodNodeNotready
	if program != "" {
		k = finding.PodVirtualNode
	}
	return w.shared(name, k, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, nodeSilent
		switch {
		case silence.State == evidence.LeaseFresh:
			c.Verdict, c.Summary = Unknown, nodeLeaseFresh
		case !silence.Certain:
			c.Verdict, c.Summary = Unknown, nodeReportUnknown
		}
		c.Evidence = []Evidence{ready.Fact(at.String())}
		if !ready.Since.IsZero() {
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "status.conditions[Ready].lastTransitionTime", Value: ready.Since.UTC().Format(time.RFC3339)})
		}
		c.Evidence = append(c.Evidence, silence.Lease)
		switch {
		case program != "":
			w.virtualDown(c, name, program)
		case silence.OutOfService:
			takenOut(c, w.health())
		default:
			taint := w.does(remedy.TaintOf(at, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
			c.Remedies = []Remedy{
				see(repairNode, "%s describe node %s", w.Kubectl, shell.Quote(name)),
				{Risk: Dangerous, Action: taint, Temporary: true, Effect: markOutOfService, Loss: loses(remedy.CorruptsData, lostWrittenTwice)},
			}
		}
	})
}

// takenOut is a node that does not report and is marked out-of-service: the pod garbage collector deletes its
// terminating pods, for which it looks every 20 seconds.
func takenOut(c *Cause, h *health) {
	if c.Verdict = Progressing; h.lease != evidence.LeaseFresh {
		c.Verdict = Unknown
	}
	c.Summary = outOfServiceSays[c.Verdict]
	c.Evidence = append(c.Evidence, Evidence{Source: c.Object.String(), Path: "spec.taints", Value: "node.kubernetes.io/out-of-service"}, h.evidence)
}

// virtualDown is a virtual node whose program does not report.
func (f *facts) virtualDown(c *Cause, name, program string) {
	c.Summary = fmt.Sprintf(virtualSilent, program)
	c.Controller = &Controller{Name: program, Liveness: string(Unknown)}
	if lease, err := f.evidence.Get(leases, "kube-node-lease", name); err == nil {
		c.Controller.Evidence = []Evidence{{Source: "Lease/kube-node-lease/" + name, Path: "spec.holderIdentity", Value: evidence.Nested(lease, "spec", "holderIdentity")}}
	}
	c.Remedies = []Remedy{see(fmt.Sprintf(repairVirtual, program), "%s describe node %s", f.Kubectl, shell.Quote(name))}
}

// kubelet is a pod past its grace period on a node that reports.
func (w *walker) kubelet(n graph.Node, full, machine *unstructured.Unstructured) []hold {
	end := n.Object().DeletionTimestamp.Time
	running, ended := containers(full)
	delay := kubeletDelay
	if len(running) == 0 && ended > 0 {
		delay = volumeDelay
	}
	over := w.evidence.Now.Sub(end)
	if over <= delay {
		return []hold{{because: waitsForKubelet, cause: w.grace(n, full, endsAboutNow, end.Add(delay))}}
	}
	failures := shown(rules.Warnings(w.evidence, n, "FailedKillPod", "FailedPreStopHook", "ExceededGracePeriod"))
	id, state := finding.PodKubeletKill, containersRun
	switch {
	case len(running) == 0 && len(failures) > 0:
		state = teardownFails
	case len(running) == 0 && ended > 0:
		id, state = finding.PodVolumes, leftovers
	}
	program := say(pod.Virtual(machine))
	if program != "" {
		id, state = finding.PodVirtualNode, byVirtual
	}
	return []hold{{because: waitsForKubelet, cause: w.cause(id, n.Identity(), "", func(c *Cause) {
		renews, lease := w.evidence.Lease("kube-node-lease", evidence.Nested(full, "spec", "nodeName"))
		if c.Verdict = Stuck; len(running)+ended == 0 {
			c.Verdict, state = Unknown, nothingRuns
		} else if w.health().lease != evidence.LeaseFresh && renews != evidence.LeaseFresh {
			c.Verdict = Unknown // the node's conditions may be frozen
		}
		c.Summary = fmt.Sprintf(unendedSays[state], duration.HumanDuration(over), program)
		c.Evidence = []Evidence{evidence.Field(n, "metadata.deletionTimestamp", end.UTC().Format(time.RFC3339)), evidence.Field(n, "spec.nodeName", evidence.Nested(full, "spec", "nodeName"))}
		for _, name := range running {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", fmt.Sprintf(isRunning, name)))
		}
		if len(running) == 0 {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", endedContainers(ended)))
		}
		c.Evidence = append(append(append(c.Evidence, failures...), kubeletEvidence(n, full, machine)...), lease)
		c.Remedies = []Remedy{see(seeKubelet, "%s describe pod %s", w.kubectl(n), shell.Quote(n.Name())), w.force(n, lostOnNode)}
	})}}
}

// kubeletEvidence says how far the kubelet has come: whether it has seen the deletion, whether it has removed the sandbox,
// and what is mounted.
func kubeletEvidence(n graph.Node, full, machine *unstructured.Unstructured) []Evidence {
	var facts []Evidence
	observed, known, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration")
	if known && observed > 0 && observed < full.GetGeneration() {
		facts = append(facts, evidence.Field(n, "status.observedGeneration", fmt.Sprintf(deletionUnseen, observed, full.GetGeneration())))
	}
	if c, ok := evidence.ConditionOf(full, "PodReadyToStartContainers"); ok && c.Status == "False" {
		facts = append(facts, evidence.Field(n, "status.conditions[PodReadyToStartContainers]", sandboxRemoved))
	}
	if mounted, _, _ := unstructured.NestedStringSlice(machine.Object, "status", "volumesInUse"); len(mounted) > 0 {
		facts = append(facts, Evidence{Source: "Node/" + machine.GetName(), Path: "status.volumesInUse", Value: fmt.Sprint(mounted)})
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

// mirror is the image of a static pod in the API.
func (w *walker) mirror(n graph.Node, full *unstructured.Unstructured) *Cause {
	return w.cause(finding.PodMirror, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, mirrorIsRemade
		c.Evidence = []Evidence{
			evidence.Field(n, "metadata.annotations[kubernetes.io/config.mirror]", full.GetAnnotations()["kubernetes.io/config.mirror"]),
			evidence.Field(n, "spec.nodeName", evidence.Nested(full, "spec", "nodeName")),
		}
		c.Remedies = []Remedy{{Risk: Disruptive, Effect: fmt.Sprintf(moveManifest, evidence.Nested(full, "spec", "nodeName"))}}
	})
}
