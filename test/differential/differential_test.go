// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var (
	caseCount = flag.Int("cases", nightly.Of(60, 200), "number of generated cases")
	firstSeed = flag.Int("seed", 1, "seed of the first case; each that follows has the next; 0 chooses one")
)

// batchSize is how many cases share a control plane.
const batchSize = 200

// TestDifferential executes generated cases in three ways and compares what is
// left, and what each of the engine's runs left with its plan. A case that fails is
// made smaller as long as it fails.
func TestDifferential(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	seed := *firstSeed
	if seed == 0 {
		seed = rand.IntN(1 << 40)
	}
	start, total := time.Now(), summary{}
	for first := 0; first < *caseCount; first += batchSize {
		var cases []*gctest.Scenario
		for i := first; i < min(first+batchSize, *caseCount); i++ {
			s := scenarios.Example(seed + i)
			s.Name = fmt.Sprintf("generated with -cases=1 -seed=%d", seed+i)
			cases = append(cases, &s)
		}
		t.Run(fmt.Sprintf("cases %d to %d", first, first+len(cases)-1), func(t *testing.T) {
			a := newArena(t)
			entries := a.run(t, cases)
			total.add(entries)
			a.judge(t, entries)
		})
	}
	fmt.Printf("differential: %s; seed %d, %.0f s\n", &total, seed, time.Since(start).Seconds())
}

// summary counts what happened.
type summary struct {
	cases, objects, plans, writes, disagreements int
	// several cases have more than one end that is right, and in different ones
	// not all executions had the same.
	several, different int
	// remembered cases ended otherwise because the engine, unlike a garbage
	// collector that has been running, starts afresh.
	remembered int
}

func (s *summary) add(entries []*entry) {
	for _, e := range entries {
		s.cases++
		s.objects += len(e.scenario.Objects)
		s.writes += e.writes
		s.plans += e.plans
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&s.disagreements, e.wrong != "")
		count(&s.several, e.several)
		count(&s.different, e.different())
		count(&s.remembered, e.remembered)
	}
}

// String returns the line that the test prints.
func (s *summary) String() string {
	return fmt.Sprintf("%d cases, %d objects, %d plans, %d writes, %d disagreements (%d cases have several right ends, %d ended in different ones, %d because the engine starts afresh)",
		s.cases, s.objects, s.plans, s.writes, s.disagreements, s.several, s.different, s.remembered)
}

// judge reports the cases that went wrong, each as small as it can be made.
func (a *arena) judge(t *testing.T, entries []*entry) {
	for _, e := range entries {
		if e.wrong != "" {
			smallest := a.shrink(t, e)
			t.Errorf("%s\nmade as small as it still fails:\n%s", e.wrong, smallest.wrong)
			return // the others are likely to be like it
		}
	}
}

// shrink returns a case that fails and of which no smaller one does.
func (a *arena) shrink(t *testing.T, failing *entry) *entry {
	for {
		var next *entry
		for _, e := range a.run(t, smaller(failing.scenario)) {
			if e.wrong != "" && next == nil {
				next = e
			}
		}
		if next == nil {
			return failing
		}
		failing = next
	}
}
