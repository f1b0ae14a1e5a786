// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// The contents of a namespace that its controller fails to delete, and what rejects that.

// contentHangs leads from content that is not being deleted yet to what rejects or delays that. Where an answer takes
// long the namespace controller might be waiting: it sets no condition before it has tried all types.
func (w *walker) contentHangs(n graph.Node) ([]hold, standing) {
	var holds []hold
	roots, stands := w.contentRoots(n, rules.FirstAsked)
	for _, c := range roots {
		holds = append(holds, hold{symptom: finding.NsContentFailure, because: notDeleted, cause: c})
	}
	return holds, stands
}

// contentUnasked is content of which no dry run, or too few, have checked whether it can be deleted.
func (w *walker) contentUnasked(n graph.Node, untouched, asked int) hold {
	return hold{symptom: finding.NsControllerAbsent, because: notDeleted, cause: w.cause(finding.NsContentFailure, n.Identity(), "unasked", func(c *Cause) {
		if c.Summary = fmt.Sprintf(contentsUnchecked, objects(untouched)); asked > 0 {
			c.Summary = fmt.Sprintf(contentsSampled, objects(untouched), asked)
		}
		c.Evidence = []Evidence{evidence.Field(n, "status.conditions", evidence.NotSet), w.health().evidence}
		c.Remedies = []Remedy{see(explainAlone, "%s explain-stuck %s", w.Plugin, shell.Quote("namespaces/"+n.Object().Name))}
	})}
}

// standing is what dry runs say of the deletion of a namespace's contents: how many got an answer, were accepted, and were
// about objects that do not exist any more; unsent: some were not sent, because too many had been; slow: an answer took
// long.
type standing struct {
	asked, accepted, gone int
	unsent, slow          bool
}

// contentRoots returns what blocks the deletion of a namespace's contents.
func (w *walker) contentRoots(n graph.Node, most int) (roots []*Cause, stands standing) {
	for m, r := range w.rules.TryContent(n, most) {
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
		for _, f := range append(write.Obstacles(w.rules, m, r, "DELETE"), write.Delays(w.rules, m, r, "DELETE")...) {
			if c := w.caused(f); !slices.Contains(roots, c) {
				roots = append(roots, c)
			}
		}
	}
	return roots, stands
}

// contentRefused leads from contents that the namespace controller fails to delete to the blockers of that.
func (w *walker) contentRefused(n graph.Node, whole *unstructured.Unstructured, failure evidence.Condition, untouched int) []hold {
	roots, stands := w.contentRoots(n, namespace.MostAsked)
	for i, c := range definition.Initializing(w.rules, failure.Message) {
		roots = slices.Insert(roots, i, w.caused(c))
	}
	var holds []hold
	for _, c := range roots {
		w.show(c, failure.Fact(n.Identity().String()))
		holds = append(holds, hold{symptom: finding.NsContentFailure, because: cannotDelete, cause: c})
	}
	left := untouched - stands.gone
	f := write.Failing{Namespace: n, Whole: whole, Failure: failure, Accepted: left > 0 && stands.accepted == left, Unasked: left > 0 && stands.asked == 0 && stands.unsent}
	alone, settled := write.Alone(w.rules, f)
	for _, b := range alone {
		if !slices.ContainsFunc(roots, func(c *Cause) bool { return c.Object == b.Cause.At }) {
			holds = append(holds, w.hold(n, b))
		}
	}
	switch {
	case len(holds) > 0 && (len(alone) > 0 || slices.ContainsFunc(roots, func(c *Cause) bool { return c.Verdict == Stuck || c.Verdict == Progressing })):
		return holds
	case stands.gone > 0 && left <= 0, untouched == 0 && settled:
		return append(holds, w.backOff(n, failure, failureGone))
	case len(roots) == 0 && settled && !w.health().dead():
		return append(holds, w.backOff(n, failure, rejectionGone))
	}
	return append(holds, hold{because: cannotDelete, cause: w.contentFailure(f, left)})
}

// contentFailure is content that the namespace controller fails to delete for a reason that is not known.
func (w *walker) contentFailure(f write.Failing, untouched int) *Cause {
	n := f.Namespace
	return w.cause(finding.NsContentFailure, n.Identity(), "", func(c *Cause) {
		c.Evidence = []Evidence{f.Failure.Fact(n.Identity().String())}
		for _, m := range w.rules.Untouched(n.Object().Name) {
			if len(c.Evidence) <= evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(m, "metadata.deletionTimestamp", evidence.NotSet))
			}
		}
		switch {
		case untouched == 0:
			c.Summary = failedBefore
			return
		case f.Accepted:
			c.Summary = fmt.Sprintf(acceptedNow, objects(untouched))
			c.Evidence = append(c.Evidence, admission.AcceptedEach)
			return
		case f.Unasked:
			c.Summary = fmt.Sprintf(uncheckedNow, objects(untouched))
		default:
			c.Summary = fmt.Sprintf(failsNow, objects(untouched))
			if w.rules.FailsLong(f.Failure) {
				c.Verdict = Stuck
			}
		}
		c.Remedies = []Remedy{see(findRejection, "%s delete --all %s --dry-run=server", shell.In(w.Kubectl, n.Object().Name), typesFor(w.rules.Untouched(n.Name())))}
	})
}

// typesFor names the types of objects, for kubectl.
func typesFor(objects []graph.Node) string {
	var types []string
	for _, m := range objects {
		if name := m.Resource().GroupResource().String(); !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return shell.Quote(strings.Join(types, ","))
}
