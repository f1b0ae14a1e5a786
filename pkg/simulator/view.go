// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// view is the cluster as it is now: the objects of the snapshot, with those that changed on top. Only the
// Server changes it; all that act or tell look at it.
type view struct {
	snapshot *graph.Snapshot
	version  answer.Server
	objects  graph.Table[graph.Handle, *object] // those that changed
	changes  int                                // of objects, removals included
	index    *index                             // nil until something is looked for

	users    map[string]map[string][]int32 // pods by namespace and claim, "" for any, where it was asked
	unread   map[string]string             // answers of unreadIn
	unserved map[schema.GroupResource]bool // types whose definition was removed
	made     sets.Set[string]              // namespaces that Do made
}

// object is an object that changed.
type object struct {
	graph.Object
	gone bool
	// specFinalizers are those of a namespace's spec once they changed.
	specFinalizers []string
}

// goneAsRead stands for the objects, which are most of those that go, that are gone and did
// not change before: the snapshot has them.
var goneAsRead = &object{gone: true}

// look returns the object with the UID as it is now, or as it was when it was
// removed.
func (v *view) look(uid types.UID) (o graph.Object, gone, known bool) {
	h, known := v.snapshot.Handle(uid)
	if !known {
		return graph.Object{}, false, false
	}
	o, gone = v.at(h)
	return o, gone, true
}

// at is look for an object of which it is known which one it is.
func (v *view) at(h graph.Handle) (o graph.Object, gone bool) {
	switch t := v.objects.Get(h); t {
	case nil:
		return v.snapshot.Unlabelled(h), false
	case goneAsRead:
		return v.snapshot.Unlabelled(h), true
	default:
		return t.Object, t.gone
	}
}

// isGone reports whether the object was removed.
func (v *view) isGone(h graph.Handle) bool {
	t := v.objects.Get(h)
	return t != nil && t.gone
}

// find returns the object at the location.
func (v *view) find(where location) (graph.Object, error) {
	if v.unserved[where.resource] {
		return graph.Object{}, errNotServed(where.resource)
	}
	h, found := v.located(where)
	if found {
		if o, gone := v.at(h); !gone {
			return o, nil
		}
	}
	if found || v.snapshot.Covers(where.resource, where.namespace, where.name) {
		return graph.Object{}, apierrors.NewNotFound(where.resource, where.name)
	}
	return graph.Object{}, fmt.Errorf("looking for %s: %w", where, graph.ErrUnlisted)
}

// errNotServed is what an API server answers to requests for a type that it does not
// serve: a 404 that says nothing of the object.
func errNotServed(resource schema.GroupResource) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", resource, "", "", 0, true)
}

// touched returns the object's entry among those that changed.
func (v *view) touched(o *graph.Object) *object {
	h, _ := v.snapshot.Handle(o.UID) // there are no others
	t := v.objects.At(h)
	if *t == nil || *t == goneAsRead {
		*t = &object{Object: *o, gone: *t == goneAsRead}
	}
	return *t
}

// ensureIndex builds the index when there is none.
func (v *view) ensureIndex() *index {
	if v.index == nil {
		v.index = newIndex(v.snapshot)
	}
	return v.index
}

// located returns the object at the location, one that is gone if there is no
// other.
func (v *view) located(where location) (h graph.Handle, found bool) {
	v.ensureIndex().at(where, func(candidate graph.Handle) bool {
		gone := v.isGone(candidate)
		if !found || !gone {
			h, found = candidate, true
		}
		return gone
	})
	return h, found
}

// namespaceActive reports whether objects can be created in the namespace, as
// far as is known.
func (v *view) namespaceActive(name string) bool {
	h, found := v.located(location{namespaceResource, "", name})
	if !found {
		return !v.namespaceAbsent(name)
	}
	o, gone := v.at(h)
	return !gone && !o.BeingDeleted()
}

// isLive reports whether an object that is not terminating is at the location.
func (v *view) isLive(where location) bool {
	o, err := v.find(where)
	return err == nil && !o.BeingDeleted()
}

// endsWith reports whether an update takes the last finalizer off an object
// that nothing else keeps (ShouldDeleteDuringUpdate; for namespaces
// registry/core/namespace/storage, ShouldDeleteNamespaceDuringUpdate).
func (v *view) endsWith(before, after *graph.Object) bool {
	return len(after.Finalizers) == 0 && before.BeingDeleted() && v.nothingButFinalizers(before)
}

// nothingButFinalizers reports whether metadata.finalizers alone keep the
// terminating object.
func (v *view) nothingButFinalizers(o *graph.Object) bool {
	if o.DeletionGracePeriodSeconds != nil && *o.DeletionGracePeriodSeconds != 0 {
		return false
	}
	if is(o, namespaceResource) {
		spec, read := v.specFinalizers(o.UID)
		return read && len(spec) == 0
	}
	return true
}

// controlledBy reports whether the controllers of an object lead to the one with the UID.
func (v *view) controlledBy(o *graph.Object, uid types.UID) bool {
	current := *o
	for range 8 { // deeper than workloads are, and an end to circles
		metadata := current.Metadata()
		controller := metav1.GetControllerOf(&metadata)
		if controller == nil {
			return false
		}
		if controller.UID == uid {
			return true
		}
		owner, gone, known := v.look(controller.UID)
		if gone || !known {
			return false
		}
		current = owner
	}
	return false
}

// terminating returns those of the objects that are being deleted.
func (v *view) terminating(objects []types.UID) []types.UID {
	return slices.DeleteFunc(objects, func(uid types.UID) bool {
		o, _, _ := v.look(uid)
		return !o.BeingDeleted()
	})
}

// change gives an object a new state.
func (v *view) change(o *graph.Object) {
	v.changes++
	v.touched(o).Object = *o
}

// drop notes that an object is gone.
func (v *view) drop(uid types.UID) {
	v.changes++
	h, _ := v.snapshot.Handle(uid)
	if t := v.objects.At(h); *t == nil {
		*t = goneAsRead
	} else {
		(*t).gone = true
	}
}
