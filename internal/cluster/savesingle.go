// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxSingles is the number of objects that are read by themselves.
const maxSingles = 1000

// owner notes an owner that no list has decided yet.
func (s *saver) owner(o *graph.Object, ref *metav1.OwnerReference) {
	mapping, err := s.catalog.mapper.RESTMapping(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(),
		schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Version)
	if err != nil || s.complete[mapping.Resource.GroupResource()] {
		return
	}
	u := graph.Undecided{Resource: graph.ResourceOf(mapping), Name: ref.Name}
	if u.Resource.Namespaced {
		u.Namespace = o.Namespace
	}
	if !s.owners[u] {
		u.Name, u.Namespace = strings.Clone(u.Name), strings.Clone(u.Namespace)
		s.owners[u] = true
	}
}

// decided notes that all objects of a type were listed.
func (s *saver) decided(resource schema.GroupResource) {
	if s.complete == nil {
		s.complete = map[schema.GroupResource]bool{}
	}
	s.complete[resource] = true
	for u := range s.owners {
		if u.Resource.GroupResource() == resource {
			delete(s.owners, u)
		}
	}
}

// saveOwners writes the owners that no list has decided, a GET each, and their owners
// in turn.
func (s *saver) saveOwners() error {
	done := map[graph.Undecided]bool{}
	for {
		var open []graph.Undecided
		for u := range s.owners {
			if !done[u] && len(done)+len(open) < maxSingles {
				open = append(open, u)
			}
		}
		if len(open) == 0 {
			return nil
		}
		slices.SortFunc(open, func(a, b graph.Undecided) int {
			return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		for _, u := range open {
			done[u] = true
			if err := s.single(&u.Resource, u.Namespace, u.Name, singleDecides); err != nil {
				return err
			}
		}
	}
}

// fewSingles is up to how many objects of a type are read by themselves. More are read from one list, unless the type has so
// many others, perSingle for each, that this costs the server more.
const (
	fewSingles = 20
	perSingle  = 50
)

// wholes writes objects of a type of which more than metadata is needed, in the namespace of their list.
func (s *saver) wholes(namespace string, objects []graph.Object, why purpose) error {
	if len(objects) > fewSingles && s.listed[objects[0].Resource.GroupResource()] <= perSingle*len(objects) {
		var err error
		if objects, err = s.among(namespace, objects, why); err != nil {
			return err
		}
	}
	for i := range objects {
		o := &objects[i]
		if err := s.single(o.Resource, o.Namespace, o.Name, why); err != nil {
			return err
		}
	}
	return nil
}

// among writes those of the objects of a type that one list has, and returns the others: all, when it cannot be read.
func (s *saver) among(namespace string, objects []graph.Object, why purpose) (others []graph.Object, err error) {
	resource := objects[0].Resource
	named := func(o *graph.Object) types.NamespacedName {
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	}
	entries := map[types.NamespacedName]*offline.Entry{}
	for i := range objects {
		entries[named(&objects[i])] = nil
	}
	failed := s.EachNaming(s.ctx, resource.GroupVersionResource, namespace, []string{`"uid"`}, func() {},
		func(whole *unstructured.Unstructured) error {
			name := types.NamespacedName{Namespace: whole.GetNamespace(), Name: whole.GetName()}
			if _, wanted := entries[name]; wanted {
				if e, _, err := newEntry(resource, whole); err == nil { // what cannot be encoded is not held
					entries[name] = e
				}
			}
			return nil
		})
	if failed != nil {
		return objects, s.ctx.Err()
	}
	if err := s.out.Begin(singles(resource, why)); err != nil {
		return nil, err
	}
	for i := range objects {
		e := entries[named(&objects[i])]
		if e == nil {
			others = append(others, objects[i])
			continue
		}
		if err := s.out.Add(e); err != nil {
			return nil, err
		}
	}
	return others, s.out.End(offline.End{})
}

// singles is a list of objects that were read beside the list of their type.
func singles(resource *graph.Resource, why purpose) *offline.List {
	return &offline.List{
		Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Kind: resource.Kind,
		Namespaced: resource.Namespaced, Holds: offline.HoldsOf(resource.GroupResource()), Single: true, Again: why == singleAgain,
	}
}

// purpose is why an object is read by itself.
type purpose int

const (
	// singleWhole: its list has too little of it.
	singleWhole purpose = iota
	// singleDecides: no list has it. Why it could not be read is written.
	singleDecides
	// singleAgain: to see what has become of it. So is that it is gone.
	singleAgain
)

// single writes an object that is read by itself.
func (s *saver) single(resource *graph.Resource, namespace, name string, why purpose) error {
	gr := resource.GroupResource()
	if !graph.ValidName(name) {
		return nil
	}
	s.stats.gets.Add(1)
	accept := "application/json"
	if offline.HoldsOf(gr) == offline.Metadata {
		accept = metadataOnly
	}
	data, failed := raw(s.ctx, s.rest.Get().AbsPath(resource.Path(namespace, name)...).SetHeader("Accept", accept))
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case failed != nil && why != singleWhole:
		return s.out.One(&offline.One{
			Group: gr.Group, Resource: gr.Resource, Namespace: namespace, Name: name,
			Error: *statusOf(failed), Again: why == singleAgain,
		})
	case failed != nil:
		return nil
	}
	var whole unstructured.Unstructured
	if json.Unmarshal(data, &whole.Object) != nil {
		return nil // what cannot be decoded is not held
	}
	e, o, err := newEntry(resource, &whole)
	if err != nil {
		return nil //nolint:nilerr // nor is what cannot be encoded
	}
	if err := s.out.Begin(singles(resource, why)); err != nil {
		return err
	}
	if why == singleDecides { // its owners are to be found, too
		for i := range o.OwnerReferences {
			s.owner(o, &o.OwnerReferences[i])
		}
	}
	if err := s.out.Add(e); err != nil {
		return err
	}
	return s.out.End(offline.End{})
}

// newEntry makes the entry of a whole object, of which it takes out what is not held.
func newEntry(resource *graph.Resource, whole *unstructured.Unstructured) (*offline.Entry, *graph.Object, error) {
	o := graph.NewObject(resource, whole)
	e, err := offline.NewEntry(resource.GroupResource(), whole.Object)
	return e, &o, err
}
