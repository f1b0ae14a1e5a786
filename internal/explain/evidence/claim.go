// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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

// Ends reports whether a tool's own object is being deleted with what it has deployed, and nothing recreates it: no owner, and nobody who
// has it and does not end as well. Then it has nothing any more.
func (r *Reader) Ends(n graph.Node, full *unstructured.Unstructured) bool {
	return r.ends(n, full, nil)
}

// ends is Ends of what the objects below have led to.
func (r *Reader) ends(n graph.Node, full *unstructured.Unstructured, below []types.UID) bool {
	owned := func(ref graph.Reference) bool {
		return ref.Controller != nil && *ref.Controller && ref.State != graph.Dangling && !ref.Owner.BeingDeleted()
	}
	if !delivery.Ends(n.Resource().GroupResource(), full) || slices.ContainsFunc(n.Owners(), owned) {
		return false
	}
	below = append(below, n.UID())
	stays := func(by graph.Node, has func(*unstructured.Unstructured) bool) bool {
		if slices.Contains(below, by.UID()) {
			return false
		}
		whole, err := r.Whole(by)
		return err != nil || has(whole) && !r.ends(by, whole, below)
	}
	for _, m := range delivery.Marks(full) {
		for _, by := range r.Called(m.Resource, m.Namespace, m.Name) {
			if stays(by, func(o *unstructured.Unstructured) bool { return delivery.Claims(o, full, m, EntryOf(n.Identity())) }) {
				return false
			}
		}
	}
	for _, resource := range delivery.Deployers() {
		for by := range r.Instances(resource) {
			if stays(by, func(o *unstructured.Unstructured) bool {
				return delivery.Here(resource, o) && delivery.Lists(resource, o, EntryOf(n.Identity()))
			}) {
				return false
			}
		}
	}
	return true
}

// EntryOf is the object as inventories have it, in whatever version.
func EntryOf(id graph.Identity) delivery.Entry {
	return delivery.Entry{Group: id.Resource.Group, Kind: id.Resource.Kind, Namespace: id.Namespace, Name: id.Name}
}
