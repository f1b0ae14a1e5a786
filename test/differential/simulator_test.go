// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

// TestSimulator plays generated scenarios in the simulator: with one worker and
// with several, what is left is among what the model can lead to.
func TestSimulator(t *testing.T) {
	for name, workers := range map[string]int{"one worker": 1, "several workers": 4} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := scenarios.Draw(t, "scenario")
				play, err := (&memory.World{Workers: workers}).Play(context.Background(), &s)
				if err != nil {
					t.Fatal(err)
				}
				if wrong := follow(play, &s); wrong != "" {
					t.Fatal(wrong)
				}
			})
		})
	}
}

// follow plays a scenario and holds what is left after every action to the
// model. It returns what is wrong.
func follow(play gctest.Play, s *gctest.Scenario) string {
	ctx := context.Background()
	if err := gctest.Prepare(ctx, play, s); err != nil {
		return err.Error()
	}
	whole := newModel(s, false)
	m := whole
	worlds := []world{m.begin()}
	for i, a := range s.Actions {
		switch a.Verb {
		case gctest.UserDrop:
			m = whole.dropped()
		case gctest.UserCreate:
			m = whole
		}
		before, err := play.States(ctx)
		if err != nil {
			return err.Error()
		}
		report, err := gctest.Do(ctx, play, s, a)
		if err != nil {
			return err.Error()
		}
		states, err := play.States(ctx)
		if err != nil {
			return err.Error()
		}
		if report == nil {
			continue // the user's doing
		}
		ends, ok := m.engineAfter(worlds, a)
		if !ok {
			return "" // too large to tell
		}
		got := m.text(states)
		if wrong := trespasses(play.Stage(), report, a); wrong != "" {
			return wrong + "\n" + s.String()
		}
		if ends[got] == nil {
			steps := (&gctest.Result{Reports: []*gc.Report{report}}).Steps(play.Stage())
			return describe(s, a, m.text(before), got, ends) + "writes\n  " + strings.Join(steps, "\n  ")
		}
		worlds = ends[got]
		if ends, ok := m.atOnce(s, i); ok && ends[got] == nil {
			return "by namespace it ends otherwise than at once\n" + describe(s, a, m.text(before), got, ends)
		}
	}
	return ""
}

// atOnce returns what the i-th action may lead to when it is the first collection
// of everything, after such as were limited and saw everything: the same as
// without those.
func (m *model) atOnce(s *gctest.Scenario, i int) (outcome, bool) {
	limited := func(a gctest.Action) bool { return a.In != "" && !a.Only }
	a := s.Actions[i]
	if a.Verb != gctest.Collect || a.In != "" || i == 0 || slices.ContainsFunc(s.Actions[:i], func(a gctest.Action) bool { return !limited(a) }) {
		return nil, false
	}
	restarts := *m // every collection begins without memory
	restarts.restarts = true
	return restarts.engineAfter([]world{m.begin()}, a)
}

// trespasses says what a collection that is limited to a namespace wrote to
// outside, other than finalizers.
func trespasses(stage *gctest.Stage, report *gc.Report, a gctest.Action) string {
	for _, step := range report.Steps {
		if a.In != "" && step.Object.Namespace != stage.Namespace(a.In) && step.Action != gc.ActionRemoveFinalizer {
			return fmt.Sprintf("%s: %s %s is outside", a, step.Action, step.Object.Identity())
		}
	}
	return ""
}

// engineAfter is what the engine's action may lead to: what the garbage
// collector's may, but for two things that the model says when they matter. Owners
// that only what has vanished blocked it leaves alone when they are not its business,
// as a garbage collector does that remembers, and finishes when they are, as one does
// that was started since.
func (m *model) engineAfter(from []world, a gctest.Action) (outcome, bool) {
	all, ok := m.after(from, a)
	if ok && a.Verb != gctest.Collect {
		ok = all.add(m.afterAfresh(from, a))
	}
	if remembering, vanished := m.remembering(); ok && vanished {
		ok = all.add(remembering.engineAfter(from, a)) && all.add(m.afterStart(from, a))
	}
	if ok && m.givesUp() && !m.once {
		once := *m
		once.once = true
		ok = all.add(once.engineAfter(from, a))
	}
	return all, ok
}

// afterStart is after for a garbage collector that is started with the action.
func (m *model) afterStart(from []world, a gctest.Action) (outcome, bool) {
	var started []world
	for _, w := range from {
		started = append(started, m.start(w)...)
	}
	if a.Verb == gctest.Collect {
		return m.outcome(started)
	}
	for i := range started {
		started[i] = m.delete(started[i], m.index(a.Paths[0]), a.Policy)
	}
	return m.outcome(started)
}

// add adds what else there may be, and returns whether that is all.
func (o outcome) add(other outcome, ok bool) bool {
	for end, worlds := range other {
		o[end] = append(o[end], worlds...)
	}
	return ok
}

// describe says how an end differs from those that there may be.
func describe(s *gctest.Scenario, a gctest.Action, before, got string, ends outcome) string {
	var b strings.Builder
	b.WriteString(s.String() + "\nbefore " + a.String() + "\n" + indent(before) + "\nafter it\n" + indent(got))
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		b.WriteString("\nwhat may be\n" + indent(end))
	}
	return b.String()
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}
