// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// things is the definition of the instances in scenarios of vanishing.
var things = gctest.Path{Kind: "crd", Name: "things"}

// vanishing draws scenarios in which the definition of what otherwise are widgets
// is dropped before one of the actions, and made again after it or a later one. Then
// everything is looked at.
var vanishing = rapid.Custom(func(t *rapid.T) gctest.Scenario {
	s := scenarios.Draw(t, "scenario")
	s.Objects = append([]gctest.Object{{Path: things}}, s.Objects...)
	s.Actions = slices.DeleteFunc(s.Actions, func(a gctest.Action) bool { return a.In != "" })
	for i := range s.Objects {
		asThing(&s.Objects[i].Path)
		for k := range s.Objects[i].Owners {
			o := &s.Objects[i].Owners[k]
			if uid := o.UIDPath(); o.UID != "" && !o.OfNobody() {
				asThing(&uid)
				o.UID = uid.String()
			}
			if o.Of.Kind == "widget" && o.Kind == "" {
				o.APIVersion = ""
			}
			asThing(&o.Of)
		}
	}
	drop := rapid.IntRange(0, len(s.Actions)-1).Draw(t, "drop")
	again := rapid.IntRange(drop+1, len(s.Actions)).Draw(t, "create")
	for i := range s.Actions {
		for k := range s.Actions[i].Paths {
			asThing(&s.Actions[i].Paths[k])
		}
		if a := &s.Actions[i]; i >= drop && i < again && len(a.Paths) > 0 && a.Paths[0].Kind == "thing" {
			*a = gctest.Action{Verb: gctest.Collect} // who does not see it cannot name it
		}
	}
	s.Actions = slices.Insert(s.Actions, again,
		gctest.Action{Verb: gctest.UserCreate, Paths: []gctest.Path{things}}, gctest.Action{Verb: gctest.Collect})
	s.Actions = slices.Insert(s.Actions, drop, gctest.Action{Verb: gctest.UserDrop, Paths: []gctest.Path{things}})
	return s
})

// asThing makes a thing of a widget.
func asThing(p *gctest.Path) {
	if p.Kind == "widget" {
		p.Kind = "thing"
	}
}

// TestVanishing plays scenarios in which a definition goes without its instances,
// and comes back. What depends on them is kept meanwhile.
func TestVanishing(t *testing.T) {
	for _, workers := range []int{1, 4} {
		rapid.Check(t, func(t *rapid.T) {
			s := vanishing.Draw(t, "scenario")
			play, err := (&memory.World{Workers: workers}).Play(context.Background(), &s)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := follow(play, &s); wrong != "" {
				t.Fatal(wrong)
			}
		})
	}
}

var (
	vanishingCases  = flag.Int("vanishing", nightly.Of(4, 12), "number of generated cases in which a definition vanishes on an API server")
	vanishingBeside = flag.Bool("vanishing-gc", false, "play them with the garbage collector, too, which takes some minutes")
)

// rediscovery is how long the garbage collector may take to notice that a type has
// come or gone (cmd/kube-controller-manager/app/core.go, startGarbageCollectorController:
// every 30 seconds).
const rediscovery = 40 * time.Second

// TestVanishingLive plays scenarios of vanishing on an API server: with the engine,
// and with the garbage collector, which is there all the time.
func TestVanishingLive(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	a := newArena(t)
	var entries []*entry
	for i := range *vanishingCases {
		s := vanishing.Example(*firstSeed + i)
		s.Name = fmt.Sprintf("generated with -vanishing=1 -seed=%d", *firstSeed+i)
		entries = append(entries, &entry{scenario: &s})
	}
	a.each(t, entries, func(e *entry) {
		play, err := a.world.Play(t.Context(), e.scenario)
		if err == nil {
			e.wrong = follow(play, e.scenario)
		}
		e.failed(err)
	})
	if *vanishingBeside {
		a.vanishBeside(t, entries)
	}
	wrong := 0
	for _, e := range entries {
		if e.wrong != "" {
			wrong++
			t.Error(e.wrong)
		}
	}
	fmt.Printf("vanishing: %d cases on an API server, with the garbage collector: %t, %d disagreements; seed %d\n", len(entries), *vanishingBeside, wrong, *firstSeed)
}

// each does something for all cases that are right so far, some at once.
func (a *arena) each(t *testing.T, entries []*entry, do func(*entry)) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce / 2)
	for _, e := range entries {
		group.Go(func() error {
			if e.wrong == "" {
				do(e)
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails
}

// vanishBeside lets the garbage collector execute all cases together. A definition
// that is dropped before the first action is gone before it starts. When one is made
// again it is started anew: what it has failed to write to it tries again after up to
// a quarter of an hour.
func (a *arena) vanishBeside(t *testing.T, entries []*entry) {
	a.prepare(t, entries, func(e *entry, play gctest.Play) { e.live = newExecution("the garbage collector", play, true) })
	whole, first := map[*entry]*model{}, map[*entry]bool{}
	for _, e := range entries {
		whole[e], first[e] = e.live.model, e.scenario.Actions[0].Verb == gctest.UserDrop
	}
	step := func(e *entry, i int) gctest.Action {
		if first[e] {
			i++
		}
		if i < 0 || i >= len(e.scenario.Actions) {
			return gctest.Action{}
		}
		return e.scenario.Actions[i]
	}
	// do has those whose action it is drop or make their definition, and reports
	// whether there are any.
	do := func(i int, verb gctest.Verb) bool {
		var any atomic.Bool
		a.each(t, entries, func(e *entry) {
			if action := step(e, i); action.Verb == verb {
				any.Store(true)
				_, err := gctest.Do(t.Context(), e.live.play, e.scenario, action)
				e.failed(err)
				e.live.model = whole[e]
				if verb == gctest.UserDrop {
					e.live.model = whole[e].dropped()
				}
			}
		})
		return any.Load()
	}
	do(-1, gctest.UserDrop)
	a.start(t)
	for i, more := 0, true; more; i++ {
		if do(i, gctest.UserCreate) {
			a.stop(t)
			a.start(t)
			a.awaitEach(t, nil, nil)
		}
		if do(i, gctest.UserDrop) {
			time.Sleep(rediscovery)
		}
		more = false
		var judged []*entry
		allowed := map[*entry]outcome{}
		for _, e := range entries {
			more = more || step(e, i+1).Verb != ""
			if action := step(e, i); e.wrong == "" && (action.Verb == gctest.Collect || action.Verb == gctest.Delete) {
				ends, ok := e.live.model.afterBeside(e.live.worlds, action)
				if !ok {
					e.failed(errors.New("there are too many orders to look at"))
				}
				allowed[e] = ends
				judged = append(judged, e)
			}
		}
		a.each(t, judged, func(e *entry) {
			if action := step(e, i); action.Verb == gctest.Delete {
				err := e.live.play.Delete(t.Context(), action.Paths[0], metav1.DeleteOptions{PropagationPolicy: &action.Policy})
				if !apierrors.IsNotFound(err) {
					e.failed(err)
				}
			}
		})
		lefts := a.awaitEach(t, judged, allowed)
		for _, e := range judged {
			if e.wrong == "" {
				e.live.take(e, step(e, i), lefts[e], allowed[e])
			}
		}
	}
	a.stop(t)
}

// start starts the garbage collector.
func (a *arena) start(t *testing.T) {
	t.Helper()
	if err := a.cp.Start("controller-manager"); err != nil {
		t.Fatal(err)
	}
}

// stop stops it.
func (a *arena) stop(t *testing.T) {
	t.Helper()
	if err := a.cp.Stop("controller-manager"); err != nil {
		t.Fatal(err)
	}
}

// afterBeside is after for a garbage collector that knows the instances of a
// definition which has vanished, or that was started anew and does not. What it knows
// it cannot write to, so an owner that orphans them stays, or that they block.
func (m *model) afterBeside(from []world, a gctest.Action) (outcome, bool) {
	anew := *m
	anew.restarts = true
	all, ok := anew.after(from, a)
	if remembering, vanished := anew.remembering(); ok && vanished {
		ok = all.add(remembering.after(from, a))
	}
	return all, ok
}

// remembering returns the model of a garbage collector that knows what has vanished
// and cannot write to it, and whether there is such a thing that m does not know.
func (m *model) remembering() (*model, bool) {
	if m.vanished == 0 || m.limits.seen&m.vanished == m.vanished {
		return nil, false
	}
	remembering := *m
	remembering.limits = &limits{inside: m.limits.inside, seen: m.limits.seen | m.vanished}
	return &remembering, true
}

// awaitEach is await for cases with types of their own.
func (a *arena) awaitEach(t *testing.T, entries []*entry, allowed map[*entry]outcome) map[*entry]string {
	canary := a.newCanary(t)
	last := map[*entry]string{}
	for changed := time.Now(); ; time.Sleep(4 * look) {
		var mu sync.Mutex
		lefts, right := map[*entry]string{}, true
		a.each(t, entries, func(e *entry) {
			states, err := e.live.play.States(t.Context())
			e.failed(err)
			mu.Lock()
			defer mu.Unlock()
			lefts[e] = e.live.model.text(states)
			right = right && allowed[e][lefts[e]] != nil
		})
		if !maps.Equal(last, lefts) {
			last, changed = lefts, time.Now()
			continue
		}
		objects, err := a.world.Objects(t.Context(), a.kinds)
		if err != nil {
			t.Fatal(err)
		}
		_, begins := objects[canary]
		switch rested := time.Since(changed); {
		case !begins && right && rested > quiet, !begins && rested > stuck:
			return lefts
		case rested > 3*stuck:
			t.Fatal("the garbage collector does not collect")
		}
	}
}
