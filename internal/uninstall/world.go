// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// World is the cluster from which a tool removes something.
type World struct {
	// Graph is of all that may be read of it, with all labels.
	Graph *graph.Graph
	// Evidence reads whole objects of it.
	Evidence *evidence.Reader
	// Namespace is that of objects that state none, and whose type has namespaces.
	Namespace string
	// Release reads the release of a HelmRelease, by the namespace of its record. nil stands for not being able to.
	Release func(namespace, name string) (*Release, error)
	// HelmVersion is the major version of the Helm that uninstalls, 0 for the one that made the release, as far as that shows.
	HelmVersion int
}

func (w *World) release(namespace, name string) (*Release, error) {
	if w.Release == nil {
		return nil, errNoRecord
	}
	return w.Release(namespace, name)
}

// VersionOf is the major version of the Helm that uninstalls a release.
func (w *World) VersionOf(r *Release) int { return cmp.Or(w.HelmVersion, r.Version) }

// state says what is known of an object of a manifest.
type state int

const (
	present  state = iota
	absent         // it provably does not exist
	unserved       // there is no such type
	unread
	unnamed // it has a generateName alone
)

// found is an object of a manifest, with its node if it is present. Its Namespace is that in which it is.
type found struct {
	Item
	state state
	node  graph.Node
	// resource is that of its kind, unless it is unserved or that was not read; elsewhere: the server has it, but not in the version of the
	// manifest.
	resource  graph.Resource
	elsewhere bool
}

// id is the identity of the live object, or else what the manifest says.
func (f *found) id() graph.Identity {
	if f.state == present {
		return f.node.Identity()
	}
	return f.Identity()
}

type place struct {
	resource        schema.GroupResource
	namespace, name string
}

// find looks for objects of a manifest.
func (w *World) find(items []Item) []found {
	all, wanted := make([]found, len(items)), map[place][]int{}
	snapshot := w.Graph.Snapshot()
	for i := range items {
		f := &all[i]
		f.Item = items[i]
		mapping, err := snapshot.Resolve(f.GroupVersionKind.GroupVersion().String(), f.Kind)
		if err != nil && !errors.Is(err, graph.ErrUnlisted) {
			f.elsewhere = true
			mapping, err = snapshot.Mapper.RESTMapping(f.GroupVersionKind.GroupKind())
		}
		if err != nil {
			f.state = unserved
			if errors.Is(err, graph.ErrUnlisted) {
				f.state = unread
			}
			continue
		}
		resource := graph.ResourceOf(mapping)
		f.resource = resource
		switch {
		case !resource.Namespaced:
			f.Namespace = ""
		case f.Namespace == "":
			f.Namespace = w.Namespace
		}
		if strings.HasSuffix(f.Name, anyName) {
			f.state = unnamed
			continue
		}
		f.state = unread
		if snapshot.Covers(resource.GroupResource(), f.Namespace, f.Name) {
			f.state = absent
		}
		at := place{resource.GroupResource(), f.Namespace, f.Name}
		wanted[at] = append(wanted[at], i)
	}
	for n := range w.Graph.Nodes() {
		if n.Virtual() {
			continue
		}
		for _, i := range wanted[place{n.Resource().GroupResource(), n.Namespace(), n.Name()}] {
			all[i].state, all[i].node = present, n
		}
	}
	return all
}

// whole reads live objects: nil for one that could not be read.
func (w *World) whole(all []found) []*unstructured.Unstructured {
	var nodes []graph.Node
	for i := range all {
		if all[i].state == present {
			nodes = append(nodes, all[i].node)
		}
	}
	w.Evidence.Together(nodes)
	objects := make([]*unstructured.Unstructured, len(all))
	for i := range all {
		if all[i].state == present {
			if o, err := w.Evidence.Whole(all[i].node); err == nil {
				objects[i] = o
			}
		}
	}
	return objects
}
