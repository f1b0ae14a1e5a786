// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// knot is a graph in which anything may own anything, itself included. edges
// holds the owners of every node by UID, in the order of the references.
type knot struct {
	graph *graph.Graph
	edges map[types.UID][]types.UID
}

// knots are drawn so that the order of identities has nothing to do with who
// owns whom. Half of the references are right.
var knots = rapid.Custom(func(t *rapid.T) knot {
	kinds := testworld.Types(servedTypes)[:3]
	n := rapid.IntRange(1, 9).Draw(t, "objects")
	objects := make([]graph.Object, n)
	for i := range objects {
		objects[i] = graph.Object{
			Resource: &kinds[rapid.IntRange(0, 2).Draw(t, "kind")], Namespace: "shop",
			Name: fmt.Sprintf("n%d", i), UID: types.UID(fmt.Sprintf("u%d", i)),
		}
	}
	s := &graph.Snapshot{Mapper: testworld.Mapper(testworld.Types(servedTypes))}
	k := knot{edges: map[types.UID][]types.UID{}}
	for i := range objects {
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			ref := drawKnotOwner(t, objects)
			objects[i].OwnerReferences = append(objects[i].OwnerReferences, ref)
			k.edges[objects[i].UID] = append(k.edges[objects[i].UID], ref.UID)
		}
		s.Add(objects[i])
	}
	k.graph = graph.New(s)
	return k
})

func drawKnotOwner(t *rapid.T, objects []graph.Object) metav1.OwnerReference {
	i := rapid.IntRange(0, len(objects)).Draw(t, "owner")
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "gone", UID: "gone"}
	if i < len(objects) {
		ref.Kind, ref.Name, ref.UID = objects[i].Resource.Kind, objects[i].Name, objects[i].UID
		ref.Kind = rapid.SampledFrom([]string{ref.Kind, "Wrong"}).Draw(t, "stated kind")
	}
	if controller := rapid.Bool().Draw(t, "controller"); controller {
		ref.Controller = &controller
	}
	return ref
}

// GoString writes the knot as a scenario, which is how rapid shows it.
func (k knot) GoString() string {
	var text strings.Builder
	for o := range k.graph.Snapshot().Objects() {
		fmt.Fprintf(&text, "\n%s uid=%s", o.Identity(), o.UID)
		for _, ref := range o.OwnerReferences {
			fmt.Fprintf(&text, " owner=%s:%s:%s:%s", ref.APIVersion, ref.Kind, ref.Name, ref.UID)
			if ref.Controller != nil {
				text.WriteString("*")
			}
		}
	}
	return text.String()
}

func (k knot) nodes() []graph.Node { return slices.Collect(k.graph.Nodes()) }

func uid(n graph.Node) types.UID { return n.Identity().UID }

// distances returns how many references lead from every node up to one, which
// is 0 for itself. Nodes that none lead from are not in the map.
func (k knot) distances(to types.UID) map[types.UID]int {
	distance := map[types.UID]int{to: 0}
	for range k.nodes() {
		for n, owners := range k.edges {
			for _, o := range owners {
				d, reaches := distance[o]
				if known, ok := distance[n]; reaches && (!ok || d+1 < known) {
					distance[n] = d + 1
				}
			}
		}
	}
	return distance
}

// above reports whether one or more references lead from a node to another.
func (k knot) above(n, owner types.UID) bool {
	distance := k.distances(owner)
	return slices.ContainsFunc(k.edges[n], func(o types.UID) bool { _, ok := distance[o]; return ok })
}

func TestCyclesAreWhatReachesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		var want [][]types.UID
		grouped := map[types.UID]bool{}
		for _, n := range k.nodes() {
			if grouped[uid(n)] || !k.above(uid(n), uid(n)) {
				continue
			}
			var cycle []types.UID
			for _, m := range k.nodes() {
				if k.above(uid(n), uid(m)) && k.above(uid(m), uid(n)) {
					cycle, grouped[uid(m)] = append(cycle, uid(m)), true
				}
			}
			want = append(want, cycle)
		}
		var got [][]types.UID
		for _, cycle := range k.graph.Cycles() {
			got = append(got, toUIDs(cycle))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func toUIDs(nodes []graph.Node) []types.UID {
	var list []types.UID
	for _, n := range nodes {
		list = append(list, uid(n))
	}
	return list
}

// A path is as short as can be, takes the first reference that leads on, and
// is nil where there is no way.
func TestPathIsTheFirstShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		from, to := rapid.SampledFrom(k.nodes()).Draw(t, "from"), rapid.SampledFrom(k.nodes()).Draw(t, "to")
		distance := k.distances(uid(to))
		var want []types.UID
		if d, ok := distance[uid(from)]; ok {
			want = []types.UID{uid(from)}
			for ; d > 0; d-- {
				owners := k.edges[want[len(want)-1]]
				i := slices.IndexFunc(owners, func(o types.UID) bool { left, ok := distance[o]; return ok && left == d-1 })
				want = append(want, owners[i])
			}
		}
		if diff := cmp.Diff(want, toUIDs(k.graph.Path(from, to))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAncestorsAndDescendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		from := drawNodes(t, k, "from")
		var ancestors, descendants graph.Set
		for _, n := range k.nodes() {
			for _, f := range from {
				if n == f || k.above(uid(f), uid(n)) {
					ancestors.Add(n)
				}
				if n == f || k.above(uid(n), uid(f)) {
					descendants.Add(n)
				}
			}
		}
		if got := graph.Ancestors(from...); !cmp.Equal(uids(ancestors.Sorted()), uids(got.Sorted())) {
			t.Fatalf("ancestors: got %s, want %s", uids(got.Sorted()), uids(ancestors.Sorted()))
		}
		if got := graph.Descendants(from...); !cmp.Equal(uids(descendants.Sorted()), uids(got.Sorted())) {
			t.Fatalf("descendants: got %s, want %s", uids(got.Sorted()), uids(descendants.Sorted()))
		}
	})
}

func drawNodes(t *rapid.T, k knot, label string) []graph.Node {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(k.nodes()), 0, 3, rapid.ID).Draw(t, label)
}
