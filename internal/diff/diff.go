// SPDX-License-Identifier: Apache-2.0

// Package diff compares two snapshots: which objects appeared, which vanished, and of
// which deletion has begun, owners or finalizers have changed. What one of them could not
// read is not compared, and said to be so. It is pure.
package diff

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Change is what became of an object.
type Change string

// The changes. An object is another one when its UID is, whatever its name.
const (
	Appeared Change = "Appeared"
	Vanished Change = "Vanished"
	Changed  Change = "Changed"
)

// Difference is an object that is not the same in both snapshots.
type Difference struct {
	Object graph.Identity
	Change Change
	// Replaces: another object was in its place, and vanished.
	Replaces bool
	// BeganTerminating: it is being deleted, and was not before; nor is one that appeared
	// said to be otherwise.
	BeganTerminating bool
	// What was added to and removed from an object that is in both.
	AddedOwners, RemovedOwners         []metav1.OwnerReference
	AddedFinalizers, RemovedFinalizers []string
}

// Count is how many objects of a kind in a namespace differ, and how.
type Count struct {
	Namespace  string
	Group      string
	Kind       string
	Appeared   int
	Vanished   int
	Terminated int // began terminating
	Owners     int // changed owners
	Finalizers int // changed finalizers
}

// Report is what differs.
type Report struct {
	// Differences are sorted by namespace, then as identities are.
	Differences []Difference
	Counts      []Count
	// Uncompared are the types of which something is in one snapshot, while the other
	// cannot tell whether it is there, with how many; sorted.
	Uncompared []Uncompared
}

// Uncompared is a type, with how many of its objects could not be compared.
type Uncompared struct {
	Resource schema.GroupResource
	Objects  int
}

// Total is the sum of the counts.
func (r *Report) Total() Count {
	var total Count
	for _, c := range r.Counts {
		total.Appeared += c.Appeared
		total.Vanished += c.Vanished
		total.Terminated += c.Terminated
		total.Owners += c.Owners
		total.Finalizers += c.Finalizers
	}
	return total
}

// Compare compares what was before with what is after, of the objects for which it is
// asked; nil is for all.
func Compare(before, after *graph.Snapshot, asked func(*graph.Object) bool) *Report {
	c := &comparison{uncompared: map[schema.GroupResource]int{}, left: map[place]bool{}}
	occupied := places(after)
	for o := range before.Objects() {
		if asked != nil && !asked(&o) {
			continue
		}
		now, still := after.Object(o.UID)
		switch {
		case still && o.UID != "":
			c.changed(&o, &now)
		case after.Covers(o.Resource.GroupResource(), o.Namespace, o.Name) || occupied[placeOf(&o)]:
			c.left[placeOf(&o)] = true
			c.add(Difference{Object: o.Identity(), Change: Vanished})
		default:
			c.uncompared[o.Resource.GroupResource()]++
		}
	}
	for o := range after.Objects() {
		if asked != nil && !asked(&o) {
			continue
		}
		if _, known := before.Object(o.UID); known && o.UID != "" {
			continue
		}
		if !before.Covers(o.Resource.GroupResource(), o.Namespace, o.Name) && !c.left[placeOf(&o)] {
			c.uncompared[o.Resource.GroupResource()]++
			continue
		}
		c.add(Difference{Object: o.Identity(), Change: Appeared, Replaces: c.left[placeOf(&o)], BeganTerminating: o.BeingDeleted()})
	}
	return c.report()
}

// place is where an object is.
type place struct {
	resource        schema.GroupResource
	namespace, name string
}

func placeOf(o *graph.Object) place { return place{o.Resource.GroupResource(), o.Namespace, o.Name} }

// places are where the objects of a snapshot are, of types that were not listed: another
// object in the place of one says that this is gone.
func places(s *graph.Snapshot) map[place]bool {
	found := map[place]bool{}
	for o := range s.Objects() {
		if !s.ListedIn(o.Resource.GroupResource(), o.Namespace) && o.UID != "" {
			found[placeOf(&o)] = true
		}
	}
	return found
}

type comparison struct {
	differences []Difference
	uncompared  map[schema.GroupResource]int
	left        map[place]bool
}

func (c *comparison) add(d Difference) { c.differences = append(c.differences, d) }

// changed compares an object that is in both.
func (c *comparison) changed(before, after *graph.Object) {
	d := Difference{Object: after.Identity(), Change: Changed, BeganTerminating: after.BeingDeleted() && !before.BeingDeleted()}
	sameOwner := func(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) }
	d.AddedOwners, d.RemovedOwners = without(after.OwnerReferences, before.OwnerReferences, sameOwner),
		without(before.OwnerReferences, after.OwnerReferences, sameOwner)
	same := func(a, b string) bool { return a == b }
	d.AddedFinalizers, d.RemovedFinalizers = without(after.Finalizers, before.Finalizers, same),
		without(before.Finalizers, after.Finalizers, same)
	if d.BeganTerminating || len(d.AddedOwners)+len(d.RemovedOwners)+len(d.AddedFinalizers)+len(d.RemovedFinalizers) > 0 {
		c.add(d)
	}
}

// without returns the elements of a list that another lacks.
func without[T any](list, other []T, same func(T, T) bool) []T {
	var left []T
	for _, v := range list {
		if !slices.ContainsFunc(other, func(w T) bool { return same(v, w) }) {
			left = append(left, v)
		}
	}
	return left
}

// report sorts and counts.
func (c *comparison) report() *Report {
	r := &Report{Differences: c.differences}
	slices.SortStableFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), a.Object.Compare(b.Object))
	})
	for i := range r.Differences {
		r.count(&r.Differences[i])
	}
	for resource, objects := range c.uncompared {
		r.Uncompared = append(r.Uncompared, Uncompared{resource, objects})
	}
	slices.SortFunc(r.Uncompared, func(a, b Uncompared) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return r
}

// count adds a difference to the counts, whose order is that of the differences.
func (r *Report) count(d *Difference) {
	of := Count{Namespace: d.Object.Namespace, Group: d.Object.Resource.Group, Kind: d.Object.Resource.Kind}
	n := len(r.Counts)
	if n == 0 || r.Counts[n-1].Namespace != of.Namespace || r.Counts[n-1].Group != of.Group || r.Counts[n-1].Kind != of.Kind {
		r.Counts = append(r.Counts, of)
		n++
	}
	c := &r.Counts[n-1]
	switch d.Change {
	case Appeared:
		c.Appeared++
	case Vanished:
		c.Vanished++
	case Changed:
		if len(d.AddedOwners)+len(d.RemovedOwners) > 0 {
			c.Owners++
		}
		if len(d.AddedFinalizers)+len(d.RemovedFinalizers) > 0 {
			c.Finalizers++
		}
	}
	if d.BeganTerminating {
		c.Terminated++
	}
}
