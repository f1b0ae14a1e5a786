// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Silence is of a node that does not report.
type Silence struct {
	Node  graph.Identity
	Ready evidence.Condition
	State evidence.LeaseState
	Lease evidence.Fact
	// Program acts as the kubelet of a virtual node, nil for a machine.
	Program say.Text
	// OutOfService: the node is marked so that its terminating pods are deleted without it.
	OutOfService bool
	// Certain: it does not report for certain.
	Certain bool
}

// SilenceOf is nil for a node whose kubelet reports.
func SilenceOf(r *evidence.Reader, node *unstructured.Unstructured) *Silence {
	ready, _ := evidence.ConditionOf(node, "Ready")
	state, lease := r.Lease("kube-node-lease", node.GetName())
	if ready.Status == "True" && state != evidence.LeaseStale {
		return nil
	}
	return &Silence{
		Node: evidence.IdentityOf(evidence.Nodes, "Node", node), Ready: ready, State: state, Lease: lease,
		Program: Virtual(node), OutOfService: outOfService(node),
		Certain: state != evidence.LeaseFresh && (state == evidence.LeaseStale || ready.Status == "Unknown"),
	}
}

// Virtual names the program that acts as the kubelet of a virtual node, nil for a machine.
func Virtual(node *unstructured.Unstructured) say.Text {
	labels := node.GetLabels()
	switch {
	case labels["liqo.io/type"] == "virtual-node":
		return say.Plain("Liqo")
	case labels["eks.amazonaws.com/compute-type"] == "fargate":
		return say.Plain("AWS Fargate")
	}
	for _, taint := range taints(node) {
		if evidence.Text(taint["key"]) == "virtual-kubelet.io/provider" {
			return say.Of(VirtualKubeletOf, evidence.Text(taint["value"]))
		}
	}
	if labels["type"] == "virtual-kubelet" {
		return say.Of(VirtualKubelet)
	}
	return say.Text{}
}

// outOfService reports whether a node is marked so that its terminating pods are
// deleted without it (pkg/controller/podgc, gcTerminating).
func outOfService(node *unstructured.Unstructured) bool {
	return slices.ContainsFunc(taints(node), func(taint map[string]any) bool {
		return evidence.Text(taint["key"]) == "node.kubernetes.io/out-of-service"
	})
}

func taints(node *unstructured.Unstructured) []map[string]any {
	entries, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	var taints []map[string]any
	for _, entry := range entries {
		if taint, is := entry.(map[string]any); is {
			taints = append(taints, taint)
		}
	}
	return taints
}

// nodeDown is a node whose kubelet does not report, nil for one that does.
func nodeDown(f *rules.Facts, node *unstructured.Unstructured) *finding.Cause {
	s := SilenceOf(f.Reader, node)
	if s == nil {
		return nil
	}
	name, source := node.GetName(), s.Node.String()
	c := &finding.Cause{Kind: finding.PodNodeNotready, At: s.Node, Key: name, Shared: true, Verdict: finding.Stuck}
	var since say.Text
	if !s.Ready.Since.IsZero() {
		since = say.Of(SilentSince, duration.HumanDuration(f.Now.Sub(s.Ready.Since)))
	}
	switch c.Summary = say.Of(NodeSilent, since); {
	case s.State == evidence.LeaseFresh:
		c.Verdict, c.Summary = finding.Unknown, say.Of(NodeLeaseFresh)
	case !s.Certain:
		c.Verdict, c.Summary = finding.Unknown, say.Of(NodeReportUnknown)
	}
	c.Evidence = finding.Facts(s.Ready.Fact(source))
	if !s.Ready.Since.IsZero() {
		c.Evidence = append(c.Evidence, finding.At(source, "status.conditions[Ready].lastTransitionTime",
			s.Ready.Since.UTC().Format(time.RFC3339)))
	}
	c.Evidence = append(c.Evidence, s.Lease)
	look := remedy.Look{Words: "describe node", Args: []string{name}}
	switch {
	case !s.Program.IsZero():
		c.Kind, c.Summary = finding.PodVirtualNode, say.Of(VirtualSilent, s.Program)
		c.Controller = &finding.Controller{Name: s.Program, Liveness: string(finding.Unknown)}
		if lease, err := f.Get(evidence.Leases, "kube-node-lease", name); err == nil {
			c.Controller.Evidence = []finding.Fact{finding.At("Lease/kube-node-lease/"+name, "spec.holderIdentity",
				evidence.Nested(lease, "spec", "holderIdentity"))}
		}
		c.Ways = []finding.Way{finding.See(look, RepairVirtual, s.Program)}
	case s.OutOfService: // the pod garbage collector deletes its terminating pods, for which it looks every 20 seconds
		m := f.Manager()
		if c.Verdict, c.Summary = finding.Progressing, say.Of(TakenOut); m.Lease != evidence.LeaseFresh {
			c.Verdict, c.Summary = finding.Unknown, say.Of(MightBeTakenOut)
		}
		c.Evidence = append(c.Evidence, finding.At(source, "spec.taints", "node.kubernetes.io/out-of-service"), m.Shows)
	default:
		taint := finding.Does(remedy.TaintOf(s.Node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"), MarkOutOfService)
		taint.Temporary, taint.Loss = true, finding.Lost(remedy.CorruptsData, graph.Identity{}, LostWrittenTwice)
		c.Ways = []finding.Way{finding.See(look, RepairNode), taint}
	}
	return c
}

// nodeGone is a pod on a node that does not exist: the pod garbage collector deletes it. Of several pods the one that has
// waited longest tells.
func nodeGone(f *rules.Facts, n graph.Node, node string) []finding.Blocker {
	overdue := f.Age(n) > podGCDelay && f.Now.Sub(n.Object().DeletionTimestamp.Time) > podGCDelay
	m := f.Manager()
	c := &finding.Cause{
		Kind: finding.PodNodeGone, At: evidence.Identity(evidence.Nodes, "", node), Key: node, Shared: true, Worst: true,
		Verdict: finding.Progressing, Summary: say.Of(NodeGoneEnds),
		Evidence: []finding.Fact{finding.At(evidence.Identity(evidence.Nodes, "", node), "", evidence.DoesNotExist), m.Shows},
		Own:      []finding.Fact{finding.Field(n, "spec.nodeName", node)}, OwnWays: []finding.Way{force(n, say.Of(LostContainers))},
	}
	switch {
	case len(m.Idle) > 0 && overdue:
		c.Verdict, c.Summary = finding.Stuck, say.Of(NodeGoneStays)
	case m.Lease != evidence.LeaseFresh || overdue:
		c.Verdict, c.Summary = finding.Unknown, say.Of(NodeGoneMightEnd)
	}
	blockers := []finding.Blocker{{Because: say.Of(NodeIsGone, node), Cause: c}}
	if len(m.Idle) > 0 {
		return append(blockers, f.Turn(n, finding.Kind{}, say.Of(PodGCTurn), overdue))
	}
	c.Ways = []finding.Way{{Effect: say.Of(WaitForPodGC)}}
	return blockers
}
