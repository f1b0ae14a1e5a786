// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
)

// TestOrder: what is said of objects does not depend on the order in which they are
// asked for, nor on whether what they rest on is read before it is needed.
func TestOrder(t *testing.T) {
	for i, cluster := range clusters(t) {
		s := parse(t, cluster)
		report := s.report(t)
		if len(report.Objects) < 2 {
			continue
		}
		text := func(report *explain.Report) string {
			return fmt.Sprintln(verdicts(report), causes(report, nil), says(report))
		}
		want := text(report)
		for round := range 4 {
			s := parse(t, cluster)
			s.shuffle, s.far = rand.New(rand.NewPCG(uint64(i), uint64(round))), round%2 == 0
			again := s.report(t)
			if diff := cmp.Diff(want, text(again)); diff != "" {
				t.Errorf("another order (-first +second):\n%s\n%s", cluster, diff)
				break
			}
		}
	}
}
