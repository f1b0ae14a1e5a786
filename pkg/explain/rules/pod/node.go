// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Silence is of a node that does not report.
type Silence struct {
	Node  graph.Identity
	Ready evidence.Condition
	State evidence.LeaseState
	Lease evidence.Fact
	// Program acts as the kubelet of a virtual node, nil for a machine.
	Program finding.Text
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

// The programs that act as kubelets of virtual nodes, where a node does not name a product.
const (
	VirtualKubelet   finding.Word = "virtual kubelet"
	VirtualKubeletOf finding.Word = "virtual kubelet of"
)

// Virtual names the program that acts as the kubelet of a virtual node, nil for a machine.
func Virtual(node *unstructured.Unstructured) finding.Text {
	labels := node.GetLabels()
	switch {
	case labels["liqo.io/type"] == "virtual-node":
		return finding.Plain("Liqo")
	case labels["eks.amazonaws.com/compute-type"] == "fargate":
		return finding.Plain("AWS Fargate")
	}
	for _, taint := range taints(node) {
		if evidence.Text(taint["key"]) == "virtual-kubelet.io/provider" {
			return finding.Say(VirtualKubeletOf, evidence.Text(taint["value"]))
		}
	}
	if labels["type"] == "virtual-kubelet" {
		return finding.Say(VirtualKubelet)
	}
	return nil
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
