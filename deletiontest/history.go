// SPDX-License-Identifier: Apache-2.0

package deletiontest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// event is a change of an object.
type event struct {
	object  graph.Object
	removed bool
}

// life is what was seen of an object.
type life struct {
	object       graph.Object
	owners       []metav1.OwnerReference // all that it ever had
	foreground   bool                    // it was in foreground deletion
	since, dying string                  // the resourceVersions with which it was first seen, and first seen terminating or gone
	held         []string                // the finalizers of others that it ever had
	end          int                     // when it was gone, among all that is; 0 while it is there
}

func (l *life) gone() bool { return l.end > 0 }

// history is everything that was seen of objects, by UID.
type history map[types.UID]*life

// hear takes the events of a server, and reports whether there was something to act on.
func (k *Kit) hear(events []gc.Event) bool {
	var all []event
	for i := range events {
		if e := &events[i]; e.CaughtUp == 0 && !e.Lost {
			all = append(all, event{e.Object, e.Removed})
		}
	}
	return len(all) > 0 && k.note(all)
}

// read takes a snapshot: what it lists and does not hold is gone.
func (k *Kit) read(snapshot *graph.Snapshot) {
	var all []event
	for o := range snapshot.Objects() {
		all = append(all, event{object: o})
	}
	k.mu.Lock()
	for uid, l := range k.history {
		if _, there := snapshot.Object(uid); !there && !l.gone() && snapshot.ListedIn(l.object.Resource.GroupResource(), l.object.Namespace) {
			all = append(all, event{l.object, true})
		}
	}
	k.mu.Unlock()
	k.note(all)
}

// take takes an event, and reports whether a controller may have to act on it.
func (h history) take(e *event) bool {
	o := &e.object
	l, known := h[o.UID]
	if !known {
		l = &life{object: *o, since: o.ResourceVersion}
		h[o.UID] = l
	} else if l.gone() || !e.removed && newer(l.object.ResourceVersion, o.ResourceVersion) {
		return false
	}
	before := l.object
	l.object = *o
	for _, ref := range o.OwnerReferences {
		if !slices.ContainsFunc(l.owners, func(other metav1.OwnerReference) bool { return other.UID == ref.UID }) {
			l.owners = append(l.owners, ref)
		}
	}
	if l.dying == "" && (e.removed || o.BeingDeleted()) {
		l.dying = o.ResourceVersion
	}
	for _, f := range o.Finalizers {
		if !graph.IsCollectorFinalizer(f) && !slices.Contains(l.held, f) {
			l.held = append(l.held, f)
		}
	}
	l.foreground = l.foreground || o.DeletingDependents()
	if e.removed {
		for _, other := range h {
			l.end = max(l.end, other.end)
		}
		l.end++
	}
	return e.removed || !known || before.BeingDeleted() != o.BeingDeleted() || !slices.Equal(before.Finalizers, o.Finalizers) ||
		!slices.EqualFunc(before.OwnerReferences, o.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) || o.Resource.IsCRD()
}

// newer reports whether the first of two resourceVersions is later. One that cannot be compared is not.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// dependentsOf returns what had a reference to the owner at some time.
func (h history) dependentsOf(owner types.UID) []*life {
	var found []*life
	for _, l := range h {
		if slices.ContainsFunc(l.owners, func(ref metav1.OwnerReference) bool { return ref.UID == owner }) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *life) int { return a.object.Identity().Compare(b.object.Identity()) })
	return found
}

// remade returns what came to depend on the owner once its deletion had begun.
func (h history) remade(owner types.UID) []*life {
	o := h[owner]
	if o == nil || o.dying == "" {
		return nil
	}
	return slices.DeleteFunc(h.dependentsOf(owner), func(d *life) bool { return !newer(d.since, o.dying) })
}
