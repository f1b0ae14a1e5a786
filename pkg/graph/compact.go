// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// recent is how many of the latest entries of a table are looked at before
// another is added. Objects come sorted, so that is nearly always enough; an
// entry that is there twice does no harm.
const recent = 16

// entry returns the number of the value in the table.
func entry[T any](table *[]T, value T, equal func(T, T) bool) int {
	t := *table
	for i := len(t) - 1; i >= max(0, len(t)-recent); i-- {
		if equal(t[i], value) {
			return i
		}
	}
	*table = append(t, value)
	return len(t)
}

func same[T comparable](a, b T) bool { return a == b }

func sameFinalizers(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// full reports whether the next object needs another block.
func (b *block) full() bool { return len(b.records) == blockSize || len(b.text) >= blockText }

// add adds an object. Its Name, UID and ResourceVersion and those of its owners
// are copied, and so is what it points to.
func (b *block) add(o *Object) {
	b.records = append(b.records, b.record(o))
}

// record makes the record of an object. The previous object's owners are
// shared when they are the same.
func (b *block) record(o *Object) record {
	if len(b.finalizers) == 0 {
		b.finalizers = append(b.finalizers, nil)
	}
	r := record{
		text: uint32(len(b.text)), name: uint32(len(o.Name)),
		resource:  uint16(entry(&b.resources, o.Resource, same)),
		namespace: uint16(entry(&b.namespaces, o.Namespace, same)),
	}
	if o.Finalizers != nil {
		r.finalizers = uint16(b.finalizerSet(o.Finalizers))
	}
	if o.BeingDeleted() {
		r.flags |= terminating
	}
	if o.DeletingDependents() {
		r.flags |= foreground
	}
	x := details{grace: clonePointer(o.DeletionGracePeriodSeconds), deletion: clonePointer(o.DeletionTimestamp)}
	r.setCreation(o.CreationTimestamp, &x)
	b.text = append(b.text, o.Name...)
	if len(o.ResourceVersion) > math.MaxUint16 {
		x.version = strings.Clone(o.ResourceVersion)
	} else {
		r.version = uint16(len(o.ResourceVersion))
		b.text = append(b.text, o.ResourceVersion...)
	}
	if k := keyOf(o.UID); k.uuid {
		r.id = k.id
	} else {
		r.flags |= textUID
		binary.NativeEndian.PutUint32(r.id[:], uint32(len(o.UID)))
		b.text = append(b.text, k.text...)
	}
	b.setOwners(&r, o)
	b.setExtra(&r, extra{labels: b.labelSet(o.Labels)}, &x)
	return r
}

// setExtra keeps what there is beyond the record.
func (b *block) setExtra(r *record, x extra, more *details) {
	if *more != (details{}) {
		b.details = append(b.details, *more)
		x.details = uint32(len(b.details))
	}
	if x != (extra{}) {
		b.extras = append(b.extras, x)
		r.extra = uint16(len(b.extras))
	}
}

// labelSet returns where the labels begin, + 1. The previous object's are shared
// when they are the same.
func (b *block) labelSet(labels map[string]string) uint32 {
	if len(labels) == 0 {
		return 0
	}
	if n := len(b.extras); n > 0 && b.extras[n-1].labels != 0 && b.sameLabels(b.extras[n-1].labels, labels) {
		return b.extras[n-1].labels
	}
	first := uint32(len(b.labels)) + 1
	for key, value := range labels {
		b.labels = append(b.labels, label{b.number(key), b.number(value)})
	}
	b.labels[len(b.labels)-1].key |= lastLabel
	return first
}

// number returns the number of a string.
func (b *block) number(s string) uint32 {
	if i, ok := b.known[s]; ok {
		return i
	}
	if b.known == nil {
		b.known = map[string]uint32{}
		for i, s := range b.strings { // the block is a copy
			b.known[s] = uint32(i)
		}
		if i, ok := b.known[s]; ok {
			return i
		}
	}
	i := uint32(len(b.strings))
	b.strings = append(b.strings, s)
	b.known[s] = i
	return i
}

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

func (b *block) sameLabels(first uint32, labels map[string]string) bool {
	n := 0
	for key, value := range b.labelsFrom(first) {
		if other, ok := labels[key]; !ok || other != value {
			return false
		}
		n++
	}
	return n == len(labels)
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}

// finalizerSet returns the number of the list of finalizers.
func (b *block) finalizerSet(finalizers []string) int {
	n := len(b.finalizers)
	i := entry(&b.finalizers, finalizers, sameFinalizers)
	if i == n { // it is the caller's
		b.finalizers[i] = append(make([]string, 0, len(finalizers)), finalizers...)
	}
	return i
}

// setCreation keeps a time of whole seconds, as they come from an API server,
// in the record and any other in the extra.
func (r *record) setCreation(t metav1.Time, x *details) {
	if t == (metav1.Time{}) {
		return
	}
	seconds := t.Unix()
	switch local := time.Unix(seconds, 0); t.Time {
	case local:
		r.created, r.flags = seconds, r.flags|created
	case local.UTC():
		r.created, r.flags = seconds, r.flags|created|createdUTC
	default:
		x.creation = clonePointer(&t)
	}
}

// setOwners keeps the owner references.
func (b *block) setOwners(r *record, o *Object) {
	switch {
	case o.OwnerReferences == nil:
		return
	case len(o.OwnerReferences) == 0:
		r.flags |= noOwners
		return
	}
	if len(b.records) > 0 {
		if previous := b.records[len(b.records)-1].owners; previous != 0 && b.sameOwners(previous, o.OwnerReferences) {
			r.owners = previous
			return
		}
	}
	r.owners = uint32(len(b.owners)) + 1
	for i := range o.OwnerReferences {
		b.owners = append(b.owners, b.owner(r, o, &o.OwnerReferences[i]))
	}
	b.owners[len(b.owners)-1].kindFlags |= uint32(lastOwner)
}

// owner makes the record of an owner reference. The owner's name often begins
// the dependent's.
func (b *block) owner(r *record, o *Object, ref *metav1.OwnerReference) ownerRecord {
	kind := entry(&b.kinds, statedKind{ref.APIVersion, ref.Kind}, same)
	w := ownerRecord{text: r.text, name: uint32(len(ref.Name)), kindFlags: uint32(kind)<<ownerFlagBits | uint32(flagsOf(ref))}
	if !strings.HasPrefix(o.Name, ref.Name) {
		w.text = uint32(len(b.text))
		b.text = append(b.text, ref.Name...)
	}
	if k := keyOf(ref.UID); k.uuid {
		w.id = k.id
	} else {
		w.kindFlags |= uint32(textOwnerUID)
		binary.NativeEndian.PutUint32(w.id[:], uint32(len(b.text)))
		binary.NativeEndian.PutUint32(w.id[4:], uint32(len(ref.UID)))
		b.text = append(b.text, k.text...)
	}
	return w
}

func flagsOf(ref *metav1.OwnerReference) ownerFlags {
	var flags ownerFlags
	if ref.Controller != nil {
		flags |= controllerSet
		if *ref.Controller {
			flags |= controllerTrue
		}
	}
	if ref.BlockOwnerDeletion != nil {
		flags |= blockSet
		if *ref.BlockOwnerDeletion {
			flags |= blockTrue
		}
	}
	return flags
}

// sameOwners reports whether the list of owners that begins at the number is
// the given one.
func (b *block) sameOwners(first uint32, refs []metav1.OwnerReference) bool {
	const mine = controllerSet | controllerTrue | blockSet | blockTrue
	for i, w := range b.ownersFrom(first) {
		if i == len(refs) {
			return false
		}
		ref := &refs[i]
		if ownerFlags(w.kindFlags)&mine != flagsOf(ref) || b.ownerName(w) != ref.Name ||
			b.kinds[w.kind()] != (statedKind{ref.APIVersion, ref.Kind}) || b.ownerKey(w) != keyOf(ref.UID) {
			return false
		}
		if w.is(lastOwner) {
			return i == len(refs)-1
		}
	}
	return false
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

// uid returns the UID as the API has it.
func (k key) uid() types.UID {
	var text uidText
	return text.of(k)
}

// uidText makes the text of UIDs, in one piece when it has grown before.
type uidText struct{ strings.Builder }

func (t *uidText) of(k key) types.UID {
	if !k.uuid {
		return types.UID(k.text)
	}
	var text [uuidLength]byte
	from := t.Len()
	t.Write(appendUUID(text[:0], &k.id))
	return types.UID(t.String()[from:])
}

// object makes an Object of a record. Its text is shared with the block.
func (b *block) object(slot int) Object {
	r := &b.records[slot]
	var uids uidText
	n := b.countOwners(slot)
	uids.Grow((1 + n) * uuidLength)
	o := Object{
		Resource:          b.resource(slot),
		Namespace:         b.namespace(slot),
		Name:              b.name(slot),
		UID:               uids.of(b.key(slot)),
		ResourceVersion:   b.slice(r.text+r.name, uint32(r.version)),
		CreationTimestamp: r.creation(),
		Finalizers:        b.finalizers[r.finalizers],
		OwnerReferences:   b.ownerReferences(slot, n, &uids),
	}
	if r.extra == 0 {
		return o
	}
	b.addExtra(&o, b.extras[r.extra-1])
	return o
}

func (b *block) addExtra(o *Object, x extra) {
	if x.labels != 0 {
		o.Labels = maps.Collect(b.labelsFrom(x.labels))
	}
	if x.details == 0 {
		return
	}
	d := &b.details[x.details-1]
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = d.deletion, d.grace
	if d.creation != nil {
		o.CreationTimestamp = *d.creation
	}
	if d.version != "" {
		o.ResourceVersion = d.version
	}
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

func (b *block) ownerReferences(slot, n int, uids *uidText) []metav1.OwnerReference {
	r := &b.records[slot]
	if r.owners == 0 {
		if r.flags&noOwners != 0 {
			return []metav1.OwnerReference{}
		}
		return nil
	}
	refs := make([]metav1.OwnerReference, 0, n)
	for _, w := range b.ownersFrom(r.owners) {
		refs = append(refs, b.ownerReference(w, uids))
	}
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

// worn reports whether objects were replaced so often that a table might
// overflow.
func (b *block) worn() bool {
	const limit = math.MaxUint16 - 1
	return len(b.text) > 1<<30 || len(b.extras) > limit || len(b.resources) > limit ||
		len(b.namespaces) > limit || len(b.finalizers) > limit || len(b.kinds) > 1<<23
}

// repacked returns a block with the same objects and nothing else.
func (b *block) repacked() *block {
	fresh := &block{}
	for slot := range b.records {
		o := b.object(slot)
		fresh.add(&o)
		fresh.records[slot].flags |= b.records[slot].flags & duplicate
	}
	return fresh
}

// compact returns a block with the same content and no room for more.
func (b *block) compact() *block {
	return &block{
		records: slices.Clone(b.records), owners: slices.Clone(b.owners), text: slices.Clone(b.text),
		resources: slices.Clone(b.resources), namespaces: slices.Clone(b.namespaces),
		finalizers: slices.Clone(b.finalizers), kinds: slices.Clone(b.kinds),
		extras: slices.Clone(b.extras), details: slices.Clone(b.details),
		labels: slices.Clone(b.labels), strings: slices.Clone(b.strings),
	}
}

// empty takes everything out of a block whose content nobody else shares.
func (b *block) empty() {
	b.records, b.owners, b.text = b.records[:0], b.owners[:0], b.text[:0]
	b.resources, b.namespaces, b.finalizers, b.kinds = b.resources[:0], b.namespaces[:0], b.finalizers[:0], b.kinds[:0]
	b.extras, b.details, b.labels, b.strings = b.extras[:0], b.details[:0], b.labels[:0], b.strings[:0]
	clear(b.known)
}

// Batch is a number of objects in compact form. It does not change.
type Batch struct {
	blocks []*block
}

// Len returns the number of objects.
func (b Batch) Len() int {
	n := 0
	for _, block := range b.blocks {
		n += len(block.records)
	}
	return n
}

// Objects returns the objects in the order in which they were added.
func (b Batch) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, block := range b.blocks {
			for slot := range block.records {
				if !yield(block.object(slot)) {
					return
				}
			}
		}
	}
}

// Packer makes Batches. The zero value is ready for use; a Packer must not be
// used by several goroutines at once.
type Packer struct {
	blocks []*block
	// open is the block that grows. It keeps its memory for the next one: the
	// Batch gets a copy that is as large as needed.
	open block
}

// Add adds an object. It copies the object and all that it points to, but for
// its resource and the strings that objects share: namespaces, finalizers,
// labels, and kinds and versions of owners.
func (p *Packer) Add(o *Object) {
	p.open.add(o)
	if p.open.full() {
		p.finish()
	}
}

// finish ends the block that grows.
func (p *Packer) finish() {
	p.blocks = append(p.blocks, p.open.compact())
	p.open.empty()
}

// Batch returns the objects that were added since it was last called.
func (p *Packer) Batch() Batch {
	if len(p.open.records) > 0 {
		p.finish()
	}
	b := Batch{p.blocks}
	p.blocks = nil
	return b
}
