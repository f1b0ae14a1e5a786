// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Waits returns what reports whether an object's removal may wait for the webhook.
func (a *Reviewer) Waits(h *Webhook) func(graph.Node) bool {
	return waits(func(operation, subresource string, n graph.Node) bool {
		matches, _ := a.Matches(h, operation, subresource, n)
		return matches
	})
}

// Covers returns what reports whether the webhook may be asked about changes or the deletion of an object.
func (a *Reviewer) Covers(h *Webhook) func(graph.Node) bool {
	return func(n graph.Node) bool {
		deletes, _ := a.Matches(h, "DELETE", "", n)
		updates, _ := a.Matches(h, "UPDATE", "", n)
		return deletes || updates
	}
}

// WaitsBound returns what reports whether an object's removal may wait for a policy by its binding.
func (a *Reviewer) WaitsBound(policy, binding *unstructured.Unstructured) func(graph.Node) bool {
	asked := map[[2]string]func(graph.Node) bool{}
	for _, write := range [][2]string{{"DELETE"}, {"UPDATE"}, {"UPDATE", "status"}, {"UPDATE", "finalize"}} {
		asked[write] = a.PolicyAsked(policy, binding, write[0], write[1])
	}
	return waits(func(operation, subresource string, n graph.Node) bool {
		return asked[[2]string{operation, subresource}](n)
	})
}

// waits asks about the operations that remove an object: its deletion, or, of what is being deleted, changes of its finalizers, and of its
// dependents that are to be orphaned. The kubelet deletes a pod once more, before a volume or the content of a snapshot is reclaimed it is
// changed, and a namespace has a way of its own.
func waits(asked func(operation, subresource string, n graph.Node) bool) func(graph.Node) bool {
	return func(n graph.Node) bool {
		reclaimed := evidence.Stores(n.Resource().GroupResource())
		return (!n.BeingDeleted() || n.Resource().IsPod()) && asked("DELETE", "", n) ||
			(n.BeingDeleted() || reclaimed) && asked("UPDATE", "", n) || reclaimed && asked("UPDATE", "status", n) ||
			n.BeingDeleted() && slices.ContainsFunc(PartsOf(n.Resource()), func(part string) bool { return asked("UPDATE", part, n) }) ||
			n.OrphaningDependents() && slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return !d.Virtual() && asked("UPDATE", "", d) })
	}
}

// PartsOf are the subresources by which a controller of Kubernetes deletes an object of a type that has none of the usual finalizers
// (pkg/controller/namespace/deletion/namespaced_resources_deleter.go).
func PartsOf(r *graph.Resource) []string {
	if r.IsNamespace() {
		return []string{"status", "finalize"}
	}
	return nil
}
