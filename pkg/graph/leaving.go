// SPDX-License-Identifier: Apache-2.0

package graph

import "slices"

// Leaving returns the objects that are being deleted, or are in a namespace that is, and those that the garbage collector deletes, in their
// order.
func Leaving(g *Graph) []Node {
	ending := map[string]bool{}
	for n := range g.Nodes() {
		if !n.Virtual() && n.Resource().IsNamespace() && n.BeingDeleted() {
			ending[n.Name()] = true
		}
	}
	var all []Node
	for n := range g.Nodes() {
		if !n.Virtual() && (n.BeingDeleted() || ending[n.Namespace()] || n.garbage()) {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, Node.Compare)
	return all
}

// garbage reports whether an object has owners, all of which are gone or wait for their dependents.
func (n Node) garbage() bool {
	owned := false
	for _, ref := range n.Owners() {
		if owned = true; ref.State != Dangling && ref.State != WaitingForDependentsDeletion {
			return false
		}
	}
	return owned
}
