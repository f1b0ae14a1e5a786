// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// What rules find, in words, commands and risks.

// say puts a text into words.
func say(t finding.Text) string {
	text := ""
	for _, s := range t {
		args := make([]any, len(s.Args))
		for i, arg := range s.Args {
			if args[i] = arg; isText(arg) {
				args[i] = say(arg.(finding.Text))
			}
		}
		switch {
		case s.Word == "":
			text += fmt.Sprint(args...)
		case sayings[s.Word].made != nil:
			text += sayings[s.Word].made(args...)
		case len(args) == 0:
			text += sayings[s.Word].text
		default:
			text += fmt.Sprintf(sayings[s.Word].text, args...)
		}
	}
	return text
}

func isText(arg any) bool {
	_, is := arg.(finding.Text)
	return is
}

// shown are facts in words.
func shown(found []finding.Fact) []Evidence {
	var facts []Evidence
	for _, f := range found {
		if f.Says != nil {
			f.Value = say(f.Says)
		}
		facts = append(facts, f.Fact)
	}
	return facts
}

// holdsOf are the blockers of an object that a rule found. What refuses one write may refuse another.
func (w *walker) holdsOf(n graph.Node, blockers []finding.Blocker) []hold {
	var holds []hold
	for _, b := range blockers {
		if b.Refused == nil {
			holds = append(holds, w.hold(n, b))
			continue
		}
		c := w.refusal(n, b.Refused.Reply, b.Refused.Operation)
		if c == nil || slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
			continue
		}
		if c.Verdict != Stuck {
			b.Because = b.Refused.Perhaps
		}
		holds = append(holds, hold{because: say(b.Because), cause: c})
	}
	return holds
}

// hold is a blocker of an object that a rule found.
func (w *walker) hold(n graph.Node, b finding.Blocker) hold {
	because := say(b.Because)
	switch b.Turn {
	case finding.Usual:
		return w.protection(n, b.Symptom, because)
	case finding.InTime, finding.Overdue:
		return w.manager(n, because, b.Turn == finding.Overdue).as(b.Symptom)
	}
	h := hold{symptom: b.Symptom, because: because, next: b.Next}
	if b.Cause != nil {
		h.cause = w.caused(b.Cause)
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
	c := made(f.Kind, f.At, f.Key, func(c *Cause) {
		c.Verdict, c.Until, c.Summary, c.Evidence = f.Verdict, f.Until, say(f.Summary), shown(f.Evidence)
		if by := f.Controller; by != nil {
			c.Controller = &Controller{Name: say(by.Name), Liveness: by.Liveness, Evidence: shown(by.Evidence)}
			c.Remedies = w.remedies(by.Ways)
		}
		c.Remedies = append(c.Remedies, w.remedies(f.Ways)...)
	})
	if f.Worst {
		w.worsen(c, f.Verdict, say(f.Summary))
	}
	if len(f.Own) == 0 || w.join(c, shown(f.Own)...) > evidence.MaxShown {
		return c
	}
	c.Remedies = append(c.Remedies, w.remedies(f.OwnWays)...)
	return c
}

// remedies are ways out.
func (d commands) remedies(ways []finding.Way) []Remedy {
	var remedies []Remedy
	for i := range ways {
		remedies = append(remedies, d.remedy(&ways[i]))
	}
	return remedies
}

// remedy is a way out with its command, and the risk of its words and of what is lost.
func (d commands) remedy(way *finding.Way) Remedy {
	r := Remedy{Effect: say(way.Effect), Risk: sayings[way.Effect[0].Word].risk, Keeps: way.Keeps, Partial: way.Partial, Temporary: way.Temporary, facts: shown(way.Facts)}
	switch {
	case way.Op != nil:
		r.Action = d.does(*way.Op)
	case way.Look != nil:
		r.Action = Action{Command: way.Look.Command(d.programs)}
	}
	if r.Risk == "" {
		r.Risk = Safe
	}
	if way.Blind {
		r.Risk = Dangerous
	}
	for _, l := range way.Loss {
		r.Loss = append(r.Loss, lost(l))
		if l.Kind == remedy.LosesData {
			r.Risk = Dangerous
		}
	}
	if way.Data == nil {
		return r
	}
	if way.Kept {
		r.Kept = r.Risk
	}
	if r.Risk = Dangerous; len(r.Loss) == 0 {
		r.Loss = []remedy.Loss{lost(*way.Data)}
	}
	return r
}

// lost is a loss in words.
func lost(l finding.Loss) remedy.Loss {
	l.What = say(l.Says)
	return l.Loss
}

// repair is the way to make a service answer again: none in a namespace that is being deleted.
func (d commands) repair(s *admission.Serving, effect string) []Remedy {
	return d.remedies(workload.Repair(d.reader, s, finding.Plain(effect)))
}
