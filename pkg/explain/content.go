// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"iter"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// The content of a namespace that its controller fails to delete: what refuses that.

const (
	// maxContentProbes is how many objects of a namespace are asked about, to find
	// those that may not be deleted: the namespace controller deletes collections,
	// and is not told which object it fails at.
	maxContentProbes = 50
	// firstProbes is how many are asked about to see whether anything is in the way at
	// all.
	firstProbes = 10
)

// tries are dry-run DELETEs of what is in a namespace.
type tries struct {
	content []graph.Node
	replies []admission.Reply
}

// tryContent goes over what the API server answers to the deletion of what is in a
// namespace and whose turn it is: of one object of each type first, since what refuses
// one mostly refuses those of its type. Each is asked about once.
func (w *walker) tryContent(n graph.Node, most int) iter.Seq2[graph.Node, admission.Reply] {
	t := w.tried[n.UID()]
	if t == nil {
		t = &tries{content: firstOfEach(w.untouchedIn(n.Object().Name))}
		w.tried[n.UID()] = t
	}
	return func(yield func(graph.Node, admission.Reply) bool) {
		defer w.asker.ExpectDelete(t.content[len(t.replies):])()
		for i, m := range t.content[:min(len(t.content), most)] {
			if i == len(t.replies) {
				t.replies = append(t.replies, w.asker.TryDelete(m, ""))
			}
			if !yield(m, t.replies[i]) {
				return
			}
		}
	}
}

// firstOfEach puts the first object of each type before the others.
func firstOfEach(nodes []graph.Node) []graph.Node {
	var firsts, others []graph.Node
	seen := map[*graph.Resource]bool{}
	for _, n := range nodes {
		if seen[n.Object().Resource] {
			others = append(others, n)
			continue
		}
		seen[n.Object().Resource] = true
		firsts = append(firsts, n)
	}
	return append(firsts, others...)
}

// emptiable reports whether the API server accepts what the namespace controller does with what
// is in a namespace, as far as a few objects tell. A request for all objects of a type may take a
// minute when a webhook does not answer, and until all have been sent nothing shows that the
// controller works.
func (w *walker) emptiable(n graph.Node) bool {
	for _, r := range w.tryContent(n, firstProbes) {
		if r.Kind != answer.Accepted || r.Slow() {
			return false
		}
	}
	return true
}

// contentHangs leads from content that nobody has deleted yet to what refuses that or
// delays it; hangs says that it takes so long that the namespace controller may be
// waiting: it says nothing before it has tried all types.
func (w *walker) contentHangs(n graph.Node) (holds []hold, hangs bool) {
	roots, _, _ := w.contentRoots(n, firstProbes)
	for _, r := range w.tryContent(n, firstProbes) {
		hangs = hangs || r.Slow()
	}
	for _, c := range roots {
		holds = append(holds, hold{symptom: nsContentFailure, because: "the namespace controller has not deleted its content", cause: c})
	}
	return holds, hangs && len(roots) > 0
}

// contentRoots returns what is in the way of the deletion of a namespace's content, of how
// many objects it is accepted, and how many are gone by now.
func (w *walker) contentRoots(n graph.Node, most int) (roots []*Cause, accepted, gone int) {
	for m, r := range w.tryContent(n, most) {
		switch {
		case r.Kind == answer.Accepted:
			accepted++
		case r.Gone:
			gone++
		}
		for _, c := range append(w.obstacles(m, r, "DELETE"), w.delays(m, r, "DELETE")...) {
			if !slices.Contains(roots, c) {
				roots = append(roots, c)
			}
		}
	}
	return roots, accepted, gone
}

// contentRefused leads from content that the namespace controller fails to
// delete to what refuses it.
func (w *walker) contentRefused(n graph.Node, failure evidence.Condition, untouched int) []hold {
	const because = "the namespace controller cannot delete its content"
	roots, accepted, gone := w.contentRoots(n, maxContentProbes)
	roots = append(w.initializing(failure.Message), roots...)
	var holds []hold
	for _, c := range roots {
		w.show(c, failure.Fact(n.Identity().String()))
		holds = append(holds, hold{symptom: nsContentFailure, because: because, cause: c})
	}
	if slices.ContainsFunc(roots, func(c *Cause) bool { return c.Verdict == Stuck || c.Verdict == Progressing }) {
		return holds
	}
	if gone > 0 && gone == untouched {
		return append(holds, w.backOff(n, failure, "what the namespace controller failed at is gone"))
	}
	all := untouched > gone && accepted == untouched-gone
	if alone := w.refusedAlone(n, failure, all); len(alone) > 0 {
		return append(holds, alone...)
	}
	return append(holds, hold{because: because, cause: w.contentFailure(n, failure, untouched, all)})
}

// contentFailure is content that the namespace controller fails to delete; accepted:
// the API server would accept the deletion of all of it from whoever asks here.
func (w *walker) contentFailure(n graph.Node, failure evidence.Condition, untouched int, accepted bool) *Cause {
	return w.cause(nsContentFailure, n.Identity(), "", func(c *Cause) {
		c.Summary = "the namespace controller could not delete all content at its last try"
		if untouched > 0 {
			c.Summary = "the namespace controller fails to delete " + evidence.Number(untouched, "object")
		}
		c.Evidence = []Evidence{failure.Fact(n.Identity().String())}
		for _, m := range w.untouchedIn(n.Object().Name) {
			if len(c.Evidence) <= evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(m, "metadata.deletionTimestamp", "not set"))
			}
		}
		switch {
		case untouched == 0:
			return
		case accepted:
			c.Summary = "the namespace controller failed to delete " + evidence.Number(untouched, "object") + " at its last try; the API server would accept it now, so it goes on within a minute, unless only the controller is refused"
			c.Evidence = append(c.Evidence, triedContent)
			return
		case w.failsLong(failure):
			c.Verdict = Stuck
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s delete --all %s --dry-run=server", shell.In(w.Kubectl, n.Object().Name), w.untouchedTypes(n)),
			Effect: "shows what refuses the deletion, without deleting: repair that, and the namespace controller goes on within a minute",
		}}
	})
}

// triedContent says that the API server accepts the deletion of all content.
var triedContent = Evidence{Source: "a dry-run DELETE of each", Value: "accepted"}

// failsLong reports whether the namespace controller has failed for so long that it counts.
func (w *walker) failsLong(failure evidence.Condition) bool {
	return !failure.Since.IsZero() && w.evidence.Now.Sub(failure.Since) > contentDelay
}

// untouchedTypes names the types of a namespace's content that is not being
// deleted, for kubectl.
func (w *walker) untouchedTypes(n graph.Node) string {
	var types []string
	for _, m := range w.untouchedIn(n.Object().Name) {
		if name := m.Resource().GroupResource().String(); !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return shell.Quote(strings.Join(types, ","))
}
