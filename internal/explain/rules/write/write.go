// SPDX-License-Identifier: Apache-2.0

// Package write has the rules of writes: what refuses one or delays it, and what refuses the namespace controller.
package write

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// refused is a write to an object that the API server does not accept.
type refused struct {
	*rules.Facts
	n         graph.Node
	r         admission.Reply
	operation string
}

// Obstacles are all that is known to block a write. The API server names the first that it meets; unreachable webhooks that
// must allow the write block it as well.
func Obstacles(f *rules.Facts, n graph.Node, r admission.Reply, operation string) []*finding.Cause {
	var all []*finding.Cause
	if c := (refused{f, n, r, operation}).cause(); c != nil {
		all = append(all, c)
	}
	if r.Kind == answer.Accepted || r.Kind == answer.NamespaceMissing {
		return all
	}
	return Unreachable(f, n, f.Admission.DeadWebhooks(n, operation, r.Subresource), finding.FieldSays(n, "", CoversWrites), all...)
}

// Refusal is the first of the Obstacles, nil for none.
func Refusal(f *rules.Facts, n graph.Node, r admission.Reply, operation string) *finding.Cause {
	for _, c := range Obstacles(f, n, r, operation) {
		return c
	}
	return nil
}

// Unreachable are the causes of webhooks that cannot be reached and must allow a write to an object, which covers shows of
// each, beside those that are known.
func Unreachable(f *rules.Facts, n graph.Node, dead iter.Seq2[*admission.Webhook, *admission.Serving], covers finding.Fact,
	known ...*finding.Cause) []*finding.Cause {
	for h, s := range dead {
		if c := DeadWebhook(f, n, h, s, covers, ""); !slices.Contains(known, c) {
			known = append(known, c)
		}
	}
	return known
}

// cause is what the API server's answer names, nil when it names nothing.
func (f refused) cause() *finding.Cause {
	switch f.r.Kind {
	case answer.WebhookFailed, answer.WebhookDenied:
		return f.byWebhook()
	case answer.PolicyDenied:
		return f.byPolicy()
	case answer.KeepsFinalizer:
		return f.changed(finding.AdmMutatingReadd, f.Admission.Mutators(f.n), "", say.Of(AddsAgain))
	case answer.AddsFinalizer:
		return f.changed(finding.AdmMutatingReadd, f.Admission.Mutators(f.n), "", say.Of(AddsAnother))
	case answer.Invalid:
		return f.invalid()
	case answer.Refused: // by an admission plugin inside the API server
		return f.met(&finding.Cause{
			Kind: finding.AdmRefused, At: f.n.Identity(), Key: f.r.Message, Verdict: finding.Unknown,
			Summary: say.Of(ServerRejects, f.rejected()).And(AnswerToYou), Decides: Says(f.r.Refusal),
			Evidence: finding.Facts(f.r.Fact()),
		})
	}
	return definition.Unwritable(f.Facts, f.n, f.r.Refusal)
}

// met makes a refusal that the controller might not meet the cause that the object is stuck, when the controller is seen to
// meet it, by the words of that.
func met(f *rules.Facts, n graph.Node, c *finding.Cause, words string) *finding.Cause {
	if c.Verdict == finding.Stuck || words == "" {
		return c
	}
	if seen, is := f.Admission.SeenFailing(n, words); is {
		c.Evidence = append(c.Evidence, seen)
		decided(c)
	}
	return c
}

// decided makes a refusal one that does not depend on who asks.
func decided(c *finding.Cause) {
	c.Verdict = finding.Stuck
	for _, w := range []say.Word{AnswerToYou, AsksWho} {
		if at, _ := c.Summary.Find(w); at >= 0 {
			c.Summary = c.Summary.Splice(at, at+1, say.Text{})
		}
	}
}

// met is met for the answer. Where nobody else sends such writes, it is that to the only one who does.
func (f refused) met(c *finding.Cause) *finding.Cause {
	if met(f.Facts, f.n, c, f.r.Words()); f.r.Sole && f.r.Words() != "" {
		decided(c)
	}
	return c
}

// Says is what the API server answers.
func Says(r answer.Refusal) say.Text {
	return say.Plain(admission.Shortened(strings.TrimLeft(r.Message, ": ")))
}

// rejected is the write that is rejected.
func (f refused) rejected() say.Text {
	if f.r.Write == "DELETE" {
		return say.Of(DeletionOf, f.r.About)
	}
	return say.Of(UpdateOf, f.r.About)
}

// example names the write that is rejected with the reason. Of several objects that share the cause it is the first by its name, whichever
// is looked at first.
func (f refused) example(c *finding.Cause) {
	because(c, f.r.Refusal)
	for _, word := range []say.Word{PolicyRejects, ExpressionFails, WebhookRejects} {
		at, args := c.Summary.Find(word)
		if at < 0 {
			continue
		}
		is, was := f.rejected(), args[len(args)-1].(say.Text)
		if was.Equal(is) || was.Equal(is.And(AndOthers)) {
			return
		}
		if old := was.String(); is.String() > old {
			is = was
		}
		if !is.Has(AndOthers) {
			is = is.And(AndOthers)
		}
		args = append(slices.Clone(args[:len(args)-1]), is)
		c.Summary = c.Summary.Splice(at, at+1, say.Of(word, args...))
	}
}

// because adds the reason of a refusal to what a cause says. Objects that share the cause may have others: then it is an
// example, the same in whichever order they are looked at.
func because(c *finding.Cause, r answer.Refusal) {
	reason := admission.Shortened(r.Reason())
	if reason == "" {
		return
	}
	c.Decides = say.Plain(reason)
	switch at, args := c.Summary.Find(Reason, OneReason); {
	case at < 0:
		c.Summary = c.Summary.Splice(1, 1, say.Of(Reason, reason))
	case args[0] != reason:
		c.Decides = say.Plain(min(reason, args[0].(string)))
		c.Summary = c.Summary.Splice(at, at+1, say.Of(OneReason, min(reason, args[0].(string))))
	}
}

// changed is an object that one of the suspects changes whenever it is written, in a way that the API server refuses.
func (f refused) changed(kind finding.Kind, suspects []admission.Mutator, key string, summary say.Text) *finding.Cause {
	at := f.n.Identity()
	if len(suspects) == 1 {
		at = suspects[0].At
	}
	return f.Once(kind, at.String()+" "+string(at.UID)+" "+key, func(c *finding.Cause) {
		c.At, c.Verdict, c.Summary, c.Evidence = at, finding.Stuck, summary, finding.Facts(f.r.Fact())
		c.Waits = func(m graph.Node) bool {
			return slices.ContainsFunc(suspects, func(s admission.Mutator) bool {
				if s.Webhook != nil {
					return f.Admission.Waits(s.Webhook)(m)
				}
				return f.Admission.PolicyAsked(s.Whole, &unstructured.Unstructured{}, "UPDATE", "")(m)
			})
		}
		for i := range suspects {
			c.Evidence = append(c.Evidence, suspects[i].Evidence)
			if i < 2*evidence.MaxShown {
				c.Ways = append(c.Ways, f.spare(&suspects[i]))
			}
		}
		if len(suspects) == 0 {
			c.Evidence = append(c.Evidence, finding.AtSays("mutating webhooks and policies", "", NoneMatches))
		}
	})
}

// spareTerminating is the condition with which a mutating webhook or policy ignores what is being deleted. The object of a
// DELETE is null.
var spareTerminating = map[string]any{"name": "kubectl-gc-not-terminating",
	"expression": "object == null || !has(object.metadata.deletionTimestamp)"}

// spare makes a webhook or policy ignore what is being deleted, until the object is gone.
func (f refused) spare(m *admission.Mutator) finding.Way {
	var steps []remedy.Step
	at := "/spec"
	if h := m.Webhook; h != nil {
		at, steps = entry(h)
	}
	way := finding.Does(f.Change(m.At, m.Whole, append(steps, adding(m.Whole, at+"/matchConditions/-", spareTerminating))...),
		SpareEnding).At(finding.Disruptive)
	way.Temporary = true
	return way
}

// invalid is an object of which every update is refused: for what is changed while it is written, or because its own type no
// longer allows it.
func (f refused) invalid() *finding.Cause {
	m := f.Admission.Mutation(f.n, f.r)
	switch {
	case m == nil:
		return f.noLongerValid()
	}
	summary := say.Of(ChangesField, "it", m.Cause.Field)
	if len(m.By) != 1 {
		summary = say.Of(ChangesField, say.Of(SomeMutator), m.Cause.Field)
	}
	c := f.changed(finding.AdmMutatingInvalid, m.By, m.Cause.Field, summary)
	c.Decides = detail(m.Cause)
	return c
}

// detail is why a field is invalid, without the whole object that is its value.
func detail(cause metav1.StatusCause) say.Text {
	message := cause.Message
	if at := strings.LastIndex(message, "}: "); at >= 0 {
		message = message[at+len("}: "):]
	}
	return say.Plain(admission.Shortened(message))
}

func (f refused) noLongerValid() *finding.Cause {
	id := f.n.Identity()
	c := &finding.Cause{
		Kind: finding.ValSchemaTightened, At: id, Verdict: finding.Stuck, Summary: say.Of(InvalidNow), Decides: Says(f.r.Refusal),
		Evidence: finding.Facts(f.r.Fact()),
		Ways:     []finding.Way{finding.See(remedy.Look{Words: "edit", Of: id}, CorrectFields)},
	}
	if len(f.r.Causes) > 0 {
		c.Decides = say.Of(FieldIs, strings.TrimPrefix(f.r.Causes[0].Field, "<nil>"), detail(f.r.Causes[0]))
	}
	for _, cause := range f.r.Causes[:min(len(f.r.Causes), evidence.MaxShown)] {
		// <nil> is the object itself
		c.Evidence = append(c.Evidence, finding.Field(f.n, strings.TrimPrefix(cause.Field, "<nil>"), admission.Shortened(cause.Message)))
	}
	whole, err := f.Get(evidence.CRDs, "", id.Resource.GroupResource().String())
	if err != nil {
		return c
	}
	at := evidence.IdentityOf(evidence.CRDs, "CustomResourceDefinition", whole)
	c.Evidence = append(c.Evidence, finding.At(at, "metadata.generation", fmt.Sprint(whole.GetGeneration())))
	c.Ways = append(c.Ways, finding.See(remedy.Look{Words: "edit", Of: at, Save: true, Version: f.Version(at)},
		RelaxSchema).At(finding.Disruptive))
	return c
}

// adding is the step that adds a value at a path, with what has to be there for it and is not.
func adding(o *unstructured.Unstructured, path string, value any) remedy.Step {
	at := strings.LastIndex(path, "/")
	if have, is := remedy.At(o.Object, path[:at]); is && have != nil {
		return remedy.Add(path, value)
	}
	if key := path[at+1:]; key != "-" {
		return adding(o, path[:at], map[string]any{key: value})
	}
	return adding(o, path[:at], []any{value})
}
