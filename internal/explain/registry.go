// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// registry owns the causes. Each is made once, by the rule that finds it first, and then changed by the methods of the registry
// alone.
type registry struct {
	causes  map[string]*Cause
	members map[*Cause]int // the objects of a cause that many share
	helped  map[*Cause]bool
	slots   map[string][]*Cause // those with a remedy of the slot
}

func newRegistry() registry {
	return registry{causes: map[string]*Cause{}, members: map[*Cause]int{}, helped: map[*Cause]bool{}, slots: map[string][]*Cause{}}
}

// cause returns the cause of the kind at the object; detail tells several at one
// object apart. It is filled in when it is first found.
func (b *registry) cause(k Kind, at graph.Identity, detail string, fill func(*Cause)) *Cause {
	return b.shared(string(at.UID)+" "+at.String()+" "+detail, k, at, fill)
}

// shared returns the cause of the kind with the key, which is at the object.
func (b *registry) shared(key string, k Kind, at graph.Identity, fill func(*Cause)) *Cause {
	key = k.ID + " " + key
	c, known := b.causes[key]
	if !known {
		c = &Cause{Kind: k, Object: at, Verdict: Unknown}
		b.causes[key] = c
		fill(c)
	}
	return c
}

// join adds an object to those that a cause blocks, and returns how many there are. The facts are about that object, and
// kept for the first few.
func (b *registry) join(c *Cause, facts ...Evidence) int {
	b.members[c]++
	if b.members[c] <= evidence.MaxShown {
		c.Evidence = append(c.Evidence, facts...)
	}
	return b.members[c]
}

// tell adds facts that a cause does not have yet.
func (b *registry) tell(c *Cause, facts []Evidence) {
	for _, fact := range facts {
		if !slices.ContainsFunc(c.Evidence, fact.Equal) {
			c.Evidence = append(c.Evidence, fact)
		}
	}
}

// show adds evidence of the first object that shows a shared cause.
func (b *registry) show(c *Cause, fact Evidence) {
	if !slices.ContainsFunc(c.Evidence, func(have Evidence) bool { return have.Path == fact.Path }) {
		c.Evidence = append(c.Evidence, fact)
	}
}

// offer adds a remedy. It takes the place of those in its slot, whatever their causes.
func (b *registry) offer(c *Cause, r Remedy) {
	is := func(have Remedy) bool { return r.slot != "" && have.slot == r.slot }
	for _, other := range b.slots[r.slot] {
		other.Remedies[slices.IndexFunc(other.Remedies, is)] = r
	}
	if slices.ContainsFunc(c.Remedies, is) {
		return
	}
	if c.Remedies = append(c.Remedies, r); r.slot != "" {
		b.slots[r.slot] = append(b.slots[r.slot], c)
	}
}

// offerOnce adds a remedy that a shared cause does not have yet. One for each of
// the first namespaces is enough.
func (b *registry) offerOnce(c *Cause, r Remedy) {
	if len(c.Remedies) < 2*evidence.MaxShown && !slices.ContainsFunc(c.Remedies, r.same) {
		c.Remedies = append(c.Remedies, r)
	}
}

// help reports whether it is called for the cause for the first time.
func (b *registry) help(c *Cause) bool {
	was := b.helped[c]
	b.helped[c] = true
	return !was
}

// finish completes a cause when all its objects are known.
func (b *registry) finish(c *Cause) {
	slices.SortStableFunc(c.Remedies, func(a, b Remedy) int { return a.Risk.Compare(b.Risk) })
	fromEnd(c.Remedies)
	for i := range c.Remedies {
		c.Evidence = append(c.Evidence, c.Remedies[i].facts...)
	}
	if more := b.members[c] - evidence.MaxShown; more > 0 {
		c.Evidence = append(c.Evidence, evidence.At(c.Object.Resource.Resource, "", fmt.Sprintf(andMore, more)))
	}
	seen := map[string]bool{}
	once := func(facts []Evidence) []Evidence {
		return slices.DeleteFunc(facts, func(e Evidence) bool {
			key := e.Key()
			again := seen[key]
			seen[key] = true
			return again
		})
	}
	c.Evidence = once(c.Evidence)
	if c.Controller != nil {
		c.Controller.Evidence = once(c.Controller.Evidence)
	}
}

// fromEnd has what removes entries of one list begin with the last entry, in the places that these have and at one risk:
// each names the index at which its entry was seen, and removing a later entry leaves that as it is.
func fromEnd(all []Remedy) {
	for i := range all {
		for j := range all[i+1:] {
			a, b := &all[i], &all[i+1+j]
			if a.Risk == b.Risk && a.Operation != nil && b.Operation != nil && b.Operation.Before(a.Operation) {
				*a, *b = *b, *a
			}
		}
	}
}

// compareCauses puts the gravest first, then those that block most, of these what a program can deal with. Whether the garbage collector
// works at all, and whether anything can be changed, comes before the rest, and the rejection of every change before what waits for a
// change.
func compareCauses(a, b *Cause) int {
	first := func(c *Cause) int {
		switch {
		case c.Kind == finding.GcAbsent, c.Kind == finding.NsForcedLeftovers:
			return 0
		case c.Class == finding.Refusal:
			return 1
		}
		return 2
	}
	byHand := func(c *Cause) int {
		if slices.ContainsFunc(c.Remedies, func(r Remedy) bool { return r.Operation != nil && !r.Partial && !r.Keeps && r.Risk != Dangerous }) {
			return 0
		}
		return 1
	}
	order := cmp.Or(b.Verdict.Gravity()-a.Verdict.Gravity(), first(a)-first(b), b.Blocks-a.Blocks, byHand(a)-byHand(b),
		cmp.Compare(a.ID, b.ID), a.Object.Compare(b.Object))
	if order == 0 && a != b {
		return cmp.Compare(a.Summary.String(), b.Summary.String())
	}
	return order
}
