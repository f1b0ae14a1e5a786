// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// shelf holds the objects of a kind and group in one namespace.
type shelf struct {
	kind, group, namespace string
}

func (a shelf) compare(b shelf) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.group, b.group), cmp.Compare(a.namespace, b.namespace))
}

// sorted returns the objects in the order of their identities. The API server
// lists in nearly that order, so the objects are put on shelves, and only
// shelves that are not in order are sorted.
func (s *Snapshot) sorted() []handle {
	shelves, count := s.shelves()
	order := slices.SortedFunc(maps.Keys(shelves), shelf.compare)
	next := make([]int, len(order)) // where the next object of a shelf goes
	ends := make([]int, len(order))
	n := 0
	for _, sh := range order {
		i := shelves[sh]
		next[i] = n
		n += count[i]
		ends[i] = n
	}
	handles := make([]handle, n)
	s.eachOnShelf(shelves, func(h handle, i int) {
		handles[next[i]] = h
		next[i]++
	})
	for i, end := range ends {
		part := handles[end-count[i] : end]
		if !slices.IsSortedFunc(part, s.compareOnShelf) {
			slices.SortStableFunc(part, s.compareOnShelf)
		}
	}
	return handles
}

// shelves numbers the shelves and counts the objects of each.
func (s *Snapshot) shelves() (shelves map[shelf]int, count []int) {
	shelves = map[shelf]int{}
	s.eachOnShelf(shelves, func(_ handle, i int) {
		if i == len(count) {
			count = append(count, 0)
		}
		count[i]++
	})
	return shelves, count
}

// eachOnShelf calls yield with each object and the number of its shelf. Shelves
// that are not there yet are added.
func (s *Snapshot) eachOnShelf(shelves map[shelf]int, yield func(handle, int)) {
	var latest struct {
		resource  *Resource
		namespace string
		number    int
	}
	for h := range s.handles {
		b, slot := s.blocks[h.block()], h.slot()
		resource, namespace := b.resource(slot), b.namespace(slot)
		if latest.resource != resource || latest.namespace != namespace {
			sh := shelf{resource.Kind, resource.Group, namespace}
			number, ok := shelves[sh]
			if !ok {
				number = len(shelves)
				shelves[sh] = number
			}
			latest.resource, latest.namespace, latest.number = resource, namespace, number
		}
		yield(h, latest.number)
	}
}

// compareOnShelf is Identity.Compare for objects of one shelf: by name, UID and
// version.
func (s *Snapshot) compareOnShelf(x, y handle) int {
	a, i := s.blocks[x.block()], x.slot()
	b, j := s.blocks[y.block()], y.slot()
	if byName := strings.Compare(a.name(i), b.name(j)); byName != 0 {
		return byName
	}
	return cmp.Or(
		cmp.Compare(a.key(i).uid(), b.key(j).uid()),
		cmp.Compare(a.resource(i).Version, b.resource(j).Version),
	)
}
