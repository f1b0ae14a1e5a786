// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
// It costs some forty bytes an object and is built when first needed.
type index struct {
	snapshot *graph.Snapshot
	uids     []types.UID // in the order of the snapshot
	// slots is a hash table with linear probing: 0 is free, i+1 is the i-th
	// object.
	slots       []int32
	inNamespace map[string][]int32
	ofResource  map[schema.GroupResource][]int32
	terminating []int32
}

func newIndex(s *graph.Snapshot) *index {
	size := 16
	for size < 2*s.Len() {
		size *= 2
	}
	x := &index{
		snapshot:    s,
		uids:        make([]types.UID, 0, s.Len()),
		slots:       make([]int32, size),
		inNamespace: map[string][]int32{},
		ofResource:  map[schema.GroupResource][]int32{},
	}
	for id, isTerminating := range s.Heads() {
		if id.UID != "" { // nobody could say which one is meant
			x.add(&id, isTerminating)
		}
	}
	return x
}

func (x *index) add(id *graph.Identity, isTerminating bool) {
	i := int32(len(x.uids))
	x.uids = append(x.uids, id.UID)
	where := location{id.Resource.GroupResource(), id.Namespace, id.Name}
	slot := where.hash() & uint64(len(x.slots)-1)
	for x.slots[slot] != 0 {
		slot = (slot + 1) & uint64(len(x.slots)-1)
	}
	x.slots[slot] = i + 1
	if id.Namespace != "" {
		x.inNamespace[id.Namespace] = append(x.inNamespace[id.Namespace], i)
	}
	x.ofResource[where.resource] = append(x.ofResource[where.resource], i)
	if isTerminating {
		x.terminating = append(x.terminating, i)
	}
}

// at calls yield with the UIDs of the objects at the location, which is one
// unless it was deleted and created again while the snapshot was read. An
// object that two groups serve is at both locations.
func (x *index) at(where location, yield func(types.UID) bool) {
	mask := uint64(len(x.slots) - 1)
	for slot := where.hash() & mask; x.slots[slot] != 0; slot = (slot + 1) & mask {
		uid := x.uids[x.slots[slot]-1]
		if x.snapshot.UIDIsAt(uid, where.resource, where.namespace, where.name) && !yield(uid) {
			return
		}
	}
}

// hash is FNV-1a over namespace and name, which are the same under every
// group that serves the object.
func (l location) hash() uint64 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{l.namespace, l.name} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211 // no part of a location holds this byte
	}
	return h
}

// ensureIndex builds the index when there is none.
func (s *Server) ensureIndex() *index {
	if s.index == nil {
		s.index = newIndex(s.snapshot)
	}
	return s.index
}

// located returns the object at the location, one that is gone if there is no
// other.
func (s *Server) located(where location) (uid types.UID, found bool) {
	s.ensureIndex().at(where, func(candidate types.UID) bool {
		gone := s.isGone(candidate)
		if !found || !gone {
			uid, found = candidate, true
		}
		return gone
	})
	return uid, found
}
