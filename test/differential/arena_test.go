// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

const (
	// look is the pause between two looks at the cluster.
	look = 250 * time.Millisecond
	// quiet is how long nothing happens when the garbage collector is at rest.
	quiet = 2 * time.Second
	// stuck is how long nothing happens when it will not get further. It retries
	// what fails at ten a second, whatever fails for good included.
	stuck = 20 * time.Second
	// atOnce is how many cases are prepared at once.
	atOnce = 16
)

// entry is a case and what became of it.
type entry struct {
	scenario  *gctest.Scenario
	simulated *execution
	engine    *execution
	live      *execution
	writes    int
	// wrong says what went wrong; empty when nothing did.
	wrong string
	// several: there is an action with several right ends. remembered: the engine
	// ended as only one that starts afresh can.
	several, remembered bool
}

// execution is one of the three ways in which a case is executed.
type execution struct {
	what  string
	play  gctest.Play
	model *model
	// worlds are those in which the execution may be.
	worlds []world
	// left is what was left after each action.
	left []string
}

// different reports whether the executions ended differently, each in a way
// that is right. Blocking flags of custom resources do not count, see
// model.original.
func (e *entry) different() bool {
	if e.wrong != "" {
		return false
	}
	return !slices.Equal(e.simulated.left, e.engine.left) || !slices.EqualFunc(e.engine.left, e.live.left, func(a, b string) bool {
		return strings.ReplaceAll(a, "~", "") == strings.ReplaceAll(b, "~", "")
	})
}

// newExecution begins an execution.
func newExecution(what string, play gctest.Play, original bool) *execution {
	m := newModel(play.Stage().Scenario, original)
	return &execution{what: what, play: play, model: m, worlds: []world{m.begin()}}
}

// arena is where cases are executed.
type arena struct {
	cp    *controlplane.ControlPlane
	world *live.World
	kinds []gctest.Kind
}

// newArena starts a control plane on which the garbage collector does not run
// yet.
func newArena(t *testing.T) *arena {
	a := &arena{cp: controlplane.Start(t, controlplane.Options{Controllers: "gc"})}
	if err := a.cp.Stop("controller-manager"); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.world, err = live.Connect(t.Context(), a.cp.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	a.world.Workers = 8
	a.kinds = gctest.KindsOf(slices.Compact(slices.Sorted(slices.Values(drawKinds)))...)
	return a
}

// run executes cases in the three ways. The garbage collector must see its
// cases only when they are whole: an object with an owner that is not there yet
// would be deleted. So it starts when all are, does what the engine does in a
// pass of collection, and then gets the users' deletes. The engine is done
// before: it works on the whole cluster, too.
func (a *arena) run(t *testing.T, cases []*gctest.Scenario) []*entry {
	entries := make([]*entry, len(cases))
	for i, s := range cases {
		entries[i] = &entry{scenario: s}
		entries[i].simulate(t.Context())
	}
	a.prepare(t, entries, func(e *entry, play gctest.Play) { e.engine = newExecution("the engine", play, false) })
	a.runEngine(t, entries)
	a.prepare(t, entries, func(e *entry, play gctest.Play) { e.live = newExecution("the garbage collector", play, true) })
	if err := a.cp.Start("controller-manager"); err != nil {
		t.Fatal(err)
	}
	a.runLive(t, entries)
	if err := a.cp.Stop("controller-manager"); err != nil {
		t.Fatal(err)
	}
	return entries
}

// simulate is the prediction.
func (e *entry) simulate(ctx context.Context) {
	play, err := (&memory.World{Workers: 1}).Play(ctx, e.scenario)
	if err == nil {
		e.simulated = newExecution("the simulation", play, false)
		err = gctest.Prepare(ctx, play, e.scenario)
	}
	for _, action := range e.scenario.Actions {
		if err == nil {
			_, err = gctest.Do(ctx, play, e.scenario, action)
		}
		if err == nil {
			var states map[gctest.Path]gctest.State
			states, err = play.States(ctx)
			e.engineDid(e.simulated, action, states)
		}
	}
	e.failed(err)
}

func (e *entry) failed(err error) {
	if err != nil && e.wrong == "" {
		e.wrong = fmt.Sprintf("%v\n%s", err, e.scenario)
	}
}

// prepare creates the objects of all cases.
func (a *arena) prepare(t *testing.T, entries []*entry, began func(*entry, gctest.Play)) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, e := range entries {
		group.Go(func() error {
			play, err := a.world.Play(t.Context(), e.scenario)
			if err != nil {
				return err
			}
			began(e, play)
			if err := gctest.Prepare(t.Context(), play, e.scenario); err != nil {
				return fmt.Errorf("%w\n%s", err, e.scenario)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// engineDid holds what the engine left to the model.
func (e *entry) engineDid(x *execution, action gctest.Action, states map[gctest.Path]gctest.State) {
	ends, ok := x.model.after(x.worlds, action)
	all, alsoOK := x.model.engineAfter(x.worlds, action)
	if !ok || !alsoOK {
		e.failed(fmt.Errorf("there are too many orders to look at"))
		return
	}
	left := x.model.text(states)
	e.several = e.several || len(all) > 1
	e.remembered = e.remembered || ends[left] == nil && all[left] != nil
	x.take(e, action, left, all)
}

// take takes what was left into the execution, when that is right.
func (x *execution) take(e *entry, action gctest.Action, left string, ends outcome) {
	if ends[left] == nil && e.wrong == "" {
		before := x.model.text(x.model.end(x.worlds[0]))
		e.wrong = x.what + ":\n" + describe(e.scenario, action, before, left, ends)
	}
	x.left = append(x.left, left)
	x.worlds = ends[left]
}

// phases returns the number of actions of the longest case. The first is a pass
// of collection in each.
func phases(entries []*entry) int {
	n := 0
	for _, e := range entries {
		n = max(n, len(e.scenario.Actions))
	}
	return n
}

// at returns the entries that are all right so far and have an action in the
// phase.
func at(entries []*entry, phase int) []*entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.wrong != "" || phase >= len(e.scenario.Actions) })
}

// runEngine executes all cases together: a pass of collection over the whole
// cluster, and then for each policy a deletion of all targets.
func (a *arena) runEngine(t *testing.T, entries []*entry) {
	for phase := range phases(entries) {
		if phase == 0 {
			a.collect(t, entries, func(c *gc.Collector) (*gc.Report, error) { return c.Collect(t.Context(), "") })
		} else {
			a.deleteAll(t, entries, phase)
		}
		objects, err := a.world.Objects(t.Context(), a.kinds)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range at(entries, phase) {
			e.engineDid(e.engine, e.scenario.Actions[phase], e.engine.play.(*live.Play).StatesIn(objects))
		}
	}
}

// collect runs a Collector and counts what it writes for each case.
func (a *arena) collect(t *testing.T, entries []*entry, run func(*gc.Collector) (*gc.Report, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, server, err := a.world.Collector(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	report, err := run(gc.New(server, g, gc.Options{Workers: a.world.Workers}))
	if err != nil {
		t.Error(err)
		return
	}
	of := map[types.UID]*entry{}
	for _, e := range entries {
		for _, uid := range e.engine.play.Stage().UIDs {
			of[uid] = e
		}
	}
	for _, step := range report.Steps {
		if e := of[step.Object.UID]; e != nil {
			e.writes++
			e.failed(step.Err)
		}
	}
}

// deleteAll deletes the targets of a phase, all of one policy by one Collector.
func (a *arena) deleteAll(t *testing.T, entries []*entry, phase int) {
	for _, policy := range policies {
		var mine []*entry
		var targets []gc.Target
		for _, e := range at(entries, phase) {
			if action := e.scenario.Actions[phase]; action.Policy == policy {
				mine = append(mine, e)
				targets = append(targets, gc.Target{Identity: e.engine.play.Stage().Identity(action.Paths[0])})
			}
		}
		if len(targets) > 0 {
			a.collect(t, mine, func(c *gc.Collector) (*gc.Report, error) {
				return c.Delete(t.Context(), targets, gc.DeleteOptions{Policy: policy})
			})
		}
	}
}

// runLive lets the garbage collector execute all cases together.
func (a *arena) runLive(t *testing.T, entries []*entry) {
	for phase := range phases(entries) {
		present := at(entries, phase)
		allowed := map[*entry]outcome{}
		for _, e := range present {
			ends, ok := e.live.model.after(e.live.worlds, e.scenario.Actions[phase])
			if !ok {
				e.failed(fmt.Errorf("there are too many orders to look at"))
			}
			allowed[e] = ends
			e.several = e.several || len(ends) > 1
		}
		if phase > 0 {
			a.userDeletes(t, present, phase)
		}
		lefts := a.await(t, present, allowed)
		for _, e := range present {
			e.live.take(e, e.scenario.Actions[phase], lefts[e], allowed[e])
		}
	}
}

// userDeletes sends the deletes of a phase.
func (a *arena) userDeletes(t *testing.T, entries []*entry, phase int) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, e := range entries {
		group.Go(func() error {
			action := e.scenario.Actions[phase]
			err := e.live.play.Delete(t.Context(), action.Paths[0], metav1.DeleteOptions{PropagationPolicy: &action.Policy})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// await waits until the garbage collector is at rest, and returns what is left.
// It has certainly begun when it has deleted an object that was made for that.
func (a *arena) await(t *testing.T, entries []*entry, allowed map[*entry]outcome) map[*entry]string {
	canary := a.newCanary(t)
	var objects map[types.UID]graph.Object
	for changed := time.Now(); ; time.Sleep(look) {
		now, err := a.world.Objects(t.Context(), a.kinds)
		if err != nil {
			t.Fatal(err)
		}
		if !sameVersions(objects, now) {
			objects, changed = now, time.Now()
			continue
		}
		lefts, right := map[*entry]string{}, true
		for _, e := range entries {
			lefts[e] = e.live.model.text(e.live.play.(*live.Play).StatesIn(objects))
			right = right && allowed[e][lefts[e]] != nil
		}
		_, begins := objects[canary]
		rested := time.Since(changed)
		switch {
		case !begins && right && rested > quiet, !begins && rested > stuck:
			return lefts
		case rested > 3*stuck:
			t.Fatal("the garbage collector does not collect")
		}
	}
}

func sameVersions(a, b map[types.UID]graph.Object) bool {
	if a == nil || len(a) != len(b) {
		return false
	}
	for uid, o := range a {
		if other, ok := b[uid]; !ok || other.ResourceVersion != o.ResourceVersion {
			return false
		}
	}
	return true
}

// newCanary creates an object that the garbage collector deletes.
func (a *arena) newCanary(t *testing.T) types.UID {
	t.Helper()
	canaries, err := gctest.Parse("== canary\nobjects\n  configmap/canary < configmap/ghost{uid=nobody}\ncollect\nexpect\n  configmap/canary gone\n")
	if err != nil {
		t.Fatal(err)
	}
	play, err := a.world.Play(t.Context(), &canaries[0])
	if err == nil {
		err = gctest.Prepare(t.Context(), play, &canaries[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return play.Stage().UIDs[canaries[0].Objects[0].Path]
}
