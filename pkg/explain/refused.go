// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Writes that are refused: causes of what explain/admission finds.

// refusals asks whether the finalizers of an object could be removed at all:
// a controller, dead or alive, needs that. The garbage collector's own are asked
// about where its other work is done.
func (w *walker) refusals(n graph.Node, known []hold) []hold {
	o := n.Object()
	if w.evidence.NamespaceGone(o.Namespace) && !w.rules.Changeable(n) {
		return nil
	}
	var holds []hold
	for _, finalizer := range w.finalizers(n) {
		if isCollectors(finalizer) {
			continue
		}
		r := w.asker.TryRemoval(n, finalizer)
		if w.onlyYours(n, r, known) {
			continue
		}
		for _, c := range w.obstacles(n, r, "UPDATE") {
			if !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
				holds = append(holds, hold{because: fmt.Sprintf(notRemovable, finalizer), cause: c})
			}
		}
	}
	return holds
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

// refusedWrite is a write to an object that the API server does not accept.
type refusedWrite struct {
	*walker
	n         graph.Node
	r         admission.Reply
	operation string
}

// obstacles returns all that is known to block a write. The API server
// names the first that it meets; unreachable webhooks that must allow the write
// block it as well.
func (w *walker) obstacles(n graph.Node, r admission.Reply, operation string) []*Cause {
	var all []*Cause
	if c := (refusedWrite{w, n, r, operation}).cause(); c != nil {
		all = append(all, c)
	}
	if r.Kind == answer.Accepted || r.Kind == answer.NamespaceMissing {
		return all
	}
	for h, s := range w.asker.DeadWebhooks(n, operation, r.Subresource) {
		c := w.webhookDead(n, h, s, Evidence{Source: n.Identity().String(), Value: coversWrites}, "")
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// onlyYours reports whether a refusal says nothing of the object, since its
// blocker ends by itself, and only the caller is seen to be
// refused.
func (w *walker) onlyYours(n graph.Node, r admission.Reply, known []hold) bool {
	if r.Words() == "" || misconfigured(r) {
		return false
	}
	working, progresses := w.atWork(known)
	if !progresses {
		return false
	}
	if _, seen := w.asker.SeenFailing(n, r.Words()); seen {
		return false
	}
	if working != nil && working.Object == n.Identity() {
		w.show(working, Evidence{Source: r.Fact().Source, Path: sentByYou, Value: r.Message})
	}
	return true
}

// atWork reports whether a blocker of the object ends by
// itself, with its cause if it is known. What is refused to others might be
// allowed to the controller: that it stops has to show first.
func (w *walker) atWork(holds []hold) (*Cause, bool) {
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

// isCollectors reports whether a finalizer is removed by the garbage
// collector or, from a CustomResourceDefinition, by the API server.
func isCollectors(finalizer string) bool {
	return graph.IsCollectorFinalizer(finalizer) || finalizer == definition.Cleanup
}

// refusal returns the first that blocks a write, nil when nothing is known
// to.
func (w *walker) refusal(n graph.Node, r admission.Reply, operation string) *Cause {
	for _, c := range w.obstacles(n, r, operation) {
		return c
	}
	return nil
}

// cause returns what the API server's answer names, nil when it names nothing.
func (f refusedWrite) cause() *Cause {
	switch f.r.Kind {
	case answer.WebhookFailed, answer.WebhookDenied:
		return f.byWebhook()
	case answer.PolicyDenied:
		return f.byPolicy()
	case answer.KeepsFinalizer, answer.AddsFinalizer:
		return f.readds()
	case answer.Invalid:
		if m := f.asker.Mutation(f.n, f.r); m != nil {
			return f.madeInvalid(m)
		}
		return f.noLongerValid()
	case answer.ConversionFailed, answer.Undecodable:
		return f.caused(definition.Unwritable(f.rules, f.n, f.r.Refusal))
	case answer.Refused:
		return f.otherwise()
	}
	return nil
}

// onlyCaller makes the summary of a cause say that only the caller is known to meet it.
func (w *walker) onlyCaller(c *Cause) {
	w.forAll[c] = c.Summary
	c.Summary += whenYou
}

// met makes a refusal of the caller's write the cause that the object is stuck,
// when the controller is seen to meet it, too.
func (f refusedWrite) met(c *Cause) {
	if c.Verdict == Stuck || f.r.Words() == "" {
		return
	}
	if e, seen := f.asker.SeenFailing(f.n, f.r.Words()); seen {
		f.worsen(c, Stuck, cmp.Or(f.forAll[c], c.Summary), e)
	}
}

// otherwise is a refusal of an admission plugin inside the API server.
func (f refusedWrite) otherwise() *Cause {
	c := f.walker.cause(finding.AdmRefused, f.n.Identity(), f.r.Message, func(c *Cause) {
		c.Summary, c.Evidence = serverRejects, []Evidence{f.r.Fact()}
		f.onlyCaller(c)
	})
	f.met(c)
	return c
}

// spareTerminating is the condition with which a mutating webhook or policy ignores
// what is being deleted. The object of a DELETE is null.
var spareTerminating = map[string]any{"name": "kubectl-gc-not-terminating", "expression": "object == null || !has(object.metadata.deletionTimestamp)"}

// readds is an object whose finalizer is added again when it is removed.
func (f refusedWrite) readds() *Cause {
	suspects := f.asker.Mutators(f.n)
	at := f.n.Identity()
	if len(suspects) == 1 {
		at = suspects[0].At
	}
	return f.shared(at.String()+" "+string(at.UID), finding.AdmMutatingReadd, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, addsAgain
		if f.r.Kind == answer.AddsFinalizer {
			c.Summary = addsAnother
		}
		c.Evidence = []Evidence{f.r.Fact()}
		for _, s := range suspects {
			c.Evidence = append(c.Evidence, s.Evidence)
			f.offerOnce(c, f.spare(&s))
		}
		if len(suspects) == 0 {
			c.Evidence = append(c.Evidence, Evidence{Source: "mutating webhooks and policies", Value: noneMatches})
		}
	})
}

// addTo is the operation that adds the condition to a list which might not exist.
func addTo(o *unstructured.Unstructured, path string) remedy.Step {
	if exists(o.Object, strings.Split(strings.TrimPrefix(path, "/"), "/")) {
		return remedy.Add(path+"/-", spareTerminating)
	}
	return remedy.Add(path, []any{spareTerminating})
}

// spare makes a webhook or policy ignore what is being deleted.
func (w *walker) spare(m *admission.Mutator) Remedy {
	operations := []remedy.Step{addTo(m.Whole, "/spec/matchConditions")}
	if h := m.Webhook; h != nil {
		at := fmt.Sprintf("/webhooks/%d", h.Index)
		operations = []remedy.Step{remedy.Test(at+"/name", h.Name), addTo(h.Whole, at+"/matchConditions")}
	}
	return Remedy{Risk: Disruptive, Action: w.change(m.At, m.Whole, operations...), Effect: ignoreTerminating}
}

// madeInvalid is a valid object of which every update is refused for what is
// changed while it is written.
func (f refusedWrite) madeInvalid(m *admission.Mutation) *Cause {
	at := f.n.Identity()
	if len(m.By) == 1 {
		at = m.By[0].At
	}
	return f.shared(at.String()+" "+string(at.UID)+" "+m.Cause.Field, finding.AdmMutatingInvalid, at, func(c *Cause) {
		who := "it"
		if len(m.By) > 1 {
			who = someMutator
		}
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(changesField, who, m.Cause.Field)
		c.Evidence = []Evidence{f.r.Fact()}
		for _, by := range m.By {
			c.Evidence = append(c.Evidence, by.Evidence)
			f.offerOnce(c, f.spare(&by))
		}
	})
}

// noLongerValid is an object that its own type no longer allows: every
// update of it fails.
func (f refusedWrite) noLongerValid() *Cause {
	n := f.n
	return f.walker.cause(finding.ValSchemaTightened, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, invalidNow
		c.Evidence = []Evidence{f.r.Fact()}
		for i, cause := range f.r.Causes {
			if i < evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(n, strings.TrimPrefix(cause.Field, "<nil>"), admission.Shortened(cause.Message))) // <nil> is the object itself
			}
		}
		c.Remedies = []Remedy{{Risk: Safe, Action: shows("%s edit %s", f.kubectl(n), shell.Target(n.Identity())), Effect: correctFields}}
		definition, err := f.evidence.Get(evidence.CRDs, "", n.Resource().GroupResource().String())
		if err != nil {
			return
		}
		at := evidence.IdentityOf(evidence.CRDs, "CustomResourceDefinition", definition)
		c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.generation", Value: fmt.Sprint(definition.GetGeneration())})
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Disruptive, Action: shows("%s", remedy.SavedFirst(f.Kubectl, at, f.evidence.Version(at), f.Kubectl+" edit "+shell.Target(at))), Effect: relaxSchema,
		})
	})
}
