// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"embed"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
)

//go:embed testdata/plans.txt
var plans embed.FS

// TestRunIsItsPlanAgain plays cases in which a run was once not its plan, in many
// timings.
func TestRunIsItsPlanAgain(t *testing.T) {
	text, err := plans.ReadFile("testdata/plans.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, err := gctest.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
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
