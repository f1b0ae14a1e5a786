// SPDX-License-Identifier: Apache-2.0

package deletiontest

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// event is a change of an object.
type event struct {
	object  graph.Object
	removed bool
}

// life is what was seen of an object.
type life struct {
	object     graph.Object
	owners     []metav1.OwnerReference // all that it ever had
	held       []string                // the finalizers of others that it ever had
	foreground bool                    // it was in foreground deletion
	gone       bool
	// since, dying and end are the resourceVersions with which it was first seen, first seen terminating or gone, and
	// removed; empty when that was not seen as it happened.
	since, dying, end string
}

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

// read takes a snapshot: what it lists and does not hold is gone. Of what is in the first one it is not known since when.
func (k *Kit) read(snapshot *graph.Snapshot) {
	var all []event
	for o := range snapshot.Objects() {
		all = append(all, event{object: o})
	}
	k.mu.Lock()
	first := len(k.history) == 0
	for uid, l := range k.history {
		if _, there := snapshot.Object(uid); !there && !l.gone && snapshot.ListedIn(l.object.Resource.GroupResource(), l.object.Namespace) {
			all = append(all, event{l.object, true})
		}
	}
	k.mu.Unlock()
	k.note(all)
	if first {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, l := range k.history {
			l.since = ""
		}
	}
}

// take takes an event, and reports whether a controller may have to act on it.
func (h history) take(e *event) bool {
	o := &e.object
	l, known := h[o.UID]
	switch {
	case !known:
		l = &life{object: *o, since: o.ResourceVersion}
		h[o.UID] = l
	case l.gone:
		l.ended(e)
		return false
	case !e.removed && newer(l.object.ResourceVersion, o.ResourceVersion):
		return false
	}
	before := l.object
	l.ended(e)
	l.object, l.gone = *o, e.removed
	for _, ref := range o.OwnerReferences {
		if !slices.ContainsFunc(l.owners, func(other metav1.OwnerReference) bool { return other.UID == ref.UID }) {
			l.owners = append(l.owners, ref)
		}
	}
	for _, f := range o.Finalizers {
		if !graph.IsCollectorFinalizer(f) && !slices.Contains(l.held, f) {
			l.held = append(l.held, f)
		}
	}
	l.foreground = l.foreground || o.DeletingDependents()
	if l.dying == "" && o.BeingDeleted() {
		l.dying = o.ResourceVersion
	}
	return e.removed || !known || o.Resource.IsCRD() || before.BeingDeleted() != o.BeingDeleted() ||
		!slices.Equal(before.Finalizers, o.Finalizers) || !equality.Semantic.DeepEqual(before.OwnerReferences, o.OwnerReferences)
}

// endedOwners returns the end of each owner that is not there, and was: also when its type is not served any more, its dependents
// are garbage (garbagecollector/graph_builder.go, processGraphChanges).
func (k *Kit) endedOwners(g *graph.Graph) []gc.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []gc.Event
	for n := range g.Nodes() {
		if l := k.history[n.UID()]; n.Virtual() && l != nil && l.gone {
			all = append(all, gc.Event{Object: l.object, Removed: true})
		}
	}
	return all
}

// ended notes when the object was removed, where the event tells it: one that is missing in a snapshot may be gone since long.
func (l *life) ended(e *event) {
	if e.removed && newer(e.object.ResourceVersion, l.object.ResourceVersion) {
		l.end = e.object.ResourceVersion
		l.dying = cmp.Or(l.dying, l.end)
	}
}

// newer reports whether the first of two resourceVersions is later. One that cannot be compared is not.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

func (l *life) deleted() bool { return l.gone || l.object.BeingDeleted() }

// goneBefore reports whether the object was gone while the other one was still there.
func (l *life) goneBefore(other *life) bool {
	return l.gone && (!other.gone || newer(other.end, l.end))
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

// patience is how long nothing may change until what concerns the objects, or anything if there are none, will not go any more.
func (h history) patience(objects []metav1.Object) time.Duration {
	long, concerned := quiet, map[types.UID]bool{}
	for _, o := range objects {
		h.reach(o.GetUID(), concerned)
	}
	for uid, l := range h {
		if (len(objects) == 0 || concerned[uid]) && !l.gone && l.object.BeingDeleted() {
			long = max(long, patience(&l.object))
		}
	}
	return long
}

// reach adds an object, what depends on it, and what is in a namespace.
func (h history) reach(uid types.UID, to map[types.UID]bool) {
	if to[uid] {
		return
	}
	to[uid] = true
	for _, d := range h.dependentsOf(uid) {
		h.reach(d.object.UID, to)
	}
	if o := h[uid]; o != nil && o.object.Resource.IsNamespace() {
		for _, l := range h {
			if l.object.Namespace == o.object.Name {
				h.reach(l.object.UID, to)
			}
		}
	}
}

// patience is that of an object that is being deleted, by who has to remove its finalizers.
func patience(o *graph.Object) (long time.Duration) {
	for _, f := range o.Finalizers {
		switch who, _ := simulator.OfControllerManager(o, f); {
		case who == simulator.Acts || graph.IsCollectorFinalizer(f):
		case o.Resource.IsCRD():
			return definitions
		default:
			long = patient
		}
	}
	return long
}

// remade returns what came to depend on the owner once its deletion had begun.
func (h history) remade(owner types.UID) []*life {
	o := h[owner]
	if o == nil || o.dying == "" {
		return nil
	}
	return slices.DeleteFunc(h.dependentsOf(owner), func(d *life) bool { return !newer(d.since, o.dying) })
}
