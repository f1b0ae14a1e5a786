// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is one object in a Graph. It is a small comparable handle.
type Node struct {
	graph *Graph
	index int32
}

// Index returns the node's place among the graph's Nodes, from 0.
func (n Node) Index() int { return int(n.index) }

// place returns the block and slot of a node that is an object.
func (n Node) place() (*block, int) {
	h := n.graph.order[n.index]
	return n.graph.snapshot.blocks[h.block()], h.slot()
}

func (n Node) virtual() *Object { return &n.graph.virtual[int(n.index)-len(n.graph.order)] }

// Identity returns the node's identity. That of a virtual node is what the
// first reference to it states.
func (n Node) Identity() Identity {
	if n.Virtual() {
		return n.virtual().Identity()
	}
	b, slot := n.place()
	return b.identity(slot)
}

// UID returns the node's UID.
func (n Node) UID() types.UID {
	if n.Virtual() {
		return n.virtual().UID
	}
	b, slot := n.place()
	return b.key(slot).uid()
}

// HasUID reports whether the node has a UID, as every object of the API server's own
// types has.
func (n Node) HasUID() bool {
	if n.Virtual() {
		return n.virtual().UID != ""
	}
	b, slot := n.place()
	k := b.key(slot)
	return k.uuid || k.text != ""
}

// Resource returns the node's type, which is shared and must not be changed.
func (n Node) Resource() *Resource {
	if n.Virtual() {
		return n.virtual().Resource
	}
	b, slot := n.place()
	return b.resource(slot)
}

// Name returns the node's name.
func (n Node) Name() string {
	if n.Virtual() {
		return n.virtual().Name
	}
	b, slot := n.place()
	return b.name(slot)
}

// Namespace returns the node's namespace, empty for a cluster-scoped object.
func (n Node) Namespace() string {
	if n.Virtual() {
		return n.virtual().Namespace
	}
	b, slot := n.place()
	return b.namespace(slot)
}

// Compare orders nodes of one graph by their identities.
func (n Node) Compare(m Node) int {
	if n.Virtual() || m.Virtual() {
		return n.Identity().Compare(m.Identity())
	}
	return cmp.Compare(n.index, m.index)
}

// Object returns the object. What it points to is shared and must not be
// changed. That of a virtual node has nothing but an identity. The object is
// made anew for each call; who needs no more than a part of it asks for that.
func (n Node) Object() *Object {
	o := n.object() // inlined, this is on the stack of who only looks at it
	return &o
}

func (n Node) object() Object {
	if n.Virtual() {
		return *n.virtual()
	}
	b, slot := n.place()
	return b.object(slot)
}

// Unlabelled returns the object as Object does, without its labels, which would take more
// room than the rest of it.
func (n Node) Unlabelled() Object {
	if n.Virtual() {
		return *n.virtual()
	}
	b, slot := n.place()
	return b.unlabelled(slot)
}

// Virtual reports whether the node is known from owner references alone.
func (n Node) Virtual() bool { return int(n.index) >= len(n.graph.order) }

// is reports whether the node is an object with the flag.
func (n Node) is(flag recordFlags) bool {
	if n.Virtual() {
		return false
	}
	b, slot := n.place()
	return b.is(slot, flag)
}

// BeingDeleted reports whether the object has a deletion timestamp.
func (n Node) BeingDeleted() bool { return n.is(terminating) }

// DeletingDependents reports whether the object is in foreground deletion.
func (n Node) DeletingDependents() bool { return n.is(foreground) }

// OrphaningDependents is that of the object.
func (n Node) OrphaningDependents() bool {
	return n.BeingDeleted() && n.HasFinalizer(metav1.FinalizerOrphanDependents)
}

// Finalizers returns the object's finalizers, which are shared and must not be
// changed.
func (n Node) Finalizers() []string {
	if n.Virtual() {
		return nil
	}
	b, slot := n.place()
	return b.finalizers[b.records[slot].finalizers]
}

// CreationTimestamp returns that of the object.
func (n Node) CreationTimestamp() metav1.Time {
	if n.Virtual() {
		return metav1.Time{}
	}
	b, slot := n.place()
	return b.creation(slot)
}

// HasFinalizer reports whether the object carries the finalizer.
func (n Node) HasFinalizer(finalizer string) bool { return slices.Contains(n.Finalizers(), finalizer) }

// HasOwners reports whether the object has owner references.
func (n Node) HasOwners() bool { return len(n.graph.owners(n.index)) > 0 }

// AllSolid reports whether all owner references of the object are Solid, as those of an
// object without any.
func (n Node) AllSolid() bool {
	return !slices.ContainsFunc(n.graph.owners(n.index), func(e edge) bool { return e.state != Solid })
}

// Owners returns the owner references in the order in which the object has
// them.
func (n Node) Owners() []Reference {
	return n.references(func(edge) bool { return true })
}

// Blocks returns the owners that the object keeps in foreground deletion until it is
// gone, if they come to be in it: those of references that block. One may come twice.
func (n Node) Blocks() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		edges := n.graph.owners(n.index)
		if len(edges) == 0 {
			return
		}
		b, slot := n.place()
		for k, w := range b.ownersFrom(b.records[slot].owners) {
			if w.is(blockTrue) && !yield(Node{n.graph, edges[k].owner}) {
				return
			}
		}
	}
}

// references returns those owner references whose edge is wanted.
func (n Node) references(wanted func(edge) bool) []Reference {
	edges := n.graph.owners(n.index)
	if len(edges) == 0 {
		return nil
	}
	var refs []Reference
	var uids uidText
	b, slot := n.place()
	for k, w := range b.ownersFrom(b.records[slot].owners) {
		if e := edges[k]; wanted(e) {
			refs = append(refs, Reference{
				OwnerReference: b.ownerReference(w, &uids),
				Index:          k,
				Dependent:      n,
				Owner:          Node{n.graph, e.owner},
				State:          e.state,
				Reason:         e.reason,
			})
		}
	}
	return refs
}

// Dependents returns the objects that have an owner reference with the node's
// UID, in the order of their identities.
func (n Node) Dependents() []Node {
	indices := n.graph.dependentsOf(n.index)
	nodes := make([]Node, len(indices))
	for k, i := range indices {
		nodes[k] = Node{n.graph, i}
	}
	return nodes
}

// HasDependents reports whether any object has an owner reference with the
// node's UID.
func (n Node) HasDependents() bool { return len(n.graph.dependentsOf(n.index)) > 0 }

// CountDependents returns how many Dependents the node has.
func (n Node) CountDependents() int { return len(n.graph.dependentsOf(n.index)) }

// BlockingDependents returns the dependents that keep the node in foreground
// deletion (garbagecollector/graph.go, blockingDependents): coordinates,
// namespace and state of the reference do not matter.
func (n Node) BlockingDependents() []Node {
	var blocking []Node
	for _, d := range n.Dependents() {
		if _, blocks := d.EdgeTo(n); blocks {
			blocking = append(blocking, d)
		}
	}
	return blocking
}

// EdgeTo reports whether the object has an owner reference with the owner's
// UID, and whether one of those keeps the owner in foreground deletion.
func (n Node) EdgeTo(owner Node) (references, blocks bool) {
	edges := n.graph.owners(n.index)
	if len(edges) == 0 {
		return false, false
	}
	b, slot := n.place()
	for k, w := range b.ownersFrom(b.records[slot].owners) {
		if edges[k].owner == owner.index {
			references = true
			blocks = blocks || w.is(blockTrue)
		}
	}
	return references, blocks
}

// ReferencesTo returns the node's references to the owner: none when it is not
// one, several when the object states its UID several times.
func (n Node) ReferencesTo(owner Node) []Reference {
	return n.references(func(e edge) bool { return e.owner == owner.index })
}
