// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is in a namespace and not being deleted yet, and whether it could be deleted.

// FirstAsked is how many objects of a namespace are asked about to see whether anything blocks them at all.
const FirstAsked = 10

const (
	// ContentDelay is for how long the namespace controller may fail before that counts.
	ContentDelay = 60 * time.Second
	// ContentRetry is how long it may take after the last thing that it waited for went.
	ContentRetry = 90 * time.Second
)

// FailsLong reports whether the namespace controller has failed for so long that it counts.
func (f *Facts) FailsLong(failure evidence.Condition) bool {
	return !failure.Since.IsZero() && f.Now.Sub(failure.Since) > ContentDelay
}

// tries are dry-run DELETEs of what is in a namespace.
type tries struct {
	content []graph.Node
	replies []admission.Reply
}

// Untouched returns the contents of a namespace whose turn it is and that are not being deleted: as long as it has pods,
// the pods, on a server that is certain to delete these first.
func (f *Facts) Untouched(namespace string) []graph.Node {
	nodes, known := f.untouched[namespace]
	if !known {
		if f.untouched == nil {
			f.untouched = map[string][]graph.Node{}
		}
		nodes = findUntouched(f.Reader, namespace)
		f.untouched[namespace] = nodes
	}
	return nodes
}

// findUntouched is Untouched, for the first time.
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

// TryContent yields the API server's answers to the deletion of those contents of a namespace whose turn it is: of one
// object of each type first, because the objects of a type mostly get one answer. Each is asked about once.
func (f *Facts) TryContent(n graph.Node, most int) iter.Seq2[graph.Node, admission.Reply] {
	t := f.tried[n.UID()]
	if t == nil {
		if f.tried == nil {
			f.tried = map[types.UID]*tries{}
		}
		t = &tries{content: graph.FirstOfEach(f.Untouched(n.Name()),
			func(m graph.Node) schema.GroupVersionResource { return m.Resource().GroupVersionResource })}
		f.tried[n.UID()] = t
	}
	asked := t.content[:min(len(t.content), most)]
	return func(yield func(graph.Node, admission.Reply) bool) {
		defer f.Admission.ExpectDelete(asked[min(len(t.replies), len(asked)):])()
		for i, m := range asked {
			if i == len(t.replies) {
				t.replies = append(t.replies, f.Admission.TryDelete(m, ""))
			}
			if !yield(m, t.replies[i]) {
				return
			}
		}
	}
}

// Emptiable reports whether the API server accepts the deletion of a namespace's contents by its controller, as far as a
// few objects tell. A request for all objects of a type can take a minute when a webhook does not answer, and until all
// have been sent nothing shows that the controller works.
func (f *Facts) Emptiable(n graph.Node) bool {
	for _, r := range f.TryContent(n, FirstAsked) {
		if r.Kind != answer.Accepted || r.Slow() {
			return false
		}
	}
	return true
}
