// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Nodes at most so many references below a named one are selected, and those
// at the depth that have more below are cut.
func TestSelectDependentsDepth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		named := drawNodes(t, k, "named")
		depth := rapid.IntRange(-1, 4).Draw(t, "depth")
		sel := graph.SelectDependents(depth, named...)
		below := map[graph.Node]int{}
		for _, n := range named {
			distance := k.distances(uid(n))
			for _, d := range k.nodes() {
				if far, ok := distance[uid(d)]; ok {
					if known, seen := below[d]; !seen || far < known {
						below[d] = far
					}
				}
			}
		}
		for _, n := range k.nodes() {
			far, ok := below[n]
			if selected := ok && (depth < 0 || far <= depth); sel.Nodes.Has(n) != selected {
				t.Fatalf("%s is %d below: selected %v", n.Identity(), far, sel.Nodes.Has(n))
			}
			more := slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return !sel.Nodes.Has(d) })
			if sel.Nodes.Has(n) && more && !sel.Cut.Has(n) || sel.Cut.Has(n) && far != depth {
				t.Fatalf("%s is %d below: cut %v", n.Identity(), far, sel.Cut.Has(n))
			}
		}
		if !slices.Equal(sel.Named, named) {
			t.Fatalf("named %s, want %s", uids(sel.Named), uids(named))
		}
	})
}

func TestSelectOwnersAndBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		named := drawNodes(t, k, "named")
		depth := rapid.IntRange(-1, 3).Draw(t, "depth")
		owners, both := graph.SelectOwners(named...), graph.SelectBoth(depth, named...)
		want := graph.Ancestors(named...)
		if !equal(owners.Nodes, want) || owners.Cut.Len() > 0 {
			t.Fatalf("owners: got %s, want %s", uids(owners.Nodes.Sorted()), uids(want.Sorted()))
		}
		dependents := graph.SelectDependents(depth, named...)
		want.AddAll(dependents.Nodes)
		if !equal(both.Nodes, want) || !equal(both.Cut, dependents.Cut) {
			t.Fatalf("both: got %s, want %s", uids(both.Nodes.Sorted()), uids(want.Sorted()))
		}
	})
}

// equal reports whether two sets have the same nodes.
func equal(a, b graph.Set) bool { return slices.Equal(uidList(a.Sorted()), uidList(b.Sorted())) }

// What is kept, what was named and what of the selection owns them, directly
// or through others, stays; nothing else does.
func TestFilterCutsNoChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		sel := drawSelection(t, k)
		wanted := map[graph.Node]bool{}
		for _, n := range drawNodes(t, k, "wanted") {
			wanted[n] = true
		}
		got := sel.Filter(func(n graph.Node) bool { return wanted[n] })
		for n := range sel.Nodes.All() {
			stays := false
			for kept := range sel.Nodes.All() {
				if wanted[kept] || slices.Contains(sel.Named, kept) {
					stays = stays || kept == n || k.above(uid(kept), uid(n))
				}
			}
			if got.Nodes.Has(n) != stays {
				t.Fatalf("%s stays: %v, want %v", n.Identity(), got.Nodes.Has(n), stays)
			}
		}
		for n := range got.Nodes.All() {
			if !sel.Nodes.Has(n) {
				t.Fatalf("%s was not selected before", n.Identity())
			}
		}
	})
}

func drawSelection(t *rapid.T, k knot) graph.Selection {
	named := drawNodes(t, k, "named")
	depth := rapid.IntRange(-1, 3).Draw(t, "depth")
	switch rapid.IntRange(0, 3).Draw(t, "selection") {
	case 0:
		return graph.SelectOwners(named...)
	case 1:
		return graph.SelectDependents(depth, named...)
	case 2:
		return graph.SelectBoth(depth, named...)
	}
	sel := graph.Selection{}
	for _, n := range k.nodes() {
		if rapid.Bool().Draw(t, "select") {
			sel.Nodes.Add(n)
		}
	}
	return sel
}

// Every selected node is in the forest once, at a place that its references
// lead to; lines that close a cycle lead back up and end there.
func TestForestShowsEveryNodeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		sel := drawSelection(t, k)
		if rapid.Bool().Draw(t, "filter") {
			wanted := drawNodes(t, k, "wanted")
			sel = sel.Filter(func(n graph.Node) bool { return slices.Contains(wanted, n) })
		}
		shown := &graph.Set{}
		for _, root := range trees(sel.Forest()) {
			if len(root.References) > 0 {
				t.Fatalf("root %s has references to an owner above", root.Node.Identity())
			}
			checkBranch(t, root, nil, shown)
		}
		if !equal(*shown, sel.Nodes) {
			t.Fatalf("shown %s, selected %s", uids(shown.Sorted()), uids(sel.Nodes.Sorted()))
		}
	})
}

func checkBranch(t *rapid.T, b *branch, above []graph.Node, shown *graph.Set) {
	id := b.Node.Identity()
	if b.Cycle {
		if !slices.Contains(above, b.Node) || len(b.Dependents) > 0 {
			t.Fatalf("the line of %s leads nowhere up", id)
		}
		return
	}
	if !shown.Add(b.Node) {
		t.Fatalf("%s is shown twice", id)
	}
	if len(above) > 0 {
		owner := above[len(above)-1]
		if len(b.References) == 0 || slices.ContainsFunc(b.References, func(r graph.Reference) bool { return r.Owner != owner }) {
			t.Fatalf("%s is shown under %s", id, owner.Identity())
		}
	}
	if refs := slices.Concat(b.References, b.Elsewhere); len(refs) != len(b.Node.Owners()) {
		t.Fatalf("%s has %d references, shown are %d", id, len(b.Node.Owners()), len(refs))
	}
	if !slices.IsSortedFunc(b.Dependents, func(x, y *branch) int { return x.Node.Identity().Compare(y.Node.Identity()) }) {
		t.Fatalf("the dependents of %s are not in order", id)
	}
	for i, d := range b.Dependents {
		if d.Last != (i == len(b.Dependents)-1) {
			t.Fatalf("line %d of %d below %s is the last: %v", i, len(b.Dependents), id, d.Last)
		}
		checkBranch(t, d, append(slices.Clone(above), b.Node), shown)
	}
}

// Every line of a cycle is closed: whoever is above its own owner in the tree
// is shown again below it.
func TestForestClosesCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		walkBranches(trees(drawSelection(t, k).Forest()), nil, func(b *branch, above []graph.Node) {
			for _, n := range append(slices.Clone(above), b.Node) {
				closed := slices.ContainsFunc(b.Dependents, func(d *branch) bool { return d.Cycle && d.Node == n })
				if want := !b.Cycle && slices.Contains(b.Node.Dependents(), n); closed != want {
					t.Fatalf("%s below %s: closed %v, want %v", n.Identity(), b.Node.Identity(), closed, want)
				}
			}
		})
	})
}

func walkBranches(forest []*branch, above []graph.Node, f func(b *branch, above []graph.Node)) {
	for _, b := range forest {
		f(b, above)
		walkBranches(b.Dependents, append(slices.Clone(above), b.Node), f)
	}
}

// Nodes without another owner in the selection are roots, and one node of
// every cycle that nothing outside it leads to; no other node is.
func TestForestRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		sel := drawSelection(t, k)
		var roots graph.Set
		for _, n := range sel.Forest().Roots {
			roots.Add(n)
		}
		for n := range sel.Nodes.All() {
			onTop := true // everything of the selection that leads to n is in a cycle with it
			inRoots := 0  // members of that cycle, n included, that are roots
			for m := range sel.Nodes.All() {
				up, down := selectedAbove(sel, n, m), selectedAbove(sel, m, n)
				onTop = onTop && (!up || down || m == n)
				if roots.Has(m) && (m == n || up && down) {
					inRoots++
				}
			}
			if onTop && inRoots != 1 || !onTop && roots.Has(n) {
				t.Fatalf("%s: nothing leads to it: %v; roots: %s", n.Identity(), onTop, uids(roots.Sorted()))
			}
		}
	})
}

// selectedAbove reports whether references lead from a node to an owner
// without leaving the selection.
func selectedAbove(sel graph.Selection, n, owner graph.Node) bool {
	seen := map[graph.Node]bool{n: true}
	for queue := []graph.Node{n}; len(queue) > 0; queue = queue[1:] {
		for _, ref := range queue[0].Owners() {
			if ref.Owner == owner {
				return sel.Nodes.Has(owner)
			}
			if sel.Nodes.Has(ref.Owner) && !seen[ref.Owner] {
				seen[ref.Owner] = true
				queue = append(queue, ref.Owner)
			}
		}
	}
	return false
}

// A node that no cycle is in the way of is shown under its controller,
// otherwise under the first owner that keeps it, otherwise under the first.
func TestForestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		sel := drawSelection(t, k)
		walkBranches(trees(sel.Forest()), nil, func(b *branch, above []graph.Node) {
			want, owned := place(sel, b.Node)
			if !owned || b.Cycle || selectedAbove(sel, want, b.Node) {
				return
			}
			if len(above) == 0 || above[len(above)-1] != want {
				t.Fatalf("%s is not under %s: %s", b.Node.Identity(), want.Identity(), forestText(sel.Forest()))
			}
		})
	})
}

func place(sel graph.Selection, n graph.Node) (graph.Node, bool) {
	var refs []graph.Reference
	for _, ref := range n.Owners() {
		if sel.Nodes.Has(ref.Owner) && ref.Owner != n {
			refs = append(refs, ref)
		}
	}
	for _, better := range []func(graph.Reference) bool{
		// A controller that nobody has seen is no better than another owner.
		func(r graph.Reference) bool { return r.Controller != nil && !r.Owner.Virtual() },
		func(r graph.Reference) bool { return r.State == graph.Solid },
		func(graph.Reference) bool { return true },
	} {
		if i := slices.IndexFunc(refs, better); i >= 0 {
			return refs[i].Owner, true
		}
	}
	return graph.Node{}, false
}

// The number of hidden dependents is that of the dependents that the depth cut
// off.
func TestForestHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		whole := drawSelection(t, k)
		sel := whole
		if rapid.Bool().Draw(t, "filter") {
			wanted := drawNodes(t, k, "wanted")
			sel = whole.Filter(func(n graph.Node) bool { return slices.Contains(wanted, n) })
		}
		walkBranches(trees(sel.Forest()), nil, func(b *branch, _ []graph.Node) {
			want := 0
			for _, d := range b.Node.Dependents() {
				if whole.Cut.Has(b.Node) && !whole.Nodes.Has(d) && !b.Cycle {
					want++
				}
			}
			if b.Hidden != want {
				t.Fatalf("%s hides %d, want %d", b.Node.Identity(), b.Hidden, want)
			}
		})
	})
}

// The nodes of a selection have the order of their lines, without those that close cycles.
func TestPlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		forest := drawSelection(t, knots.Draw(t, "knot")).Forest()
		var want []graph.Node
		for b := range forest.Branches() {
			if !b.Cycle {
				want = append(want, b.Node)
			}
		}
		if got := slices.Collect(forest.Placed()); !slices.Equal(got, want) {
			t.Fatalf("got %s, want %s", uids(got), uids(want))
		}
	})
}

// Whoever wants no more lines gets no more, and the next one gets them all.
func TestBranchesStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		forest := drawSelection(t, knots.Draw(t, "knot")).Forest()
		want := forestText(forest)
		wanted := rapid.IntRange(1, 5).Draw(t, "wanted")
		got := 0
		for range forest.Branches() {
			if got++; got == wanted {
				break
			}
		}
		if again := forestText(forest); again != want {
			t.Fatalf("%s, and after a break %s", want, again)
		}
	})
}
