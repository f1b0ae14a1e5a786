// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var planCases = flag.Int("plans", nightly.Of(800, 3000), "number of generated cases in which a run is compared with its plan")

// TestRunIsItsPlan: on a cluster that nobody else changes, a run sends the writes
// of its plan and ends in the outcomes of its plan, for any number of workers and
// however long requests, answers and events take. What the plan says of an object
// agrees with what it writes to it, and with what then is.
func TestRunIsItsPlan(t *testing.T) {
	writes, several, different := 0, 0, 0
	for i := range *planCases {
		seed := *firstSeed + i
		s := crowded.Example(seed)
		for _, workers := range []int{1, 2 + seed%31} {
			w, wrong := compareWithPlan(t, &s, workers, seed)
			if wrong != "" {
				different++
				t.Errorf("generated with -plans=1 -seed=%d, %d workers: %s", seed, workers, wrong)
			}
			writes += w
		}
		if len(s.Actions) > 2 {
			several++
		}
	}
	fmt.Printf("runs and their plans: %d cases, %d of several deletions, %d writes, %d different\n", *planCases, several, writes, different)
}

// crowded draws scenarios in which deletions often have several targets.
var crowded = rapid.Custom(func(t *rapid.T) gctest.Scenario {
	s := scenarios.Draw(t, "scenario")
	for i := range s.Actions {
		if s.Actions[i].Verb != gctest.Delete {
			continue
		}
		for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "more targets") {
			if p := rapid.SampledFrom(s.Objects).Draw(t, "target").Path; !slices.Contains(s.Actions[i].Paths, p) {
				s.Actions[i].Paths = append(s.Actions[i].Paths, p)
			}
		}
	}
	if chance(t, 30, "no collection before") {
		s.Actions = s.Actions[1:]
	}
	return s
})

// compareWithPlan plays a scenario twice, action by action: as a plan is made,
// and with delays. It returns the number of writes, and what differs.
func compareWithPlan(t *testing.T, s *gctest.Scenario, workers, seed int) (writes int, wrong string) {
	synctest.Test(t, func(t *testing.T) {
		plan := begin(t, &memory.World{Workers: 1}, s)
		run := begin(t, &memory.World{Workers: workers, Delays: rand.New(rand.NewPCG(uint64(seed), uint64(workers)))}, s)
		for _, a := range s.Actions {
			before, was := describePlay(t, plan, s), statesOf(t, run)
			planned, ran := act(t, plan, s, a), act(t, run, s, a)
			writes += len(ran.Steps)
			if wrong = refute(run.Stage(), planned, ran, was, statesOf(t, run)); wrong != "" {
				wrong = fmt.Sprintf("%s:\n%s\n%s\nbefore it\n%s", a, wrong, s, before)
				return
			}
			if diff := cmp.Diff(account(plan.Stage(), planned), account(run.Stage(), ran)); diff != "" {
				wrong = fmt.Sprintf("%s (- plan, + run):\n%s\n%s\nbefore it\n%s\nplanned\n  %s\nwritten\n  %s", a, diff, s, before,
					strings.Join(stepsOf(plan, planned), "\n  "), strings.Join(stepsOf(run, ran), "\n  "))
				return
			}
		}
	})
	return writes, wrong
}

func begin(t *testing.T, w gctest.World, s *gctest.Scenario) gctest.Play {
	play, err := w.Play(t.Context(), s)
	if err == nil {
		err = gctest.Prepare(t.Context(), play, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return play
}

func act(t *testing.T, play gctest.Play, s *gctest.Scenario, a gctest.Action) *gc.Report {
	report, err := gctest.Do(t.Context(), play, s, a)
	if err != nil {
		t.Fatalf("%s: %v\n%s", a, err, s)
	}
	return report
}

func statesOf(t *testing.T, play gctest.Play) states {
	states, err := play.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return states
}

func describePlay(t *testing.T, play gctest.Play, s *gctest.Scenario) string {
	states := statesOf(t, play)
	var lines []string
	for _, o := range s.Objects {
		lines = append(lines, fmt.Sprintf("  %s %s", o.Path, states[o.Path]))
	}
	return strings.Join(lines, "\n")
}

func stepsOf(play gctest.Play, report *gc.Report) []string {
	return (&gctest.Result{Reports: []*gc.Report{report}}).Steps(play.Stage())
}

// account is what has to be the same in a plan and its run: the writes in any
// order, and what becomes of every object.
func account(stage *gctest.Stage, report *gc.Report) []string {
	steps := slices.Sorted(slices.Values((&gctest.Result{Reports: []*gc.Report{report}}).Steps(stage)))
	for _, o := range report.Outcomes {
		line := fmt.Sprintf("%s: %s, %s", o.Object.Identity(), o.Result, o.Reason)
		for _, id := range o.WaitingFor {
			line += " " + id.String()
		}
		steps = append(steps, line)
	}
	return steps
}
