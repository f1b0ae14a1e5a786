// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// found is what a list has by UID, or why it could not be read.
type found struct {
	err error
	// byUID are the objects of a list that is kept.
	byUID map[types.UID]*unstructured.Unstructured
	// packed are the others, as JSON: unpacked they take five times the room, and each
	// is looked at for a moment.
	packed map[types.UID][]byte
	// last is the one that was unpacked last.
	last *unstructured.Unstructured
}

// pack keeps an object.
func (f *found) pack(o *unstructured.Unstructured) error {
	text, err := json.Marshal(o.Object)
	f.packed[o.GetUID()] = text
	return err
}

// of returns an object by its UID, nil when there is none.
func (f *found) of(uid types.UID) *unstructured.Unstructured {
	text, isPacked := f.packed[uid]
	if !isPacked {
		return f.byUID[uid]
	}
	if f.last == nil || f.last.GetUID() != uid {
		f.last = &unstructured.Unstructured{}
		_ = json.Unmarshal(text, &f.last.Object) // pack has made it
	}
	return f.last
}

type listing struct {
	items []unstructured.Unstructured
	err   error
}

// lists are those of whole objects, each read once. They own what was listed, and how to find an object in it.
type lists struct {
	*metadata
	*unread
	source Source
	ctx    context.Context // of the run
	// whole are those that these are made of, nil for none.
	whole *lists

	all map[place]listing
	// mentioned are those of Mentioning, by what was asked.
	mentioned map[string]listing
	// earlyLists are those that were read before they are asked for.
	earlyLists map[place]listing
	// pods are those that were read all at once, by namespace.
	pods map[string]podList
	// indexes finds objects in lists.
	indexes map[place]*found
}

// inList finds the whole of a node in a list: that of all objects if there is one, and
// otherwise that of those that are being deleted; of its namespace for who may not list all.
func (r *lists) inList(n graph.Node, p place) (*unstructured.Unstructured, error) {
	list := r.index(p)
	if apierrors.IsForbidden(list.err) && p.namespace != n.Namespace() {
		p.namespace = n.Namespace()
		list = r.index(p)
	}
	if list.err != nil {
		r.note(p, list.err)
		return nil, list.err
	}
	if full := list.of(n.UID()); full != nil {
		return full, nil
	}
	return nil, apierrors.NewNotFound(p.resource.GroupResource(), n.Name())
}

// index is indexed, once.
func (r *lists) index(p place) *found {
	list, known := r.indexes[p]
	if !known {
		list = r.indexed(p)
		r.indexes[p] = list
	}
	return list
}

// indexed finds the objects of the list that was read, or else those that are being
// deleted.
func (r *lists) indexed(p place) *found {
	if l, listed := r.all[p]; listed {
		list := &found{err: l.err, byUID: map[types.UID]*unstructured.Unstructured{}}
		for i := range l.items {
			if uid := l.items[i].GetUID(); !r.gone(uid) {
				list.byUID[uid] = &l.items[i]
			}
		}
		return list
	}
	list := &found{}
	begin := func() { list.packed = map[types.UID][]byte{} }
	if p.resource == Pods {
		list = r.podsIn(p.namespace).ending
	} else {
		list.err = r.source.Cluster.EachMentioning(r.ctx, p.resource, p.namespace, []string{"deletionTimestamp"}, begin,
			func(o *unstructured.Unstructured) error {
				if o.GetDeletionTimestamp() == nil || r.gone(o.GetUID()) {
					return nil
				}
				return list.pack(o)
			})
	}
	return list
}

// List lists whole objects, in the namespace or everywhere.
func (r *lists) List(resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	p := place{resource, namespace, ""}
	l, known := r.all[p]
	if !known {
		if r.whole != nil {
			l.items, l.err = r.whole.List(resource, namespace)
		} else {
			l = r.readList(p)
		}
		if r.source.Gone != nil {
			l.items = slices.DeleteFunc(slices.Clone(l.items), func(o unstructured.Unstructured) bool { return r.gone(o.GetUID()) })
		}
		r.all[p] = l
		r.note(p, l.err)
	}
	return l.items, l.err
}

// readList returns a list that was read early, or reads it.
func (r *lists) readList(p place) listing {
	l, read := r.earlyLists[p]
	if !read {
		l.items, l.err = r.source.Cluster.List(r.ctx, p.resource, p.namespace)
	}
	return l
}

// maxApart is the number of namespaces up to which a type is listed in each.
const maxApart = 4

// Where returns the namespaces in which to list what of a type is in some of them: each, or all, which is the empty one, if they are many
// and the type could be listed in all, or if the empty one is among them.
func (m *metadata) Where(resource schema.GroupResource, in sets.Set[string]) []string {
	if in.Has("") || in.Len() > maxApart && m.graph.Snapshot().ListedIn(resource, "") {
		return []string{""}
	}
	return sets.List(in)
}

// EachNaming yields the objects of a resource in a namespace, empty for all, that have one of the texts anywhere, also within a longer one,
// as Cluster has it.
func (r *lists) EachNaming(resource schema.GroupVersionResource, namespace string, texts []string, begin func(),
	yield func(*unstructured.Unstructured)) error {
	err := r.source.Cluster.EachNaming(r.ctx, resource, namespace, texts, begin, func(o *unstructured.Unstructured) error {
		if !r.gone(o.GetUID()) {
			yield(o)
		}
		return nil
	})
	r.note(place{resource, namespace, ""}, err)
	return err
}

// Mentioning lists the objects of a resource in a namespace, empty for all, that have one of
// the texts somewhere, whole.
func (r *lists) Mentioning(resource schema.GroupVersionResource, namespace string, texts ...string) ([]unstructured.Unstructured, error) {
	asked := fmt.Sprint(resource, namespace, texts)
	l, known := r.mentioned[asked]
	if known {
		return l.items, l.err
	}
	l.err = r.source.Cluster.EachMentioning(r.ctx, resource, namespace, texts, func() { l.items = nil },
		func(o *unstructured.Unstructured) error {
			if !r.gone(o.GetUID()) {
				l.items = append(l.items, *o)
			}
			return nil
		})
	r.mentioned[asked] = l
	r.note(place{resource, namespace, ""}, l.err)
	return l.items, l.err
}
