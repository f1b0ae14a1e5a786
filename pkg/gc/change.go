// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// change is what an event changed.
type change struct {
	number number
	// late: the object was gone already, or is known as it was later, and nothing
	// changed.
	late bool
	// found: it was lost.
	found bool
	// removed: the object is gone. released are its owners then, and otherwise
	// those that it no longer blocks.
	removed  bool
	released []owner
	// unreferenced are the owners that the object references no more.
	unreferenced []owner
	// startsDeletion: the object has just begun to be deleted. startsForeground and
	// startsOrphaning: it has with the finalizer.
	startsDeletion, startsForeground, startsOrphaning bool
	// added are owners that the object did not reference before.
	added []owner
	// ownersBefore are the object's owner references before, when they were others.
	ownersBefore []metav1.OwnerReference
}

// recognize reports whether what is said of an object is said of the one that the
// state has under its UID, or of one that it does not have yet. What has no UID is
// none. An object of another name or namespace with that UID is none, either, and
// its news are not about the first; that there is one is remembered. The same name
// under another group is the same object, which keeps the resource under which it
// was found first.
func (s *state) recognize(n number, e *Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	switch {
	case n == nobody:
		return false
	case it == nil || it.object.Resource == nil:
		return true
	case it.object.Name != e.Object.Name || it.object.Namespace != e.Object.Namespace:
		if it.also == "" {
			it.also = e.Object.Identity().String()
		}
		return false
	case it.object.Resource.GroupResource() != e.Object.Resource.GroupResource():
		e.Object.Resource = it.object.Resource
		return !e.Lost // it is still seen under the other
	}
	return true
}

// apply takes an event of the object with the number into the state
// (garbagecollector/graph_builder.go, processGraphChanges).
func (s *state) apply(n number, e Event) change {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		it = s.appear(n, e.Object.UID)
	}
	switch {
	case it.gone:
		return change{number: n, late: true} // a UID does not come back
	case e.Lost:
		it.lost = true
		return change{number: n, late: true}
	case e.Removed:
		return s.remove(it, &e.Object)
	case it.refuted, it.lost:
	case older(&e.Object, &it.object), it.deleteSent && e.Object.ResourceVersion == it.object.ResourceVersion:
		return change{number: n, late: true} // the event of an own patch comes after its answer
	}
	return s.update(it, &e.Object)
}

// older reports whether the first is an earlier version of the object than the
// second. Events, reads and the results of writes come by different ways, and
// so not always in order.
func older(o, than *graph.Object) bool {
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, than.ResourceVersion)
	return err == nil && order < 0
}

// refute records that the server refused the version of the object and then
// showed an older one: it was restored from a backup, or began to count anew. If
// the version is still what is known, the next that is said of the object
// counts, however old it looks.
func (s *state) refute(o *graph.Object) {
	n := s.of(o.UID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.item(n); it != nil && it.object.ResourceVersion == o.ResourceVersion {
		it.refuted = true
	}
}

// appear returns an item for an object that was never seen, although its
// dependents may have been. Its object is yet to be set, and has no resource.
func (s *state) appear(n number, uid types.UID) *item {
	it := &item{number: n, object: graph.Object{UID: uid}, dependents: s.virtualDependents(n)}
	*s.items.At(n) = it
	for _, dependent := range s.referencing(it.dependents, it.owner()) {
		it.count(s.edge(dependent, it.owner()))
	}
	return it
}

func (s *state) remove(it *item, o *graph.Object) change {
	owners := s.distinctOwners(it.object.OwnerReferences)
	c := change{number: it.number, removed: true, released: owners, unreferenced: owners}
	for _, owner := range owners {
		s.dropEdge(it, owner)
	}
	it.object, it.gone = *o, true
	return c
}

func (s *state) update(it *item, o *graph.Object) change {
	c := change{number: it.number, found: it.lost}
	before := it.object
	owners := s.distinctOwners(before.OwnerReferences)
	for i, owner := range owners {
		_, blocked := edgeOf(before.OwnerReferences, owner.uid)
		references, blocks := edgeOf(o.OwnerReferences, owner.uid)
		if blocked && !blocks {
			c.released = takeNext(c.released, owners, i)
		}
		if !references {
			c.unreferenced = takeNext(c.unreferenced, owners, i)
		}
		s.dropEdge(it, owner)
	}
	if !equalOwners(before.OwnerReferences, o.OwnerReferences) {
		c.ownersBefore = before.OwnerReferences
	}
	it.object, it.deleteSent, it.refuted, it.lost = *o, false, false, false
	for _, owner := range s.distinctOwners(o.OwnerReferences) {
		known, _ := edgeOf(before.OwnerReferences, owner.uid)
		if !known {
			c.added = append(c.added, owner)
			it.had = append(it.had, owner)
		}
		s.addEdge(it, owner, !known)
	}
	c.startsDeletion = o.BeingDeleted() && !before.BeingDeleted()
	c.startsForeground = o.DeletingDependents() && !before.DeletingDependents()
	c.startsOrphaning = o.OrphaningDependents() && !before.OrphaningDependents()
	it.beingDeleted = it.beingDeleted || o.BeingDeleted()
	it.deletingDependents = it.deletingDependents || o.DeletingDependents()
	it.orphaned = it.orphaned || o.OrphaningDependents()
	return c
}

// takeNext appends the i-th owner to those that were taken, and without a copy when these
// are all before it: mostly there is one.
func takeNext(taken, owners []owner, i int) []owner {
	if len(taken) == i && (i == 0 || &taken[0] == &owners[0]) {
		return owners[: i+1 : i+1]
	}
	return append(taken, owners[i])
}

// dropEdge takes the dependent's edge to the owner out of the owner's counters.
func (s *state) dropEdge(it *item, of owner) {
	if o := s.item(of.number); o != nil {
		o.live--
		if _, blocks := edgeOf(it.object.OwnerReferences, of.uid); blocks {
			o.blocking--
		}
	}
}

// addEdge adds the dependent's edge to the owner. fresh says that the dependent
// did not reference it right before.
func (s *state) addEdge(it *item, to owner, fresh bool) {
	o := s.item(to.number)
	switch {
	case o == nil && fresh:
		s.early[to.number] = append(s.early[to.number], it.number)
		return
	case o == nil:
		return
	case fresh:
		o.dependents = append(o.dependents, it.number)
	}
	o.live++
	if _, blocks := edgeOf(it.object.OwnerReferences, to.uid); blocks {
		o.blocking++
	}
}

func equalOwners(a, b []metav1.OwnerReference) bool { return slices.EqualFunc(a, b, sameReference) }

func sameReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		equalFlags(a.Controller, b.Controller) && equalFlags(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func equalFlags(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
