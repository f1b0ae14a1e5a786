// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	if last := len(b.records) - 1; last > 0 && !b.inOrder(last) {
		b.unordered = true
	}
}

// inOrder reports whether an object comes after the one before it, by name, if both are of
// one type and namespace.
func (b *block) inOrder(slot int) bool {
	r, before := &b.records[slot], &b.records[slot-1]
	return r.resource != before.resource || r.namespace != before.namespace || b.name(slot-1) < b.name(slot)
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

// setExtra keeps what there is beyond the record. The latest object's is shared when it is
// the same.
func (b *block) setExtra(r *record, x extra, more *details) {
	if *more != (details{}) {
		b.details = append(b.details, *more)
		x.details = uint32(len(b.details))
	}
	if x == (extra{}) {
		return
	}
	if n := len(b.extras); n == 0 || b.extras[n-1] != x {
		b.extras = append(b.extras, x)
	}
	r.extra = uint16(len(b.extras))
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
	return new(*p)
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
	b.references += len(o.OwnerReferences)
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
		unordered: b.unordered, references: b.references,
	}
}

// empty takes everything out of a block whose content nobody else shares.
func (b *block) empty() {
	b.records, b.owners, b.text = b.records[:0], b.owners[:0], b.text[:0]
	b.resources, b.namespaces, b.finalizers, b.kinds = b.resources[:0], b.namespaces[:0], b.finalizers[:0], b.kinds[:0]
	b.extras, b.details, b.labels, b.strings = b.extras[:0], b.details[:0], b.labels[:0], b.strings[:0]
	clear(b.known)
	b.latest.Store(nil)
	b.unordered, b.references = false, 0
}
