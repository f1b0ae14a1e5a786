// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"iter"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// refusals asks whether the finalizers of an object could be removed at all:
// a controller, dead or alive, needs that. The garbage collector's own are asked
// about where its other work is done.
func (w *walker) refusals(n graph.Node, known []blocker) []blocker {
	if w.evidence.NamespaceGone(n.Namespace()) && !w.rules.Changeable(n) {
		return nil
	}
	var holds []blocker
	for _, finalizer := range w.finalizers(n) {
		if isCollectors(finalizer) {
			continue
		}
		r := w.rules.Removal(n, finalizer)
		if w.onlyYours(n, r, known) {
			continue
		}
		r.Sole = unserved(known, finalizer)
		for _, c := range write.Obstacles(w.rules, n, r, "UPDATE") {
			holds = append(holds, w.hold(finding.Blocker{Because: say.Of(write.NotRemovable, finalizer), Cause: c}))
		}
	}
	return holds
}

// unserved reports whether no controller removes a finalizer, by its blocker.
func unserved(known []blocker, finalizer string) bool {
	return slices.ContainsFunc(known, func(h blocker) bool {
		nobody := h.cause != nil && slices.Contains([]Kind{finding.FinAbsent, finding.FinManual, finding.FinInNamespace}, h.cause.Kind)
		return h.finalizer == finalizer && nobody
	})
}

// removals goes over what refusals asks about objects.
func removals(facts *evidence.Reader, nodes []graph.Node) iter.Seq2[graph.Node, string] {
	return func(yield func(graph.Node, string) bool) {
		for _, n := range nodes {
			if !n.BeingDeleted() || facts.NamespaceGone(n.Namespace()) {
				continue
			}
			for _, finalizer := range n.Finalizers() {
				if !isCollectors(finalizer) && !yield(n, finalizer) {
					return
				}
			}
		}
	}
}

// isCollectors reports whether a finalizer is removed by the garbage
// collector or, from a CustomResourceDefinition, by the API server.
func isCollectors(finalizer string) bool {
	return graph.IsCollectorFinalizer(finalizer) || finalizer == definition.Cleanup
}

// onlyYours reports whether a refusal says nothing of the object, since its
// blocker ends by itself, and only the caller is seen to be
// refused.
func (w *walker) onlyYours(n graph.Node, r admission.Reply, known []blocker) bool {
	if r.Words() == "" || r.Misconfigured() {
		return false
	}
	working, progresses := w.atWork(known)
	if !progresses {
		return false
	}
	if _, seen := w.reviewer.SeenFailing(n, r.Words()); seen {
		return false
	}
	if working != nil && working.Object == n.Identity() {
		w.show(working, evidence.At(r.Fact().Source, sentByYou, r.Message))
	}
	return true
}

// atWork reports whether a blocker of the object ends by
// itself, with its cause if it is known. What is refused to others might be
// allowed to the controller: that it stops has to show first.
func (w *walker) atWork(holds []blocker) (*Cause, bool) {
	for _, h := range holds {
		if h.cause != nil && h.cause.Verdict == Progressing {
			return h.cause, true
		}
		if h.cause == nil && h.next != nil && w.explain(*h.next).verdict == Progressing {
			return nil, true
		}
	}
	return nil, false
}
