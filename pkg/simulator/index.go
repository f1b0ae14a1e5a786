// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// location is where an object is found: what a request addresses.
type location struct {
	resource  schema.GroupResource
	namespace string
	name      string
}

func locationOf(o *graph.Object) location {
	return location{o.Resource.GroupResource(), o.Namespace, o.Name}
}

// String returns the location for messages.
func (l location) String() string {
	if l.namespace == "" {
		return l.resource.String() + " " + l.name
	}
	return l.resource.String() + " " + l.namespace + "/" + l.name
}

// index finds the snapshot's objects by location, by namespace and by resource.
// It costs nine to fourteen bytes an object and is built when first needed. It does not change,
// and servers of one snapshot share it.
type index struct {
	snapshot *graph.Snapshot
	objects  []graph.Handle // in the order of the snapshot
	// slots is a hash table with linear probing: 0 is free, i+1 is the i-th
	// object.
	slots       []int32
	ranges      *graph.Ranges
	terminating []int32
}

func newIndex(s *graph.Snapshot) *index {
	size := 16
	for 4*size < 5*s.Len() {
		size *= 2
	}
	x := &index{snapshot: s, objects: make([]graph.Handle, 0, s.Len()), slots: make([]int32, size)}
	x.ranges = graph.RangesOf(func(yield func(*graph.Resource, string) bool) {
		for h, head := range s.Heads() { // without a UID nobody could say which one is meant
			x.add(h, &head)
			if !yield(head.Resource, head.Namespace) {
				return
			}
		}
	})
	return x
}

func (x *index) add(h graph.Handle, head *graph.Head) {
	i := int32(len(x.objects))
	x.objects = append(x.objects, h)
	slot := hash(head.Namespace, head.Name) & uint64(len(x.slots)-1)
	for x.slots[slot] != 0 {
		slot = (slot + 1) & uint64(len(x.slots)-1)
	}
	x.slots[slot] = i + 1
	if head.BeingDeleted {
		x.terminating = append(x.terminating, i)
	}
}

// at calls yield with the objects at the location, which is one
// unless it was deleted and created again while the snapshot was read. An
// object that two groups serve is at both locations.
func (x *index) at(where location, yield func(graph.Handle) bool) {
	mask := uint64(len(x.slots) - 1)
	for slot := hash(where.namespace, where.name) & mask; x.slots[slot] != 0; slot = (slot + 1) & mask {
		h := x.objects[x.slots[slot]-1]
		if x.snapshot.HandleIsAt(h, where.resource, where.namespace, where.name) && !yield(h) {
			return
		}
	}
}

var seed = maphash.MakeSeed()

// hash is that of namespace and name, which are the same under every group that
// serves the object. It is seeded: whoever names objects must not choose names that are
// slow.
func hash(namespace, name string) uint64 {
	return maphash.String(seed, namespace)*31 + maphash.String(seed, name)
}
