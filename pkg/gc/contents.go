// SPDX-License-Identifier: Apache-2.0

package gc

import "github.com/kubectl-gc/kubectl-gc/pkg/graph"

// Contents returns the objects that the deletion of one of the nodes takes with it
// whatever they own or are owned by: what is in a Namespace, and the instances of a
// CustomResourceDefinition. Who deletes them is the namespace controller
// (namespace/deletion/namespaced_resources_deleter.go) and the API server itself
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go).
func Contents(g *graph.Graph, nodes ...graph.Node) []graph.Node {
	namespaces, resources := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		switch r := n.Resource(); {
		case r.IsNamespace():
			namespaces[n.Name()] = true
		case r.IsCRD():
			resources[n.Name()] = true // its name is that of the resource
		}
	}
	if len(namespaces)+len(resources) == 0 {
		return nil
	}
	var contents []graph.Node
	for n := range g.Nodes() {
		if !n.Virtual() && (namespaces[n.Namespace()] || resources[n.Resource().GroupResource().String()]) {
			contents = append(contents, n)
		}
	}
	return contents
}
