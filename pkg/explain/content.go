// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		t = &tries{content: graph.FirstOfEach(w.untouchedIn(n.Object().Name), func(m graph.Node) schema.GroupVersionResource { return m.Resource().GroupVersionResource })}
		w.tried[n.UID()] = t
	}
	asked := t.content[:min(len(t.content), most)]
	return func(yield func(graph.Node, admission.Reply) bool) {
		defer w.asker.ExpectDelete(asked[min(len(t.replies), len(asked)):])()
		for i, m := range asked {
			if i == len(t.replies) {
				t.replies = append(t.replies, w.asker.TryDelete(m, ""))
			}
			if !yield(m, t.replies[i]) {
				return
			}
		}
	}
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
// delays it. Where an answer takes long the namespace controller may be waiting: it says
// nothing before it has tried all types.
func (w *walker) contentHangs(n graph.Node) ([]hold, standing) {
	var holds []hold
	roots, stands := w.contentRoots(n, firstProbes)
	for _, c := range roots {
		holds = append(holds, hold{symptom: nsContentFailure, because: notDeleted, cause: c})
	}
	return holds, stands
}

// notDeleted is what content waits for that nobody has deleted yet.
const notDeleted = "the namespace controller has not deleted its content"

// contentUnasked is content of which the API server has not been asked, or not about all of
// what is to tell, whether it may be deleted.
func (w *walker) contentUnasked(n graph.Node, untouched, asked int) hold {
	whether := "was not asked, since too much was"
	if asked > 0 {
		whether = fmt.Sprintf("was asked of only %d, since too much was already", asked)
	}
	return hold{symptom: nsControllerAbsent, because: notDeleted, cause: w.cause(nsContentFailure, n.Identity(), "unasked", func(c *Cause) {
		c.Summary = "the namespace controller has not begun to delete " + evidence.Number(untouched, "object") + " in it; whether anything refuses or delays that " + whether
		c.Evidence = []Evidence{evidence.Field(n, "status.conditions", "not set"), w.health().evidence}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s explain-stuck %s", w.Plugin, shell.Quote("namespaces/"+n.Object().Name)),
			Effect: "ask about it alone",
		}}
	})}
}

// standing is how the deletion of a namespace's content stands by dry runs: how many got an
// answer, were accepted, and were about what is gone by now; unsent: some were not sent, since
// too much was asked already; slow: an answer took long.
type standing struct {
	asked, accepted, gone int
	unsent, slow          bool
}

// contentRoots returns what is in the way of the deletion of a namespace's content.
func (w *walker) contentRoots(n graph.Node, most int) (roots []*Cause, stands standing) {
	for m, r := range w.tryContent(n, most) {
		switch {
		case r.Unsent:
			stands.unsent = true
		case r.Gone:
			stands.gone++
		case r.Kind == answer.Accepted:
			stands.accepted++
		}
		stands.slow = stands.slow || r.Slow()
		if !r.Unsent && !r.NoRight {
			stands.asked++
		}
		for _, c := range append(w.obstacles(m, r, "DELETE"), w.delays(m, r, "DELETE")...) {
			if !slices.Contains(roots, c) {
				roots = append(roots, c)
			}
		}
	}
	return roots, stands
}

// contentRefused leads from content that the namespace controller fails to
// delete to what refuses it.
func (w *walker) contentRefused(n graph.Node, whole *unstructured.Unstructured, failure evidence.Condition, untouched int) []hold {
	const because = "the namespace controller cannot delete its content"
	roots, stands := w.contentRoots(n, maxContentProbes)
	roots = append(w.initializing(failure.Message), roots...)
	var holds []hold
	for _, c := range roots {
		w.show(c, failure.Fact(n.Identity().String()))
		holds = append(holds, hold{symptom: nsContentFailure, because: because, cause: c})
	}
	left := untouched - stands.gone
	f := failing{walker: w, namespace: n, whole: whole, failure: failure, accepted: left > 0 && stands.accepted == left, unasked: left > 0 && stands.asked == 0 && stands.unsent}
	alone, settled := f.refusedAlone()
	for _, h := range alone {
		if !slices.ContainsFunc(roots, func(c *Cause) bool { return c.Object == h.cause.Object }) {
			holds = append(holds, h)
		}
	}
	switch {
	case len(holds) > 0 && (len(alone) > 0 || slices.ContainsFunc(roots, func(c *Cause) bool { return c.Verdict == Stuck || c.Verdict == Progressing })):
		return holds
	case stands.gone > 0 && left <= 0, untouched == 0 && settled:
		return append(holds, w.backOff(n, failure, "what the namespace controller failed at is gone"))
	case len(roots) == 0 && settled && !w.health().dead():
		return append(holds, w.backOff(n, failure, "what refused the namespace controller does not any more"))
	}
	return append(holds, hold{because: because, cause: w.contentFailure(f, left)})
}

// contentFailure is content that the namespace controller fails to delete, of which nobody is
// known who refuses that.
func (w *walker) contentFailure(f failing, untouched int) *Cause {
	n := f.namespace
	return w.cause(nsContentFailure, n.Identity(), "", func(c *Cause) {
		c.Summary = "the namespace controller could not delete all content at its last try"
		if untouched > 0 {
			c.Summary = "the namespace controller fails to delete " + evidence.Number(untouched, "object")
		}
		c.Evidence = []Evidence{f.failure.Fact(n.Identity().String())}
		for _, m := range w.untouchedIn(n.Object().Name) {
			if len(c.Evidence) <= evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(m, "metadata.deletionTimestamp", "not set"))
			}
		}
		switch {
		case untouched == 0:
			return
		case f.accepted:
			c.Summary = "the namespace controller failed to delete " + evidence.Number(untouched, "object") + " at its last try; the API server would accept it now, so it goes on within a minute, unless only the controller is refused"
			c.Evidence = append(c.Evidence, triedContent)
			return
		case f.unasked:
			c.Summary = "the namespace controller failed to delete " + evidence.Number(untouched, "object") + " at its last try; whether the API server would accept it now was not asked"
		case w.failsLong(f.failure):
			c.Verdict = Stuck
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s delete --all %s --dry-run=server", shell.In(w.Kubectl, n.Object().Name), w.untouchedTypes(n)),
			Effect: "see what refuses the deletion, without deleting: repair that, and the namespace controller goes on within a minute",
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
