// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Options say what is looked at, and how commands are written.
type Options struct {
	// Select says which objects are checked; nil checks all. It may be
	// asked several times about an object.
	Select func(graph.Node) bool
	// Partial says that not the whole cluster was to be read: where an object
	// with some UID is that was not found is not known then.
	Partial bool
	// Kubectl and Plugin begin the commands of remedies. They are "kubectl" and
	// "kubectl gc", with the flags that lead to the same cluster.
	Kubectl, Plugin string
	// WithoutRemedies leaves them out, for output that shows none.
	WithoutRemedies bool
}

// Report is the answer.
type Report struct {
	// Findings are ordered by the identity of their objects, then by reference
	// and rule.
	Findings []Finding
	// Objects is the number of objects that were checked.
	Objects int
	// Unchecked is the number of their owner references that lead to an owner
	// which could not be looked for.
	Unchecked int
}

// Finding is something wrong with one owner reference of one object.
type Finding struct {
	Rule     string
	Severity Severity
	Object   graph.Identity
	// Reference is the owner reference, which is at Index of the object's
	// metadata.ownerReferences.
	Reference metav1.OwnerReference
	Index     int
	// Sentences say what is wrong, and what the garbage collector does about it.
	Sentences []string
	// Problem says in a few words what is wrong.
	Problem string
	// Outcome is what becomes of the object, and of the members of a circle.
	Outcome Outcome
	// Members are the objects of a circle, in their order; nil for other rules.
	Members []graph.Identity
	// Created is when the object was made, or the last of a circle's; zero when that
	// is not known.
	Created time.Time
	// Remedy is nil when there is none.
	Remedy *Remedy
}

// Remedy is a way to put a finding right.
type Remedy struct {
	// Effect says what the command does.
	Effect string
	// Command can be pasted into a shell. One that writes carries the UID of the
	// object and the reference that it is about, and does nothing when they are
	// not as they were seen.
	Command string
}

// Worst returns the severity of the worst finding, and whether there is one.
func (r *Report) Worst() (Severity, bool) {
	worst := Info
	for i := range r.Findings {
		worst = max(worst, r.Findings[i].Severity)
	}
	return worst, len(r.Findings) > 0
}

// Count returns the number of findings of the severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Message returns the sentences as one line.
func (f *Finding) Message() string { return strings.Join(f.Sentences, "; ") }

// Check looks for wrong owner references in the graph. Its cost beyond one look
// at each object's references follows what is wrong, not the number of objects.
// A circle whose references all block is there twice, as BlockingCycle and as
// OwnerCycle; Report.Filtered makes them one. The report does not hold on to the
// graph.
func Check(g *graph.Graph, o Options) *Report {
	c := &checker{Options: o, graph: g, report: &Report{}}
	c.report.Objects = c.count()
	for n := range g.Doubtful() {
		if c.selected(n) {
			c.object(n)
		}
	}
	c.cycles()
	c.adopt()
	slices.SortStableFunc(c.report.Findings, Finding.compare)
	return c.report
}

func (f Finding) compare(g Finding) int {
	return cmp.Or(
		f.Object.Compare(g.Object),
		cmp.Compare(f.Index, g.Index),
		cmp.Compare(f.Rule, g.Rule),
	)
}

// checker collects findings.
type checker struct {
	Options
	graph  *graph.Graph
	report *Report
	// namesakes are the findings of UIDMismatch whose remedy needs the UID of
	// the object that has the owner's name.
	namesakes []namesake
}

// count returns how many objects are selected.
func (c *checker) count() int {
	if c.Select == nil {
		return c.graph.Snapshot().Len()
	}
	count := 0
	for n := range c.graph.Nodes() {
		if c.selected(n) {
			count++
		}
	}
	return count
}

func (c *checker) selected(n graph.Node) bool {
	return !n.Virtual() && (c.Select == nil || c.Select(n))
}

// fate is what the garbage collector does with an object, by all of its owner
// references together (garbagecollector.go, attemptToDeleteItem).
type fate uint8

const (
	// left: nothing is dangling.
	left fate = iota
	// deleted: no owner keeps it.
	deleted
	// trimmed: an owner keeps it, and references are removed.
	trimmed
	// stripped: an owner keeps it, but that reference is removed with a
	// dangling one of the same UID, and no other is left.
	stripped
	// exposed: the same, but references are left that are Unknown.
	exposed
	// stalled: a reference makes the garbage collector give up before it does
	// anything.
	stalled
	// undecided: no owner keeps it, but one could not be read; or the garbage
	// collector may give up before it does anything, because of a name that no
	// object can have.
	undecided
	// terminating: it is being deleted, and the garbage collector does not look
	// at its references.
	terminating
)

// fateOf is what the garbage collector decides (gc.Decide), by what is known. It stops at the first
// reference that it cannot classify, and removes references by their UIDs.
func fateOf(n graph.Node, refs []graph.Reference) fate {
	switch {
	case n.BeingDeleted():
		return terminating
	case len(refs) == 0:
		return left
	}
	known, unread, invalid := gc.References{}, false, false
	for _, ref := range refs {
		switch {
		case ref.State == graph.Solid:
			known.Solid = append(known.Solid, ref.OwnerReference)
		case ref.State == graph.Dangling:
			known.Dangling = append(known.Dangling, ref.OwnerReference)
		case ref.State == graph.WaitingForDependentsDeletion:
			known.WaitingForDependentsDeletion = append(known.WaitingForDependentsDeletion, ref.OwnerReference)
		case ref.Reason == graph.UnlistedOwner, ref.Reason == graph.InvalidName:
			unread = true
			invalid = invalid || ref.Reason == graph.InvalidName
		default:
			return stalled
		}
	}
	if unread && len(known.Solid) == 0 || invalid && len(known.Dangling)+len(known.WaitingForDependentsDeletion) > 0 {
		return undecided
	}
	decision := gc.Decide(n.Object(), known, gc.Dependents{Any: n.HasDependents()})
	remains := func(state graph.State) bool {
		return slices.ContainsFunc(refs, func(ref graph.Reference) bool {
			return ref.State == state && !slices.Contains(decision.Owners, ref.UID)
		})
	}
	switch {
	case decision.Action == gc.ActionKeep:
		return left
	case decision.Action == gc.ActionDelete:
		return deleted
	case remains(graph.Solid):
		return trimmed
	case remains(graph.Unknown):
		return exposed
	}
	return stripped
}

// object looks at the references of one object.
func (c *checker) object(n graph.Node) {
	refs := n.Owners()
	s := &subject{snapshot: c.graph.Snapshot(), node: n, refs: refs, fate: fateOf(n, refs)}
	for k := range refs {
		s.ref = &refs[k]
		if s.ref.Reason == graph.UnlistedOwner {
			c.report.Unchecked++
			continue
		}
		c.reference(s)
	}
}

// subject is a reference of an object that is looked at.
type subject struct {
	snapshot *graph.Snapshot
	node     graph.Node
	refs     []graph.Reference
	fate     fate
	ref      *graph.Reference
}

// reference looks at one reference.
func (c *checker) reference(s *subject) {
	switch s.ref.Reason {
	case graph.Absent:
		c.dangling(s, OwnerAbsent)
	case graph.UIDMismatch:
		c.dangling(s, UIDMismatch)
	case graph.WrongNamespace:
		c.dangling(s, WrongNamespace)
	case graph.CoordinatesMismatch:
		c.dangling(s, CoordinatesMismatch)
	case graph.Unresolvable:
		c.never(s, UnresolvableKind)
	case graph.ClusterScopedDependent:
		c.never(s, ClusterScopedDependent)
	case graph.InvalidName:
		c.invalidName(s)
	case graph.NoReason:
		c.solid(s)
	}
}

// add adds a finding about the reference, and returns it for what only some rules tell.
func (c *checker) add(s *subject, rule string, severity Severity, sentences []string, remedy *Remedy) *Finding {
	if c.WithoutRemedies {
		remedy = nil
	}
	reference := s.ref.OwnerReference
	reference.Name = strings.Clone(reference.Name) // the name is part of a page of the list
	c.report.Findings = append(c.report.Findings, Finding{
		Rule: rule, Severity: severity, Object: detached(s.node.Identity()),
		Reference: reference, Index: s.ref.Index, Sentences: sentences, Remedy: remedy,
		Problem: s.problem(rule), Created: s.node.Object().CreationTimestamp.Time,
	})
	return &c.report.Findings[len(c.report.Findings)-1]
}

// detached returns the identity without a tie to the page of the list that the
// object was read with.
func detached(id graph.Identity) graph.Identity {
	id.Name = strings.Clone(id.Name)
	return id
}

// dangling reports a reference to an owner that the garbage collector treats as
// absent. It is why an object goes that is being deleted, or how its deletion goes.
func (c *checker) dangling(s *subject, rule string) {
	severity := Warning
	switch s.fate {
	case terminating:
		severity = Info
	case deleted, stripped:
		severity = Error
	}
	if rule == UIDMismatch && s.fate != terminating && !c.WithoutRemedies {
		c.namesakes = append(c.namesakes, newNamesake(s, len(c.report.Findings)))
	}
	f := c.add(s, rule, severity, append([]string{s.wrong(rule)}, s.consequence()...), c.remedyOfDangling(s, rule))
	f.Problem, f.Outcome = f.Problem+s.becomes(), s.outcomeOf()
}

// never reports a reference because of which the garbage collector never does
// anything with the object.
func (c *checker) never(s *subject, rule string) {
	if s.fate == terminating {
		return
	}
	outcome, sentences := Never, []string{s.wrong(rule), s.neverHandled(rule)}
	if rule == ClusterScopedDependent {
		if misplaced := s.misplaced(); misplaced != "" {
			outcome, sentences = Unsure, append(sentences, misplaced)
		}
	}
	if waiting := s.waitingOwners(); len(waiting) > 0 {
		sentences = append(sentences, waitedFor(waiting))
	}
	c.add(s, rule, Error, sentences, c.remedyOfNever(s)).Outcome = outcome
}

// invalidName reports a reference whose name is none. What the garbage collector's
// GET means with it depends on the name (graph.ValidName), and so does what becomes
// of the object.
func (c *checker) invalidName(s *subject) {
	if s.fate == terminating {
		return
	}
	sentences := []string{
		s.wrong(InvalidName), asksElse,
		triesForever,
	}
	c.add(s, InvalidName, Error, sentences, c.remedyOfNever(s))
}

// maxWaiting is the number of owners that a message names.
const maxWaiting = 5

// waitingOwners names the owners whose foreground deletion waits for the object.
func (s *subject) waitingOwners() []string {
	var names []string
	for k := range s.refs {
		ref := &s.refs[k]
		if !ref.Blocking() || ref.Owner.Virtual() || ref.Owner == s.node {
			continue
		}
		name := named(ref.Owner.Identity())
		switch {
		case slices.Contains(names, name):
		case len(names) == maxWaiting:
			return append(names, "others")
		default:
			names = append(names, name)
		}
	}
	return names
}

// solid reports what can be wrong with a reference that leads to its owner.
func (c *checker) solid(s *subject) {
	if s.fate == terminating {
		return
	}
	if s.ref.Owner == s.node {
		c.ownsItself(s)
	}
	if wrong := s.sameUID(graph.Dangling); wrong != nil {
		if s.fate == trimmed || s.fate == exposed || s.fate == stripped {
			f := c.add(s, RepeatedUID, Error, s.loses(), c.drop(s, wrong, dropsOther))
			f.Problem, f.Outcome = danglingTwin+s.becomes(), s.outcomeOf()
		}
		return
	}
	if other := s.sameUID(graph.Solid, graph.WaitingForDependentsDeletion); other != nil && other.Index < s.ref.Index {
		sentences := []string{statesSameUID, takenForOne}
		c.add(s, RepeatedUID, Info, sentences, nil).Problem = twin
	}
}

func (c *checker) ownsItself(s *subject) {
	severity, sentences := Warning, []string{keepsItself}
	if s.ref.Blocking() {
		severity = Error
		sentences = append(sentences, waitsForItself)
	}
	c.add(s, OwnsItself, severity, sentences, c.drop(s, s.ref, dropsItself)).Outcome = Never
}

// takesRight reports whether another reference with the UID leads to its owner.
func (s *subject) takesRight() bool {
	return slices.ContainsFunc(s.refs, func(other graph.Reference) bool {
		return other.UID == s.ref.UID && other.State == graph.Solid
	})
}

// sameUID returns the first other reference with the UID that is in one of the
// states, or nil.
func (s *subject) sameUID(states ...graph.State) *graph.Reference {
	for k := range s.refs {
		other := &s.refs[k]
		if other.Index != s.ref.Index && other.UID == s.ref.UID && slices.Contains(states, other.State) {
			return other
		}
	}
	return nil
}

// alone reports whether no other reference of the object states the UID.
func (s *subject) alone() bool {
	return !slices.ContainsFunc(s.refs, func(other graph.Reference) bool {
		return other.Index != s.ref.Index && other.UID == s.ref.UID
	})
}
