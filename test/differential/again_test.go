// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"embed"
	"fmt"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

//go:embed testdata/*.txt
var testdata embed.FS

// again parses a file of testdata.
func again(t *testing.T, file string) []gctest.Scenario {
	t.Helper()
	text, err := testdata.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := gctest.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSimulatorAgain plays cases in which the simulation was once wrong.
func TestSimulatorAgain(t *testing.T) {
	all := again(t, "simulator.txt")
	for i := range all {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", all[i].Name, workers), func(t *testing.T) {
				world := &memory.World{Workers: workers}
				play, err := world.Play(t.Context(), &all[i])
				if err != nil {
					t.Fatal(err)
				}
				if wrong := follow(play, &all[i]); wrong != "" {
					t.Fatal(wrong)
				}
				gctest.Run(t, world, &all[i])
			})
		}
	}
}

// TestRunIsItsPlanAgain plays cases in which a run was once not its plan, in many
// timings.
func TestRunIsItsPlanAgain(t *testing.T) {
	all := again(t, "plans.txt")
	for i := range all {
		t.Run(all[i].Name, func(t *testing.T) {
			for seed := range 200 {
				workers := 1 + seed%32
				if _, wrong := compareWithPlan(t, &all[i], workers, seed); wrong != "" {
					t.Fatalf("%d workers, seed %d: %s", workers, seed, wrong)
				}
			}
		})
	}
}
