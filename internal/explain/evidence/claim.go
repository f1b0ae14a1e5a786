// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Claimant returns that of a tool's own objects that has the object of a node which bears a mark of it (delivery.Claims); false for none.
// One that could not be read might, and is noted as unread.
func (r *Reader) Claimant(all []graph.Node, of graph.Node, o *unstructured.Unstructured, m delivery.Mark) (graph.Node, bool) {
	for _, n := range all {
		if by, err := r.Whole(n); err != nil || !r.Ends(n, by) && delivery.Claims(by, o, m, EntryOf(of.Identity())) {
			return n, true
		}
	}
	return graph.Node{}, false
}

// Ends reports whether a tool's own object is being deleted with what it has deployed, and nothing deploys it again: then it has nothing
// any more.
func (r *Reader) Ends(n graph.Node, full *unstructured.Unstructured) bool {
	return delivery.Ends(n.Resource().GroupResource(), full) && !slices.ContainsFunc(delivery.Marks(full), func(m delivery.Mark) bool {
		return !m.Resource.Empty() && slices.ContainsFunc(r.Called(m.Resource, m.Namespace, m.Name), func(by graph.Node) bool {
			return !by.BeingDeleted()
		})
	})
}

// EntryOf is the object as inventories have it, in whatever version.
func EntryOf(id graph.Identity) delivery.Entry {
	return delivery.Entry{Group: id.Resource.Group, Kind: id.Resource.Kind, Namespace: id.Namespace, Name: id.Name}
}
