// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	positions := make([]int32, Batch{s.blocks}.Len())
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
	g.edges = make([]edge, 0, g.snapshot.countOwners())
	g.firstEdge = make([]uint32, 0, len(g.order)+1)
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
	first := make([]uint32, g.Len()+2)
	g.eachDependent(func(owner, _ int32) { first[owner+2]++ })
	for i := range g.Len() {
		first[i+2] += first[i+1]
	}
	g.dependents = make([]int32, first[g.Len()+1])
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
