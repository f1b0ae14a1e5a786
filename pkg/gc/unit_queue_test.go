// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// parseTask reads "attempt a", "finish a", "release a o", where o is the owner, and
// "delete a".
func parseTask(text string) task {
	f := append(strings.Fields(text), "\x00")
	kinds := map[string]taskKind{"delete": deleteTarget, "attempt": attempt, "finish": finish, "release": release}
	return task{kind: kinds[f[0]], object: number(f[1][0]), owner: number(f[2][0])}
}

// A queue, step by step: "push TASK", "done TASK", and "pop TASK" of what comes
// out, which may be nothing.
func TestQueue(t *testing.T) {
	for _, test := range []struct{ name, steps string }{
		{"nothing", "pop"},
		{"in order", "push attempt b, push attempt a, pop attempt b, pop attempt a, pop"},
		{"each once", "push attempt a, push attempt a, pop attempt a, done attempt a, pop"},
		{"again when it is out", "push attempt a, pop attempt a, push attempt a, push attempt a, done attempt a, pop attempt a, done attempt a, pop"},
		{"by kind and owner", "push attempt a, push finish a, push release a x, push release a y, push release a x," +
			"pop attempt a, done attempt a, pop finish a, done finish a, pop release a x, done release a x, pop release a y"},
		{"one of an object at a time", "push attempt a, push finish a, push attempt b, pop attempt a, pop attempt b, pop, done attempt a, pop finish a"},
		{"what waits for its object is there once", "push attempt a, push finish a, pop attempt a, pop, push finish a, done attempt a, pop finish a, done finish a, pop"},
		{"and comes behind what was pushed meanwhile", "push attempt a, push finish a, pop attempt a, pop, push attempt b, done attempt a, pop attempt b, pop finish a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var q queue
			for step := range strings.SplitSeq(test.steps, ",") {
				verb, text, _ := strings.Cut(strings.TrimSpace(step), " ")
				switch verb {
				case "push":
					q.push(parseTask(text))
				case "done":
					q.done(parseTask(text))
				case "pop":
					if got, ok := q.pop(); ok != (text != "") || ok && got != parseTask(text) {
						t.Fatalf("%s: got %v, %t", step, got, ok)
					}
				}
			}
		})
	}
}

func TestQueueKeepsTargets(t *testing.T) {
	var q queue
	target := &Target{}
	q.push(task{kind: deleteTarget, object: 1, target: target})
	if got, _ := q.pop(); got.target != target {
		t.Errorf("got %+v", got)
	}
}

// Nothing is lost, nothing comes twice, and no object is out twice at a time.
func TestQueueProperties(t *testing.T) {
	var all []task
	for _, uid := range []string{"a", "b", "c"} {
		for _, kind := range []string{"attempt ", "finish ", "release x "} {
			all = append(all, parseTask(kind+uid))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		waiting, out := map[task]bool{}, []task{}
		pop := func(t *rapid.T) bool {
			got, ok := q.pop()
			isOut := func(n number) bool { return slices.ContainsFunc(out, func(o task) bool { return o.object == n }) }
			if !ok {
				for task := range waiting {
					if !isOut(task.object) {
						t.Fatalf("nothing came, though %v waits and its object is free", task)
					}
				}
				return false
			}
			if !waiting[got] || isOut(got.object) {
				t.Fatalf("%v came; waiting %v, out %v", got, waiting, out)
			}
			delete(waiting, got)
			out = append(out, got)
			return true
		}
		done := func(i int) {
			q.done(out[i])
			out = slices.Delete(out, i, i+1)
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				task := rapid.SampledFrom(all).Draw(t, "task")
				q.push(task)
				waiting[task] = true
			},
			"pop": func(t *rapid.T) { pop(t) },
			"done": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("nothing is out")
				}
				done(rapid.IntRange(0, len(out)-1).Draw(t, "which"))
			},
		})
		for len(waiting)+len(out) > 0 {
			for pop(t) {
			}
			if len(out) > 0 {
				done(0)
			}
		}
		if !q.empty() {
			t.Fatalf("left %v", q.tasks)
		}
	})
}

// Eight workers share a queue and push while they work.
func TestQueueConcurrently(t *testing.T) {
	const objects, tasks = 10, 3000
	var q queue
	var busy [objects]atomic.Bool
	var pushed, popped sync.Map // of an owner, which is different for each task
	var open sync.WaitGroup
	push := func(n int) {
		pushed.Store(n, true)
		q.push(task{kind: release, object: number(n % objects), owner: number(n)})
	}
	open.Add(tasks)
	for n := range tasks / 2 {
		push(n)
	}
	next := atomic.Int64{}
	next.Store(tasks / 2)
	wake := q.wake()
	finished := make(chan struct{})
	for range 8 {
		go func() {
			for {
				got, ok := q.pop()
				if !ok {
					select {
					case <-finished:
						return
					case <-wake:
					default:
						runtime.Gosched()
					}
					continue
				}
				object := &busy[got.object]
				if !object.CompareAndSwap(false, true) {
					t.Errorf("two tasks of %d are out", got.object)
				}
				if _, twice := popped.LoadOrStore(got.owner, true); twice {
					t.Errorf("%d came twice", got.owner)
				}
				if n := next.Add(1) - 1; n < tasks {
					push(int(n))
				}
				if rand.IntN(4) == 0 {
					runtime.Gosched()
				}
				object.Store(false)
				q.done(got)
				open.Done()
			}
		}()
	}
	open.Wait()
	close(finished)
	pushed.Range(func(n, _ any) bool {
		if _, came := popped.Load(number(n.(int))); !came {
			t.Errorf("%d was lost", n)
		}
		return true
	})
}

// Whoever waits is woken by a push, by done and by notify, also if it happened
// before it waits.
func TestQueueWakes(t *testing.T) {
	var q queue
	q.push(parseTask("attempt a")) // nobody has asked to be woken
	wake := q.wake()
	out, _ := q.pop()
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"push", func() { q.push(parseTask("attempt b")) }, true},
		{"the same push", func() { q.push(parseTask("attempt b")) }, false},
		{"done", func() { q.done(out) }, true},
		{"notify, twice", func() { q.notify(); q.notify() }, true},
		{"nothing more", func() {}, false},
	} {
		step.do()
		select {
		case <-wake:
			if !step.want {
				t.Errorf("%s: woken", step.name)
			}
		default:
			if step.want {
				t.Errorf("%s: not woken", step.name)
			}
		}
	}
}

func TestOpenSet(t *testing.T) {
	var s openSet
	s.set(1, false)
	if !s.empty() {
		t.Error("the zero value is not empty")
	}
	s.set(1, true)
	s.set(1, true)
	s.set(2, true)
	s.set(1, false)
	if s.empty() {
		t.Error("2 is lost")
	}
	s.set(2, false)
	if !s.empty() {
		t.Error("not empty in the end")
	}
}

func TestMemo(t *testing.T) {
	var m memo
	if !m.first(1) || !m.first(2) || m.first(1) || m.first(2) {
		t.Error("first is not the first time")
	}
}
