// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

// Graph is the ownership graph over a snapshot. It does not change, and may be
// read by several goroutines at once.
type Graph struct {
	snapshot *Snapshot
	// order holds the nodes that are objects; virtual ones follow. A node is its
	// position in the two together.
	order   []handle
	virtual []Object
	// positions are the nodes of the objects, by block and slot.
	positions [][]int32
	// virtualAt finds virtual nodes by UID.
	virtualAt map[types.UID]int32

	// edges are the owner references of all nodes, and those of node i begin at
	// firstEdge[i]; likewise dependents.
	edges          []edge
	firstEdge      []uint32
	dependents     []int32
	firstDependent []uint32
}

// edge is one owner reference; its position is that of the reference.
type edge struct {
	owner  int32
	state  State
	reason Reason
}

// Node is one object in a Graph. It is a small comparable handle.
type Node struct {
	graph *Graph
	index int32
}

// Reference is one owner reference with what it means to the garbage
// collector.
type Reference struct {
	metav1.OwnerReference
	// Index is the position in metadata.ownerReferences.
	Index     int
	Dependent Node
	// Owner is the node with the reference's UID, whatever its coordinates are.
	Owner  Node
	State  State
	Reason Reason
}

// Blocking reports whether the reference keeps its owner in foreground
// deletion until the dependent is gone.
func (r Reference) Blocking() bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }

// New builds the graph of a snapshot, which must not change afterwards. Edges
// follow UIDs alone, whatever else a reference states
// (garbagecollector/graph_builder.go, addDependentToOwners); an owner that was
// not read becomes a virtual node.
func New(s *Snapshot) *Graph {
	g := &Graph{snapshot: s, order: s.sorted(), virtualAt: map[types.UID]int32{}}
	g.positions = make([][]int32, len(s.blocks))
	positions := process.Large[int32](Batch{s.blocks}.Len())
	for number, b := range s.blocks {
		g.positions[number], positions = positions[:len(b.records)], positions[len(b.records):]
	}
	for i, h := range g.order {
		g.positions[h.block()][h.slot()] = int32(i)
	}
	g.connect()
	g.linkDependents()
	return g
}

// connect makes the edges of all owner references, and the virtual nodes that
// they lead to.
func (g *Graph) connect() {
	type openEdge struct {
		openReference
		edge int
	}
	var open []openEdge
	c := newClassifier(g.snapshot)
	g.edges = process.Large[edge](g.snapshot.countOwners())[:0]
	g.firstEdge = process.Large[uint32](len(g.order) + 1)[:0]
	for _, h := range g.order {
		g.firstEdge = append(g.firstEdge, uint32(len(g.edges)))
		b := g.snapshot.blocks[h.block()]
		for _, w := range b.ownersFrom(b.records[h.slot()].owners) {
			v := c.quick(h, w)
			e := edge{state: v.state, reason: v.reason}
			if v.known {
				e.owner = g.positions[v.owner.block()][v.owner.slot()]
			} else {
				e.owner = g.virtualOwner(h, w, c)
			}
			if !v.decided {
				open = append(open, openEdge{openReference{h, w}, len(g.edges)})
			}
			g.edges = append(g.edges, e)
		}
	}
	g.firstEdge = append(g.firstEdge, uint32(len(g.edges)))
	c.locate()
	for _, o := range open {
		g.classify(&g.edges[o.edge], o.openReference, c)
	}
}

// countOwners returns how many owner references there are at most.
func (s *Snapshot) countOwners() int {
	n := 0
	for _, b := range s.blocks {
		n += b.references
	}
	return n
}

// classify sets the state of an edge that was left open. When an object has the
// UID that a dangling reference states, but is not where the reference says, it
// names the mistake.
func (g *Graph) classify(e *edge, open openReference, c *classifier) {
	b := g.snapshot.blocks[open.dependent.block()]
	namespace := b.namespace(open.dependent.slot())
	e.state, e.reason = Classify(b.ownerReference(open.reference, &uidText{}), namespace, c)
	if e.state != Dangling || int(e.owner) >= len(g.order) {
		return
	}
	e.reason = CoordinatesMismatch
	owner := g.order[e.owner]
	if b := g.snapshot.blocks[owner.block()]; b.resource(owner.slot()).Namespaced && b.namespace(owner.slot()) != namespace {
		e.reason = WrongNamespace
	}
}

// virtualOwner returns the virtual node with the reference's UID. Its
// coordinates are copied from the first reference and its dependent
// (garbagecollector/graph_builder.go, addDependentToOwners).
func (g *Graph) virtualOwner(dependent handle, w *ownerRecord, c *classifier) int32 {
	b := g.snapshot.blocks[dependent.block()]
	uid := b.ownerKey(w).uid()
	if i, ok := g.virtualAt[uid]; ok {
		return i
	}
	stated := b.kinds[w.kind()]
	gvk := schema.FromAPIVersionAndKind(stated.apiVersion, stated.kind)
	resource := Resource{GroupVersionResource: gvk.GroupVersion().WithResource(""), Kind: gvk.Kind}
	namespace := b.namespace(dependent.slot())
	if r := c.resolve(dependent.block(), w.kind()); r.err == nil {
		resource.GroupVersionResource, resource.Namespaced = r.mapping.Resource, r.namespaced
		if !r.namespaced {
			namespace = ""
		}
	}
	i := int32(len(g.order) + len(g.virtual))
	g.virtual = append(g.virtual, Object{Resource: &resource, Namespace: namespace, Name: b.ownerName(w), UID: uid})
	g.virtualAt[uid] = i
	return i
}

// linkDependents turns the edges around. A dependent with two references of the
// same UID is one dependent.
func (g *Graph) linkDependents() {
	// first[i+1] counts first, then is where the dependents of i begin and go on, and in the end
	// where those of i+1 begin.
	first := process.Large[uint32](g.Len() + 2)
	g.eachDependent(func(owner, _ int32) { first[owner+2]++ })
	for i := range g.Len() {
		first[i+2] += first[i+1]
	}
	g.dependents = process.Large[int32](int(first[g.Len()+1]))
	g.eachDependent(func(owner, dependent int32) {
		g.dependents[first[owner+1]] = dependent
		first[owner+1]++
	})
	g.firstDependent = first[:g.Len()+1]
}

// eachDependent calls yield with every owner and its dependents, once each, in
// the order of the dependents.
func (g *Graph) eachDependent(yield func(owner, dependent int32)) {
	var owners []int32
	for i := range int32(len(g.order)) {
		owners = owners[:0]
		for _, e := range g.owners(i) {
			owners = append(owners, e.owner)
		}
		if len(owners) > 1 {
			slices.Sort(owners)
			owners = slices.Compact(owners)
		}
		for _, owner := range owners {
			yield(owner, i)
		}
	}
}

// owners returns the edges of a node's owner references.
func (g *Graph) owners(i int32) []edge {
	if int(i) >= len(g.order) {
		return nil
	}
	return g.edges[g.firstEdge[i]:g.firstEdge[i+1]]
}

// dependentsOf returns the nodes that reference the node.
func (g *Graph) dependentsOf(i int32) []int32 {
	return g.dependents[g.firstDependent[i]:g.firstDependent[i+1]]
}

// Snapshot returns the snapshot that the graph was built from.
func (g *Graph) Snapshot() *Snapshot { return g.snapshot }

// Len returns the number of nodes, virtual ones included.
func (g *Graph) Len() int { return len(g.order) + len(g.virtual) }

// Node returns the node with the UID.
func (g *Graph) Node(uid types.UID) (Node, bool) {
	k := keyOf(uid)
	if h, ok := g.snapshot.byUID.find(g.snapshot, &k); ok {
		return Node{g, g.positions[h.block()][h.slot()]}, true
	}
	i, ok := g.virtualAt[uid]
	return Node{g, i}, ok
}

// Nodes returns all nodes: the observed ones in the order of their identities,
// then the virtual ones in the order in which they were found.
func (g *Graph) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range g.Len() {
			if !yield(Node{g, int32(i)}) {
				return
			}
		}
	}
}

// At returns the i-th of Nodes.
func (g *Graph) At(i int) Node { return Node{g, int32(i)} }

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
