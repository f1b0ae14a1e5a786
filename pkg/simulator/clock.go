// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// work is what an actor does.
type work int

const (
	kubeletEndsPod work = iota
	podGCDeletesPod
	controllerFinalizes
	namespaceSyncs
	specIsFinalized
	instancesAreDeleted
)

// task is a piece of work that an actor does at a time. Whether there is still
// anything to do is found out then.
type task struct {
	at   time.Time
	seq  int // the order of tasks at the same time
	work work
	uid  types.UID // the object, or the namespace
}

// agenda is what the actors will do, earliest first.
type agenda struct {
	tasks []task
	seq   int
	// waiting holds what is on the agenda, with the time, so that nothing is
	// planned twice.
	waiting map[task]bool
}

// Len implements heap.Interface.
func (a *agenda) Len() int { return len(a.tasks) }

// Less implements heap.Interface.
func (a *agenda) Less(i, j int) bool {
	if c := a.tasks[i].at.Compare(a.tasks[j].at); c != 0 {
		return c < 0
	}
	return a.tasks[i].seq < a.tasks[j].seq
}

// Swap implements heap.Interface.
func (a *agenda) Swap(i, j int) { a.tasks[i], a.tasks[j] = a.tasks[j], a.tasks[i] }

// Push implements heap.Interface.
func (a *agenda) Push(t any) { a.tasks = append(a.tasks, t.(task)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(a.tasks) - 1
	t := a.tasks[last]
	a.tasks = a.tasks[:last]
	return t
}

// clock is the simulated time, with what is to be done when. It moves only when nothing else is left to do, to
// the next task on the agenda.
type clock struct {
	now    time.Time
	agenda agenda
}

// after puts work on the agenda for when some time has passed.
func (c *clock) after(w work, uid types.UID, delay time.Duration) { c.plan(w, uid, c.now.Add(delay)) }

// plan puts work on the agenda unless it is there.
func (c *clock) plan(w work, uid types.UID, at time.Time) {
	t := task{at: at.UTC(), work: w, uid: uid}
	if c.agenda.waiting[t] {
		return
	}
	if c.agenda.waiting == nil {
		c.agenda.waiting = map[task]bool{}
	}
	c.agenda.waiting[t] = true
	c.agenda.seq++
	t.seq = c.agenda.seq
	heap.Push(&c.agenda, t)
}

// advance moves the clock to the next task and has all performed that is due then. It
// returns false when there is none.
func (c *clock) advance(perform func(task)) bool {
	if c.agenda.Len() == 0 {
		return false
	}
	if next := c.agenda.tasks[0].at; next.After(c.now) {
		c.now = next
	}
	for last := c.agenda.seq; c.agenda.Len() > 0; {
		next := c.agenda.tasks[0]
		if next.at.After(c.now) || next.seq > last {
			break
		}
		heap.Pop(&c.agenda)
		delete(c.agenda.waiting, task{at: next.at, work: next.work, uid: next.uid})
		perform(next)
	}
	return true
}
