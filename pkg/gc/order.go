// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// waitsFor is what early says of owners and dependents.
func (s *state) waitsFor(t task, q *queue, doomed func(*graph.Object) bool) (number, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(t.object)
	switch {
	case it == nil || it.gone || t.kind == finish && it.blocking > 0:
		return nobody, false
	case doomed(&it.object):
		return theRest, true
	}
	for _, owner := range s.liveOwners(it) {
		switch {
		case doomed(&owner.object):
			return theRest, true
		case !owner.unseen() && !q.isUndecided(owner.number):
		case t.kind == finish || !s.owns(it, owner), owner.unseen(), q.isOut(owner.number),
			owner.object.Identity().Compare(it.object.Identity()) < 0:
			return owner.number, true
		}
	}
	if t.kind != finish {
		return nobody, false
	}
	return s.undecidedDependent(it, q)
}

// undecidedDependent returns what the end of an owner waits for: itself, when
// something is decided about it, or a dependent. Those that were decided about
// once are not looked at again.
func (s *state) undecidedDependent(it *item, q *queue) (number, bool) {
	if q.isUndecided(it.number) {
		return it.number, true
	}
	for ; it.decided < len(it.dependents); it.decided++ {
		d := it.dependents[it.decided]
		if dependent := s.items.Get(d); q.isUndecided(d) || dependent != nil && dependent.unseen() {
			return d, true
		}
	}
	return nobody, false
}

// ownersAbove returns the owners of an object that are not being deleted, and theirs.
func (s *state) ownersAbove(n number) []number {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		return nil
	}
	var above []number
	for _, owner := range s.liveOwners(it) {
		above = append(above, owner.number)
	}
	return above
}

// liveOwners returns the owners of an object that are not being deleted, and
// theirs, each once, the nearest first.
func (s *state) liveOwners(it *item) []*item {
	owners := s.addLiveOwners(nil, nil, it)
	if len(owners) == 0 { // mostly
		return nil
	}
	seen := map[number]bool{it.number: true}
	for _, owner := range owners {
		seen[owner.number] = true
	}
	for i := 0; i < len(owners); i++ {
		owners = s.addLiveOwners(owners, seen, owners[i])
	}
	return owners
}

// addLiveOwners adds the owners of one object that were not seen yet.
func (s *state) addLiveOwners(owners []*item, seen map[number]bool, it *item) []*item {
	for _, o := range s.distinctOwners(it.object.OwnerReferences) {
		if seen[o.number] || o.number == it.number {
			continue
		}
		if owner := s.item(o.number); owner != nil && !owner.gone && (!owner.beingDeleted || owner.unseen()) {
			owners = append(owners, owner)
			if seen != nil {
				seen[o.number] = true
			}
		}
	}
	return owners
}

// owns reports whether an object is an owner of the other, or of one of its
// owners.
func (s *state) owns(it, dependent *item) bool {
	return slices.Contains(s.liveOwners(dependent), it)
}

// setRound notes that an object is being deleted because its owners go.
func (s *state) setRound(n number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		return
	}
	it.round = 1
	for _, owner := range s.distinctOwners(it.object.OwnerReferences) {
		if o := s.items.Get(owner.number); o != nil && (o.gone || o.deletingDependents) {
			it.round = max(it.round, o.round+1)
		}
	}
}

// releasedFirst reports whether an owner orphans the object in an earlier round than that in which the first
// of its other owners has gone. Then the garbage collector has long removed the reference when it decides
// about the object.
func (s *state) releasedFirst(n, owner number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, orphans := s.item(n), s.item(owner)
	if it == nil || orphans == nil {
		return false
	}
	first := -1
	for _, other := range s.distinctOwners(it.object.OwnerReferences) {
		if o := s.item(other.number); o != nil && (o.gone || o.object.DeletingDependents()) && (first < 0 || o.round < first) {
			first = o.round
		}
	}
	return orphans.round < first
}
