// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/binary"
	"iter"
	"maps"
	"sync/atomic"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objects are kept in blocks. An object is a record of fixed size without
// pointers, which the Go garbage collector need not look at; what has no fixed
// size, or repeats, is in tables of the block. An Object is made of a record
// when somebody asks for it.

// handle says where an object is in a snapshot.
type handle uint32

const (
	slotBits = 12
	// blockSize is how many objects a block holds at most.
	blockSize = 1 << slotBits
	// blockText is how many bytes of text a block has before another is begun.
	blockText = 1 << 20
	// maxBlocks is how many blocks the handles can tell apart: enough for 500
	// million objects in pages of 500.
	maxBlocks = 1 << (32 - slotBits)
)

func handleOf(block, slot int) handle { return handle(block<<slotBits | slot) }

func (h handle) block() int { return int(h >> slotBits) }
func (h handle) slot() int  { return int(h & (blockSize - 1)) }

// block holds up to blockSize objects.
type block struct {
	records []record
	owners  []ownerRecord
	// text has the names and resourceVersions, and the UIDs that are no UUIDs. It
	// is appended to and never changed, so that strings can share it.
	text []byte

	resources  []*Resource
	namespaces []string
	finalizers [][]string // the first is nil
	kinds      []statedKind
	extras     []extra
	details    []details
	labels     []label
	// strings are the keys and values of labels; known finds them while the
	// block grows.
	strings []string
	known   map[string]uint32
	// unordered: some objects of one type and namespace that stand together are not in the
	// order of their names.
	unordered bool
	// references is how many owner references there are at most: those of objects that were
	// replaced count.
	references int
	// latest is the list of owner references that was made last: dependents of one
	// owner stand together, and share it.
	latest atomic.Pointer[madeOwners]
}

// madeOwners is the list of owner references that begins at a number.
type madeOwners struct {
	first uint32
	refs  []metav1.OwnerReference
}

// record is one object. Its text is the name, the resourceVersion and, if it is
// no UUID, the UID.
type record struct {
	id         [16]byte // the UID, or the length of its text
	created    int64    // seconds since 1970
	text       uint32   // where it begins
	name       uint32   // length
	owners     uint32   // the first one's number + 1
	version    uint16   // length
	flags      recordFlags
	resource   uint16
	namespace  uint16
	finalizers uint16
	extra      uint16 // number + 1
}

type recordFlags uint16

const (
	// textUID: the UID is no UUID.
	textUID recordFlags = 1 << iota
	// created and createdUTC: there is a creation timestamp, in UTC.
	created
	createdUTC
	// noOwners: the list of owner references is empty rather than nil.
	noOwners
	// terminating and foreground are BeingDeleted and DeletingDependents.
	terminating
	foreground
	// duplicate: the object is another's, see Snapshot.Add.
	duplicate
)

// ownerRecord is one owner reference.
type ownerRecord struct {
	id   [16]byte // the UID, or where its text begins and its length
	text uint32   // where the name begins
	name uint32   // length
	// kindFlags is the number of the stated kind, and the flags.
	kindFlags uint32
}

type ownerFlags uint32

const (
	textOwnerUID ownerFlags = 1 << iota
	// lastOwner ends the list of one object.
	lastOwner
	controllerSet
	controllerTrue
	blockSet
	blockTrue

	ownerFlagBits = 8
)

func (r *ownerRecord) is(flag ownerFlags) bool { return ownerFlags(r.kindFlags)&flag != 0 }
func (r *ownerRecord) kind() int               { return int(r.kindFlags >> ownerFlagBits) }

// statedKind is what owner references state.
type statedKind struct{ apiVersion, kind string }

// extra is what not every object has, by number + 1.
type extra struct{ labels, details uint32 }

// details are what few objects have.
type details struct {
	creation *metav1.Time // when it does not fit a record
	deletion *metav1.Time
	grace    *int64
	version  string // when it does not fit a record
}

// label is one label of an object, by numbers of strings.
type label struct{ key, value uint32 }

// lastLabel is the bit of the key that ends the list of one object.
const lastLabel = 1 << 31

// labelsFrom goes over the labels that begin at the number, which is 0 for
// none.
func (b *block) labelsFrom(first uint32) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for i := first; i != 0; i++ {
			l := b.labels[i-1]
			if !yield(b.strings[l.key&^lastLabel], b.strings[l.value]) || l.key&lastLabel != 0 {
				return
			}
		}
	}
}

// ownersFrom goes over the list that begins at the number, which is 0 for none.
func (b *block) ownersFrom(first uint32) iter.Seq2[int, *ownerRecord] {
	return func(yield func(int, *ownerRecord) bool) {
		for i := 0; first != 0; i++ {
			w := &b.owners[int(first)-1+i]
			if !yield(i, w) || w.is(lastOwner) {
				return
			}
		}
	}
}

// countOwners returns how many owner references an object has.
func (b *block) countOwners(slot int) int {
	n := 0
	for range b.ownersFrom(b.records[slot].owners) {
		n++
	}
	return n
}

func (b *block) slice(from, length uint32) string {
	part := b.text[from : from+length]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

func (b *block) name(slot int) string {
	r := &b.records[slot]
	return b.slice(r.text, r.name)
}

func (b *block) namespace(slot int) string   { return b.namespaces[b.records[slot].namespace] }
func (b *block) resource(slot int) *Resource { return b.resources[b.records[slot].resource] }

// is reports whether the record has the flag.
func (b *block) is(slot int, flag recordFlags) bool { return b.records[slot].flags&flag != 0 }

// key returns an object's UID.
func (b *block) key(slot int) key {
	r := &b.records[slot]
	if r.flags&textUID == 0 {
		return key{id: r.id, uuid: true}
	}
	return key{text: b.slice(r.text+r.name+uint32(r.version), binary.NativeEndian.Uint32(r.id[:]))}
}

func (b *block) hasKey(slot int, k *key) bool {
	r := &b.records[slot]
	if r.flags&textUID == 0 {
		return k.uuid && r.id == k.id
	}
	return !k.uuid && b.key(slot) == *k
}

func (b *block) ownerName(w *ownerRecord) string { return b.slice(w.text, w.name) }

func (b *block) ownerKey(w *ownerRecord) key {
	if !w.is(textOwnerUID) {
		return key{id: w.id, uuid: true}
	}
	return key{text: b.slice(binary.NativeEndian.Uint32(w.id[:]), binary.NativeEndian.Uint32(w.id[4:]))}
}

func (b *block) identity(slot int) Identity {
	return Identity{Resource: *b.resource(slot), Namespace: b.namespace(slot), Name: b.name(slot), UID: b.key(slot).uid()}
}

// version returns the resourceVersion.
func (b *block) version(slot int) string {
	r := &b.records[slot]
	if r.extra != 0 {
		if x := b.extras[r.extra-1]; x.details != 0 && b.details[x.details-1].version != "" {
			return b.details[x.details-1].version
		}
	}
	return b.slice(r.text+r.name, uint32(r.version))
}

// object makes an Object of a record. Its text is shared with the block.
func (b *block) object(slot int) Object {
	o := b.unlabelled(slot)
	if first := b.firstLabel(slot); first != 0 {
		o.Labels = maps.Collect(b.labelsFrom(first))
	}
	return o
}

// firstLabel returns where the labels begin, 0 when there are none.
func (b *block) firstLabel(slot int) uint32 {
	if r := &b.records[slot]; r.extra != 0 {
		return b.extras[r.extra-1].labels
	}
	return 0
}

// label returns the value of a label, empty when there is none.
func (b *block) label(slot int, key string) string {
	if first := b.firstLabel(slot); first != 0 {
		for k, value := range b.labelsFrom(first) {
			if k == key {
				return value
			}
		}
	}
	return ""
}

// unlabelled is object without the labels.
func (b *block) unlabelled(slot int) Object {
	r := &b.records[slot]
	o := Object{
		Resource:          b.resource(slot),
		Namespace:         b.namespace(slot),
		Name:              b.name(slot),
		UID:               b.key(slot).uid(),
		ResourceVersion:   b.slice(r.text+r.name, uint32(r.version)),
		CreationTimestamp: r.creation(),
		Finalizers:        b.finalizers[r.finalizers],
		OwnerReferences:   b.ownerReferences(slot),
	}
	if r.extra == 0 {
		return o
	}
	if x := b.extras[r.extra-1]; x.details != 0 {
		b.addDetails(&o, &b.details[x.details-1])
	}
	return o
}

func (b *block) addDetails(o *Object, d *details) {
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = d.deletion, d.grace
	if d.creation != nil {
		o.CreationTimestamp = *d.creation
	}
	if d.version != "" {
		o.ResourceVersion = d.version
	}
}

// creation returns the creation timestamp of an object.
func (b *block) creation(slot int) metav1.Time {
	r := &b.records[slot]
	if r.extra != 0 {
		if x := b.extras[r.extra-1]; x.details != 0 && b.details[x.details-1].creation != nil {
			return *b.details[x.details-1].creation
		}
	}
	return r.creation()
}

func (r *record) creation() metav1.Time {
	switch {
	case r.flags&created == 0:
		return metav1.Time{}
	case r.flags&createdUTC != 0:
		return metav1.Time{Time: time.Unix(r.created, 0).UTC()}
	}
	return metav1.Unix(r.created, 0)
}

func (b *block) ownerReferences(slot int) []metav1.OwnerReference {
	r := &b.records[slot]
	if r.owners == 0 {
		if r.flags&noOwners != 0 {
			return []metav1.OwnerReference{}
		}
		return nil
	}
	if made := b.latest.Load(); made != nil && made.first == r.owners {
		return made.refs
	}
	n := b.countOwners(slot)
	var uids uidText
	uids.Grow(n * uuidLength)
	refs := make([]metav1.OwnerReference, 0, n)
	for _, w := range b.ownersFrom(r.owners) {
		refs = append(refs, b.ownerReference(w, &uids))
	}
	b.latest.Store(&madeOwners{r.owners, refs})
	return refs
}

// yes and no are what the pointers of owner references point to. They must not
// be changed, like everything that objects share.
var yes, no = true, false

func (b *block) ownerReference(w *ownerRecord, uids *uidText) metav1.OwnerReference {
	kind := b.kinds[w.kind()]
	ref := metav1.OwnerReference{APIVersion: kind.apiVersion, Kind: kind.kind, Name: b.ownerName(w), UID: uids.of(b.ownerKey(w))}
	if w.is(controllerSet) {
		ref.Controller = boolean(w.is(controllerTrue))
	}
	if w.is(blockSet) {
		ref.BlockOwnerDeletion = boolean(w.is(blockTrue))
	}
	return ref
}

func boolean(value bool) *bool {
	if value {
		return &yes
	}
	return &no
}
