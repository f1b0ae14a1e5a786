// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Filtered returns the findings of the rules that are at least so severe; no
// rules means all. Of a circle whose references all block, OwnerCycle is left
// out when BlockingCycle is there.
func (r *Report) Filtered(rules []string, least Severity) *Report {
	applies := func(f *Finding) bool {
		return f.Severity >= least && (len(rules) == 0 || slices.Contains(rules, f.Rule))
	}
	blocking := map[types.UID][]graph.Identity{} // by first member
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Rule == BlockingCycle && applies(f) {
			blocking[f.Members[0].UID] = f.Members
		}
	}
	filtered := *r
	filtered.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
		return !applies(&f) || f.Rule == OwnerCycle && slices.Equal(blocking[f.Members[0].UID], f.Members)
	})
	return &filtered
}

// Confirmed returns what holds after two looks: the findings that both have, and
// those of the earlier look that the later one, whose graph is given, could not
// decide, because it did not read the object or the owner. Other findings of one
// look came or went between the two, as they do while owners and dependents are
// made and the garbage collector works. gone tells whether an object that is not
// in the graph is known not to exist any more. Neither report may be filtered.
func (r *Report) Confirmed(earlier *Report, g *graph.Graph, gone func(graph.Identity) bool) *Report {
	before, now := newEvidence(earlier), newEvidence(r)
	confirmed := *r
	confirmed.Unchecked = max(r.Unchecked, earlier.Unchecked)
	confirmed.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !before.has(&f) })
	unread := map[types.UID]bool{}
	for i := range earlier.Findings {
		f := &earlier.Findings[i]
		if now.has(f) || !f.open(g, gone) {
			continue
		}
		confirmed.Findings = append(confirmed.Findings, *f)
		if !observed(g, f.Object.UID) {
			unread[f.Object.UID] = true
		}
	}
	confirmed.Objects += len(unread)
	slices.SortStableFunc(confirmed.Findings, Finding.compare)
	return &confirmed
}

// Still returns the findings that a later look at the same objects and their owners has, too, by the same
// rule. It is false when one of them is another by then: what it is now only a look at everything tells.
func (r *Report) Still(later *Report) (still *Report, ok bool) {
	type ruled struct {
		reference
		by string
	}
	now, found := newEvidence(later), map[ruled]bool{}
	for i := range later.Findings {
		found[ruled{later.Findings[i].about(), later.Findings[i].Rule}] = true
	}
	confirmed := *r
	confirmed.Unchecked = max(r.Unchecked, later.Unchecked)
	confirmed.Findings = nil
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case !now.has(f):
		case f.Members == nil && !found[ruled{f.about(), f.Rule}]:
			return nil, false
		default:
			confirmed.Findings = append(confirmed.Findings, *f)
		}
	}
	return &confirmed, true
}

// About returns what a report is about: the objects, those of its circles, and the owners that a graph
// has elsewhere than a reference states, each once.
func (r *Report) About(g *graph.Graph) []graph.Identity {
	var ids []graph.Identity
	seen := map[types.UID]bool{}
	add := func(id graph.Identity) {
		if !seen[id.UID] {
			seen[id.UID] = true
			ids = append(ids, id)
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		add(f.Object)
		for _, m := range f.Members {
			add(m)
		}
		if n, known := g.Node(f.Reference.UID); known && !n.Virtual() {
			add(n.Identity())
		}
	}
	return ids
}

func observed(g *graph.Graph, uid types.UID) bool {
	n, known := g.Node(uid)
	return known && !n.Virtual()
}

// open reports whether the graph does not tell if the finding still holds.
func (f *Finding) open(g *graph.Graph, gone func(graph.Identity) bool) bool {
	owners, dependents := map[types.UID]bool{f.Reference.UID: true}, []graph.Identity{f.Object}
	for _, m := range f.Members {
		owners[m.UID], dependents = true, f.Members
	}
	return slices.ContainsFunc(dependents, func(id graph.Identity) bool {
		n, known := g.Node(id.UID)
		if !known || n.Virtual() {
			return !gone(id)
		}
		return !n.BeingDeleted() && slices.ContainsFunc(n.Owners(), func(ref graph.Reference) bool {
			return ref.Reason == graph.UnlistedOwner && owners[ref.UID]
		})
	})
}

// evidence tells which findings are about the same as those of a report.
type evidence struct {
	references map[reference]bool
	// circles are the numbers of the circles that an object is in.
	circles map[types.UID][]int
}

// reference is what findings are about that are no circles. What is wrong with
// it may be called by another name later, as when an owner is made again.
type reference struct {
	object, owner types.UID
	// rule is set for the rules about references that lead to their owners.
	rule string
}

func (f *Finding) about() reference {
	about := reference{object: f.Object.UID, owner: f.Reference.UID}
	if f.Rule == RepeatedUID || f.Rule == OwnsItself {
		about.rule = f.Rule
	}
	return about
}

func newEvidence(r *Report) *evidence {
	e := &evidence{map[reference]bool{}, map[types.UID][]int{}}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Members == nil {
			e.references[f.about()] = true
		}
		for _, m := range f.Members {
			e.circles[m.UID] = append(e.circles[m.UID], i)
		}
	}
	return e
}

// has reports whether the report has the finding. A circle is the same one when
// it has two members of it, since others may come and go.
func (e *evidence) has(f *Finding) bool {
	if f.Members == nil {
		return e.references[f.about()]
	}
	common := map[int]int{}
	for _, m := range f.Members {
		for _, circle := range e.circles[m.UID] {
			if common[circle]++; common[circle] == 2 {
				return true
			}
		}
	}
	return false
}
