// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/delay"
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
	// plans counts those that a run was compared with.
	plans int
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
	return !slices.Equal(e.simulated.left, e.engine.left) || !slices.EqualFunc(e.engine.left[e.limited():], e.live.left, func(a, b string) bool {
		return strings.ReplaceAll(a, "~", "") == strings.ReplaceAll(b, "~", "")
	})
}

// limited returns how many collections that are limited to a namespace the case
// begins with. The garbage collector knows no such thing.
func (e *entry) limited() int {
	all := e.scenario.Actions
	if i := slices.IndexFunc(all, func(a gctest.Action) bool { return a.In == "" }); i >= 0 {
		return i
	}
	return len(all)
}

// action returns the action of a phase.
func (e *entry) action(phase int) gctest.Action { return e.scenario.Actions[e.limited()+phase] }

// phases returns the number of actions that are not limited. The first is a pass of
// collection.
func (e *entry) phases() int { return len(e.scenario.Actions) - e.limited() }

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
	// runs counts those of the engine, each of which has delays of its own.
	runs atomic.Uint64
}

// longestDelay is that of requests and events of the engine.
const longestDelay = 20 * time.Millisecond

// newArena starts a control plane on which the garbage collector does not run
// yet. Requests go through the wrappers.
func newArena(t *testing.T, wrappers ...transport.WrapperFunc) *arena {
	a := &arena{cp: controlplane.Start(t, controlplane.Options{Controllers: "gc"})}
	a.stop(t)
	var err error
	if a.world, err = live.Connect(t.Context(), a.cp.Kubeconfig, wrappers...); err != nil {
		t.Fatal(err)
	}
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
	a.start(t)
	a.runLive(t, entries)
	a.stop(t)
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
	if ends, ok := x.model.atOnce(e.scenario, len(x.left)); ok && ends[left] == nil {
		e.failed(fmt.Errorf("%s: by namespace it ends otherwise than at once:\n%s", x.what, left))
	}
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

// phases returns the number of phases of the longest case.
func phases(entries []*entry) int {
	n := 0
	for _, e := range entries {
		n = max(n, e.phases())
	}
	return n
}

// at returns the entries that are all right so far and have an action in the
// phase.
func at(entries []*entry, phase int) []*entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.wrong != "" || phase >= e.phases() })
}

// runEngine executes all cases together: a pass of collection over the whole
// cluster, and then for each policy a deletion of all targets. What is limited to a
// namespace is first, and each case's own.
func (a *arena) runEngine(t *testing.T, entries []*entry) {
	a.collectByNamespace(t, entries)
	for phase := range phases(entries) {
		if phase == 0 {
			a.collect(t, at(entries, 0), phase, func(c *gc.Collector) (*gc.Report, error) { return c.Collect(t.Context(), "") })
		} else {
			a.deleteAll(t, entries, phase)
		}
		objects, err := a.world.Objects(t.Context(), a.kinds)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range at(entries, phase) {
			e.engineDid(e.engine, e.action(phase), e.engine.play.(*live.Play).StatesIn(objects))
		}
	}
}

// collectByNamespace has the engine do what is limited to a namespace.
func (a *arena) collectByNamespace(t *testing.T, entries []*entry) {
	var group errgroup.Group
	group.SetLimit(atOnce / 2)
	for _, e := range entries {
		group.Go(func() error {
			for _, action := range e.scenario.Actions[:e.limited()] {
				if e.wrong == "" {
					e.failed(a.collectIn(t.Context(), e, action))
				}
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails
}

// collectIn plans and executes a collection for one case.
func (a *arena) collectIn(ctx context.Context, e *entry, action gctest.Action) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	play := e.engine.play
	before, err := play.States(ctx)
	if err != nil {
		return err
	}
	g, server, err := gctest.CollectorFor(ctx, play, action)
	if err != nil {
		return err
	}
	plan, run, err := a.execute(ctx, g, server, func(c *gc.Collector) (*gc.Report, error) {
		return gctest.Act(ctx, c, play.Stage(), action)
	})
	if err != nil {
		return err
	}
	after, err := play.States(ctx)
	if err != nil {
		return err
	}
	e.writes += len(run.Steps)
	e.ran(action, plan, run, before, after)
	if wrong := trespasses(play.Stage(), run, action); wrong != "" {
		return errors.New(wrong)
	}
	e.engineDid(e.engine, action, after)
	return nil
}

// execute makes a plan and runs it, with some number of workers and delays.
func (a *arena) execute(ctx context.Context, g *graph.Graph, server gc.Server, do func(*gc.Collector) (*gc.Report, error)) (plan, run *gc.Report, err error) {
	if plan, err = do(gc.New(a.world.Plan(ctx, g), g, gc.Options{})); err != nil {
		return nil, nil, fmt.Errorf("planning: %w", err)
	}
	delayed, workers := delay.Of(server, a.runs.Add(1), longestDelay)
	run, err = do(gc.New(delayed, g, gc.Options{Workers: workers}))
	return plan, run, err
}

// ran compares a plan with its run and with what then is.
func (e *entry) ran(action gctest.Action, plan, run *gc.Report, before, after states) {
	e.plans++
	for _, step := range run.Steps {
		e.failed(step.Err)
	}
	if wrong := refute(e.engine.play.Stage(), plan, run, before, after); wrong != "" {
		e.failed(fmt.Errorf("%s: %s", action, wrong))
	}
}

// collect makes one plan for all cases, and runs it.
func (a *arena) collect(t *testing.T, entries []*entry, phase int, do func(*gc.Collector) (*gc.Report, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, server, err := a.world.Collector(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	plan, run, err := a.execute(ctx, g, server, do)
	if err != nil {
		t.Error(err)
		return
	}
	after, err := a.world.Objects(ctx, a.kinds)
	if err != nil {
		t.Error(err)
		return
	}
	before := map[types.UID]graph.Object{}
	for o := range g.Snapshot().Objects() {
		before[o.UID] = o
	}
	plans, runs := divide(entries, plan), divide(entries, run)
	for _, e := range entries {
		play := e.engine.play.(*live.Play)
		e.writes += len(runs[e].Steps)
		e.ran(e.action(phase), plans[e], runs[e], play.StatesIn(before), play.StatesIn(after))
	}
}

// divide returns what a report says of each case.
func divide(entries []*entry, report *gc.Report) map[*entry]*gc.Report {
	of, parts := map[types.UID]*gc.Report{}, map[*entry]*gc.Report{}
	for _, e := range entries {
		parts[e] = &gc.Report{}
		for _, uid := range e.engine.play.Stage().UIDs {
			of[uid] = parts[e]
		}
	}
	for _, step := range report.Steps {
		if part := of[step.Object.UID]; part != nil {
			part.Steps = append(part.Steps, step)
		}
	}
	for _, o := range report.Outcomes {
		if part := of[o.Object.UID]; part != nil {
			part.Outcomes = append(part.Outcomes, o)
		}
	}
	return parts
}

// deleteAll deletes the targets of a phase, all of one policy by one Collector.
func (a *arena) deleteAll(t *testing.T, entries []*entry, phase int) {
	for _, policy := range policies {
		var mine []*entry
		var targets []gc.Target
		for _, e := range at(entries, phase) {
			if action := e.action(phase); action.Policy == policy {
				mine = append(mine, e)
				targets = append(targets, gc.Target{Identity: e.engine.play.Stage().Identity(action.Paths[0])})
			}
		}
		if len(targets) > 0 {
			a.collect(t, mine, phase, func(c *gc.Collector) (*gc.Report, error) {
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
			ends, ok := e.live.model.after(e.live.worlds, e.action(phase))
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
			e.live.take(e, e.action(phase), lefts[e], allowed[e])
		}
	}
}

// userDeletes sends the deletes of a phase.
func (a *arena) userDeletes(t *testing.T, entries []*entry, phase int) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, e := range entries {
		group.Go(func() error {
			action := e.action(phase)
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
