// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// facts are what can be known of objects without following them to their blockers.
type facts struct {
	Input
	evidence *evidence.Reader
	finder   *controllers.Finder
	asker    *admission.Asker
	// deletions counts those that the garbage collector has still to make.
	deletions int
	rules     *rules.Facts
	// undeleted is what untouchedIn has found, by namespace, and tried what tryContent has asked.
	undeleted map[string][]graph.Node
	tried     map[types.UID]*tries
}

// patience is Input.Wait for an answer that counts.
func (f *facts) patience() func(context.Context, time.Duration) {
	if f.Wait == nil {
		return nil
	}
	return func(ctx context.Context, d time.Duration) {
		if len(f.evidence.Missed()) == 0 {
			f.Wait(ctx, d)
		}
	}
}

// mostFinalizers is the number of finalizers of one object that are examined. No object needs as many, but a user who
// can write an object can give it tens of thousands.
const mostFinalizers = 100

// finalizers returns the finalizers of an object, the first if there are very many.
func (f *facts) finalizers(n graph.Node) []string {
	all := n.Object().Finalizers
	if len(all) <= mostFinalizers {
		return all
	}
	f.evidence.NoteUnread(fmt.Sprintf(unexamined, n.Identity(), mostFinalizers, len(all)))
	return all[:mostFinalizers]
}

// untouchedIn returns the contents of a namespace whose turn it is and that are not being deleted: as long as it has pods,
// the pods, on a server that is certain to delete these first.
func (f *facts) untouchedIn(namespace string) []graph.Node {
	nodes, known := f.undeleted[namespace]
	if !known {
		nodes = findUntouched(f.evidence, namespace)
		f.undeleted[namespace] = nodes
	}
	return nodes
}

// findUntouched is untouchedIn, for the first time.
func findUntouched(r *evidence.Reader, namespace string) []graph.Node {
	var untouched, untouchedPods []graph.Node
	anyPod := false
	for _, m := range r.In(namespace) {
		isPod := m.Resource().IsPod()
		anyPod = anyPod || isPod
		switch {
		case m.BeingDeleted():
		case isPod:
			untouchedPods = append(untouchedPods, m)
		default:
			untouched = append(untouched, m)
		}
	}
	switch {
	case !anyPod:
		return untouched
	case r.Server().PodsFirst():
		return untouchedPods
	}
	return append(untouchedPods, untouched...)
}

// tryContent yields the API server's answers to the deletion of those contents of a namespace whose turn it is: of one
// object of each type first, because the objects of a type mostly get one answer. Each is asked about once.
func (f *facts) tryContent(n graph.Node, most int) iter.Seq2[graph.Node, admission.Reply] {
	t := f.tried[n.UID()]
	if t == nil {
		t = &tries{content: graph.FirstOfEach(f.untouchedIn(n.Object().Name), func(m graph.Node) schema.GroupVersionResource { return m.Resource().GroupVersionResource })}
		f.tried[n.UID()] = t
	}
	asked := t.content[:min(len(t.content), most)]
	return func(yield func(graph.Node, admission.Reply) bool) {
		defer f.asker.ExpectDelete(asked[min(len(t.replies), len(asked)):])()
		for i, m := range asked {
			if i == len(t.replies) {
				t.replies = append(t.replies, f.asker.TryDelete(m, ""))
			}
			if !yield(m, t.replies[i]) {
				return
			}
		}
	}
}

// emptiable reports whether the API server accepts the deletion of a namespace's contents by its controller, as far as a
// few objects tell. A request for all objects of a type can take a minute when a webhook does not answer, and until all
// have been sent nothing shows that the controller works.
func (f *facts) emptiable(n graph.Node) bool {
	for _, r := range f.tryContent(n, firstProbes) {
		if r.Kind != answer.Accepted || r.Slow() {
			return false
		}
	}
	return true
}

// failsLong reports whether the namespace controller has failed for so long that it counts.
func (f *facts) failsLong(failure evidence.Condition) bool {
	return !failure.Since.IsZero() && f.evidence.Now.Sub(failure.Since) > namespace.Delay
}
