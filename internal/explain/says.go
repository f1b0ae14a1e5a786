// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// What rules find, in words, commands and risks.

// holdsOf are the blockers of an object that a rule found.
func (w *walker) holdsOf(blockers []finding.Blocker) []blocker {
	var holds []blocker
	for _, b := range blockers {
		holds = append(holds, w.hold(b))
	}
	return holds
}

// blocker is one of an object that a rule found.
func (w *walker) hold(b finding.Blocker) blocker {
	h := blocker{symptom: b.Symptom, because: b.Because, finalizer: b.Finalizer, next: b.Next}
	if h.next != nil && b.Symptom == finding.GcFgBlocking {
		if at := slices.Index(w.path, b.Next.UID()); at >= 0 {
			h.next, b.Cause = nil, collector.Cycle(w.rules, *b.Next, w.path[at:])
		}
	}
	if b.Cause != nil {
		h.cause, h.alike = w.caused(b.Cause), b.Cause.Alike
	}
	return h
}

// caused is the cause that a rule found. It is put into words when it is first found.
func (w *walker) caused(f *finding.Cause) *Cause {
	made := w.cause
	if f.Shared {
		made = func(k Kind, at graph.Identity, key string, fill func(*Cause)) *Cause {
			return w.shared(key, k, at, fill)
		}
	}
	first := false
	c := made(f.Kind, f.At, f.Key, func(c *Cause) {
		first = true
		if by := f.Controller; by != nil {
			c.Controller, c.Remedies = w.controller(by), w.remedies(by.Ways)
		}
	})
	if f.Of != nil {
		c.Of = w.caused(f.Of)
	}
	if c.Driver = f.Driver; f.Waits != nil {
		c.Waits, c.Covers = f.Waits, f.Covers
	}
	if first || f.Grows {
		w.tell(c, f.Evidence)
	}
	if first || f.Grows || f.Worst && f.Verdict.Gravity() > c.Verdict.Gravity() {
		c.Verdict, c.Until, c.Summary, c.Decides = f.Verdict, f.Until, f.Said(), f.Decides
	}
	for i := range f.Ways {
		way := &f.Ways[i]
		has := func(r Remedy) bool { return r.Operation == way.Op }
		if first || way.Slot != "" && !slices.ContainsFunc(c.Remedies, has) {
			w.offer(c, w.remedy(way))
		}
	}
	if f.First != nil {
		w.show(c, *f.First)
	}
	switch {
	case len(f.Own) > 0 && (w.join(c, f.Own...) <= evidence.MaxShown || w.Each):
		for _, r := range w.remedies(f.OwnWays) {
			if r.Operation != nil {
				w.offer(c, r)
			} else { // several objects can begin with the same look
				w.offerOnce(c, r)
			}
		}
	case len(f.Own) == 0 && len(c.Remedies) <= evidence.MaxShown:
		for _, r := range w.remedies(f.OwnWays) {
			w.offerOnce(c, r)
		}
	}
	return c
}

// controller is what should act, in words.
func (d commands) controller(by *finding.Controller) *Controller {
	facts := slices.Clone(by.Evidence)
	if by.Logs != nil {
		facts = append(facts, evidence.At("logs", "", by.Logs.Command(d.programs)))
	}
	for _, m := range by.Known {
		facts = append(facts, entryEvidence(m)...)
	}
	return &Controller{Name: by.Name, Liveness: by.Liveness, Evidence: append(facts, by.Among...)}
}

// commands makes actions of what remedies do, to objects that a graph may have.
type commands struct {
	programs remedy.Programs
	graph    *graph.Graph
}

// remedies are ways out.
func (d commands) remedies(ways []finding.Way) []Remedy {
	var remedies []Remedy
	for i := range ways {
		remedies = append(remedies, d.remedy(&ways[i]))
	}
	return remedies
}

// deletesLive reports whether a change deletes an object of which no deletion was requested.
func (d commands) deletesLive(op *remedy.Op) bool {
	if op == nil || op.Verb != remedy.Delete {
		return false
	}
	n, known := d.graph.Node(op.Object.UID)
	return !known || !n.BeingDeleted()
}

// risk is that of a change, by what it does to its object: to delete what is not being deleted is Dangerous, a patch of which the rule
// states nothing is Disruptive, and to start what is stopped is Safe.
func (d commands) risk(op *remedy.Op, stated Risk) Risk {
	switch {
	case op == nil:
	case d.deletesLive(op), op.Verb == remedy.Delete && op.Options.GracePeriodSeconds != nil,
		op.Verb == remedy.Taint, op.Verb == remedy.Finalize:
		return Dangerous
	case op.EndsPods(), op.Verb == remedy.Patch && stated == "":
		return Disruptive
	}
	return Safe
}

// lossRisks are those of what is lost. What is left behind is as risky as the change that leaves it.
var lossRisks = map[remedy.LossKind]Risk{
	remedy.LosesData: Dangerous, remedy.CorruptsData: Dangerous, remedy.LosesObject: Dangerous,
	remedy.Unguards: Disruptive, remedy.GrantsMore: Disruptive,
}

// remedy is a way out with its command. Its risk is the greatest of the change, of its words, and of what is lost.
func (d commands) remedy(way *finding.Way) Remedy {
	risk := d.risk(way.Op, way.Risk)
	if way.Leftover {
		risk = Disruptive
	}
	r := Remedy{Effect: way.Effect, Risk: risk.Worse(way.Risk), Keeps: way.Keeps, Partial: way.Partial, Temporary: way.Temporary, In: way.In,
		facts: way.Facts, slot: way.Slot}
	switch {
	case way.Op != nil:
		r.Action = Action{Command: way.Op.Command(d.programs), Operation: way.Op, Undo: way.Op.Undo(d.programs)}
		r.Operation = way.Op // the same, by which the remedy is known
	case way.Look != nil:
		r.Action = Action{Command: way.Look.Command(d.programs)}
	}
	if way.Blind {
		r.Risk = Dangerous
	}
	r.Loss = way.Loss
	for _, l := range way.Loss {
		r.Risk = r.Risk.Worse(lossRisks[l.Kind])
	}
	if d.deletesLive(way.Op) && !way.Op.Save &&
		!slices.ContainsFunc(r.Loss, func(l remedy.Loss) bool { return l.Kind == remedy.LosesObject }) {
		r.Loss = append(slices.Clip(r.Loss), remedy.Loss{Kind: remedy.LosesObject, Object: way.Op.Object, What: say.Of(undeleted, way.Op.Object)})
	}
	if way.Data == nil {
		return r
	}
	if way.Kept {
		r.Kept = r.Risk
	}
	if r.Risk = Dangerous; len(way.Loss) == 0 {
		r.Loss = append([]remedy.Loss{*way.Data}, r.Loss...)
	}
	return r
}
