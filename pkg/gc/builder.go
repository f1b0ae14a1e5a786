// SPDX-License-Identifier: Apache-2.0

package gc

// graphBuilder takes changes into the state, and has what they give reason to look at queued. It
// owns the order of the two: a change and what it queues come together, with the scheduler's mu held.
type graphBuilder struct {
	state     *state
	scope     *scope
	reader    *reader
	scheduler *scheduler
	// letsGo are the owners that orphan their dependents in this run.
	letsGo memo
}

// apply takes a change of an object into the state, and queues what the change
// gives reason to look at (garbagecollector/graph_builder.go,
// processGraphChanges and processTransitions).
func (b *graphBuilder) apply(e Event) {
	n := b.state.of(e.Object.UID)
	if !b.state.recognize(n, &e) {
		return
	}
	b.scheduler.mu.Lock()
	defer b.scheduler.mu.Unlock()
	defer b.scheduler.settle(n)
	change := b.state.apply(n, e)
	if e.Lost {
		b.scheduler.open.set(n, false)
	}
	if change.late {
		return
	}
	mine := b.scope.inScope(n)
	if mine && (change.removed || e.Object.BeingDeleted()) {
		b.scheduler.open.set(n, !change.removed) // other changes may be older than a delete
	}
	if mine && (change.removed || change.found) {
		b.scheduler.enqueueDependents(n)
	}
	for _, owner := range change.released {
		if b.scope.inScope(owner.number) && b.state.isForeground(owner.number) {
			b.scheduler.enqueueForeground(owner.number)
		}
	}
	for _, owner := range change.unreferenced {
		if b.scope.inScope(owner.number) && b.state.isOrphaning(owner.number) {
			b.orphanWhenReleased(owner.number)
		}
	}
	for _, owner := range change.added {
		switch {
		case !b.scope.inScope(owner.number):
		case b.state.isForeground(owner.number):
			b.scheduler.enqueue(task{kind: attempt, object: n})
		case b.state.isOrphaning(owner.number) && b.letsGo.has(owner.number):
			b.scheduler.enqueue(task{kind: release, object: n, owner: owner.number})
		case b.state.removed(owner.number): // the event of its removal came by another watch
			b.scheduler.enqueue(task{kind: attempt, object: n})
		}
	}
	if !b.scope.inScope(n) {
		return
	}
	if change.startsDeletion {
		b.scheduler.emptied.Add(e.Object.Identity())
	}
	if b.reader.retries(change.ownersBefore, e.Object.Namespace) {
		b.scheduler.decideAgain(n)
	}
	if change.startsOrphaning {
		b.orphan(n)
	} else if change.startsForeground {
		b.scheduler.enqueueForeground(n)
	}
}

// orphan has the references to an object that orphans removed from its dependents,
// and then its end looked at (garbagecollector.go, orphanDependents). A dependent in
// foreground deletion is entered before anything is released, so that what depends
// on both is decided about while the other owner still keeps it.
func (b *graphBuilder) orphan(n number) {
	b.scope.include(n)
	if v, ok := b.state.view(n); ok && b.reader.blindSpot(&v.object) != "" {
		b.scheduler.enqueue(task{kind: finish, object: n})
		return
	}
	b.letsGo.first(n)
	dependents := b.state.dependents(n)
	for _, dependent := range dependents {
		if b.state.isForeground(dependent) {
			b.scheduler.enqueueForeground(dependent)
		}
	}
	for _, dependent := range dependents {
		b.scheduler.enqueue(task{kind: release, object: dependent, owner: n})
	}
	b.orphanWhenReleased(n)
}

// lookAtOrphaning is orphan for a task.
func (b *graphBuilder) lookAtOrphaning(n number) {
	b.scheduler.mu.Lock()
	defer b.scheduler.mu.Unlock()
	b.orphan(n)
}

// orphanWhenReleased goes on with an owner that orphans when no dependent is
// left that references it.
func (b *graphBuilder) orphanWhenReleased(owner number) {
	if o, ok := b.state.view(owner); ok && o.live == 0 {
		b.scheduler.enqueue(task{kind: finish, object: owner})
	}
}
