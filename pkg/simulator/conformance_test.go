// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"slices"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

// TestConformance plays the scenarios of gctest in the simulator: with one
// worker, where the writes and the report are held to the scenario as well, and
// with several.
func TestConformance(t *testing.T) {
	for file, scenarios := range gctest.Scenarios(t) {
		for i := range scenarios {
			t.Run(file+"/"+scenarios[i].Name, func(t *testing.T) {
				gctest.Run(t, &memory.World{Workers: 1}, &scenarios[i])
				gctest.Run(t, &memory.World{Workers: 8}, &scenarios[i])
			})
		}
	}
}

// TestDeterminism plays every scenario twice with one worker: the writes are
// the same, and in the same order.
func TestDeterminism(t *testing.T) {
	for _, scenarios := range gctest.Scenarios(t) {
		for i := range scenarios {
			first, second := steps(t, &scenarios[i]), steps(t, &scenarios[i])
			if !slices.Equal(first, second) {
				t.Errorf("%s\nfirst  %q\nsecond %q", &scenarios[i], first, second)
			}
		}
	}
}

func steps(t *testing.T, s *gctest.Scenario) []string {
	play, err := (&memory.World{Workers: 1}).Play(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	result, err := gctest.Perform(t.Context(), play, s)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return result.Steps(play.Stage())
}
