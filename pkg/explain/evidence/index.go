// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// index finds the objects of the graph.
type index struct {
	ofType      map[schema.GroupResource][]graph.Node
	inNamespace map[string][]graph.Node
}

func (r *Reader) index() *index {
	if r.nodes != nil {
		return r.nodes
	}
	r.nodes = &index{ofType: map[schema.GroupResource][]graph.Node{}, inNamespace: map[string][]graph.Node{}}
	for n := range r.source.Graph.Nodes() {
		if n.Virtual() || r.gone(n.UID()) {
			continue
		}
		if namespace := n.Namespace(); namespace != "" {
			r.nodes.inNamespace[namespace] = append(r.nodes.inNamespace[namespace], n)
		}
		resource := n.Resource().GroupResource()
		r.nodes.ofType[resource] = append(r.nodes.ofType[resource], n)
	}
	return r.nodes
}

// Instances returns the objects of a type by their metadata, those that are gone
// left out.
func (r *Reader) Instances(resource schema.GroupResource) []graph.Node {
	return r.index().ofType[resource]
}

// In returns what is in a namespace, as Instances does.
func (r *Reader) In(namespace string) []graph.Node { return r.index().inNamespace[namespace] }

// Covers reports whether an object with these coordinates that is not among the
// Instances is provably absent.
func (r *Reader) Covers(resource schema.GroupResource, namespace, name string) bool {
	return r.source.Graph.Snapshot().Covers(resource, namespace, name)
}

// NamespaceGone reports whether the namespace provably does not exist.
func (r *Reader) NamespaceGone(name string) bool {
	if name == "" {
		return false
	}
	if _, there := r.namespace(name); there || !r.Covers(Namespaces.GroupResource(), "", name) {
		return false
	}
	_, err := r.Get(Namespaces, "", name) // it may have been created meanwhile
	return apierrors.IsNotFound(err)
}

// Ending reports whether a namespace is being deleted, or does not exist.
func (r *Reader) Ending(name string) bool {
	if n, there := r.namespace(name); there {
		return n.BeingDeleted()
	}
	return r.NamespaceGone(name)
}

func (r *Reader) namespace(name string) (graph.Node, bool) {
	for _, n := range r.Instances(Namespaces.GroupResource()) {
		if n.Name() == name {
			return n, true
		}
	}
	return graph.Node{}, false
}

// Served returns the preferred version of a type that the server has.
func (r *Reader) Served(resource schema.GroupResource) (schema.GroupVersionResource, bool) {
	mapper := r.source.Graph.Snapshot().Mapper
	if found, err := mapper.ResourceFor(resource.WithVersion("")); err == nil {
		return found, true
	}
	all, err := mapper.ResourcesFor(resource.WithVersion("")) // that was ambiguous
	if err != nil || len(all) == 0 {
		return schema.GroupVersionResource{}, false
	}
	return all[0], true
}
