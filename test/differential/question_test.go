// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/differential/delay"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var questionCases = flag.Int("question", nightly.Of(24, 400), "number of generated cases in which something changes on an API server between the lists and the run")

const (
	// latest is how late what watches tell may come, and patient how long a run waits for more.
	latest, patient = 2 * time.Second, 3 * time.Second
	// runsAtOnce is how many runs are under way at once. They mostly wait.
	runsAtOnce = 32
)

// TestQuestion is TestMeanwhile on an API server, where watches are late by up to two seconds, and beside the garbage
// collector, which gets the same deletion after the same change. Then the engine collects what the run did not hear of in
// time, and what is left of each object is what the garbage collector may leave of it.
func TestQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	start, total, seed := time.Now(), questions{by: map[string]int{}}, *firstSeed
	for total.cases < *questionCases {
		var batch []*question
		for ; len(batch) < min(batchSize, *questionCases-total.cases); seed++ {
			if q := newQuestion(t, seed); q != nil {
				batch = append(batch, q)
			}
		}
		t.Run(fmt.Sprintf("seeds to %d", seed-1), func(t *testing.T) {
			newArena(t, delay.Watches(latest)).ask(t, batch)
			for _, q := range batch {
				if q.wrong != "" {
					t.Errorf("generated with -question=1 -seed=%d: %s", q.seed, q.wrong)
				}
			}
		})
		total.add(batch)
	}
	fmt.Printf("changes while the question stands: %s; seeds %d to %d, %.0f s\n", &total, *firstSeed, seed-1, time.Since(start).Seconds())
}

// question is a case on an API server, and what became of it.
type question struct {
	*meanwhile
	// beside is what the garbage collector does.
	beside entry
	seed   int
	model  *model
	// ends is what the run may lead to, and collected what a collection after it may.
	ends, collected outcome
	play            *live.Play
	workers         int
	steps           []string
	// was is what there was after the change, left what the run left, and end what a collection left of that.
	was, left, end string
	// deselected: the target is not chosen any more after the change.
	deselected bool
	// wrong says what went wrong; empty when nothing did.
	wrong string
}

// newQuestion draws a case, nil when there is nothing to play or there are too many orders to look at.
func newQuestion(t *testing.T, seed int) *question {
	q := &question{meanwhile: drawMeanwhile(seed), seed: seed}
	if q.meanwhile == nil {
		return nil
	}
	if q.action.Verb == gctest.Delete && q.random.IntN(6) == 0 {
		q.deselect()
	}
	q.model, q.workers, q.collected = newModel(&q.after, false), 1+q.random.IntN(32), outcome{}
	collect := gctest.Action{Verb: gctest.Collect}
	done := []gctest.Action{q.action}
	var ok bool
	if q.deselected {
		done = nil
		q.ends, ok = q.model.outcome([]world{q.model.begin()})
	} else {
		q.ends, ok = q.meanwhile.ends(t, q.model)
	}
	for _, worlds := range q.ends {
		more, alsoOK := q.model.engineAfter(worlds, collect)
		ok = q.collected.add(more, alsoOK) && ok
	}
	if !ok {
		return nil
	}
	q.collected.add(q.afresh(t, q.model, append(slices.Clone(done), collect)...), true)
	beside := q.after
	beside.Actions = []gctest.Action{collect} // what was begun before
	if q.action.Verb == gctest.Delete {
		beside.Actions = append(beside.Actions, done...)
	}
	q.beside.scenario = &beside
	return q
}

// deselect makes it a case in which the target was chosen by a label that somebody takes off, if it is not being deleted.
func (q *question) deselect() {
	before := q.after
	before.Actions = nil
	if q.before.Object(q.action.Paths[0]) == nil || before.Object(q.action.Paths[0]).Deleting != "" {
		return
	}
	q.before, q.deleted, q.what, q.deselected = before, nil, "a label is taken off", true
}

// ask plays cases: first the engine, all from one reading, after which everything changes that is to; and then
// the garbage collector.
func (a *arena) ask(t *testing.T, batch []*question) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.world.Settle = patient
	each(t, batch, atOnce, func(q *question) error {
		play, err := a.world.Play(ctx, &q.after)
		if err != nil {
			return err
		}
		q.play = play.(*live.Play)
		return gctest.Prepare(ctx, play, &q.before)
	})
	before, err := a.world.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	each(t, batch, atOnce, func(q *question) error { return q.change(ctx) })
	a.look(t, batch, func(q *question) *string { return &q.was })
	each(t, batch, runsAtOnce, func(q *question) error { return q.run(ctx, before) })
	a.look(t, batch, func(q *question) *string { return &q.left })
	g, server, err := a.world.Collector(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gc.New(server, g, gc.Options{Workers: runsAtOnce}).Collect(ctx, ""); err != nil {
		t.Fatal(err)
	}
	a.look(t, batch, func(q *question) *string { return &q.end })
	var entries []*entry
	for _, q := range batch {
		entries = append(entries, &q.beside)
	}
	a.prepare(t, entries, func(e *entry, play gctest.Play) { e.live = newExecution("the garbage collector", play, true) })
	a.start(t)
	a.runLive(t, entries)
	a.stop(t)
	for _, q := range batch {
		q.judge()
	}
}

// each does something with each case, so many at once.
func each(t *testing.T, batch []*question, atOnce int, do func(*question) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, q := range batch {
		group.Go(func() error {
			if err := do(q); err != nil {
				return fmt.Errorf("%w\n%s", err, &q.before)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// look notes what there is by now of each case.
func (a *arena) look(t *testing.T, batch []*question, at func(*question) *string) {
	t.Helper()
	objects, err := a.world.Objects(t.Context(), a.kinds)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range batch {
		*at(q) = q.model.text(q.play.StatesIn(objects))
	}
}

// change makes what there is after the change of what there was before it. What is gone cannot be changed.
func (q *question) change(ctx context.Context) error {
	var errs []error
	if q.deselected {
		errs = append(errs, q.play.PatchMetadata(ctx, q.action.Paths[0], map[string]any{"labels": map[string]any{"chosen": "no"}}))
	}
	for i := range q.after.Objects {
		now, was := &q.after.Objects[i], q.before.Object(q.after.Objects[i].Path)
		if was == nil {
			errs = append(errs, q.play.Create(ctx, []*gctest.Object{now}))
			continue
		}
		if !slices.Equal(now.Owners, was.Owners) {
			errs = append(errs, q.play.Patch(ctx, now.Path, &now.Owners, nil))
		}
		if !slices.Equal(now.Finalizers, was.Finalizers) {
			errs = append(errs, q.play.Patch(ctx, now.Path, nil, &now.Finalizers))
		}
		if now.Deleting != was.Deleting {
			errs = append(errs, q.play.Delete(ctx, now.Path, metav1.DeleteOptions{PropagationPolicy: &q.deleted.Policy}))
		}
	}
	return errors.Join(slices.DeleteFunc(errs, apierrors.IsNotFound)...)
}

// run has the engine do what was agreed to before the change.
func (q *question) run(ctx context.Context, before *graph.Snapshot) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, server, err := q.play.CollectorOf(ctx, before)
	if err != nil {
		return err
	}
	collector := gc.New(server, g, gc.Options{Workers: q.workers})
	var report *gc.Report
	if q.deselected {
		report, err = collector.Delete(ctx, []gc.Target{q.target(before)}, gc.DeleteOptions{Policy: q.action.Policy})
	} else {
		report, err = gctest.Act(ctx, collector, q.play.Stage(), q.action)
	}
	q.steps = stepsOf(q.play, report)
	return err
}

// target is the one that was chosen before the change.
func (q *question) target(before *graph.Snapshot) gc.Target {
	id := q.play.Stage().Identity(q.action.Paths[0])
	version, _ := before.ResourceVersion(id.UID)
	return gc.Target{Identity: id, Matched: version, Reselect: func(ctx context.Context, server gc.Server) (graph.Object, bool, error) {
		now, err := server.Get(ctx, id.Resource, id.Namespace, id.Name)
		return now, false, err
	}}
}

// judge says what went wrong with the engine, if nothing did with the garbage collector.
func (q *question) judge() {
	switch {
	case q.beside.wrong != "":
		q.wrong = q.beside.wrong
	case !eachIsRight(q.left, q.ends):
		q.wrong = q.meanwhile.describe(q.workers, q.was, q.left, q.ends, q.steps)
	case !eachIsIn(q.end, q.collected):
		q.wrong = "after a collection, " + q.meanwhile.describe(q.workers, q.left, q.end, q.collected, q.steps)
	}
}

// eachIsIn reports whether each object is left as it is in one of the ends.
func eachIsIn(left string, ends outcome) bool {
	for line := range strings.Lines(left) {
		in := false
		for end := range ends {
			in = in || strings.Contains(end, line)
		}
		if !in {
			return false
		}
	}
	return true
}

// questions counts what happened.
type questions struct {
	cases, writes, disagreements, same int
	by                                 map[string]int
}

func (s *questions) add(batch []*question) {
	unflagged := func(text string) string { return strings.ReplaceAll(text, "~", "") } // see model.original
	for _, q := range batch {
		s.cases++
		s.by[q.what]++
		s.writes += len(q.steps)
		if q.wrong != "" {
			s.disagreements++
		} else if left := q.beside.live.left; unflagged(left[len(left)-1]) == unflagged(q.end) {
			s.same++
		}
	}
}

// String returns the line that the test prints.
func (s *questions) String() string {
	return fmt.Sprintf("%d cases, %v, %d writes, %d disagreements (%d ended as the garbage collector's, %d in another right end)",
		s.cases, s.by, s.writes, s.disagreements, s.same, s.cases-s.disagreements-s.same)
}
