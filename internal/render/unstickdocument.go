// SPDX-License-Identifier: Apache-2.0

package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// UnstickPlan is the document of a dry run of unstick.
type UnstickPlan struct {
	head     `json:",inline"`
	Complete bool       `json:"complete"`
	Unlisted []Unlisted `json:"unlisted"`
	// Unread is what was looked at besides the lists and could not be read.
	Unread []string `json:"unread"`
	// Digest is what --confirm takes.
	Digest string         `json:"digest"`
	Causes []UnstickCause `json:"causes"`
}

// UnstickCause is what is to be done about a cause.
type UnstickCause struct {
	ID      string            `json:"id"`
	Rank    int               `json:"rank"`
	Object  ObjectReference   `json:"object"`
	Verdict string            `json:"verdict"`
	Summary string            `json:"summary"`
	Blocks  []ObjectReference `json:"blocks"`
	// Way is the number of the way out that is taken, 0 for none.
	Way int `json:"way"`
	// After is the rank of the cause that is dealt with first, 0 for none.
	After  int            `json:"after,omitempty"`
	Risk   string         `json:"risk,omitempty"`
	Writes []UnstickWrite `json:"writes"`
	// Reason says why nothing is done, and Needs what --allow would have to be.
	Reason string `json:"reason,omitempty"`
	Needs  string `json:"needs,omitempty"`
	// Advice is what a person can do.
	Advice string `json:"advice,omitempty"`
}

// UnstickWrite is one change.
type UnstickWrite struct {
	Operation *StuckOperation `json:"operation"`
	Command   string          `json:"command"`
	Undo      string          `json:"undo,omitempty"`
	Effect    string          `json:"effect"`
	Loss      []StuckLoss     `json:"loss,omitempty"`
	// Then are the changes that follow when this one is made.
	Then []*StuckOperation `json:"then,omitempty"`
	// Lets are the objects that it may free besides those that were asked for.
	Lets []ObjectReference `json:"lets,omitempty"`
	// Temporary: it is taken back when what it frees is gone.
	Temporary bool `json:"temporary"`
	// Server is what the API server says to it in a server dry run.
	Server *ServerAnswer `json:"server,omitempty"`
}

// UnstickReport is the document of a run of unstick.
type UnstickReport struct {
	head     `json:",inline"`
	Complete bool       `json:"complete"`
	Unlisted []Unlisted `json:"unlisted"`
	Unread   []string   `json:"unread"`
	// Backup is the directory with the journal of the run, empty for none.
	Backup string            `json:"backup,omitempty"`
	Events []UnstickEvent    `json:"events"`
	Freed  []ObjectReference `json:"freed"`
	// Remaining are the objects that are still being deleted.
	Remaining []UnstickRemaining `json:"remaining"`
	// Causes are those that are left, with what would be done about them.
	Causes []UnstickCause `json:"causes"`
}

// UnstickEvent is a change with what became of it.
type UnstickEvent struct {
	Time      metav1.Time     `json:"time"`
	Result    string          `json:"result"`
	Operation *StuckOperation `json:"operation"`
	Message   string          `json:"message,omitempty"`
}

// UnstickRemaining is an object that is still being deleted.
type UnstickRemaining struct {
	Object ObjectReference `json:"object"`
	// Of is the object that was asked for and is gone, of which this is a dependent; nil for what was asked for.
	Of      *ObjectReference `json:"of,omitempty"`
	Verdict string           `json:"verdict"`
	Causes  []string         `json:"causes"`
}

// DeepCopyObject implements runtime.Object; the copy is shallow, as documents are never changed.
func (p *UnstickPlan) DeepCopyObject() runtime.Object { return new(*p) }

// DeepCopyObject implements runtime.Object; the copy is shallow, as documents are never changed.
func (r *UnstickReport) DeepCopyObject() runtime.Object { return new(*r) }

// NewUnstickPlan returns the document of a plan. answers are those of the server to its writes, nil for none.
func NewUnstickPlan(l *unstick.Look, p *unstick.Plan, answers map[string]error) *UnstickPlan {
	document := &UnstickPlan{
		head: headOf("UnstickPlan"), Digest: p.Digest,
		Complete: l.Graph.Snapshot().Complete() && len(l.Report.Unread) == 0, Unlisted: NewUnlisted(l.Graph.Snapshot()),
		Unread: append([]string{}, evidence.Gaps(l.Report.Unread)...), Causes: newUnstickCauses(l, p),
	}
	for i := range document.Causes {
		for j := range document.Causes[i].Writes {
			if err, asked := answers[p.Choices[i].Writes[j].Op.Key()]; asked {
				document.Causes[i].Writes[j].Server = NewServerAnswer(err)
			}
		}
	}
	return document
}

func newUnstickCauses(l *unstick.Look, p *unstick.Plan) []UnstickCause {
	causes := []UnstickCause{}
	for i := range p.Choices {
		c := &p.Choices[i]
		cause := UnstickCause{
			ID: c.Cause.ID, Rank: c.Rank, Object: NewObjectReference(c.Cause.Object), Verdict: string(c.Cause.Verdict),
			Summary: c.Cause.Summary.String(),
			Blocks:  []ObjectReference{}, Way: c.Way, After: c.After, Risk: string(c.Risk), Writes: []UnstickWrite{},
			Reason: string(c.Reason), Needs: string(c.Needs),
		}
		if c.Advice != nil {
			cause.Advice = c.Advice.Effect.String()
		}
		for o := range l.Report.Blocked(c.Cause) {
			cause.Blocks = append(cause.Blocks, NewObjectReference(o.Object))
		}
		for j := range c.Writes {
			w := &c.Writes[j]
			write := UnstickWrite{
				Operation: newStuckOperation(&w.Op), Command: w.Remedy.Command, Undo: w.Remedy.Undo, Effect: w.Remedy.Effect.String(),
				Loss: newStuckLosses(w.Remedy.Loss), Lets: references(w.Lets), Temporary: w.Temporary(),
			}
			for _, r := range w.Then {
				write.Then = append(write.Then, newStuckOperation(r.Operation))
			}
			cause.Writes = append(cause.Writes, write)
		}
		causes = append(causes, cause)
	}
	return causes
}

// NewUnstickReport returns the document of a run.
func NewUnstickReport(r *unstick.Report, outcome *unstick.Outcome, backup string) *UnstickReport {
	l := r.Last
	document := &UnstickReport{
		head: headOf("UnstickReport"), Backup: backup,
		Complete: l.Graph.Snapshot().Complete() && len(l.Report.Unread) == 0, Unlisted: NewUnlisted(l.Graph.Snapshot()),
		Unread: append([]string{}, evidence.Gaps(l.Report.Unread)...), Events: []UnstickEvent{},
		Freed:     append([]ObjectReference{}, references(outcome.Freed)...),
		Remaining: []UnstickRemaining{}, Causes: newUnstickCauses(l, r.Plan),
	}
	for i := range r.Records {
		rec := &r.Records[i]
		event := UnstickEvent{Time: metav1.NewTime(rec.Time.UTC()), Result: string(rec.Result), Operation: newStuckOperation(&rec.Write.Op)}
		if rec.Err != nil {
			event.Message = rec.Err.Error()
		}
		document.Events = append(document.Events, event)
	}
	for _, o := range outcome.Left {
		document.Remaining = append(document.Remaining, newUnstickRemaining(o, nil))
	}
	for _, b := range outcome.Bare {
		for _, o := range b.Hanging {
			document.Remaining = append(document.Remaining, newUnstickRemaining(o, new(NewObjectReference(b.Object))))
		}
	}
	graph.SortByIdentity(document.Remaining, func(r *UnstickRemaining) graph.Identity { return r.Object.identity() })
	return document
}

func newUnstickRemaining(o *explain.Explanation, of *ObjectReference) UnstickRemaining {
	left := UnstickRemaining{Object: NewObjectReference(o.Object), Of: of, Verdict: string(o.Verdict), Causes: []string{}}
	for _, f := range o.Findings {
		left.Causes = append(left.Causes, f.Cause.ID)
	}
	return left
}
