// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// state is the ownership graph while it changes: the graph as it was read, with
// the items that were touched on top. It may be used by several goroutines.
type state struct {
	graph *graph.Graph
	numbers

	mu    sync.Mutex
	items graph.Table[number, *item]
	// absent are owners that the server said not to exist. Items that are gone
	// are absent, too.
	absent map[coordinates]bool
	// unreadable holds what the server said each time that it could not tell
	// about an owner. The coordinates have no UID.
	unreadable map[coordinates][]error
	// early holds dependents that were seen before their owner.
	early map[number][]number
	// distinct are the distinct owners that distinctOf states, which are the references
	// that were asked about last.
	distinctOf []metav1.OwnerReference
	distinct   []owner
}

// owner is what a reference leads to: a UID, with its number.
type owner struct {
	uid    types.UID
	number number
}

// item is an object that was touched. Its flags are those of
// garbagecollector/graph.go: once set, they stay.
type item struct {
	number             number
	object             graph.Object
	gone               bool
	beingDeleted       bool
	deletingDependents bool
	// orphaned: it was seen in deletion with the finalizer orphan.
	orphaned bool
	// had are the owners that it had since it was first seen.
	had []owner
	// deleteSent: a delete was sent whose event has not come yet.
	deleteSent bool
	// lingers: it was found although nothing held it any more.
	lingers bool
	// lost: its type is not served any more.
	lost bool
	// also is another object with the same UID, empty when none was seen.
	also string
	// refuted: the server has shown an older version than this one, which
	// therefore is not one that it has now.
	refuted bool
	// turns counts how often the object had to be decided about anew because of
	// a conflict.
	turns int
	// dependents holds all that ever referenced the object, the first of them as they
	// were read; which of them still do is asked of them.
	dependents []number
	// live counts the dependents, blocking those that block.
	live, blocking int
	// decided is how many of the dependents are known to have been decided about.
	decided int
	// round is when a garbage collector would have it go that handles all that it can at once,
	// and then what that leads to: targets in round 0, what they alone own in 1.
	round int
}

// view is a copy of what the algorithm needs to know of an item.
type view struct {
	number             number
	object             graph.Object
	gone               bool
	beingDeleted       bool
	deletingDependents bool
	deleteSent         bool
	orphaned           bool
	lost               bool
	also               string
	live, blocking     int
}

func newState(g *graph.Graph) *state {
	return &state{
		graph: g, numbers: numbers{graph: g}, absent: map[coordinates]bool{},
		unreadable: map[coordinates][]error{}, early: map[number][]number{},
	}
}

// item returns the item of the number, or nil when no object was seen. One without
// UID has none: no write could say which is meant.
func (s *state) item(n number) *item {
	if n < 0 {
		return nil
	}
	if it := s.items.Get(n); it != nil {
		return it
	}
	node, ok := s.node(n)
	if !ok || node.Virtual() {
		return nil
	}
	o := node.Unlabelled()
	if o.UID == "" {
		return nil
	}
	it := &item{
		number: n, object: o, beingDeleted: node.BeingDeleted(), deletingDependents: node.DeletingDependents(),
		orphaned: o.OrphaningDependents(), had: s.distinctOwners(o.OwnerReferences),
	}
	if names := s.graph.Snapshot().Ambiguous(o.UID); names != nil {
		it.also = names[1].String()
	}
	*s.items.At(n) = it
	it.dependents = s.readDependents(node)
	for _, d := range it.dependents {
		it.count(s.edge(d, it.owner()))
	}
	return it
}

// owner is what a reference to the object leads to.
func (it *item) owner() owner { return owner{it.object.UID, it.number} }

// readDependents returns the dependents of a node of the graph.
func (s *state) readDependents(n graph.Node) []number {
	if !n.HasDependents() {
		return nil
	}
	nodes := n.Dependents()
	dependents := make([]number, len(nodes))
	for i, d := range nodes {
		dependents[i] = numberOf(d)
	}
	return dependents
}

// count takes an edge of a dependent into the counters.
func (it *item) count(references, blocks bool) {
	if references {
		it.live++
	}
	if blocks {
		it.blocking++
	}
}

// edge reports whether the dependent references the owner, and whether it
// blocks it.
func (s *state) edge(dependent number, o owner) (references, blocks bool) {
	if it := s.items.Get(dependent); it != nil {
		if it.gone {
			return false, false
		}
		return edgeOf(it.object.OwnerReferences, o.uid)
	}
	d, known := s.node(dependent)
	n, ownerKnown := s.node(o.number)
	if !known || !ownerKnown {
		return false, false
	}
	return d.EdgeTo(n)
}

func edgeOf(refs []metav1.OwnerReference, owner types.UID) (references, blocks bool) {
	for _, ref := range refs {
		if ref.UID == owner {
			references = true
			blocks = blocks || ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
		}
	}
	return references, blocks
}

// view returns what is known of the object; false when it was never seen.
func (s *state) view(n number) (view, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		return view{}, false
	}
	return view{
		number: n, object: it.object, gone: it.gone, beingDeleted: it.beingDeleted,
		deletingDependents: it.deletingDependents, deleteSent: it.deleteSent, orphaned: it.orphaned, lost: it.lost, also: it.also,
		live: it.live, blocking: it.blocking,
	}, true
}

// dependents returns the objects that reference the owner now, in the order in which
// they were found.
func (s *state) dependents(owner number) []number {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.liveDependents(owner)
}

func (s *state) liveDependents(n number) []number {
	if it := s.item(n); it != nil {
		return s.referencing(it.dependents, it.owner())
	}
	return s.referencing(s.virtualDependents(n), s.owner(n))
}

// owner is what a reference to the object leads to, whether it was seen or not.
func (s *state) owner(n number) owner {
	if it := s.item(n); it != nil {
		return it.owner()
	}
	return owner{s.uid(n), n}
}

// virtualDependents returns what referenced an owner that was never seen.
func (s *state) virtualDependents(owner number) []number {
	var dependents []number
	if n, ok := s.node(owner); ok {
		dependents = s.readDependents(n)
	}
	return append(dependents, s.early[owner]...)
}

// referencing returns those of the dependents that reference the owner now, each once.
// The first of them are those that were read; later ones may be among these.
func (s *state) referencing(dependents []number, o owner) []number {
	if len(dependents) == 0 {
		return nil
	}
	live, read := make([]number, 0, len(dependents)), 0
	n, known := s.node(o.number)
	if known {
		read = n.CountDependents()
	}
	for _, d := range dependents[:read] {
		if references, _ := s.edge(d, o); references {
			live = append(live, d)
		}
	}
	found := map[number]bool{}
	for _, d := range dependents[read:] {
		node, ok := s.node(d)
		if known && ok {
			if read, _ := node.EdgeTo(n); read {
				continue
			}
		}
		if references, _ := s.edge(d, o); references && !found[d] {
			found[d] = true
			live = append(live, d)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live
}

// blockingDependents returns the dependents that keep the owner in foreground
// deletion (garbagecollector/graph.go, blockingDependents).
func (s *state) blockingDependents(n number) []number {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(n)
	return slices.DeleteFunc(s.liveDependents(n), func(d number) bool {
		_, blocks := s.edge(d, o)
		return !blocks
	})
}

// setDeleteSent records whether a delete of the object was sent and is not
// known to have been refused.
func (s *state) setDeleteSent(n number, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.item(n); it != nil {
		it.deleteSent = sent
	}
}

// unseen reports whether a delete of the object was sent and no event has come
// yet, or only one that says that nothing holds the object: the next says that it
// is gone.
func (it *item) unseen() bool {
	return !it.gone && !it.lost && (it.deleteSent || free(&it.object) && !it.lingers)
}

// free reports whether an object that is being deleted is held by nothing that
// its metadata shows, so that the API server removes it in the same request
// (registry/generic/registry/store.go, Delete and deleteWithoutFinalizers). A
// Namespace is held by finalizers in its spec.
func free(o *graph.Object) bool {
	return o.BeingDeleted() && len(o.Finalizers) == 0 && !o.InGrace() && !o.Resource.IsNamespace()
}

// linger records that an object was found although nothing holds it.
func (s *state) linger(n number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.item(n); it != nil {
		it.lingers = true
	}
}

// isUnseen reports whether a delete of the object was sent and no event has come yet.
func (s *state) isUnseen(n number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	return it != nil && it.unseen()
}

// awaitsEvents reports whether there are unseen objects.
func (s *state) awaitsEvents() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items.All() {
		if *it != nil && (*it).unseen() {
			return true
		}
	}
	return false
}

// unseen returns the objects of which a delete was sent and no event has come yet.
func (s *state) unseen() []graph.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unseen []graph.Object
	for _, it := range s.items.All() {
		if *it != nil && (*it).unseen() {
			unseen = append(unseen, (*it).object)
		}
	}
	graph.SortByIdentity(unseen, func(o *graph.Object) graph.Identity { return o.Identity() })
	return unseen
}

// terminating returns the objects that were touched, and are being deleted.
func (s *state) terminating() []graph.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var terminating []graph.Object
	for _, it := range s.items.All() {
		if it := *it; it != nil && !it.gone && !it.lost && it.object.BeingDeleted() {
			terminating = append(terminating, it.object)
		}
	}
	return terminating
}

// isForeground reports whether an object is in foreground deletion now. That it was,
// and another policy took its place, says nothing about its dependents.
func (s *state) isForeground(n number) bool {
	v, ok := s.view(n)
	return ok && !v.gone && v.object.DeletingDependents()
}

func (s *state) isOrphaning(n number) bool {
	v, ok := s.view(n)
	return ok && !v.gone && v.object.OrphaningDependents()
}

// isDeletingDependents reports the flag of an object.
func (s *state) isDeletingDependents(n number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	return it != nil && it.deletingDependents
}

func (s *state) removed(n number) bool {
	v, ok := s.view(n)
	return ok && v.gone
}

func (s *state) dependentsOf(v view) Dependents {
	d := Dependents{Any: v.live > 0}
	if !d.Any {
		return d
	}
	for _, n := range s.dependents(v.number) {
		if s.isDeletingDependents(n) {
			d.DeletingDependents = true
			break
		}
	}
	return d
}

// turn counts that the object has to be decided about anew after a conflict,
// and returns how often that was so.
func (s *state) turn(n number) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		return 0
	}
	it.turns++
	return it.turns
}

// distinctOwners returns what references lead to, each once. Objects of one owner
// mostly share their references, and what this makes of them.
func (s *state) distinctOwners(refs []metav1.OwnerReference) []owner {
	if len(refs) == 0 {
		return nil
	}
	if len(refs) == len(s.distinctOf) && &refs[0] == &s.distinctOf[0] {
		return s.distinct
	}
	owners := make([]owner, 0, len(refs))
	for _, ref := range refs { // there are few
		if !slices.ContainsFunc(owners, func(o owner) bool { return o.uid == ref.UID }) {
			owners = append(owners, owner{ref.UID, s.of(ref.UID)})
		}
	}
	s.distinctOf, s.distinct = refs, slices.Clip(owners)
	return s.distinct
}

// lostReferences reports whether the object has lost an owner since it was first
// seen, whoever changed that, and whether one of them orphaned it.
func (s *state) lostReferences(n number) (lost, orphaned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.item(n)
	if it == nil {
		return false, false
	}
	for _, owner := range it.had {
		if references, _ := s.edge(n, owner); references {
			continue
		}
		lost = true
		if it := s.item(owner.number); it != nil && it.orphaned {
			orphaned = true
		}
	}
	return lost, orphaned
}
