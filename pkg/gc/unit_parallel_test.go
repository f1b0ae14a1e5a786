// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// fan returns an owner a and n dependents of it.
func fan(n int) string {
	world := "configmap/a\n"
	for i := range n {
		world += fmt.Sprintf("configmap/d%d < configmap/a!\n", i)
	}
	return world
}

// Eight workers have eight requests in flight, and never more; the observer is
// told of one write at a time, and of each.
func TestInFlight(t *testing.T) {
	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		objects := parseWorld(t, fan(40))
		f := newFake(t, objects, "")
		f.meet = 8
		var observing atomic.Bool
		observed := 0 // without a lock, which the race detector would miss
		observer := func(Step) {
			if !observing.CompareAndSwap(false, true) {
				t.Error("the observer is called twice at a time")
			}
			observed++
			runtime.Gosched()
			observing.Store(false)
		}
		r, err := perform(t, f, graphOf(objects), "delete a "+policy, Options{Workers: 8, Observer: observer})
		if err != nil || len(r.Remaining()) > 0 {
			t.Errorf("%s: error %v, remaining %v", policy, err, r.Remaining())
		}
		if f.mostInFlight != 8 {
			t.Errorf("%s: %d requests were in flight at once", policy, f.mostInFlight)
		}
		if observed != len(r.Steps) || observed < 41 {
			t.Errorf("%s: %d steps observed, %d reported", policy, observed, len(r.Steps))
		}
	}
}

// One worker is the default, and has one request in flight.
func TestOneWorker(t *testing.T) {
	for _, workers := range []int{-1, 0, 1} {
		objects := parseWorld(t, fan(5))
		f := newFake(t, objects, "")
		if _, err := perform(t, f, graphOf(objects), "delete a Foreground", Options{Workers: workers}); err != nil || f.mostInFlight != 1 {
			t.Errorf("%d workers: %d in flight, error %v", workers, f.mostInFlight, err)
		}
	}
}

// An owner is asked about once, however many dependents are looked at together.
func TestOneQuestion(t *testing.T) {
	for name, world := range map[string]string{
		"absent":  strings.ReplaceAll(strings.TrimPrefix(fan(20), "configmap/a\n"), "configmap/a!", "configmap/a"),
		"waiting": strings.Replace(fan(20), "configmap/a\n", "configmap/a deleting finalizers=foregroundDeletion\n", 1),
	} {
		objects := parseWorld(t, world)
		f := newFake(t, objects, "")
		if _, err := perform(t, f, graphOf(objects), "collect", Options{Workers: 8}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(slices.DeleteFunc(f.log, func(line string) bool { return line != "GET configmap/a" })); n != 1 || len(f.live) > 0 {
			t.Errorf("%s: asked %d times, left %s", name, n, f.left())
		}
	}
}

// tardy is a server whose events come only when the context has ended.
type tardy struct {
	*fake
	ended <-chan struct{}
}

// Events implements Server.
func (s *tardy) Events(ctx context.Context, wait bool) ([]Event, error) {
	select {
	case <-s.ended:
		return s.fake.Events(ctx, wait)
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The events of accepted deletes are awaited after the end.
func TestLastEvents(t *testing.T) {
	objects := parseWorld(t, "configmap/a")
	ctx, cancel := context.WithCancel(t.Context())
	server := &tardy{newFake(t, objects, ""), ctx.Done()}
	c := New(server, graphOf(objects), Options{Workers: 4, Observer: func(Step) { cancel() }})
	r, err := c.Delete(ctx, targetsOf(graphOf(objects), "a"), DeleteOptions{Policy: metav1.DeletePropagationBackground})
	if diff := cmp.Diff([]string{"configmap/a Deleted"}, outcomes(r)); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// An event may overtake the answer to the request that led to it.
func TestEventBeforeAnswer(t *testing.T) {
	objects := parseWorld(t, `configmap/a
		configmap/b < configmap/a!
		configmap/c < configmap/b!`)
	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		f := newFake(t, objects, `answer DELETE a: wait
			answer DELETE b: wait
			answer DELETE c: wait
			answer PATCH a: wait
			answer PATCH b: wait`)
		r, err := perform(t, f, graphOf(objects), "delete a "+policy, Options{Workers: 2})
		want := []string{"configmap/a Deleted", "configmap/b Deleted", "configmap/c Deleted"}
		if policy == "Orphan" {
			want = []string{"configmap/a Deleted", "configmap/b Orphaned", "configmap/c Untouched: its owner ConfigMap/b still exists"}
		}
		if diff := cmp.Diff(want, outcomes(r)); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", policy, err, diff)
		}
	}
}

// chatty has an event of an object whenever it is asked, so that its events
// never end.
type chatty struct {
	*fake
	object   graph.Object
	returned atomic.Bool
}

func (c *chatty) Events(ctx context.Context, wait bool) ([]Event, error) {
	if c.returned.Load() {
		c.t.Fatalf("asked for events after the run")
	}
	events, err := c.fake.Events(ctx, wait)
	if ctx.Err() != nil {
		return events, err
	}
	return append(events, Event{Object: c.object}), nil
}

// When a run is over, nobody works on its report any more.
func TestNothingGoesOn(t *testing.T) {
	objects := parseWorld(t, fan(10)+"configmap/e finalizers=foregroundDeletion deleting < configmap/a")
	for range 20 {
		c := &chatty{fake: newFake(t, objects, ""), object: objects[len(objects)-1]}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := New(c, graphOf(objects), Options{Workers: 4}).Delete(ctx, targetsOf(graphOf(objects), "a"), DeleteOptions{Policy: metav1.DeletePropagationBackground})
		c.returned.Store(true)
		cancel()
		if err != nil || len(r.Outcomes) != len(objects) {
			t.Fatalf("error %v, %d outcomes", err, len(r.Outcomes))
		}
	}
}

// tree is a world without cycles, some of whose objects are deleted.
type tree struct {
	world, do string
}

// GoString shows the tree as rapid fails.
func (w tree) GoString() string { return "\n" + w.world + w.do }

// trees draws worlds in which owners come before their dependents. Nothing in
// them remains that should go.
var trees = rapid.Custom(func(t *rapid.T) tree {
	var w tree
	var targets []string
	n := rapid.IntRange(1, 8).Draw(t, "objects")
	for i := range n {
		w.world += fmt.Sprintf("configmap/o%d", i)
		owners := ""
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			owner := rapid.IntRange(-1, i-1).Draw(t, "owner")
			if owners += " configmap/gone"; owner >= 0 {
				owners = strings.TrimSuffix(owners, "gone") + fmt.Sprintf("o%d", owner)
			}
			owners += rapid.SampledFrom([]string{"", "!", "~"}).Draw(t, "blocks")
		}
		if owners != "" {
			w.world += " <" + owners
		}
		w.world += "\n"
		if i == 0 || rapid.IntRange(0, 3).Draw(t, "target") == 0 {
			targets = append(targets, fmt.Sprintf("o%d", i))
		}
	}
	policy := rapid.SampledFrom([]string{"Background", "Foreground"}).Draw(t, "policy")
	w.do = "delete " + strings.Join(targets, " ") + " " + policy
	return w
})

// expected returns what a deletion in a tree must leave: what has an owner that
// stays, stays, without its references to anybody who does not.
func (w tree) expected(t fatal) []string {
	targets, objects := strings.Fields(w.do), parseWorld(t, w.world)
	gone, there := map[types.UID]bool{}, map[types.UID]bool{}
	var left []string
	for _, o := range objects {
		touched, kept := false, []metav1.OwnerReference{}
		for _, ref := range o.OwnerReferences {
			touched = touched || gone[ref.UID]
			if there[ref.UID] {
				kept = append(kept, ref)
			}
		}
		if slices.Contains(targets, o.Name) || touched && len(kept) == 0 {
			gone[o.UID] = true
			continue
		}
		there[o.UID] = true
		if touched {
			o.OwnerReferences = kept
		}
		line := short(&o)
		if len(o.OwnerReferences) > 0 {
			line += " < " + formatOwners(o.OwnerReferences)
		}
		left = append(left, line)
	}
	slices.Sort(left)
	return left
}

// However many work, the same is left, and the report says the same of it.
func TestDeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := trees.Draw(t, "tree")
		for _, workers := range []int{1, 8} {
			objects := parseWorld(t, w.world)
			f := newFake(t, objects, "")
			r := runTree(t, f, graphOf(objects), w, workers)
			if diff := cmp.Diff(w.expected(t), f.left()); diff != "" {
				t.Fatalf("%d workers: left (-want +got):\n%s\nasked %q", workers, diff, f.log)
			}
			if len(r.Remaining()) > 0 {
				t.Fatalf("%d workers: remaining %s", workers, outcomes(r))
			}
		}
	})
}

// runTree is perform without a *testing.T.
func runTree(t *rapid.T, f *fake, g *graph.Graph, w tree, workers int) *Report {
	fields := strings.Fields(w.do)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	r, err := New(f, g, Options{Workers: workers}).Delete(ctx, targetsOf(g, fields[1:len(fields)-1]...), DeleteOptions{Policy: metav1.DeletionPropagation(fields[len(fields)-1])})
	if err != nil {
		t.Fatalf("%d workers: %v", workers, err)
	}
	return r
}

// thickets are worlds in which owners may come in circles, and have finalizers.
var thickets = rapid.Custom(func(t *rapid.T) tree {
	w := trees.Draw(t, "tree")
	var world string
	count := strings.Count(w.world, "\n")
	for line := range strings.Lines(w.world) {
		object, owners, _ := strings.Cut(strings.TrimSpace(line), " <")
		switch rapid.IntRange(0, 5).Draw(t, "state") {
		case 0:
			object += " finalizers=x"
		case 1:
			object += " deleting finalizers=foregroundDeletion,x"
		case 2:
			object += " deleting finalizers=orphan"
		}
		for range rapid.IntRange(0, 1).Draw(t, "more owners") {
			owners += fmt.Sprintf(" configmap/o%d", rapid.IntRange(0, count-1).Draw(t, "owner")) +
				rapid.SampledFrom([]string{"", "!"}).Draw(t, "blocks")
		}
		if owners != "" {
			object += " <" + owners
		}
		world += object + "\n"
	}
	w.world = world
	return w
})

// With one worker the requests depend on the world alone.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := thickets.Draw(t, "world")
		var first []string
		for range 3 {
			objects := parseWorld(t, w.world)
			f := newFake(t, objects, "")
			r := runTree(t, f, graphOf(objects), w, 1)
			seen := slices.Concat(f.log, outcomes(r), f.left())
			if first == nil {
				first = seen
			} else if diff := cmp.Diff(first, seen); diff != "" {
				t.Fatalf("the second time (-first +second):\n%s", diff)
			}
		}
	})
}

// Whatever others do to an object or to its owners just before a request,
// nothing is deleted that a solid owner protects.
func TestNothingProtectedIsDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := thickets.Draw(t, "world")
		objects := parseWorld(t, w.world)
		draw := func(what string) string {
			return rapid.SampledFrom(objects).Draw(t, what).Name
		}
		var script string
		for range rapid.IntRange(0, 6).Draw(t, "meddling") {
			name := draw("request")
			request := rapid.SampledFrom([]string{"DELETE ", "PATCH ", "GET "}).Draw(t, "request")
			effect := rapid.SampledFrom([]string{"touch ", "own ", "recreate ", "remove "}).Draw(t, "effect")
			if request == "DELETE " && effect != "touch " {
				effect += name // an owner that others change is a race; the item is not
			} else {
				effect += draw("object")
			}
			if strings.HasPrefix(effect, "own ") {
				effect += " < configmap/" + draw("new owner")
			}
			script += request + name + ": " + effect + "\n"
		}
		f := newFake(t, objects, script)
		f.lenient = true
		f.deleting = func(o *graph.Object, live map[types.UID]*graph.Object) {
			if slices.Contains(strings.Fields(w.do), o.Name) {
				return
			}
			for _, ref := range o.OwnerReferences {
				owner := live[ref.UID]
				if owner != nil && !owner.DeletingDependents() && owner.UID == types.UID(owner.Name) {
					t.Fatalf("%s owns %s, and that is deleted; %s\nasked %q", owner.Name, o.Name, script, f.log)
				}
			}
		}
		runTree(t, f, graphOf(objects), w, 1)
	})
}

// A patient run lasts until its time is over while something is on its way out, whatever the
// server says; and not longer than that takes.
func TestPatience(t *testing.T) {
	for _, test := range []struct {
		script  string
		patient bool
		err     error
	}{
		{"rest: always later", false, nil},
		{"rest: always later", true, context.DeadlineExceeded},
		{"rest: later; free a", true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			objects := parseWorld(t, "configmap/a finalizers=example.com/x")
			f, g := newFake(t, objects, test.script), graphOf(objects)
			ctx, cancel := context.WithTimeout(t.Context(), 20*proofLasts)
			defer cancel()
			_, err := New(f, g, Options{Patient: test.patient}).Delete(ctx, targetsOf(g, "a"), DeleteOptions{Policy: metav1.DeletePropagationBackground})
			if !errors.Is(err, test.err) {
				t.Errorf("%s, patient: %t: %v", test.script, test.patient, err)
			}
		})
	}
}
