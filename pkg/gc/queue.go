// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

type taskKind int

const (
	// deleteTarget sends the delete that the user asked for.
	deleteTarget taskKind = iota
	// attempt decides about one object that is not being deleted.
	attempt
	// release removes one dependent's references to an owner that orphans it.
	release
	// finish takes the garbage collector's own finalizer off an object when what it
	// stands for is done.
	finish
)

// decides reports whether a task of the kind may lead to another decision about
// what depends on its object, which therefore waits (docs/design.md, "Order").
func (k taskKind) decides() bool { return k == deleteTarget || k == attempt || k == release }

// task is one thing to do.
type task struct {
	kind   taskKind
	uid    types.UID
	owner  types.UID // of release
	target *Target   // of deleteTarget
}

type taskKey struct {
	kind       taskKind
	uid, owner types.UID
}

func (t task) key() taskKey { return taskKey{t.kind, t.uid, t.owner} }

// queue holds tasks in order, each once, and never gives out two tasks of one
// object at a time. A task whose turn has not come is parked. Its zero value is
// empty. It may be used by several goroutines.
type queue struct {
	mu      sync.Mutex
	tasks   []task
	waiting map[taskKey]bool
	// busy holds the objects whose task was given out, with the tasks that came
	// up meanwhile.
	busy map[types.UID][]task
	// parked holds tasks by what they wait for.
	parked map[types.UID][]task
	// undecided counts the tasks of an object that decide, wherever they are.
	undecided map[types.UID]int
	// releases counts those among them that remove references to one owner.
	releases map[types.UID]int
	signal   chan struct{}
}

func (q *queue) push(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.expectLocked(0)
	}
	if q.waiting[t.key()] {
		return
	}
	q.waiting[t.key()] = true
	q.countLocked(t, 1)
	q.tasks = append(q.tasks, t)
	q.notifyLocked()
}

// expect makes room for a task about each of that many objects.
func (q *queue) expect(objects int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.expectLocked(objects)
	}
}

func (q *queue) expectLocked(objects int) {
	q.waiting, q.undecided, q.releases = make(map[taskKey]bool, objects), make(map[types.UID]int, objects), map[types.UID]int{}
	q.tasks = make([]task, 0, objects)
}

// countLocked counts a task that decides, in or out.
func (q *queue) countLocked(t task, by int) {
	if t.kind.decides() {
		add(q.undecided, t.uid, by)
	}
	if t.kind == release {
		add(q.releases, t.uid, by)
	}
}

func add(counts map[types.UID]int, uid types.UID, by int) {
	if counts[uid] += by; counts[uid] == 0 {
		delete(counts, uid)
	}
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

// done takes a task back, and puts what came up for its object, and what waits
// for it, on the queue.
func (q *queue) done(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countLocked(t, -1)
	q.release(t)
	q.wakeLocked(t.uid)
	q.notifyLocked()
}

// release makes an object available for other tasks.
func (q *queue) release(t task) {
	q.tasks = append(q.tasks, q.busy[t.uid]...)
	delete(q.busy, t.uid)
}

// park takes back a task that was given out and whose turn has not come. It
// comes up again when it is woken.
func (q *queue) park(t task, until types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.parked == nil {
		q.parked = map[types.UID][]task{}
	}
	q.release(t)
	if q.waiting[t.key()] { // it came up again meanwhile
		q.countLocked(t, -1)
		return
	}
	q.waiting[t.key()] = true
	q.parked[until] = append(q.parked[until], t)
}

// wakeUp puts the tasks that are parked for the object on the queue, and reports
// whether there were any.
func (q *queue) wakeUp(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	woken := q.wakeLocked(uid)
	if woken {
		q.notifyLocked()
	}
	return woken
}

func (q *queue) wakeLocked(uid types.UID) bool {
	parked, any := q.parked[uid]
	q.tasks = append(q.tasks, parked...)
	delete(q.parked, uid)
	return any
}

// isUndecided reports whether there is a task that decides about the object,
// also one that was given out.
func (q *queue) isUndecided(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.undecided[uid] > 0
}

// isReleased reports whether the object is to lose references to owners that
// orphan it.
func (q *queue) isReleased(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.releases[uid] > 0
}

// isOut reports whether a task of the object was given out.
func (q *queue) isOut(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, out := q.busy[uid]
	return out
}

// has reports whether the task is on the queue or parked.
func (q *queue) has(t task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[t.key()]
}

// left returns all tasks that were not given out, in the order in which they came up
// as far as that is known.
func (q *queue) left() []task {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := slices.Clone(q.tasks)
	for _, parked := range q.parked {
		left = append(left, parked...)
	}
	return left
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

// forget makes the next call of first for the UID one for the first time.
func (m *memo) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.done, uid)
}

// has reports whether first was called for the UID.
func (m *memo) has(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[uid]
}

// verified remembers of owners in foreground deletion since when the server's
// events have told of them. Its zero value remembers none. It may be used by
// several goroutines.
type verified struct {
	mu    sync.Mutex
	since map[types.UID]int
}

func (v *verified) set(uid types.UID, since int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.since == nil {
		v.since = map[types.UID]int{}
	}
	v.since[uid] = since
}

// is reports whether the owner was verified and the events have told of it ever
// since.
func (v *verified) is(uid types.UID, since int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return since != 0 && v.since[uid] == since
}

// locks has a lock for each UID. Its zero value is ready for use.
type locks struct {
	mu   sync.Mutex
	each map[types.UID]lock
}

// lock is a mutex. Unlike one of sync it may be held while a request is made in a
// bubble of testing/synctest, whose time stands still while a sync.Mutex is
// waited for.
type lock chan struct{}

func (l lock) lock()   { l <- struct{}{} }
func (l lock) unlock() { <-l }

// of returns the lock of the UID.
func (l *locks) of(uid types.UID) lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = map[types.UID]lock{}
	}
	if l.each[uid] == nil {
		l.each[uid] = make(lock, 1)
	}
	return l.each[uid]
}
