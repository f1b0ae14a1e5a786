// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Options say what is looked at, and how commands are written.
type Options struct {
	// Select says which objects are checked; nil checks all. It may be
	// asked several times about an object.
	Select func(graph.Node) bool
	// Rules are the identifiers of the rules to apply; none means all.
	Rules []string
	// Least is the least severity of a finding that is reported.
	Least Severity
	// Kubectl and Plugin begin the commands of remedies. They are "kubectl" and
	// "kubectl gc", with the flags that lead to the same cluster.
	Kubectl, Plugin string
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
	// Message says what is wrong, and what the garbage collector does about it.
	Message string
	// Members are the objects of a circle, in their order; nil for other rules.
	Members []graph.Identity
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

// Confirmed returns those findings that an earlier look had, too: about
// the same reference of the same object, by the UIDs of both. What is not among
// them came or went between the looks, as it does while owners and dependents
// are made and the garbage collector works.
func (r *Report) Confirmed(earlier *Report) *Report {
	type key struct{ object, owner types.UID }
	seen := map[key]bool{}
	for i := range earlier.Findings {
		f := &earlier.Findings[i]
		seen[key{f.Object.UID, f.Reference.UID}] = true
	}
	confirmed := *r
	confirmed.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
		return !seen[key{f.Object.UID, f.Reference.UID}]
	})
	return &confirmed
}

// Check looks for wrong owner references in the graph. Its cost beyond one look
// at each object's references follows what is wrong, not the number of objects.
func Check(g *graph.Graph, o Options) *Report {
	c := &checker{Options: o, graph: g, report: &Report{}}
	for n := range g.Nodes() {
		if c.selected(n) {
			c.report.Objects++
		}
	}
	for n := range g.Doubtful() {
		if c.selected(n) {
			c.object(n)
		}
	}
	c.cycles()
	c.adopt()
	c.report.Findings = slices.DeleteFunc(c.report.Findings, func(f Finding) bool {
		return f.Severity < o.Least || len(o.Rules) > 0 && !slices.Contains(o.Rules, f.Rule)
	})
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
	// stalled: a reference makes the garbage collector give up before it does
	// anything.
	stalled
	// undecided: an owner could not be read.
	undecided
	// terminating: it is being deleted, and the garbage collector does not look
	// at its references.
	terminating
)

// fateOf restates the garbage collector's decision. It stops at the first
// reference that it cannot classify, and removes references by their UIDs
// (patch.go, deleteOwnerRefStrategicMergePatch).
func fateOf(n graph.Node, refs []graph.Reference) fate {
	if n.BeingDeleted() {
		return terminating
	}
	solid, unread := false, false
	removed := map[types.UID]bool{}
	for _, ref := range refs {
		switch ref.State {
		case graph.Solid:
			solid = true
		case graph.Dangling, graph.WaitingForDependentsDeletion:
			removed[ref.UID] = true
		case graph.Unknown:
			if ref.Reason != graph.UnlistedOwner {
				return stalled
			}
			unread = true
		}
	}
	switch {
	case unread:
		return undecided
	case len(removed) == 0:
		return left
	case !solid:
		return deleted
	case !slices.ContainsFunc(refs, func(ref graph.Reference) bool { return !removed[ref.UID] }):
		return stripped
	}
	return trimmed
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
	case graph.NoReason:
		c.solid(s)
	}
}

// add adds a finding about the reference.
func (c *checker) add(s *subject, rule string, severity Severity, message string, remedy *Remedy) {
	c.report.Findings = append(c.report.Findings, Finding{
		Rule: rule, Severity: severity, Object: s.node.Identity(),
		Reference: s.ref.OwnerReference, Index: s.ref.Index, Message: message, Remedy: remedy,
	})
}

// dangling reports a reference to an owner that the garbage collector treats as
// absent. That an object's owner is gone while it is being deleted is how
// deletions go; that the owner never was where the reference says is not.
func (c *checker) dangling(s *subject, rule string) {
	severity := Warning
	switch s.fate {
	case terminating:
		if rule == OwnerAbsent || rule == UIDMismatch {
			return
		}
		severity = Info
	case deleted, stripped:
		severity = Error
	}
	if rule == UIDMismatch && s.fate != terminating {
		c.namesakes = append(c.namesakes, newNamesake(s, len(c.report.Findings)))
	}
	c.add(s, rule, severity, s.wrong(rule)+"; "+s.consequence(), c.remedyOfDangling(s, rule))
}

// never reports a reference because of which the garbage collector never does
// anything with the object.
func (c *checker) never(s *subject, rule string) {
	if s.fate == terminating {
		return
	}
	message := s.wrong(rule) + "; the garbage collector never deletes the object, nor removes any of its references"
	if rule == UnresolvableKind {
		message = s.wrong(rule) + "; the garbage collector tries again for ever, and neither deletes the object nor removes any of its references"
	}
	if s.ref.Blocking() && !s.ref.Owner.Virtual() {
		message += "; a foreground deletion of " + named(s.ref.Owner.Identity()) + " waits for it for ever"
	}
	c.add(s, rule, Error, message, c.remedyOfNever(s))
}

// solid reports what can be wrong with a reference that leads to its owner.
func (c *checker) solid(s *subject) {
	if s.fate == terminating {
		return
	}
	if s.ref.Owner == s.node {
		c.ownsItself(s)
	}
	other := s.sameUID()
	switch {
	case other == nil:
	case other.State == graph.Dangling && (s.fate == trimmed || s.fate == stripped):
		message := "another reference of the object states the same UID and is dangling; the garbage collector removes references by UID, and so this one, too"
		if s.fate == stripped {
			message += ": the object is left without an owner, and stays for ever"
		}
		c.add(s, RepeatedUID, Error, message, c.drop(s, other, "drops the reference that is wrong, and leaves this one"))
	case other.State != graph.Dangling && other.Index < s.ref.Index:
		c.add(s, RepeatedUID, Info, "another reference of the object states the same UID; the garbage collector takes them for one", nil)
	}
}

func (c *checker) ownsItself(s *subject) {
	severity, message := Warning, "the object is its own owner, which keeps it: the garbage collector never deletes it"
	if s.ref.Blocking() {
		severity = Error
		message += "; a foreground deletion of it waits for itself for ever"
	}
	c.add(s, OwnsItself, severity, message, c.drop(s, s.ref, "drops the reference to itself"))
}

// takesRight reports whether another reference with the UID leads to its owner.
func (s *subject) takesRight() bool {
	return slices.ContainsFunc(s.refs, func(other graph.Reference) bool {
		return other.UID == s.ref.UID && other.State == graph.Solid
	})
}

// sameUID returns another reference with the UID: a dangling one if there is
// any, otherwise the first.
func (s *subject) sameUID() *graph.Reference {
	var found *graph.Reference
	for k := range s.refs {
		other := &s.refs[k]
		if other.Index == s.ref.Index || other.UID != s.ref.UID {
			continue
		}
		if found == nil || other.State == graph.Dangling && found.State != graph.Dangling {
			found = other
		}
	}
	return found
}
