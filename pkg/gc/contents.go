// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Concerned returns the nodes that the deletion of the targets concerns: what
// depends on them, what is in a namespace among these, the instances of a
// CustomResourceDefinition, the Endpoints of a Service, what depends on those, and so on. The server itself
// deletes contents, instances and Endpoints. An owner in foreground deletion that waits
// for nothing but these is concerned, too, for it can go then.
func Concerned(g *graph.Graph, targets []types.UID) graph.Set {
	var roots []graph.Node
	for _, uid := range targets {
		if n, ok := g.Node(uid); ok && uid != "" {
			roots = append(roots, n)
		}
	}
	set := withContents(g, graph.Descendants(roots...))
	blind := map[string]bool{}
	for namespace := range namespacesOf(set) {
		blind[namespace] = g.Snapshot().BlindSpot(namespace) != ""
	}
	for owners := waitingFor(set, blind); len(owners) > 0; owners = waitingFor(set, blind) {
		set.AddAll(graph.Descendants(owners...))
	}
	return set
}

// withContents adds what is in the nodes, its descendants, what is in those, and so on.
func withContents(g *graph.Graph, set graph.Set) graph.Set {
	for before := -1; before < set.Len(); {
		before = set.Len()
		containers := slices.DeleteFunc(slices.Collect(set.All()),
			func(n graph.Node) bool { return !n.Resource().IsNamespace() && !n.Resource().IsCRD() })
		set.AddAll(graph.Descendants(append(graph.Contents(g, containers...), endpointsOf(g, set)...)...))
	}
	return set
}

// endpointsOf are the Endpoints of the Services of a set: those with their names (k8s.io/kubernetes/pkg/registry/core/service/storage,
// afterDelete).
func endpointsOf(g *graph.Graph, set graph.Set) (all []graph.Node) {
	services := map[[2]string]bool{}
	for n := range set.All() {
		if !n.Virtual() && isCore(n.Resource(), "services") {
			services[[2]string{n.Namespace(), n.Name()}] = true
		}
	}
	if len(services) == 0 {
		return nil
	}
	for n := range g.Nodes() {
		if !n.Virtual() && isCore(n.Resource(), "endpoints") && services[[2]string{n.Namespace(), n.Name()}] {
			all = append(all, n)
		}
	}
	return all
}

// isCore reports whether a type is that of the core API.
func isCore(r *graph.Resource, resource string) bool { return r.Group == "" && r.Resource == resource }

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
