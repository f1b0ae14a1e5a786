// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

// aliasVersion is that in which references may state an alias of a widget.
const aliasVersion = memory.AliasGroup + "/v1"

// withAliases draws scenarios in which widgets are served in two groups, and
// references state either.
var withAliases = rapid.Custom(func(t *rapid.T) gctest.Scenario {
	s := scenarios.Draw(t, "scenario")
	for i := range s.Objects {
		for k := range s.Objects[i].Owners {
			o := &s.Objects[i].Owners[k]
			if leads(*o) && o.Of.Kind == "widget" && chance(t, 50, "alias") {
				o.APIVersion = aliasVersion
			}
		}
	}
	return s
})

// TestAliases plays scenarios in which the same objects are served twice. No real
// cluster of these tests does that.
func TestAliases(t *testing.T) {
	for _, aliases := range []memory.Aliases{memory.AliasesFirst, memory.AliasesLast} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("order %d, %d workers", aliases, workers), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					s := withAliases.Draw(t, "scenario")
					play, err := (&memory.World{Workers: workers, Aliases: aliases}).Play(context.Background(), &s)
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
}
