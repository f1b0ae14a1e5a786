// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

type taskKind int

const (
	// deleteTarget sends the delete that the user asked for.
	deleteTarget taskKind = iota
	// attempt decides about one object that is not being deleted.
	attempt
	// goAhead decides about one object that is to go before what it goes with.
	goAhead
	// release removes one dependent's references to an owner that orphans it.
	release
	// finish takes the garbage collector's own finalizer off an object when what it
	// stands for is done.
	finish
)

// decides reports whether a task of the kind may lead to another decision about
// what depends on its object, which therefore waits (docs/internals/preview.md).
func (k taskKind) decides() bool { return k != finish }

// task is one thing to do.
type task struct {
	kind   taskKind
	object number
	owner  number  // of release
	target *Target // of deleteTarget
}

// queue holds tasks in order, each once, and never gives out two tasks of one
// object at a time. A task whose turn has not come is parked. Its zero value is
// empty. It may be used by several goroutines.
type queue struct {
	mu      sync.Mutex
	tasks   []task
	objects graph.Table[number, queued]
	// releases are the waiting tasks of that kind, by object and owner.
	releases map[[2]number]bool
	// later holds the tasks that came up while another of their object was out.
	later map[number][]task
	// parked holds tasks by what they wait for.
	parked map[number][]task
	signal chan struct{}
}

// queued is what the queue has of one object.
type queued struct {
	// waiting has a bit for each kind of task that waits, but for releases.
	waiting uint8
	// out: a task was given out.
	out bool
	// undecided counts the tasks that decide, wherever they are, and released those
	// among them that remove references.
	undecided, released int32
}

// waits reports whether the task is on the queue or parked.
func (q *queue) waits(t *task) bool {
	if t.kind == release {
		return q.releases[[2]number{t.object, t.owner}]
	}
	return q.objects.Get(t.object).waiting&(1<<t.kind) != 0
}

// setWaits notes whether the task waits.
func (q *queue) setWaits(t *task, waits bool) {
	o := q.objects.At(t.object)
	switch key := [2]number{t.object, t.owner}; {
	case t.kind == release && q.releases == nil:
		q.releases = map[[2]number]bool{key: waits}
	case t.kind == release && waits:
		q.releases[key] = true
	case t.kind == release:
		delete(q.releases, key)
	case waits:
		o.waiting |= 1 << t.kind
	default:
		o.waiting &^= 1 << t.kind
	}
}

// count counts a task that decides, in or out.
func (o *queued) count(t *task, by int32) {
	if t.kind.decides() {
		o.undecided += by
	}
	if t.kind == release {
		o.released += by
	}
}

func (q *queue) push(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waits(&t) {
		return
	}
	q.setWaits(&t, true)
	q.objects.At(t.object).count(&t, 1)
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
	for len(q.tasks) > 0 {
		t := q.tasks[0]
		q.tasks = q.tasks[1:]
		o := q.objects.At(t.object)
		if o.out {
			put(&q.later, t.object, t)
			continue
		}
		q.setWaits(&t, false)
		o.out = true
		return t, true
	}
	return task{}, false
}

// put appends a task to those of a key.
func put(tasks *map[number][]task, key number, t task) {
	if *tasks == nil {
		*tasks = map[number][]task{}
	}
	(*tasks)[key] = append((*tasks)[key], t)
}

// done takes a task back, and puts what came up for its object, and what waits
// for it, on the queue.
func (q *queue) done(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.objects.At(t.object)
	o.count(&t, -1)
	q.release(o, t)
	q.wakeLocked(t.object)
	q.notifyLocked()
}

// release makes an object available for other tasks.
func (q *queue) release(o *queued, t task) {
	o.out = false
	q.tasks = append(q.tasks, q.later[t.object]...)
	delete(q.later, t.object)
}

// park takes back a task that was given out and whose turn has not come. It
// comes up again when it is woken.
func (q *queue) park(t task, until number) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.objects.At(t.object)
	q.release(o, t)
	if q.waits(&t) { // it came up again meanwhile
		o.count(&t, -1)
		return
	}
	q.setWaits(&t, true)
	put(&q.parked, until, t)
}

// wakeUp puts the tasks that are parked for the object on the queue, and reports
// whether there were any.
func (q *queue) wakeUp(until number) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	woken := q.wakeLocked(until)
	if woken {
		q.notifyLocked()
	}
	return woken
}

// wakeAll puts all tasks that are parked on the queue, and reports whether there were any.
func (q *queue) wakeAll() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	any := len(q.parked) > 0
	for _, until := range slices.Sorted(maps.Keys(q.parked)) {
		q.wakeLocked(until)
	}
	q.notifyLocked()
	return any
}

func (q *queue) wakeLocked(until number) bool {
	parked, any := q.parked[until]
	q.tasks = append(q.tasks, parked...)
	delete(q.parked, until)
	return any
}

// isUndecided reports whether there is a task that decides about the object,
// also one that was given out.
func (q *queue) isUndecided(n number) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.objects.Get(n).undecided > 0
}

// isReleased reports whether the object is to lose references to owners that
// orphan it.
func (q *queue) isReleased(n number) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.objects.Get(n).released > 0
}

// isOut reports whether a task of the object was given out.
func (q *queue) isOut(n number) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.objects.Get(n).out
}

// has reports whether the task is on the queue or parked.
func (q *queue) has(t task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waits(&t)
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

// openSet holds objects. Its zero value is empty. It may be used by several
// goroutines.
type openSet struct {
	mu    sync.Mutex
	in    graph.Table[number, bool]
	count int
}

// set puts the object in or takes it out.
func (s *openSet) set(n number, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.in.At(n)
	switch {
	case in && !*was:
		s.count++
	case !in && *was:
		s.count--
	}
	*was = in
}

func (s *openSet) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count == 0
}

// memo remembers for which objects something was done. Its zero value remembers
// none. It may be used by several goroutines.
type memo struct {
	mu   sync.Mutex
	done map[number]bool
}

// first reports whether it is called for the object for the first time.
func (m *memo) first(n number) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.done[n]
	if m.done == nil {
		m.done = map[number]bool{}
	}
	m.done[n] = true
	return !was
}

// forget makes the next call of first for the object one for the first time.
func (m *memo) forget(n number) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.done, n)
}

// has reports whether first was called for the object.
func (m *memo) has(n number) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[n]
}

// verified remembers when owners were seen to be in foreground deletion, by a GET. Its
// zero value remembers none. It may be used by several goroutines.
type verified struct {
	mu sync.Mutex
	at map[number]time.Time
}

func (v *verified) set(n number, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at == nil {
		v.at = map[number]time.Time{}
	}
	v.at[n] = at
}

// is reports whether the owner was seen so a moment ago.
func (v *verified) is(n number) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, is := v.at[n]
	return is && time.Since(at) < proofLasts
}

// locks has a lock for each object. Its zero value is ready for use.
type locks struct {
	mu   sync.Mutex
	each map[number]lock
}

// lock is a mutex. Unlike one of sync it may be held while a request is made in a
// bubble of testing/synctest, whose time stands still while a sync.Mutex is
// waited for.
type lock chan struct{}

func (l lock) lock()   { l <- struct{}{} }
func (l lock) unlock() { <-l }

// of returns the lock of the object.
func (l *locks) of(n number) lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = map[number]lock{}
	}
	if l.each[n] == nil {
		l.each[n] = make(lock, 1)
	}
	return l.each[n]
}

// firsts remembers when something was first asked about objects. Its zero value remembers nothing. It may be used by
// several goroutines.
type firsts struct {
	mu sync.Mutex
	at map[number]time.Time
}

// sinceFirst returns how long ago it was first called for the object.
func (f *firsts) sinceFirst(n number) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[number]time.Time{}
	}
	if _, known := f.at[n]; !known {
		f.at[n] = time.Now()
	}
	return time.Since(f.at[n])
}
