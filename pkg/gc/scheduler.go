// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// scheduler says whose turn it is, so that the writes of a run do not depend on how
// long requests and events take (docs/internals/preview.md), and when a run is over. It owns the
// queue, and all that a task may wait for. Each task that next gives out is given back with done.
type scheduler struct {
	server Server // for CatchUp alone
	state  *state
	scope  *scope
	reader *reader

	// mu is held while a change is taken into the state and onto the queue, and by all that decides
	// about whose turn it is.
	mu    sync.Mutex
	queue queue
	// open are the objects that are on their way out.
	open openSet
	// proofs says which owners may be finished.
	proofs proofs
	// entered are owners in foreground deletion whose dependents were queued.
	entered memo
	// targets are to be deleted by the user's wish, before anything is decided;
	// answered are those whose delete was, and settled is how many of the first are
	// known to have got what they were to get.
	targets  []number
	answered map[number]bool
	settled  int
	// foreground are owners in foreground deletion that are to be looked at then.
	foreground []number
	// emptied is what others delete since the run began.
	emptied graph.Containers
	// rested: the others have had their time.
	rested bool
	// given: a task was given out since all that waits was last looked at again.
	given bool
	// again are objects that are to be decided about because they lost references to
	// owners that could not be.
	again memo
}

// begin queues what a deletion begins with. The delete of an object that is to go ahead, and is being deleted
// already, is not repeated, as that could change how it goes: its end is waited for.
func (s *scheduler) begin(w *Wave, policy metav1.DeletionPropagation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.Targets {
		t := &w.Targets[i]
		if t.UID == "" {
			continue
		}
		n := s.state.of(t.UID)
		if v, ok := s.state.view(n); !ok || v.gone {
			s.enqueueDependents(n)
			continue
		}
		s.queue.push(task{kind: deleteTarget, object: n, target: t})
		s.targets = append(s.targets, n)
	}
	for _, id := range w.Ahead {
		n := s.state.of(id.UID)
		if v, ok := s.state.view(n); ok && !v.gone {
			if v.object.BeingDeleted() {
				s.open.set(n, true)
			}
			s.enqueue(task{kind: goAhead, object: n})
		}
	}
	if policy != metav1.DeletePropagationOrphan {
		s.awaitEnding(s.scope.members()) // what an owner that orphans leaves alone is not waited for
	}
}

// awaitEnding has a run last until what somebody else deleted before has ended, of some objects,
// if it was given time for that: it goes as what the run deletes does, and nothing need be written
// to it.
func (s *scheduler) awaitEnding(objects []number) {
	for _, n := range objects {
		if v, ok := s.state.view(n); ok && !v.gone && v.object.InGrace() {
			s.open.set(n, true)
		}
	}
}

// enqueue puts a task on the queue, and makes its object the Collector's
// business. What is outside the namespace that is collected is not.
func (s *scheduler) enqueue(t task) {
	if t.kind.decides() && s.scope.namespace != "" {
		if v, ok := s.state.view(t.object); !ok || !s.scope.within(v.object.Namespace) {
			return
		}
	}
	s.scope.include(t.object)
	if t.kind == finish && !s.queue.has(t) {
		s.proofs.renew(t.object)
	}
	s.queue.push(t)
}

// enqueueDependents has everything looked at that references the owner.
func (s *scheduler) enqueueDependents(owner number) {
	for _, d := range s.state.dependents(owner) {
		if s.state.isForeground(d) {
			s.enqueueForeground(d)
		} else {
			s.enqueue(task{kind: attempt, object: d})
		}
	}
}

// enqueueForeground has an object in foreground deletion looked at, and when that
// is for the first time its dependents before: at once, so that nothing comes
// between that waits for what becomes of them. If it orphans by now, they lose
// their references to it whatever is decided about them, and that it was in
// foreground deletion is no reason to decide.
func (s *scheduler) enqueueForeground(n number) {
	if s.awaitsTargets() { // the user may have another policy for it
		s.foreground = append(s.foreground, n)
		return
	}
	if !s.state.isOrphaning(n) && s.entered.first(n) {
		s.enqueueDependents(n)
	}
	s.enqueue(task{kind: finish, object: n})
}

// lookAtForeground is enqueueForeground for a task.
func (s *scheduler) lookAtForeground(n number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueueForeground(n)
}

// decideAgain has an object decided about when all that orphan it have let go of
// it.
func (s *scheduler) decideAgain(n number) {
	again := task{kind: attempt, object: n}
	if !s.queue.has(again) {
		s.again.first(n)
	}
	s.enqueue(again)
}

// awaitsTargets reports whether there are targets of which it is not known what they got.
func (s *scheduler) awaitsTargets() bool { return s.settled < len(s.targets) }

// answer notes that a target's delete was answered.
func (s *scheduler) answer(target number) {
	if s.answered == nil {
		s.answered = map[number]bool{}
	}
	s.answered[target] = true
}

// doomed reports whether others are about to delete the object.
func (s *scheduler) doomed(o *graph.Object) bool {
	return !s.rested && s.emptied.Has(o.Resource, o.Namespace)
}

// next gives out a task whose turn it is. The caller must call done for it.
func (s *scheduler) next() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		t, ok := s.queue.pop()
		if !ok {
			return task{}, false
		}
		until, early := s.early(t)
		if !early {
			if t.kind == attempt {
				s.again.forget(t.object)
			}
			s.given = true
			return t, true
		}
		if t.kind == attempt && until == t.object { // it lets a release go first, which may have waited for it
			s.queue.wakeUp(until)
		}
		s.queue.park(t, until)
	}
}

// putOff puts a task that was given out back on the queue if its turn has not
// come. The end of an owner is let through while something blocks it, whatever else
// it waits for; meanwhile that may have gone.
func (s *scheduler) putOff(t task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, early := s.early(t)
	if early {
		s.queue.push(t)
	}
	return early
}

// done takes a task back.
func (s *scheduler) done(t task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.done(t)
	if t.kind == deleteTarget {
		s.answer(t.object)
	}
	s.settle(t.object)
}

// settle lets go on what waits for news of the object. The caller holds mu.
func (s *scheduler) settle(n number) {
	s.queue.wakeUp(n)
	if !s.awaitsTargets() {
		return
	}
	for s.awaitsTargets() && s.answered[s.targets[s.settled]] && !s.state.isUnseen(s.targets[s.settled]) {
		s.settled++
	}
	if s.awaitsTargets() {
		return
	}
	for _, n := range s.foreground {
		if s.state.isForeground(n) {
			s.enqueueForeground(n)
		}
	}
	s.queue.wakeUp(allTargets)
}

// rest lets go on what waits until others have had their time, and reports whether
// there was anything. The caller holds mu.
func (s *scheduler) rest() bool {
	s.rested = true
	return s.queue.wakeUp(theRest)
}

// reconsider lets go on all that waits, and reports whether there was anything. Two tasks may have come to wait
// for each other, because an object has got other owners since the first began to. The caller holds mu.
func (s *scheduler) reconsider() bool {
	given := s.given
	s.given = false
	return given && s.queue.wakeAll()
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
func (s *scheduler) early(t task) (until number, early bool) {
	switch {
	case t.kind == deleteTarget:
		return nobody, false
	case s.awaitsTargets():
		return allTargets, true
	case t.kind == release && !s.again.has(t.object) && s.queue.has(task{kind: attempt, object: t.object}) &&
		!s.releasedFirst(t.object, t.owner),
		t.kind == attempt && s.queue.isReleased(t.object) && (s.again.has(t.object) || s.isReleasedFirst(t.object)):
		return t.object, true
	}
	until, early = s.state.waitsFor(t, &s.queue, s.doomed)
	if !early && t.kind == finish && s.finishes(t.object) && !s.proofs.done(t.object, s.server.CatchUp) {
		return aProof, true
	}
	return until, early
}

// isReleasedFirst reports whether the object is to lose a reference before anything is decided
// about it.
func (s *scheduler) isReleasedFirst(n number) bool {
	v, _ := s.state.view(n)
	for _, ref := range v.object.OwnerReferences {
		owner := s.state.of(ref.UID)
		if s.queue.has(task{kind: release, object: n, owner: owner}) && s.releasedFirst(n, owner) {
			return true
		}
	}
	return false
}

// releasedFirst reports whether an owner orphans the object before the object is decided about. What a collection
// begins with is decided about at once.
func (s *scheduler) releasedFirst(n, owner number) bool {
	if node, known := s.state.node(n); s.scope.everything && known && !node.AllSolid() {
		return false
	}
	return s.state.releasedFirst(n, owner)
}

// finishes reports whether the end of an owner, as it is now, is a write.
func (s *scheduler) finishes(n number) bool {
	v, ok := s.state.view(n)
	switch {
	case !ok || v.gone || s.reader.blindSpot(&v.object) != "":
		return false
	case v.object.OrphaningDependents():
		return v.live == 0
	}
	return v.blocking == 0 && v.object.DeletingDependents()
}

// prove asks once more for the proof that the events have told of everything.
func (s *scheduler) prove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proofs.renew(aProof)
	s.proofs.done(aProof, s.server.CatchUp)
}

// caughtUp takes the end of a round.
func (s *scheduler) caughtUp(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proofs.end(e.CaughtUp, e.Err)
	s.queue.wakeUp(aProof)
}

// nothingOpen reports whether there is nothing to do and nothing to wait for. A
// change that is just being applied counts with what it queues.
func (s *scheduler) nothingOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open.empty() && s.idle()
}

// idle reports whether there is nothing to do. The caller holds mu: the end of a proof and
// what waits for it come together.
func (s *scheduler) idle() bool { return s.queue.empty() && !s.proofs.running() }

// ends reports whether the run is over: there is nothing to do, nothing to wait for unless the
// server is at rest, and nothing that waits until others have had their time, or for what does not hold
// any more, which goes on now. No task may be out.
func (s *scheduler) ends(atRest bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle() && (atRest || s.open.empty()) && !s.rest() && !s.reconsider()
}
