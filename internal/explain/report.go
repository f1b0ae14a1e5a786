// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Verdict says how an object's deletion stands.
type Verdict = finding.Verdict

// Kind is a kind of cause, or of a step on the way to one.
type Kind = finding.Kind

// The verdicts, the worst last.
const (
	NotFound       = finding.NotFound
	NotTerminating = finding.NotTerminating
	Pending        = finding.Pending
	Progressing    = finding.Progressing
	Unknown        = finding.Unknown
	Stuck          = finding.Stuck
)

// Risk says what a remedy may cost.
type Risk = finding.Risk

// The risks, the least first.
const (
	Safe       = finding.Safe
	Disruptive = finding.Disruptive
	Dangerous  = finding.Dangerous
)

// Evidence is one fact that a cause rests on.
type Evidence = evidence.Fact

// Action is what a remedy does. Without a command it is something that only a person
// can do.
type Action struct {
	// Command can be pasted into a shell.
	Command string
	// Operation is what the command changes in the cluster, nil when it changes
	// nothing or leaves that to a person.
	Operation *remedy.Op
	// Undo is a command that takes back what the other changed, empty where there is
	// nothing to take back or no such command.
	Undo string
}

// Remedy is a way out.
type Remedy struct {
	Risk Risk
	Action
	Effect say.Text
	// Loss is what is lost or left behind.
	Loss []remedy.Loss
	// Partial: a person has to do more than the operation, or to judge whether it is the way out.
	Partial bool
	// Keeps: the operation keeps data that other ways out of the cause would lose, and frees nothing.
	Keeps bool
	// Kept is the risk that is left when that data is kept first, empty where none would be lost or none can be kept.
	Kept Risk
	// Temporary: the operation is to be taken back when the objects are gone.
	Temporary bool
	// In are the namespaces in which alone it frees what waits for the cause, empty for all.
	In []string
	// facts are what the action rests on beyond the cause. They are shown with its evidence.
	facts []Evidence
	// slot is that of the finding.Way.
	slot string
}

// Leaks says what is lost or left behind, empty for nothing.
func (r *Remedy) Leaks() string {
	var texts []string
	for _, l := range r.Loss {
		texts = append(texts, l.What.String())
	}
	return strings.Join(texts, "; ")
}

// same reports whether another remedy does the same.
func (r Remedy) same(other Remedy) bool { return r.Command == other.Command && r.Reads(&other) }

// Reads reports whether the words of two remedies are the same, whatever their commands.
func (r *Remedy) Reads(other *Remedy) bool {
	return r.Risk == other.Risk && r.Effect.Equal(other.Effect) && slices.EqualFunc(r.Loss, other.Loss, remedy.Loss.Reads)
}

// Ways returns the remedies of a cause, those that read the same together: each of these is for another object. What they do is
// one way out. Their order is that of the remedies.
func (c *Cause) Ways() [][]*Remedy {
	var ways [][]*Remedy
	for i := range c.Remedies {
		r := &c.Remedies[i]
		at := slices.IndexFunc(ways, func(way []*Remedy) bool { return way[0].Reads(r) })
		if at < 0 {
			at, ways = len(ways), append(ways, nil)
		}
		ways[at] = append(ways[at], r)
	}
	return ways
}

// Controller is what should act.
type Controller struct {
	Name     say.Text
	Liveness string
	Evidence []Evidence
}

// Cause is something that blocks objects.
type Cause struct {
	Kind
	Object  graph.Identity
	Verdict Verdict
	Summary say.Text
	// Decides is the part of the Summary that decides, zero for all of it.
	Decides    say.Text
	Evidence   []Evidence
	Controller *Controller
	// Driver is the name of the CSI driver whose controller that is, empty for others.
	Driver string
	// Waits reports whether an object waits for the same, and the finalizers and types of those that do not tell that; nil otherwise.
	Waits func(graph.Node) bool
	// Covers reports whether what refuses is asked about any write to an object, or its deletion; nil for other causes.
	Covers   func(graph.Node) bool
	Remedies []Remedy
	// Of is the cause with which alone this one ends; nil for others.
	Of *Cause
	// Until is when a Progressing cause should have ended; it may be zero.
	Until time.Time
	// Blocks is the number of terminating objects that the cause blocks.
	Blocks int
}

// Link is one step from an object towards a cause.
type Link struct {
	Object graph.Identity
	// Symptom is the identifier of the step in the catalogue, empty for a step
	// that has none. A symptom is never what has to be repaired.
	Symptom string
	Because say.Text
	// Finalizer is the one of metadata.finalizers that blocks the object, empty for other reasons.
	Finalizer string
}

// Finding is a cause with the chain that leads to it.
type Finding struct {
	Cause *Cause
	Chain []Link
}

// Explanation is the answer for one object.
type Explanation struct {
	Object  graph.Identity
	Verdict Verdict
	// Since is when the deletion was asked for; zero when it was not.
	Since time.Time
	// Why says why the garbage collector may have deleted it, empty for another object.
	Why say.Text
	// Chain leads from the object to the first of its causes; without a cause it
	// says what the object waits for.
	Chain []Link
	// Findings are the causes, the gravest first.
	Findings []Finding
}

// BeingDeleted reports whether the object exists and is being deleted.
func (e *Explanation) BeingDeleted() bool {
	return e.Verdict != NotFound && e.Verdict != NotTerminating
}

// Remade reports whether the object is so young that a DELETE might have been for another of its name.
func (e *Explanation) Remade() bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Cause.Kind == finding.Recreated })
}

// Report is the answer for all objects that were asked for.
type Report struct {
	Objects []Explanation
	// Causes are the distinct causes of all objects, the gravest and those that block most first.
	Causes []*Cause
	// Missed are parts of the cluster on which the answer depends and that are in none of the Parts
	// of the snapshot. When there are any, the answer counts for nothing, and with them it is to be
	// asked for again.
	Missed []graph.Part
	// Read is what was read for it, which an answer by more parts need not read again.
	Read *evidence.Reader
	// Unread says what could not be read beside the lists, sorted.
	Unread []evidence.Gap
	// Now is the time that the verdicts are about.
	Now time.Time
}

// Again returns after how long to ask again about an object of which nobody has to do anything, or that was only just deleted; 0 for
// others.
func (e *Explanation) Again(now time.Time) time.Duration {
	age := max(now.Sub(e.Since), 0)
	switch {
	case e.Since.IsZero():
		return 0
	case age < controllers.Settling:
		return controllers.Settling - age
	case e.Verdict == Progressing || e.Verdict == Pending:
		left := time.Minute
		for _, f := range e.Findings {
			left = max(left, f.Cause.Until.Sub(now))
		}
		return min(left, controllers.Quiet)
	case e.Verdict == Unknown && !slices.ContainsFunc(e.Findings, func(f Finding) bool { return len(f.Cause.Remedies) > 0 }):
		return time.Minute
	}
	return 0
}

// Again returns after how long to ask again about all, 0 where that may lead to nothing new.
func (r *Report) Again() time.Duration {
	var left time.Duration
	for i := range r.Objects {
		left = max(left, r.Objects[i].Again(r.Now))
	}
	return left.Round(time.Second)
}

// Blocked returns the objects that a cause blocks, of those that were asked for.
func (r *Report) Blocked(c *Cause) iter.Seq[*Explanation] {
	return func(yield func(*Explanation) bool) {
		for i := range r.Objects {
			blocks := slices.ContainsFunc(r.Objects[i].Findings, func(f Finding) bool { return f.Cause == c })
			if blocks && !yield(&r.Objects[i]) {
				return
			}
		}
	}
}

// Verdict returns the worst verdict of the report.
func (r *Report) Verdict() Verdict {
	verdict := NotFound
	for _, o := range r.Objects {
		verdict = verdict.Worse(o.Verdict)
	}
	return verdict
}
