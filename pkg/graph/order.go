// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// group holds the objects of a kind and group in one namespace.
type group struct {
	kind, group, namespace string
}

func (a group) compare(b group) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.group, b.group), cmp.Compare(a.namespace, b.namespace))
}

// run is a number of objects that stand together in a block, and in one group.
type run struct {
	first   handle
	objects int32
	group   int32 // its number
}

// sorted returns the objects in the order of their identities. The API server
// lists in nearly that order, so the objects are put into groups, a run at a time, and only
// groups that are not in order are sorted.
func (s *Snapshot) sorted() []handle {
	runs, groups := s.runs()
	count := make([]int, len(groups))
	for _, r := range runs {
		count[r.group] += int(r.objects)
	}
	next, n := make([]int, len(groups)), 0 // where the next object of a group goes
	for _, sh := range slices.SortedFunc(maps.Keys(groups), group.compare) {
		i := groups[sh]
		next[i] = n
		n += count[i]
	}
	begin := slices.Clone(next)
	handles, mixed := make([]handle, n), make([]bool, len(groups))
	for _, r := range runs {
		from := next[r.group]
		next[r.group] = from + int(r.objects)
		for i := range int(r.objects) {
			handles[from+i] = r.first + handle(i)
		}
		// A run is in order by itself, unless its block says otherwise.
		part := handles[max(begin[r.group], from-1):min(next[r.group], from+1)]
		if s.blocks[r.first.block()].unordered {
			part = handles[max(begin[r.group], from-1):next[r.group]]
		}
		mixed[r.group] = mixed[r.group] || !slices.IsSortedFunc(part, s.compareInGroup)
	}
	for i := range mixed {
		if mixed[i] {
			slices.SortStableFunc(handles[begin[i]:next[i]], s.compareInGroup)
		}
	}
	return handles
}

// runs returns the runs of all objects, in the order in which they were added, and the
// numbers of their groups.
func (s *Snapshot) runs() (runs []run, groups map[group]int32) {
	groups = map[group]int32{}
	for number, b := range s.blocks {
		for from, to := 0, 0; from < len(b.records); from = to {
			to = b.runEnd(from)
			if b.is(from, duplicate) {
				continue
			}
			resource := b.resource(from)
			sh := group{resource.Kind, resource.Group, b.namespace(from)}
			i, ok := groups[sh]
			if !ok {
				i = int32(len(groups))
				groups[sh] = i
			}
			runs = append(runs, run{handleOf(number, from), int32(to - from), i})
		}
	}
	return runs, groups
}

// runEnd returns where those end that stand together with an object: of the same type and
// namespace, and duplicates like it or not.
func (b *block) runEnd(slot int) int {
	first := &b.records[slot]
	for slot++; slot < len(b.records); slot++ {
		r := &b.records[slot]
		if r.resource != first.resource || r.namespace != first.namespace || (r.flags^first.flags)&duplicate != 0 {
			break
		}
	}
	return slot
}

// compareInGroup is Identity.Compare for objects of one group: by name, UID and
// version.
func (s *Snapshot) compareInGroup(x, y handle) int {
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

// FirstOfEach returns the items with the first of each kind before all others, each in their
// order.
func FirstOfEach[T any, K comparable](items []T, kind func(T) K) []T {
	seen := map[K]bool{}
	var firsts, others []T
	for _, item := range items {
		if k := kind(item); !seen[k] {
			seen[k] = true
			firsts = append(firsts, item)
		} else {
			others = append(others, item)
		}
	}
	return append(firsts, others...)
}
