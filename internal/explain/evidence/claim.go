// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Claimant returns that of a tool's own objects that has the object of a node which bears a mark of it (delivery.Claims); false for none.
// One that could not be read might, and is noted as unread.
func (r *Reader) Claimant(all []graph.Node, of graph.Node, o *unstructured.Unstructured, m delivery.Mark) (graph.Node, bool) {
	for _, n := range all {
		if by, err := r.Whole(n); err != nil || delivery.Claims(by, o, m, EntryOf(of.Identity())) {
			return n, true
		}
	}
	return graph.Node{}, false
}

// EntryOf is the object as inventories have it, in whatever version.
func EntryOf(id graph.Identity) delivery.Entry {
	return delivery.Entry{Group: id.Resource.Group, Kind: id.Resource.Kind, Namespace: id.Namespace, Name: id.Name}
}
