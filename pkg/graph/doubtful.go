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
