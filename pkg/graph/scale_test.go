// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// shapes are large graphs of n ConfigMaps: ownersOf gives the owners of the
// i-th by number.
var shapes = []struct {
	name     string
	ownersOf func(i int) []int
}{
	{"fan", func(i int) []int { // all under one
		if i == 0 {
			return nil
		}
		return []int{0}
	}},
	{"chain", func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}},
	{"tree", func(i int) []int { // ten under each
		if i == 0 {
			return nil
		}
		return []int{(i - 1) / 10}
	}},
	{"alone", func(int) []int { return nil }},
}

func bigSnapshot(n int, ownersOf func(i int) []int) *graph.Snapshot {
	s := &graph.Snapshot{Mapper: testworld.Mapper(testworld.Types(servedTypes))}
	configMaps := &testworld.Types(servedTypes)[2]
	for i := range n {
		o := graph.Object{Resource: configMaps, Namespace: "shop", Name: bigName(i), UID: types.UID(bigName(i))}
		for _, k := range ownersOf(i) {
			o.OwnerReferences = append(o.OwnerReferences,
				metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: bigName(k), UID: types.UID(bigName(k))})
		}
		s.Add(o)
	}
	s.MarkListed(configMaps.GroupResource(), "", "")
	return s
}

func bigName(i int) string { return fmt.Sprintf("n%06d", i) }

func selectAll(g *graph.Graph) graph.Selection {
	sel := graph.Selection{}
	for n := range g.Nodes() {
		sel.Nodes.Add(n)
	}
	return sel
}

func TestManyDependents(t *testing.T) {
	const n = 10_001
	g := graph.New(bigSnapshot(n, shapes[0].ownersOf))
	owner := node(g, bigName(0))
	if got := len(owner.Dependents()); got != n-1 {
		t.Errorf("%d dependents, want %d", got, n-1)
	}
	if cycles := g.Cycles(); len(cycles) > 0 {
		t.Errorf("%d cycles", len(cycles))
	}
	last := node(g, bigName(n-1))
	if path := g.Path(last, owner); len(path) != 2 || last.Owners()[0].State != graph.Solid {
		t.Errorf("path %s, state %v", uids(path), last.Owners()[0].State)
	}
	if forest := trees(graph.SelectDependents(-1, owner).Forest()); len(forest) != 1 || len(forest[0].Dependents) != n-1 {
		t.Errorf("%d trees", len(forest))
	}
	if forest := trees(graph.SelectDependents(0, owner).Forest()); forest[0].Hidden != n-1 {
		t.Errorf("%d hidden, want %d", forest[0].Hidden, n-1)
	}
}

func TestDeepChain(t *testing.T) {
	for _, n := range []int{1_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g := graph.New(bigSnapshot(n, shapes[1].ownersOf))
			top, bottom := node(g, bigName(0)), node(g, bigName(n-1))
			if cycles := g.Cycles(); len(cycles) > 0 {
				t.Errorf("%d cycles", len(cycles))
			}
			if got := len(g.Path(bottom, top)); got != n {
				t.Errorf("path of %d nodes, want %d", got, n)
			}
			if path := g.Path(top, bottom); path != nil {
				t.Errorf("path down of %d nodes", len(path))
			}
			for name, sel := range map[string]graph.Selection{
				"all": selectAll(g), "both": graph.SelectBoth(-1, node(g, bigName(n/2))), "owners": graph.SelectOwners(bottom),
			} {
				forest := trees(sel.Forest())
				if len(forest) != 1 || depth(forest[0]) != n {
					t.Errorf("%s: %d trees, the first %d deep", name, len(forest), depth(forest[0]))
				}
			}
		})
	}
}

func depth(b *branch) int {
	d := 1
	for ; len(b.Dependents) > 0; b = b.Dependents[0] {
		d++
	}
	return d
}

// One cycle through every node: whoever comes first is the root.
func TestLongCycle(t *testing.T) {
	const n = 100_000
	g := graph.New(bigSnapshot(n, func(i int) []int { return []int{(i + n - 1) % n} }))
	if cycles := g.Cycles(); len(cycles) != 1 || len(cycles[0]) != n {
		t.Fatalf("%d cycles", len(cycles))
	}
	forest := trees(selectAll(g).Forest())
	if len(forest) != 1 || forest[0].Node != node(g, bigName(0)) || depth(forest[0]) != n+1 {
		t.Fatalf("%d trees, the first %d deep", len(forest), depth(forest[0]))
	}
}

func benchmarkShapes(b *testing.B, sizes []int, f func(g *graph.Graph, s *graph.Snapshot)) {
	for _, shape := range shapes {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				s := bigSnapshot(n, shape.ownersOf)
				g := graph.New(s)
				b.ReportAllocs()
				for b.Loop() {
					f(g, s)
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	benchmarkShapes(b, []int{10_000, 100_000}, func(_ *graph.Graph, s *graph.Snapshot) { graph.New(s) })
}

func BenchmarkCycles(b *testing.B) {
	benchmarkShapes(b, []int{10_000, 100_000}, func(g *graph.Graph, _ *graph.Snapshot) { g.Cycles() })
}

// printed goes over the lines of a selection's forest, as if to print them.
func printed(sel graph.Selection) {
	for range sel.Forest().Branches() {
	}
}

func BenchmarkForest(b *testing.B) {
	benchmarkShapes(b, []int{10_000, 100_000}, func(g *graph.Graph, _ *graph.Snapshot) { printed(selectAll(g)) })
}

// BenchmarkForestOfCycles arranges objects of which two own each other.
func BenchmarkForestOfCycles(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := graph.New(bigSnapshot(n, func(i int) []int { return []int{i ^ 1} }))
			b.ReportAllocs()
			for b.Loop() {
				printed(selectAll(g))
			}
		})
	}
}

// BenchmarkManyOwners places one object that everything else owns, under the
// owner that sorts last.
func BenchmarkManyOwners(b *testing.B) {
	for _, n := range []int{100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := graph.New(bigSnapshot(n, func(i int) []int {
				if i > 0 {
					return nil
				}
				owners := indices(n)[1:]
				slices.Reverse(owners)
				return owners
			}))
			b.ReportAllocs()
			for b.Loop() {
				printed(selectAll(g))
			}
		})
	}
}

// BenchmarkUndecided asks for the owners of objects of which none was read.
func BenchmarkUndecided(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &graph.Snapshot{Mapper: testworld.Mapper(testworld.Types(servedTypes))}
			for i := range n {
				s.Add(graph.Object{
					Resource: &testworld.Types(servedTypes)[0], Namespace: "shop", Name: bigName(i), UID: types.UID(bigName(i)),
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: bigName(i), UID: types.UID("o" + bigName(i))}},
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Undecided()
			}
		})
	}
}
