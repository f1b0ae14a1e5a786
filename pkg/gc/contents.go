// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// contents are the objects that go with others whatever they own or are owned by:
// what is in a Namespace, and the instances of a CustomResourceDefinition. Who
// deletes them is the namespace controller
// (namespace/deletion/namespaced_resources_deleter.go) and the API server itself
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go). The zero value
// is empty.
type contents struct {
	namespaces, resources map[string]graph.Identity
}

// add adds what is in the object.
func (c *contents) add(id graph.Identity) {
	if c.namespaces == nil {
		c.namespaces, c.resources = map[string]graph.Identity{}, map[string]graph.Identity{}
	}
	switch {
	case id.Resource.IsNamespace():
		c.namespaces[id.Name] = id
	case id.Resource.IsCRD():
		c.resources[id.Name] = id // its name is that of the resource
	}
}

func (c *contents) empty() bool { return len(c.namespaces)+len(c.resources) == 0 }

// has reports whether an object of this type in the namespace is among them.
func (c *contents) has(r *graph.Resource, namespace string) bool {
	_, has := c.of(r, namespace)
	return has
}

// of returns what an object of this type in the namespace is in, if it is among them.
func (c *contents) of(r *graph.Resource, namespace string) (id graph.Identity, has bool) {
	if id, has = c.namespaces[namespace]; !has && len(c.resources) > 0 {
		id, has = c.resources[r.GroupResource().String()]
	}
	return id, has
}

// Contents returns the objects that the deletion of one of the nodes takes with it
// because they are in a Namespace or instances of a CustomResourceDefinition.
func Contents(g *graph.Graph, nodes ...graph.Node) []graph.Node {
	var in contents
	for _, n := range nodes {
		in.add(n.Identity())
	}
	if in.empty() {
		return nil
	}
	var found []graph.Node
	for n := range g.Nodes() {
		if !n.Virtual() && in.has(n.Resource(), n.Namespace()) {
			found = append(found, n)
		}
	}
	return found
}

// Concerned returns the nodes that the deletion of the targets concerns: what
// depends on them, what is in a target namespace, the instances of a target
// CustomResourceDefinition, and what depends on those. The server itself
// deletes contents and instances. An owner in foreground deletion that waits
// for nothing but these is concerned, too, for it can go then.
func Concerned(g *graph.Graph, targets []types.UID) graph.Set {
	var roots []graph.Node
	for _, uid := range targets {
		if n, ok := g.Node(uid); ok && uid != "" {
			roots = append(roots, n)
		}
	}
	roots = append(roots, Contents(g, roots...)...)
	set := graph.Descendants(roots...)
	blind := map[string]bool{}
	for namespace := range namespacesOf(set) {
		blind[namespace] = g.Snapshot().BlindSpot(namespace) != ""
	}
	for owners := waitingFor(set, blind); len(owners) > 0; owners = waitingFor(set, blind) {
		set.AddAll(graph.Descendants(owners...))
	}
	return set
}

// namespacesOf returns the namespaces of objects of which the set has dependents
// that block them, empty for none.
func namespacesOf(set graph.Set) map[string]bool {
	namespaces := map[string]bool{}
	for n := range set.All() {
		for o := range n.Blocks() {
			if o.DeletingDependents() {
				namespaces[o.Namespace()] = true
			}
		}
	}
	return namespaces
}

// waitingFor returns the owners in foreground deletion outside the set that are
// blocked from within it and not from without. Of what is in a namespace that was
// not read, or in none when not all were, that is not known.
func waitingFor(set graph.Set, blind map[string]bool) []graph.Node {
	var owners []graph.Node
	for n := range set.All() {
		for o := range n.Blocks() {
			outside := func(d graph.Node) bool { return !set.Has(d) }
			if !set.Has(o) && o.DeletingDependents() && !blind[o.Namespace()] && !slices.ContainsFunc(o.BlockingDependents(), outside) {
				owners = append(owners, o)
			}
		}
	}
	return owners
}
