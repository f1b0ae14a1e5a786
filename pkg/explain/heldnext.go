// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// heldNext says what of a namespace's contents, whose turn has not come, will block the namespace next: it has a finalizer
// that no controller removes. It is empty for none, as far as maxContentProbes of them tell.
func heldNext(r *evidence.Reader, finder *controllers.Finder, namespace string) string {
	held, asked := 0, 0
	var first graph.Node
	blocker := "" // the finalizer of the first
	for _, m := range r.In(namespace) {
		if m.BeingDeleted() || m.Resource().IsPod() || len(m.Finalizers()) == 0 || asked == maxContentProbes {
			continue
		}
		asked++
		finalizer := unserved(finder, m)
		if finalizer == "" {
			continue
		}
		if held++; held == 1 {
			first, blocker = m, finalizer
		}
	}
	if held == 0 {
		return ""
	}
	return blocksNext(held, first, blocker)
}

// unserved returns the first finalizer of an object that certainly no controller removes as things are, empty for none.
func unserved(finder *controllers.Finder, n graph.Node) string {
	for _, finalizer := range n.Finalizers() {
		known := finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), finalizers.Metadata)
		if graph.IsCollectorFinalizer(finalizer) || len(known) > 0 && known[0].Builtin != "" {
			continue
		}
		switch finder.Find(n, finalizer, finalizers.Metadata).Is {
		case controllers.Unserved, controllers.NotAllowed, controllers.Displaced, controllers.Unclaimed, controllers.Manual:
			return finalizer
		}
	}
	return ""
}
