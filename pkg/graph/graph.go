// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Graph is the ownership graph over a snapshot. It does not change, and may be
// read by several goroutines at once.
type Graph struct {
	snapshot *Snapshot
	nodes    []node
	byUID    map[types.UID]int32
	// observed is the number of nodes that are objects; virtual ones follow.
	observed int
}

// node is one object, or an owner that only references name.
type node struct {
	object     Object
	owners     []edge
	dependents []int32
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

// New builds the graph of a snapshot. Edges follow UIDs alone, whatever else a
// reference states (garbagecollector/graph_builder.go,
// addDependentToOwners); an owner that was not read becomes a virtual node.
func New(s *Snapshot) *Graph {
	g := &Graph{snapshot: s, observed: len(s.objects), byUID: make(map[types.UID]int32, len(s.objects))}
	g.nodes = make([]node, 0, len(s.objects))
	for i := range s.objects {
		g.nodes = append(g.nodes, node{object: s.objects[i]})
	}
	slices.SortFunc(g.nodes, func(a, b node) int { return compareObjects(&a.object, &b.object) })
	for i := range g.nodes {
		g.byUID[g.nodes[i].object.UID] = int32(i)
	}
	lookup := newSnapshotLookup(s)
	for i := range g.observed {
		g.connect(int32(i), lookup)
	}
	return g
}

// compareObjects is Identity.Compare without building identities.
func compareObjects(a, b *Object) int {
	if a.Resource == b.Resource && a.Namespace == b.Namespace && a.Name != b.Name {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}
	return a.Identity().Compare(b.Identity())
}

// connect adds the edges of an object's owner references.
func (g *Graph) connect(i int32, lookup *snapshotLookup) {
	o := g.nodes[i].object
	if len(o.OwnerReferences) == 0 {
		return
	}
	owners := make([]edge, len(o.OwnerReferences))
	for k, ref := range o.OwnerReferences {
		owner := g.ownerNode(ref, &o, lookup)
		owners[k].owner = owner
		owners[k].state, owners[k].reason = Classify(ref, o.Namespace, lookup)
		if owners[k].state == Dangling {
			owners[k].reason = g.refine(owners[k].reason, owner, &o)
		}
		// A dependent with two references of the same UID is one dependent.
		if d := g.nodes[owner].dependents; len(d) == 0 || d[len(d)-1] != i {
			g.nodes[owner].dependents = append(d, i)
		}
	}
	g.nodes[i].owners = owners
}

// refine names the mistake when an object has the UID that a dangling
// reference states, but is not where the reference says.
func (g *Graph) refine(reason Reason, owner int32, dependent *Object) Reason {
	if int(owner) >= g.observed {
		return reason
	}
	o := &g.nodes[owner].object
	if o.Resource.Namespaced && o.Namespace != dependent.Namespace {
		return WrongNamespace
	}
	return CoordinatesMismatch
}

// ownerNode returns the node with the reference's UID and makes a virtual one
// when there is none, with coordinates copied from the reference and the
// dependent (garbagecollector/graph_builder.go, addDependentToOwners).
func (g *Graph) ownerNode(ref metav1.OwnerReference, dependent *Object, lookup *snapshotLookup) int32 {
	if i, ok := g.byUID[ref.UID]; ok {
		return i
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource := Resource{GroupVersionResource: gvk.GroupVersion().WithResource(""), Kind: gvk.Kind}
	namespace := dependent.Namespace
	if mapping, err := lookup.Resolve(ref.APIVersion, ref.Kind); err == nil {
		resource.GroupVersionResource = mapping.Resource
		resource.Namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if !resource.Namespaced {
			namespace = ""
		}
	}
	i := int32(len(g.nodes))
	g.nodes = append(g.nodes, node{object: Object{Resource: &resource, Namespace: namespace, Name: ref.Name, UID: ref.UID}})
	g.byUID[ref.UID] = i
	return i
}

// Snapshot returns the snapshot that the graph was built from.
func (g *Graph) Snapshot() *Snapshot { return g.snapshot }

// Len returns the number of nodes, virtual ones included.
func (g *Graph) Len() int { return len(g.nodes) }

// Node returns the node with the UID.
func (g *Graph) Node(uid types.UID) (Node, bool) {
	i, ok := g.byUID[uid]
	return Node{g, i}, ok
}

// Nodes returns all nodes: the observed ones in the order of their identities,
// then the virtual ones in the order in which they were found.
func (g *Graph) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range g.nodes {
			if !yield(Node{g, int32(i)}) {
				return
			}
		}
	}
}

func (n Node) node() *node { return &n.graph.nodes[n.index] }

// Identity returns the node's identity. That of a virtual node is what the
// first reference to it states.
func (n Node) Identity() Identity { return n.node().object.Identity() }

// Object returns the object, which is shared and must not be changed. That of
// a virtual node has nothing but an identity.
func (n Node) Object() *Object { return &n.node().object }

// Virtual reports whether the node is known from owner references alone.
func (n Node) Virtual() bool { return int(n.index) >= n.graph.observed }

// BeingDeleted reports whether the object has a deletion timestamp.
func (n Node) BeingDeleted() bool { return n.node().object.BeingDeleted() }

// DeletingDependents reports whether the object is in foreground deletion.
func (n Node) DeletingDependents() bool { return n.node().object.DeletingDependents() }

// Owners returns the owner references in the order in which the object has
// them.
func (n Node) Owners() []Reference {
	edges := n.node().owners
	refs := make([]Reference, len(edges))
	for k := range edges {
		refs[k] = n.reference(k)
	}
	return refs
}

func (n Node) reference(k int) Reference {
	e := n.node().owners[k]
	return Reference{
		OwnerReference: n.node().object.OwnerReferences[k],
		Index:          k,
		Dependent:      n,
		Owner:          Node{n.graph, e.owner},
		State:          e.state,
		Reason:         e.reason,
	}
}

// Dependents returns the objects that have an owner reference with the node's
// UID, in the order of their identities.
func (n Node) Dependents() []Node {
	indices := n.node().dependents
	nodes := make([]Node, len(indices))
	for k, i := range indices {
		nodes[k] = Node{n.graph, i}
	}
	return nodes
}

// HasDependents reports whether any object has an owner reference with the
// node's UID.
func (n Node) HasDependents() bool { return len(n.node().dependents) > 0 }

// BlockingDependents returns the dependents that keep the node in foreground
// deletion (garbagecollector/graph.go, blockingDependents): coordinates,
// namespace and state of the reference do not matter.
func (n Node) BlockingDependents() []Node {
	var blocking []Node
	for _, d := range n.Dependents() {
		if slices.ContainsFunc(d.ReferencesTo(n), Reference.Blocking) {
			blocking = append(blocking, d)
		}
	}
	return blocking
}

// ReferencesTo returns the node's references to the owner: none when it is not
// one, several when the object states its UID several times.
func (n Node) ReferencesTo(owner Node) []Reference {
	var refs []Reference
	for k, e := range n.node().owners {
		if e.owner == owner.index {
			refs = append(refs, n.reference(k))
		}
	}
	return refs
}
