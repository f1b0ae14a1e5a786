// SPDX-License-Identifier: Apache-2.0

package graph

import "iter"

// Doubtful returns the objects that have an owner reference which deserves a
// look, in the order of their identities: one that is neither solid nor waits,
// one to the object itself, or several with the same UID. Of the others nothing
// is made, so they cost next to nothing.
func (g *Graph) Doubtful() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range int32(len(g.order)) {
			if edges := g.owners(i); doubtful(i, edges) && !yield(Node{g, i}) {
				return
			}
		}
	}
}

// doubtful reports whether a node with these owner references is one of
// Doubtful.
func doubtful(node int32, edges []edge) bool {
	for k, e := range edges {
		if e.owner == node || e.state != Solid && e.state != WaitingForDependentsDeletion {
			return true
		}
		for _, other := range edges[:k] {
			if other.owner == e.owner {
				return true
			}
		}
	}
	return false
}

// CyclesOver returns the cycles that only those references make which follow
// wants, among the members of cycles that Cycles returned. Groups and their
// members are ordered as the nodes are.
func (g *Graph) CyclesOver(cycles [][]Node, follow func(Reference) bool) [][]Node {
	if len(cycles) == 0 {
		return nil
	}
	wanted := map[int32][]bool{}
	for _, cycle := range cycles {
		for _, n := range cycle {
			owners := n.Owners()
			wanted[n.index] = make([]bool, len(owners))
			for k, ref := range owners {
				wanted[n.index][k] = follow(ref)
			}
		}
	}
	t := newTarjan(g, func(i int32) bool { return wanted[i] != nil })
	t.follows = func(i int32, k int) bool { return wanted[i][k] }
	for _, cycle := range cycles {
		for _, n := range cycle {
			t.visit(n.index)
		}
	}
	return t.sorted()
}

// Name returns the node's name.
func (n Node) Name() string {
	if n.Virtual() {
		return n.virtual().Name
	}
	b, slot := n.place()
	return b.name(slot)
}
