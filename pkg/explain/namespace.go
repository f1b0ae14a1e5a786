// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Namespaces: pkg/controller/namespace/deletion, namespaced_resources_deleter.go.

// namespace returns what the finalizers in a namespace's spec wait for.
func (w *walker) namespace(n graph.Node) []hold {
	full, unread := namespace.Whole(w.rules, n)
	holds := w.holdsOf(n, unread)
	if full == nil {
		return holds
	}
	for i, finalizer := range rules.SpecFinalizers(full) {
		if finalizer == "kubernetes" {
			holds = append(holds, w.holdsOf(n, namespace.Emptying(w.rules, n, full))...)
		} else {
			holds = append(holds, w.foreign(n, i, finalizer, finalizers.Spec)...)
		}
	}
	return holds
}
