// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// UnlistedReason says why something could not be read.
type UnlistedReason string

// The reasons of Unlisted.
const (
	// Forbidden: the user may not list or get it.
	Forbidden UnlistedReason = "Forbidden"
	// DiscoveryFailed: the server could not say which types the group has, as
	// when an aggregated API is down.
	DiscoveryFailed UnlistedReason = "DiscoveryFailed"
	// Timeout: the request took longer than it was given.
	Timeout UnlistedReason = "Timeout"
	// ServerError: the server answered with another error.
	ServerError UnlistedReason = "ServerError"
	// NotInSnapshot: the file that stands for a cluster does not hold it.
	NotInSnapshot UnlistedReason = "NotInSnapshot"
)

// Unlisted is something that could not be read. Resource is empty when a whole
// group version is meant, Namespace when all namespaces are, Name when all
// objects are.
type Unlisted struct {
	schema.GroupVersionResource
	Namespace string
	Name      string
	Reason    UnlistedReason
	Message   string
}

func (u Unlisted) compare(v Unlisted) int {
	return cmp.Or(
		cmp.Compare(u.Group, v.Group),
		cmp.Compare(u.Resource, v.Resource),
		cmp.Compare(u.Version, v.Version),
		cmp.Compare(u.Namespace, v.Namespace),
		cmp.Compare(u.Name, v.Name),
	)
}

// location is where an object is found: what a GET would ask for.
type location struct {
	resource  schema.GroupResource
	namespace string
	name      string
}

// Snapshot is what was read from a cluster. Its zero value with a Mapper is an
// empty snapshot that has listed nothing, so every absence in it is unknown.
// It is not safe for concurrent use.
type Snapshot struct {
	// Mapper resolves the apiVersion and kind that owner references state. It
	// covers every served version, not the preferred ones alone.
	Mapper meta.RESTMapper
	// Types are all types whose objects may have owners. Nil stands for those that
	// were listed.
	Types []*Resource
	// Parts are what was to be read. What is in none of them is not Unlisted: nobody asked for it.
	Parts Parts
	// Facts are filled in for predictions only.
	Facts Facts

	blocks []*block
	// own is the block that Add fills, nil when there is none.
	own *block
	// objects counts what is no duplicate.
	objects int
	byUID   uidIndex

	aliases map[schema.GroupResource][]schema.GroupResource
	// ambiguous holds the identities of objects that share a UID and differ in name
	// or namespace, in the order in which they were added. hidden are the places of
	// all but the first.
	ambiguous map[types.UID][]Identity
	hidden    map[location]bool
	listed    map[schema.GroupResource]map[string]string
	absent    map[location]bool
	unlisted  []Unlisted
	outside   []schema.GroupResource
}

// Add adds an object, or replaces the one with its UID when both are at the same
// place. An object that was added before under another resource is the same object
// served twice and counts once, under the first. One with the UID of an object of
// another name or namespace is not added, but makes the UID Ambiguous. Objects
// without UID are all kept. The snapshot shares the object's resource and copies the
// rest.
func (s *Snapshot) Add(o Object) {
	if s.own == nil {
		s.own = &block{}
		s.addBlock(s.own)
	}
	k := keyOf(o.UID)
	if h, known := s.byUID.add(s, &k, handleOf(len(s.blocks)-1, len(s.own.records))); known {
		s.addAgain(h, &o)
		return
	}
	s.own.add(&o)
	s.objects++
	if s.own.full() {
		s.blocks[len(s.blocks)-1], s.own = s.own.compact(), nil
	}
}

// addBlock makes room for the block's objects.
func (s *Snapshot) addBlock(b *block) {
	if len(s.blocks) == maxBlocks {
		panic(fmt.Sprintf("a snapshot cannot hold more than %d blocks", maxBlocks))
	}
	s.blocks = append(s.blocks, b)
}

// addAgain adds an object whose UID is known.
func (s *Snapshot) addAgain(h handle, o *Object) {
	b := s.blocks[h.block()]
	first, second := b.resource(h.slot()).GroupResource(), o.Resource.GroupResource()
	switch {
	case b.namespace(h.slot()) != o.Namespace || b.name(h.slot()) != o.Name:
		s.addAmbiguous(h, o)
	case first != second:
		s.alias(first, second)
	case b.worn():
		fresh := b.repacked()
		s.blocks[h.block()] = fresh
		if b == s.own {
			s.own = fresh
		}
		b = fresh
		fallthrough
	default:
		b.records[h.slot()] = b.record(o)
	}
}

// addAmbiguous records that the UID of an object is also that of one with another
// name or namespace.
func (s *Snapshot) addAmbiguous(h handle, o *Object) {
	if s.ambiguous == nil {
		s.ambiguous, s.hidden = map[types.UID][]Identity{}, map[location]bool{}
	}
	known := s.ambiguous[o.UID]
	if known == nil {
		first := s.object(h)
		known = []Identity{first.Identity()}
	}
	if id := o.Identity(); !slices.Contains(known, id) {
		s.ambiguous[o.UID] = append(known, id)
		s.hidden[location{id.Resource.GroupResource(), id.Namespace, id.Name}] = true
	}
}

// Ambiguous returns the identities of all objects that were added with the UID when
// these have different names or namespaces, and otherwise nothing. Some aggregated
// APIs serve so what is a part, or another view, of one stored object, as OpenShift
// does with an ImageStream and its ImageStreamTags. To whom a request with that
// UID as its precondition speaks the UID does not tell. The Snapshot holds the
// first of them.
func (s *Snapshot) Ambiguous(uid types.UID) []Identity { return s.ambiguous[uid] }

// AddBatch adds the objects of batches, as Add would one after the other. The
// batches must not be added to another snapshot.
func (s *Snapshot) AddBatch(batches ...Batch) {
	n := 0
	for _, batch := range batches {
		n += batch.Len()
	}
	s.byUID.reserve(s, n)
	s.own = nil // handles follow the order of blocks
	for _, batch := range batches {
		for _, b := range batch.blocks {
			s.addBlock(b)
			s.index(len(s.blocks) - 1)
		}
	}
}

// index finds out which of the block's objects are known already.
func (s *Snapshot) index(number int) {
	for slot := range s.blocks[number].records {
		b := s.blocks[number]
		k := b.key(slot)
		if h, known := s.byUID.add(s, &k, handleOf(number, slot)); known {
			o := b.object(slot)
			b.records[slot].flags |= duplicate
			s.addAgain(h, &o)
			continue
		}
		s.objects++
	}
}

// alias records that two resources serve the same objects.
func (s *Snapshot) alias(a, b schema.GroupResource) {
	if s.aliases == nil {
		s.aliases = map[schema.GroupResource][]schema.GroupResource{}
	}
	if !slices.Contains(s.aliases[a], b) {
		s.aliases[a] = append(s.aliases[a], b)
		s.aliases[b] = append(s.aliases[b], a)
	}
}

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.objects }

// Holding returns what the same reads would have shown if there were these objects. It
// shares everything else with the snapshot, which must not change any more.
func (s *Snapshot) Holding(objects iter.Seq[Object]) *Snapshot {
	other := &Snapshot{
		Mapper: s.Mapper, Types: s.Types, Parts: s.Parts, Facts: s.Facts,
		aliases: maps.Clone(s.aliases), listed: s.listed, absent: s.absent, unlisted: s.unlisted, outside: s.outside,
	}
	for o := range objects {
		other.Add(o)
	}
	return other
}

// handles goes over the objects in the order in which they were added.
func (s *Snapshot) handles(yield func(handle) bool) {
	for number, b := range s.blocks {
		for slot := range b.records {
			if !b.is(slot, duplicate) && !yield(handleOf(number, slot)) {
				return
			}
		}
	}
}

// object makes the Object at the handle.
func (s *Snapshot) object(h handle) Object { return s.blocks[h.block()].object(h.slot()) }

// Objects returns the objects in the order in which they were added. An object
// is made when its turn comes; what it points to is shared and must not be
// changed.
func (s *Snapshot) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		s.handles(func(h handle) bool { return yield(s.object(h)) })
	}
}

// ObjectsOf returns the objects of the resource, in the namespace if it is not
// empty, in the order in which they were added. It makes no others.
func (s *Snapshot) ObjectsOf(resource *Resource, namespace string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		s.handles(func(h handle) bool {
			b, slot := s.blocks[h.block()], h.slot()
			return b.resource(slot) != resource || namespace != "" && b.namespace(slot) != namespace || yield(b.object(slot))
		})
	}
}

// Only reports whether all objects are of types that the function says yes to, both of them
// where two types serve an object. It asks for each type a few times, and looks at no objects.
func (s *Snapshot) Only(is func(*Resource) bool) bool {
	for _, b := range s.blocks {
		for _, r := range b.resources {
			if !is(r) {
				return false
			}
		}
	}
	return true
}

// Object returns the object with the UID. What it points to is shared and must
// not be changed. The empty UID, which says nothing of which object is meant, has
// the one that was added last.
func (s *Snapshot) Object(uid types.UID) (Object, bool) {
	h, ok := s.Handle(uid)
	if !ok {
		return Object{}, false
	}
	return s.object(h), true
}

// Unlabelled returns the object that the handle stands for as Object has it, without its
// labels.
func (s *Snapshot) Unlabelled(h Handle) Object { return s.blocks[h.block()].unlabelled(h.slot()) }

// Label returns a label of the object that the handle stands for, empty when it has none of
// that key.
func (s *Snapshot) Label(h Handle, key string) string {
	return s.blocks[h.block()].label(h.slot(), key)
}

// ResourceVersion returns that of the object with the UID, as Object has it.
func (s *Snapshot) ResourceVersion(uid types.UID) (string, bool) {
	h, ok := s.Handle(uid)
	if !ok {
		return "", false
	}
	return s.blocks[h.block()].version(h.slot()), true
}

// Handle says which object of a Snapshot is meant. It is small, and holds as long as the
// snapshot does.
type Handle = handle

// Head is what a request for an object states.
type Head struct {
	Resource        *Resource
	Namespace, Name string
	BeingDeleted    bool
}

// Heads returns the objects that have a UID, in the order in which they were added. They
// cost less than Objects.
func (s *Snapshot) Heads() iter.Seq2[Handle, Head] {
	return func(yield func(Handle, Head) bool) {
		s.handles(func(h handle) bool {
			b, slot := s.blocks[h.block()], h.slot()
			if k := b.key(slot); !k.uuid && k.text == "" {
				return true
			}
			return yield(h, Head{b.resource(slot), b.namespace(slot), b.name(slot), b.is(slot, terminating)})
		})
	}
}

// Handle returns that of the object with the UID, as Object has it.
func (s *Snapshot) Handle(uid types.UID) (Handle, bool) {
	k := keyOf(uid)
	return s.byUID.find(s, &k)
}

// UID returns that of an object.
func (s *Snapshot) UID(h Handle) types.UID { return s.blocks[h.block()].key(h.slot()).uid() }

// MarkListed records that all objects of the resource in the namespace were
// added, as they were at the list's resourceVersion; an empty namespace means
// everywhere. From then on an object of it that was not added is absent.
func (s *Snapshot) MarkListed(resource schema.GroupResource, namespace, resourceVersion string) {
	if s.listed == nil {
		s.listed = map[schema.GroupResource]map[string]string{}
	}
	if s.listed[resource] == nil {
		s.listed[resource] = map[string]string{}
	}
	s.listed[resource][namespace] = resourceVersion
}

// Listed returns the namespaces in which all objects of the resource were
// added, empty for everywhere, with the resourceVersion of each list.
func (s *Snapshot) Listed(resource schema.GroupResource) map[string]string { return s.listed[resource] }

// ListedIn reports whether all objects of the resource in the namespace were added,
// because they were listed there or everywhere. For an empty namespace it is
// everywhere.
func (s *Snapshot) ListedIn(resource schema.GroupResource, namespace string) bool {
	namespaces := s.listed[resource]
	_, everywhere := namespaces[""]
	_, there := namespaces[namespace]
	return everywhere || there
}

// MarkAbsent records that a GET of this one object answered NotFound.
func (s *Snapshot) MarkAbsent(resource schema.GroupResource, namespace, name string) {
	if s.absent == nil {
		s.absent = map[location]bool{}
	}
	s.absent[location{resource, namespace, name}] = true
}

// MarkUnlisted records something that could not be read.
func (s *Snapshot) MarkUnlisted(u Unlisted) { s.unlisted = append(s.unlisted, u) }

// Unlisted returns what could not be read, sorted.
func (s *Snapshot) Unlisted() []Unlisted {
	return slices.SortedFunc(slices.Values(s.unlisted), Unlisted.compare)
}

// MarkOutside records that only the namespace that was asked for was looked at for
// objects of the resource, or that they have none and were not, because the user
// may not list more. That is what the user asked for as far as it goes, and so not
// Unlisted.
func (s *Snapshot) MarkOutside(resource schema.GroupResource) {
	s.outside = append(s.outside, resource)
}

// Outside returns the resources of MarkOutside, sorted.
func (s *Snapshot) Outside() []schema.GroupResource {
	return slices.SortedFunc(slices.Values(s.outside), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// Complete reports whether everything that was asked for could be read.
func (s *Snapshot) Complete() bool { return len(s.unlisted) == 0 }

// covers reports whether an object at the location that was not added is
// provably absent.
func (s *Snapshot) covers(l location) bool {
	if s.hidden[l] {
		return false // it was read, see Ambiguous
	}
	return s.ListedIn(l.resource, l.namespace) || s.absent[l]
}

// Covers reports whether an object with these coordinates that was not added
// is provably absent.
func (s *Snapshot) Covers(resource schema.GroupResource, namespace, name string) bool {
	return s.covers(location{resource, namespace, name})
}

// discoveryFailed reports whether the server could not say what the group
// version serves.
func (s *Snapshot) discoveryFailed(gv schema.GroupVersion) bool {
	return slices.ContainsFunc(s.unlisted, func(u Unlisted) bool {
		return u.Resource == "" && u.Group == gv.Group && (u.Version == gv.Version || u.Version == "")
	})
}

// Undecided is an owner that references name and that the snapshot can neither
// show nor prove absent: a GET would decide.
type Undecided struct {
	Resource  Resource
	Namespace string
	Name      string
}

// Undecided returns the distinct owners that a GET each would decide, sorted.
func (s *Snapshot) Undecided() []Undecided {
	found := map[location]Undecided{}
	c := newClassifier(s)
	if c.allListed() {
		return nil
	}
	for _, open := range c.openReferences() {
		b := s.blocks[open.dependent.block()]
		namespace, ref := b.namespace(open.dependent.slot()), b.ownerReference(open.reference, &uidText{})
		state, reason := Classify(ref, namespace, c)
		if state != Unknown || reason != UnlistedOwner {
			continue
		}
		mapping, _ := c.Resolve(ref.APIVersion, ref.Kind) // open references resolve
		u := Undecided{Resource: ResourceOf(mapping), Name: ref.Name}
		if u.Resource.Namespaced {
			u.Namespace = namespace
		}
		where := location{u.Resource.GroupResource(), u.Namespace, u.Name}
		if other, ok := found[where]; !ok || u.identity().Compare(other.identity()) < 0 {
			found[where] = u
		}
	}
	undecided := make([]Undecided, 0, len(found))
	for _, u := range found {
		undecided = append(undecided, u)
	}
	SortByIdentity(undecided, func(u *Undecided) Identity { return u.identity() })
	return undecided
}

func (u Undecided) identity() Identity {
	return Identity{Resource: u.Resource, Namespace: u.Namespace, Name: u.Name}
}
