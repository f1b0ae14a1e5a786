// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// turns says whose turn it is, so that the writes of a run do not depend on how
// long requests and events take (docs/design.md, "Order"). It is used with the
// Collector's applying held.
type turns struct {
	// targets are to be deleted by the user's wish, before anything is decided;
	// answered are those whose delete was, and settled is how many of the first are
	// known to have got what they were to get.
	targets  []number
	answered map[number]bool
	settled  int
	// foreground are owners in foreground deletion that are to be looked at then.
	foreground []number
	// emptied is what others delete since the run began.
	emptied contents
	// rested: the others have had their time.
	rested bool
	// given: a task was given out since all that waits was last looked at again.
	given bool
	// again are objects that are to be decided about because they lost references to
	// owners that could not be.
	again memo
}

// open reports whether there are targets of which it is not known what they got.
func (t *turns) open() bool { return t.settled < len(t.targets) }

// answer notes that a target's delete was answered.
func (t *turns) answer(target number) {
	if t.answered == nil {
		t.answered = map[number]bool{}
	}
	t.answered[target] = true
}

// doomed reports whether others are about to delete the object.
func (t *turns) doomed(o *graph.Object) bool {
	return !t.rested && t.emptied.has(o.Resource, o.Namespace)
}

// next gives out a task whose turn it is. The caller must call done for it.
func (c *Collector) next() (task, bool) {
	c.applying.Lock()
	defer c.applying.Unlock()
	for {
		t, ok := c.queue.pop()
		if !ok {
			return task{}, false
		}
		until, early := c.early(t)
		if !early {
			if t.kind == attempt {
				c.turns.again.forget(t.object)
			}
			c.turns.given = true
			return t, true
		}
		if t.kind == attempt && until == t.object { // it lets a release go first, which may have waited for it
			c.queue.wakeUp(until)
		}
		c.queue.park(t, until)
	}
}

// putOff puts a task that was given out back on the queue if its turn has not
// come. The end of an owner is let through while something blocks it, whatever else
// it waits for; meanwhile that may have gone.
func (c *Collector) putOff(t task) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	_, early := c.early(t)
	if early {
		c.queue.push(t)
	}
	return early
}

// done takes a task back.
func (c *Collector) done(t task) {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.queue.done(t)
	if t.kind == deleteTarget {
		c.turns.answer(t.object)
	}
	c.settle(t.object)
}

// settle lets go on what waits for news of the object. The caller holds
// applying.
func (c *Collector) settle(n number) {
	c.queue.wakeUp(n)
	t := &c.turns
	if !t.open() {
		return
	}
	for t.settled < len(t.targets) && t.answered[t.targets[t.settled]] && !c.state.isUnseen(t.targets[t.settled]) {
		t.settled++
	}
	if t.open() {
		return
	}
	for _, n := range t.foreground {
		if c.isForeground(n) {
			c.enqueueForeground(n)
		}
	}
	c.queue.wakeUp(allTargets)
}

// rest lets go on what waits until others have had their time, and reports whether
// there was anything. The caller holds applying.
func (c *Collector) rest() bool {
	c.turns.rested = true
	return c.queue.wakeUp(theRest)
}

// reconsider lets go on all that waits, and reports whether there was anything. Two tasks may have come to wait
// for each other, because an object has got other owners since the first began to. The caller holds applying.
func (c *Collector) reconsider() bool {
	given := c.turns.given
	c.turns.given = false
	return given && c.queue.wakeAll()
}

// early reports whether the turn of a task that was just given out has not come,
// and what it waits for:
//
//   - Everything waits for the user's own deletes.
//   - A decision about an object waits for those about its owners, and theirs, as
//     far as they are not being deleted. In a circle of owners the first in the
//     order of identities goes first, and then one after the other.
//   - An object that loses a reference to an owner that orphans it, and is to be decided about
//     because other owners have gone, is decided about first, unless these have gone in a later
//     round. What is decided because it lost some waits for all.
//   - A finalizer is taken off when, besides, all dependents have been decided about,
//     and it is proved that there are no others.
//   - What others are about to delete they are given time for.
func (c *Collector) early(t task) (until number, early bool) {
	switch {
	case t.kind == deleteTarget:
		return nobody, false
	case c.turns.open():
		return allTargets, true
	case t.kind == release && !c.turns.again.has(t.object) && c.queue.has(task{kind: attempt, object: t.object}) && !c.releasedFirst(t.object, t.owner),
		t.kind == attempt && c.queue.isReleased(t.object) && (c.turns.again.has(t.object) || c.isReleasedFirst(t.object)):
		return t.object, true
	}
	until, early = c.state.waitsFor(t, &c.queue, c.turns.doomed)
	if !early && t.kind == finish && c.finishes(t.object) && !c.proofs.done(t.object, c.server.CatchUp) {
		return aProof, true
	}
	return until, early
}

// isReleasedFirst reports whether the object is to lose a reference before anything is decided
// about it.
func (c *Collector) isReleasedFirst(n number) bool {
	v, _ := c.state.view(n)
	for _, ref := range v.object.OwnerReferences {
		owner := c.state.of(ref.UID)
		if c.queue.has(task{kind: release, object: n, owner: owner}) && c.releasedFirst(n, owner) {
			return true
		}
	}
	return false
}

// releasedFirst reports whether an owner orphans the object before the object is decided about. What a collection
// begins with is decided about at once.
func (c *Collector) releasedFirst(n, owner number) bool {
	if node, known := c.state.node(n); c.everything && known && !node.AllSolid() {
		return false
	}
	return c.state.releasedFirst(n, owner)
}

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
