// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Doubtful leaves out exactly the objects all of whose references lead, each
// once, to another object that is where they say.
func TestDoubtful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		g := graph.New(w.read(w.drawReading(t)))
		var want []graph.Node
		for n := range g.Nodes() {
			doubt := false
			seen := map[graph.Node]bool{n: true}
			for _, ref := range n.Owners() {
				doubt = doubt || seen[ref.Owner] || ref.State == graph.Dangling || ref.State == graph.Unknown
				seen[ref.Owner] = true
			}
			if doubt {
				want = append(want, n)
			}
		}
		if got := slices.Collect(g.Doubtful()); !slices.Equal(got, want) {
			t.Fatalf("got %s, want %s", uids(got), uids(want))
		}
		for n := range g.Nodes() {
			if n.Name() != n.Identity().Name {
				t.Fatalf("%s has the name %q", n.Identity(), n.Name())
			}
		}
	})
}

// CyclesOver finds the nodes that come back to themselves over the references
// that are followed, together with those that they can reach and that reach
// them.
func TestCyclesOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		g := graph.New(w.read(w.drawReading(t)))
		follow := graph.Reference.Blocking
		reaches := func(from, to graph.Node) bool {
			seen := map[graph.Node]bool{}
			for queue := []graph.Node{from}; len(queue) > 0; queue = queue[1:] {
				for _, ref := range queue[0].Owners() {
					if !follow(ref) || seen[ref.Owner] {
						continue
					}
					if ref.Owner == to {
						return true
					}
					seen[ref.Owner] = true
					queue = append(queue, ref.Owner)
				}
			}
			return false
		}
		var want [][]graph.Node
		done := map[graph.Node]bool{}
		for n := range g.Nodes() {
			if done[n] || !reaches(n, n) {
				continue
			}
			var cycle []graph.Node
			for m := range g.Nodes() {
				if m == n || reaches(n, m) && reaches(m, n) {
					cycle = append(cycle, m)
					done[m] = true
				}
			}
			want = append(want, cycle)
		}
		got := g.CyclesOver(g.Cycles(), follow)
		if !slices.EqualFunc(got, want, slices.Equal[[]graph.Node]) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
