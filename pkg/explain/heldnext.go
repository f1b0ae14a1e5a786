// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// heldNext says what of a namespace's content, whose turn has not come, will hold the
// namespace next: it has a finalizer that nobody removes. It is empty when there is
// nothing of the kind, as far as maxContentProbes of them tell.
func (w *walker) heldNext(namespace string) string {
	held, asked := 0, 0
	first := ""
	for _, m := range w.evidence.In(namespace) {
		if m.BeingDeleted() || m.Resource().IsPod() || len(m.Finalizers()) == 0 || asked == maxContentProbes {
			continue
		}
		asked++
		if finalizer := w.unserved(m); finalizer != "" {
			held++
			if first == "" {
				first = fmt.Sprintf("%s has the finalizer %s, which nothing that works removes", m.Identity(), finalizer)
			}
		}
	}
	switch held {
	case 0:
		return ""
	case 1:
		return "; after that " + first
	}
	return fmt.Sprintf("; after that %s will hold it: %s", evidence.Number(held, "object"), first)
}

// unserved returns the first finalizer of an object that certainly nobody removes as
// things are, empty for none.
func (w *walker) unserved(n graph.Node) string {
	for _, finalizer := range n.Finalizers() {
		known := w.finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), finalizers.Metadata)
		if graph.IsCollectorFinalizer(finalizer) || len(known) > 0 && known[0].Builtin != "" {
			continue
		}
		switch w.finder.Find(n, finalizer, finalizers.Metadata).Is {
		case controllers.Unserved, controllers.NotAllowed, controllers.Displaced, controllers.Unclaimed, controllers.Manual:
			return finalizer
		}
	}
	return ""
}
