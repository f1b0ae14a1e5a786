// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usuallyLarge are the types of which a cluster has most objects, more or less
// in that order. Which are large in this one the first pages tell.
var usuallyLarge = []string{
	"pods", "replicasets.apps", "configmaps", "secrets", "endpointslices.discovery.k8s.io", "jobs.batch",
	"controllerrevisions.apps", "endpoints", "services", "serviceaccounts", "deployments.apps", "leases.coordination.k8s.io",
}

// sizeRank is the type's place among those that are usually large.
func (l *listing) sizeRank() int {
	if i := slices.Index(usuallyLarge, l.resource.GroupResource().String()); i >= 0 {
		return i
	}
	return len(usuallyLarge)
}

// schedule hands out lists, a page at a time. The pages of a list follow one
// another, so the longest list takes longest however many are in flight; it
// must begin early and never wait. The first page tells how long a list is.
// While there are lists whose length is not known, half of the readers go on
// with those that have most left; then all do.
type schedule struct {
	mu    sync.Mutex
	ready *sync.Cond
	fresh []*listing
	begun []*listing
	// last come after the others, unless wanted, which is asked again and again, says that
	// they are.
	last   []*listing
	wanted func(*listing) bool
	// busy counts the lists that are being read, onward those of them that were
	// begun before.
	busy, onward int
	// inFlight is the number of readers.
	inFlight int
}

// newSchedule returns the schedule of lists, of which those of some types come last as long
// as they are not wanted.
func newSchedule(work []*listing, inFlight int, last []schema.GroupVersionResource, wanted func(*listing) bool) *schedule {
	s := &schedule{inFlight: inFlight, wanted: wanted}
	for _, l := range work {
		if slices.Contains(last, l.resource.GroupVersionResource) {
			s.last = append(s.last, l)
		} else {
			s.fresh = append(s.fresh, l)
		}
	}
	for _, lists := range [][]*listing{s.fresh, s.last} {
		slices.SortStableFunc(lists, func(a, b *listing) int { return cmp.Compare(a.sizeRank(), b.sizeRank()) })
	}
	s.ready = sync.NewCond(&s.mu)
	return s
}

// take returns a list of which the next page is to be read, or nil when there
// will be none. It blocks while others may still add some.
func (s *schedule) take() *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.admit(); len(s.fresh) == 0 && len(s.begun) == 0 && s.busy > 0; s.admit() {
		s.ready.Wait()
	}
	if len(s.fresh) == 0 && len(s.begun) == 0 {
		return nil
	}
	s.busy++
	if len(s.begun) > 0 && (len(s.fresh) == 0 || s.onward < s.inFlight/2) {
		s.onward++
		return s.longest()
	}
	l := s.fresh[0]
	s.fresh = s.fresh[1:]
	return l
}

// admit lets those that come last come next when they are wanted, or when no other is left
// to begin.
func (s *schedule) admit() {
	if len(s.last) > 0 && (len(s.fresh) == 0 || s.wanted(s.last[0])) {
		s.fresh, s.last = append(s.last, s.fresh...), nil
	}
}

// longest takes the list with most left out of those that were begun.
func (s *schedule) longest() *listing {
	l := slices.MaxFunc(s.begun, func(a, b *listing) int { return cmp.Compare(a.remaining, b.remaining) })
	i := slices.Index(s.begun, l)
	s.begun = slices.Delete(s.begun, i, i+1)
	l.onward = true
	return l
}

// done gives a list back that was taken, if it has more pages, and adds others.
func (s *schedule) done(l *listing, more bool, others []*listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if l.onward {
		s.onward--
		l.onward = false
	}
	if more {
		s.begun = append(s.begun, l)
	}
	s.fresh = append(s.fresh, others...)
	s.ready.Broadcast()
}
