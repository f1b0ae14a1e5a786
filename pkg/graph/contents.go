// SPDX-License-Identifier: Apache-2.0

package graph

// Containers tell the objects that go with others whatever they own or are owned by:
// what is in a Namespace, and the instances of a CustomResourceDefinition. Who
// deletes them is the namespace controller
// (namespace/deletion/namespaced_resources_deleter.go) and the API server itself
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go). The zero value
// is empty.
type Containers struct {
	namespaces, resources map[string]Identity
}

// Add adds what is in the object.
func (c *Containers) Add(id Identity) {
	if c.namespaces == nil {
		c.namespaces, c.resources = map[string]Identity{}, map[string]Identity{}
	}
	switch {
	case id.Resource.IsNamespace():
		c.namespaces[id.Name] = id
	case id.Resource.IsCRD():
		c.resources[id.Name] = id // its name is that of the resource
	}
}

// Empty reports whether there are none.
func (c *Containers) Empty() bool { return len(c.namespaces)+len(c.resources) == 0 }

// Has reports whether an object of this type in the namespace is among them.
func (c *Containers) Has(r *Resource, namespace string) bool {
	_, has := c.Of(r, namespace)
	return has
}

// Of returns what an object of this type in the namespace is in, if it is among them.
func (c *Containers) Of(r *Resource, namespace string) (id Identity, has bool) {
	if id, has = c.namespaces[namespace]; !has && len(c.resources) > 0 {
		id, has = c.resources[r.GroupResource().String()]
	}
	return id, has
}

// Contents returns the objects that the deletion of one of the nodes takes with it
// because they are in a Namespace or instances of a CustomResourceDefinition.
func Contents(g *Graph, nodes ...Node) []Node {
	var in Containers
	for _, n := range nodes {
		in.Add(n.Identity())
	}
	if in.Empty() {
		return nil
	}
	var found []Node
	for n := range g.Nodes() {
		if !n.Virtual() && in.Has(n.Resource(), n.Namespace()) {
			found = append(found, n)
		}
	}
	return found
}
