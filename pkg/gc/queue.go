// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

type taskKind int

const (
	// deleteTarget sends the delete that the user asked for.
	deleteTarget taskKind = iota
	// attempt decides about one object.
	attempt
	// orphan removes the references of an object's dependents to it, and then
	// its finalizer orphan.
	orphan
	// release removes one dependent's references to owner, for orphan.
	release
)

// task is one thing to do.
type task struct {
	kind    taskKind
	uid     types.UID
	owner   types.UID     // of release
	options DeleteOptions // of deleteTarget
}

type taskKey struct {
	kind       taskKind
	uid, owner types.UID
}

func (t task) key() taskKey { return taskKey{t.kind, t.uid, t.owner} }

// queue holds tasks in order, each once, and never gives out two tasks of one
// object at a time. Its zero value is empty. It may be used by several
// goroutines.
type queue struct {
	mu      sync.Mutex
	tasks   []task
	waiting map[taskKey]bool
	// busy holds the objects whose task was given out, with the tasks that came
	// up meanwhile.
	busy   map[types.UID][]task
	signal chan struct{}
}

func (q *queue) push(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[taskKey]bool{}
	}
	if q.waiting[t.key()] {
		return
	}
	q.waiting[t.key()] = true
	q.tasks = append(q.tasks, t)
	q.notifyLocked()
}

// notify makes the channel of wake receive.
func (q *queue) notify() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notifyLocked()
}

func (q *queue) notifyLocked() {
	select {
	case q.signal <- struct{}{}: // never while the channel is nil
	default:
	}
}

// pop gives out a task. The caller must call done for it.
func (q *queue) pop() (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy == nil {
		q.busy = map[types.UID][]task{}
	}
	for len(q.tasks) > 0 {
		t := q.tasks[0]
		q.tasks = q.tasks[1:]
		if later, busy := q.busy[t.uid]; busy {
			q.busy[t.uid] = append(later, t)
			continue
		}
		delete(q.waiting, t.key())
		q.busy[t.uid] = nil
		return t, true
	}
	return task{}, false
}

// done takes a task back, and puts what came up for its object on the queue.
func (q *queue) done(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, q.busy[t.uid]...)
	delete(q.busy, t.uid)
	q.notifyLocked()
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.tasks) == 0
}

// wake returns a channel that receives after something was pushed.
func (q *queue) wake() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.signal == nil {
		q.signal = make(chan struct{}, 1)
	}
	return q.signal
}

// openSet holds UIDs. Its zero value is empty. It may be used by several
// goroutines.
type openSet struct {
	mu   sync.Mutex
	uids map[types.UID]bool
}

// set puts the UID in or takes it out.
func (s *openSet) set(uid types.UID, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.uids, uid)
		return
	}
	if s.uids == nil {
		s.uids = map[types.UID]bool{}
	}
	s.uids[uid] = true
}

func (s *openSet) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uids) == 0
}

// memo remembers for which UIDs something was done. Its zero value remembers
// none. It may be used by several goroutines.
type memo struct {
	mu   sync.Mutex
	done map[types.UID]bool
}

// first reports whether it is called for the UID for the first time.
func (m *memo) first(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.done[uid]
	if m.done == nil {
		m.done = map[types.UID]bool{}
	}
	m.done[uid] = true
	return !was
}

// has reports whether first was called for the UID.
func (m *memo) has(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[uid]
}

// locks has a lock for each UID. Its zero value is ready for use.
type locks struct {
	mu   sync.Mutex
	each map[types.UID]*sync.Mutex
}

// of returns the lock of the UID.
func (l *locks) of(uid types.UID) *sync.Mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = map[types.UID]*sync.Mutex{}
	}
	if l.each[uid] == nil {
		l.each[uid] = &sync.Mutex{}
	}
	return l.each[uid]
}
