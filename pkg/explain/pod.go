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

// pod returns what a terminating pod waits for besides its finalizers: the
// kubelet of its node. A grace period of zero says that the kubelet is done, or
// that nobody waits for it.
func (w *walker) pod(n graph.Node) []hold {
	o := n.Object()
	if o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0 {
		return nil
	}
	const because = "waits for its kubelet"
	end := o.DeletionTimestamp.Time
	full, err := w.evidence.Whole(n)
	switch {
	case apierrors.IsNotFound(err):
		return gone()
	case err != nil && w.evidence.Now.Before(end):
		return []hold{{because: because, cause: w.grace(n, nil, "it is in its grace period", end)}}
	case err != nil:
		return w.unread(n, because, "the pod", err)
	case w.evidence.Now.Before(end):
		return w.inGrace(n, full, end)
	}
	if _, mirror := full.GetAnnotations()["kubernetes.io/config.mirror"]; mirror {
		return []hold{{because: "it is the mirror of a static pod", cause: w.mirror(n, full)}}
	}
	node := evidence.Nested(full, "spec", "nodeName")
	if node == "" {
		return []hold{w.withSymptom(podUnscheduled, w.manager(n, "it is on no node; the pod garbage collector has to delete it", w.evidence.Now.Sub(end) > podGCDelay))}
	}
	machine, err := w.evidence.Get(nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return w.nodeGone(n, node)
	case err != nil:
		return w.unread(n, because, "node "+node, err)
	}
	if c := w.nodeDown(machine); c != nil {
		return []hold{{because: because + " on node " + node, cause: c}}
	}
	return append(w.kubelet(n, full, machine), w.kubeletRefused(n)...)
}

// inGrace is a pod whose grace period is not over. That its kubelet ends it then is
// only so when there is one: without its node the pod garbage collector does not wait
// for the end, and on one that does not report nothing ends it.
func (w *walker) inGrace(n graph.Node, full *unstructured.Unstructured, end time.Time) []hold {
	because := "waits for its kubelet"
	name := evidence.Nested(full, "spec", "nodeName")
	if name != "" {
		node, err := w.evidence.Get(nodes, "", name)
		if apierrors.IsNotFound(err) {
			return w.nodeGone(n, name)
		}
		if err == nil {
			if c := w.nodeDown(node); c != nil && c.Verdict == Stuck {
				return []hold{{because: because + " on node " + name, cause: c}}
			}
		}
	}
	return []hold{{because: because, cause: w.grace(n, full, "it is in its grace period", end)}}
}

// kubeletRefused is a pod of which its kubelet may not write the status, or
// which it may not delete, when it is done with it.
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
			holds = append(holds, hold{because: "its kubelet may not write what it has to", cause: c})
		}
	}
	return holds
}

// virtual names the program that plays the kubelet of a node that is no
// machine, empty for a machine.
func virtual(node *unstructured.Unstructured) string {
	labels := node.GetLabels()
	switch {
	case labels["liqo.io/type"] == "virtual-node":
		return "Liqo"
	case labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "AWS Fargate"
	}
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	for _, entry := range taints {
		taint, _ := entry.(map[string]any)
		if evidence.Text(taint["key"]) == "virtual-kubelet.io/provider" {
			return "the virtual kubelet of " + evidence.Text(taint["value"])
		}
	}
	if labels["type"] == "virtual-kubelet" {
		return "a virtual kubelet"
	}
	return ""
}

func (w *walker) withSymptom(symptom Kind, h hold) hold {
	h.symptom = symptom
	return h
}

// grace is a pod that is in time.
func (w *walker) grace(n graph.Node, full *unstructured.Unstructured, summary string, until time.Time) *Cause {
	return w.cause(podGrace, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Until, c.Summary = Progressing, until, summary
		c.Evidence = []Evidence{
			evidence.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			evidence.Field(n, "metadata.deletionGracePeriodSeconds", fmt.Sprint(*n.Object().DeletionGracePeriodSeconds)),
		}
		if full != nil {
			running, _ := containers(full)
			for _, name := range running {
				c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", "container "+name+" is running"))
			}
		}
	})
}

// nodeGone is a pod on a node that does not exist: the pod garbage collector
// deletes it.
func (w *walker) nodeGone(n graph.Node, node string) []hold {
	because := "its node " + node + " does not exist"
	overdue := w.evidence.Now.Sub(evidence.Requested(n.Object())) > podGCDelay && w.evidence.Now.Sub(n.Object().DeletionTimestamp.Time) > podGCDelay
	h := w.health()
	idle := h.dead() && len(h.idle) > 0
	verdict, summary := Progressing, "the node does not exist; the pod garbage collector deletes its pods within two minutes"
	switch {
	case idle && overdue:
		verdict, summary = Stuck, "the node does not exist, and no pod garbage collector works to delete its pods"
	case h.lease != evidence.LeaseFresh || overdue:
		verdict, summary = Unknown, "the node does not exist; whether the pod garbage collector works, which deletes its pods, is not known"
	}
	c := w.shared(node, podNodeGone, evidence.Identity(nodes, "", node), func(c *Cause) {
		c.Verdict, c.Summary = verdict, summary
		c.Evidence = []Evidence{{Source: "Node/" + node, Value: "does not exist"}, h.evidence}
	})
	w.worsen(c, verdict, summary) // the one that has waited longest tells
	if !idle {
		w.offerOnce(c, Remedy{Risk: Safe, Effect: "wait: two minutes after its node has gone at the latest, pod garbage collection deletes the pod, if kube-controller-manager works"})
	}
	if w.join(c, evidence.Field(n, "spec.nodeName", node)) <= evidence.MaxShown {
		w.offer(c, w.force(n, "the containers run on if the machine does"))
	}
	holds := []hold{{because: because, cause: c}}
	if idle {
		holds = append(holds, w.manager(n, "the pod garbage collector has to delete it", overdue))
	}
	return holds
}

// force removes a pod's object without asking its kubelet.
func (w *walker) force(n graph.Node, leaks string) Remedy {
	return Remedy{
		Risk: Dangerous, Loss: []remedy.Loss{{Kind: remedy.Leaks, Object: n.Identity(), What: leaks}},
		Action: w.delete(n.Identity(), atOnce),
		Effect: "remove the pod from the API without asking its kubelet, once it is certain that nothing of it runs any more",
	}
}

// nodeDown says that a node's kubelet does not report, nil when it does.
func (w *walker) nodeDown(node *unstructured.Unstructured) *Cause {
	name := node.GetName()
	ready, _ := evidence.ConditionOf(node, "Ready")
	state, lease := w.evidence.Lease("kube-node-lease", name)
	if ready.Status == "True" && state != evidence.LeaseStale {
		return nil
	}
	at := evidence.IdentityOf(nodes, "Node", node)
	k, program := podNodeNotready, virtual(node)
	if program != "" {
		k = podVirtualNode
	}
	return w.shared(name, k, at, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "the node does not report: its pods are kept until it recovers, is deleted, or is marked out-of-service"
		switch {
		case state == evidence.LeaseFresh:
			c.Verdict = Unknown
			c.Summary = "the node is not ready, but its lease has not run out: its kubelet may run"
		case state != evidence.LeaseStale && ready.Status != "Unknown":
			c.Verdict = Unknown
			c.Summary = "the node is not ready, and whether its kubelet reports is not known"
		}
		c.Evidence = []Evidence{ready.Fact(at.String())}
		if !ready.Since.IsZero() {
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "status.conditions[Ready].lastTransitionTime", Value: ready.Since.UTC().Format(time.RFC3339)})
		}
		c.Evidence = append(c.Evidence, lease)
		if program != "" {
			w.virtualDown(c, name, program)
			return
		}
		if outOfService(node) {
			w.takenOut(c)
			return
		}
		c.Remedies = []Remedy{
			{Risk: Safe, Action: shows("%s describe node %s", w.Kubectl, shell.Quote(name)), Effect: "see the node's state: bring the machine or its kubelet back, and its pods end"},
			{
				Risk: Dangerous, Temporary: true,
				Action: w.does(remedy.TaintOf(evidence.IdentityOf(nodes, "Node", node), "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")),
				Effect: "only when the machine is proven to be off: its terminating pods are deleted and their volumes detached; take the taint off afterwards",
				Loss:   loses(remedy.CorruptsData, "data may be written twice if the machine still runs"),
			},
		}
	})
}

// outOfService reports whether a node is marked so that its terminating pods are
// deleted without it (pkg/controller/podgc, gcTerminating).
func outOfService(node *unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	return slices.ContainsFunc(taints, func(entry any) bool {
		taint, _ := entry.(map[string]any)
		return evidence.Text(taint["key"]) == "node.kubernetes.io/out-of-service"
	})
}

// takenOut is a node that does not report and is marked as out of service: pod
// garbage collection deletes its terminating pods, which it looks for every 20
// seconds.
func (w *walker) takenOut(c *Cause) {
	h := w.health()
	c.Verdict, c.Summary = Progressing, "the node does not report, and is marked as out of service: pod garbage collection deletes its terminating pods within a minute"
	c.Evidence = append(c.Evidence, Evidence{Source: c.Object.String(), Path: "spec.taints", Value: "node.kubernetes.io/out-of-service"}, h.evidence)
	if h.lease != evidence.LeaseFresh {
		c.Verdict = Unknown
		c.Summary = "the node does not report, and is marked as out of service; whether pod garbage collection works, which deletes its terminating pods, is not known"
	}
}

// virtualDown is a node that is no machine, and of which the program that plays
// its kubelet does not report.
func (w *walker) virtualDown(c *Cause, name, program string) {
	c.Summary = "the node is no machine: " + program + " plays its kubelet, and does not report"
	c.Controller = &Controller{Name: program, Liveness: string(Unknown)}
	if lease, err := w.evidence.Get(leases, "kube-node-lease", name); err == nil {
		c.Controller.Evidence = []Evidence{{Source: "Lease/kube-node-lease/" + name, Path: "spec.holderIdentity", Value: evidence.Nested(lease, "spec", "holderIdentity")}}
	}
	c.Remedies = []Remedy{{
		Risk: Safe, Action: shows("%s describe node %s", w.Kubectl, shell.Quote(name)),
		Effect: "see the node's state: make " + program + " work, and its pods end",
	}}
}

// kubelet is a pod past its grace period on a node that reports.
func (w *walker) kubelet(n graph.Node, full, machine *unstructured.Unstructured) []hold {
	end := n.Object().DeletionTimestamp.Time
	const because = "waits for its kubelet"
	running, ended := containers(full)
	delay := kubeletDelay
	if len(running) == 0 && ended > 0 {
		delay = volumeDelay
	}
	over := w.evidence.Now.Sub(end)
	if over <= delay {
		return []hold{{because: because, cause: w.grace(n, full, "its grace period is over; its kubelet ends it about now", end.Add(delay))}}
	}
	failures := w.warnings(n, "FailedKillPod", "FailedPreStopHook", "ExceededGracePeriod")
	id, summary := podKubeletKill, "its kubelet has not ended its containers"
	switch {
	case len(running) == 0 && len(failures) > 0:
		summary = "its containers have ended, and its kubelet fails to take down the rest of it"
	case len(running) == 0 && ended > 0:
		id, summary = podVolumes, "its containers have ended, and its kubelet has not cleaned up after it: volumes or cgroups"
	}
	if program := virtual(machine); program != "" {
		id, summary = podVirtualNode, "its node is no machine: "+program+" plays its kubelet, and has not ended it"
	}
	return []hold{{because: because, cause: w.cause(id, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf("%s, %s after the grace period", summary, duration.HumanDuration(over))
		if len(running)+ended == 0 {
			c.Verdict = Unknown
			c.Summary = fmt.Sprintf("no container of it is known to run, and its kubelet has not ended it, %s after the grace period", duration.HumanDuration(over))
		} else if w.health().lease != evidence.LeaseFresh && !w.nodeRenews(full) {
			c.Verdict = Unknown // the node's conditions may be frozen
		}
		c.Evidence = []Evidence{evidence.Field(n, "metadata.deletionTimestamp", end.UTC().Format(time.RFC3339)), evidence.Field(n, "spec.nodeName", evidence.Nested(full, "spec", "nodeName"))}
		for _, name := range running {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", "container "+name+" is running"))
		}
		if len(running) == 0 {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.containerStatuses", evidence.Number(ended, "ended container")))
		}
		_, lease := w.evidence.Lease("kube-node-lease", evidence.Nested(full, "spec", "nodeName"))
		c.Evidence = append(append(append(c.Evidence, failures...), kubeletEvidence(n, full, machine)...), lease)
		c.Remedies = []Remedy{
			{Risk: Safe, Action: shows("%s", w.Kubectl+" -n "+shell.Quote(n.Namespace())+" describe pod "+shell.Quote(n.Object().Name)), Effect: "see the kubelet's events; what it fails at is in its log on the node"},
			w.force(n, "containers may run on and write, and mounts stay on the node"),
		}
	})}}
}

// kubeletEvidence says how far the kubelet has come: whether it has seen the
// deletion, whether the sandbox is gone, and what is mounted.
func kubeletEvidence(n graph.Node, full, machine *unstructured.Unstructured) []Evidence {
	var facts []Evidence
	observed, known, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration")
	if known && observed > 0 && observed < full.GetGeneration() {
		facts = append(facts, evidence.Field(n, "status.observedGeneration", fmt.Sprintf("%d of %d: its kubelet has not seen the deletion", observed, full.GetGeneration())))
	}
	if c, ok := evidence.ConditionOf(full, "PodReadyToStartContainers"); ok && c.Status == "False" {
		facts = append(facts, evidence.Field(n, "status.conditions[PodReadyToStartContainers]", "False: its sandbox is gone"))
	}
	if mounted, _, _ := unstructured.NestedStringSlice(machine.Object, "status", "volumesInUse"); len(mounted) > 0 {
		facts = append(facts, Evidence{Source: "Node/" + machine.GetName(), Path: "status.volumesInUse", Value: fmt.Sprint(mounted)})
	}
	return facts
}

// nodeRenews reports whether the lease of the pod's node is fresh.
func (w *walker) nodeRenews(pod *unstructured.Unstructured) bool {
	state, _ := w.evidence.Lease("kube-node-lease", evidence.Nested(pod, "spec", "nodeName"))
	return state == evidence.LeaseFresh
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
	return w.cause(podMirror, n.Identity(), "", func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "it mirrors a static pod: deleting it never stops that, and the kubelet makes the mirror again"
		c.Evidence = []Evidence{
			evidence.Field(n, "metadata.annotations[kubernetes.io/config.mirror]", full.GetAnnotations()["kubernetes.io/config.mirror"]),
			evidence.Field(n, "spec.nodeName", evidence.Nested(full, "spec", "nodeName")),
		}
		c.Remedies = []Remedy{{Risk: Disruptive, Effect: "move the pod's manifest away on node " + evidence.Nested(full, "spec", "nodeName") + " (usually in /etc/kubernetes/manifests): the kubelet ends the pod and its mirror"}}
	})
}
