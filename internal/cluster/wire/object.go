// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// object is the object at hand, with the memory that its fields use.
type object struct {
	graph.Object
	deletion   metav1.Time
	grace      int64
	finalizers []string
	owners     []metav1.OwnerReference
	// firstOwner is the latest owner reference that was the first of its object.
	firstOwner struct {
		message []byte
		ref     metav1.OwnerReference
		err     error
	}
	labels   map[string]string
	interned map[string]string
	latest   [64]string
}

// yes and no are what the pointers of owner references point to.
var yes, no = true, false

func (o *object) reset() {
	o.Object = graph.Object{}
	o.finalizers, o.owners = o.finalizers[:0], o.owners[:0]
	clear(o.labels)
}

// finish sets the lists, which are nil when they are empty.
func (o *object) finish() {
	if len(o.finalizers) > 0 {
		o.Finalizers = o.finalizers
	}
	if len(o.owners) > 0 {
		o.OwnerReferences = o.owners
	}
	if len(o.labels) > 0 {
		o.Labels = o.labels
	}
}

// decode reads an ObjectMeta. The numbers are those of generated.proto.
func (o *object) decode(message []byte, labels []string) error {
	f := fields{message: message}
	labelled := labels == nil || len(labels) > 0
	for {
		f.at = overIdle(message, f.at, labelled)
		if !f.next() {
			return f.err
		}
		switch f.number {
		case 1:
			o.Name = transient(f.want(protowire.BytesType))
		case 3:
			o.Namespace = o.intern(f.want(protowire.BytesType))
		case 5:
			o.UID = types.UID(transient(f.want(protowire.BytesType)))
		case 6:
			o.ResourceVersion = transient(f.want(protowire.BytesType))
		case 8:
			o.CreationTimestamp = f.timestamp()
		case 9:
			o.deletion = f.timestamp()
			o.DeletionTimestamp = &o.deletion
		case 10:
			f.want(protowire.VarintType)
			o.grace = int64(f.varint)
			o.DeletionGracePeriodSeconds = &o.grace
		case 11:
			if labelled {
				f.failed(o.label(f.want(protowire.BytesType), labels))
			}
		case 13:
			f.failed(o.owner(f.want(protowire.BytesType)))
		case 14:
			o.finalizers = append(o.finalizers, o.intern(f.want(protowire.BytesType)))
		}
	}
}

// overIdle goes over the fields of an ObjectMeta that nobody looks at and that make up most
// of it, as long as one follows another and is shorter than 16 kB, and returns where the
// first other field begins: generateName = 2, selfLink = 4, generation = 7 up to 127, labels = 11
// unless they are kept, annotations = 12, managedFields = 17.
func overIdle(message []byte, at int, labelled bool) int {
	const head = 4 // a tag and a length, of two bytes at most
	for at+head <= len(message) {
		n := at + 1
		switch message[at] {
		case 2<<3 | byte(protowire.BytesType), 4<<3 | byte(protowire.BytesType), 12<<3 | byte(protowire.BytesType):
		case 7<<3 | byte(protowire.VarintType):
			if message[n] >= 0x80 {
				return at
			}
			at = n + 1
			continue
		case 11<<3 | byte(protowire.BytesType):
			if labelled {
				return at
			}
		case 17<<3&0x7f | 0x80 | byte(protowire.BytesType):
			if message[n] != 17>>4 {
				return at
			}
			n++
		default:
			return at
		}
		length := int(message[n])
		n++
		if length >= 0x80 {
			if message[n] >= 0x80 {
				return at
			}
			length = length&0x7f | int(message[n])<<7
			n++
		}
		if length > len(message)-n {
			return at
		}
		at = n + length
	}
	return at
}

// failed takes the error of a message inside the field.
func (f *fields) failed(err error) {
	if f.err == nil {
		f.err = err
	}
}

// timestamp reads a Time: seconds = 1. Its nanoseconds are not used, and no
// content is no time (meta/v1, time_proto.go).
func (f *fields) timestamp() metav1.Time {
	message := f.want(protowire.BytesType)
	if len(message) == 0 {
		return metav1.Time{}
	}
	if seconds, n := binary.Uvarint(message[1:]); message[0] == 1<<3|byte(protowire.VarintType) && n > 0 && wholeSeconds(message[1+n:]) {
		return metav1.Time{Time: time.Unix(int64(seconds), 0).Local()} // nearly always
	}
	var seconds int64
	t := fields{message: message}
	for t.next() {
		if t.number == 1 {
			t.want(protowire.VarintType)
			seconds = int64(t.varint)
		}
	}
	f.failed(t.err)
	return metav1.Time{Time: time.Unix(seconds, 0).Local()}
}

// wholeSeconds reports whether a Time says no more after its seconds: the API server writes
// nanoseconds = 2 as well, and they are none.
func wholeSeconds(rest []byte) bool {
	return len(rest) == 0 || len(rest) == 2 && rest[0] == 2<<3|byte(protowire.VarintType) && rest[1] == 0
}

// label reads an entry of the labels: key = 1, value = 2.
func (o *object) label(message []byte, keep []string) error {
	var key, value []byte
	f := fields{message: message}
	for f.next() {
		switch f.number {
		case 1:
			key = f.want(protowire.BytesType)
		case 2:
			value = f.want(protowire.BytesType)
		}
	}
	if f.err != nil || keep != nil && !slices.Contains(keep, transient(key)) {
		return f.err
	}
	if o.labels == nil {
		o.labels = map[string]string{}
	}
	o.labels[o.intern(key)] = o.intern(value)
	return nil
}

// owner takes an OwnerReference. The first of an object is mostly that of the object before.
func (o *object) owner(message []byte) error {
	if len(o.owners) > 0 {
		ref, err := o.decodeOwner(message)
		o.owners = append(o.owners, ref)
		return err
	}
	if !bytes.Equal(message, o.firstOwner.message) {
		o.firstOwner.message = append(o.firstOwner.message[:0], message...)
		o.firstOwner.ref, o.firstOwner.err = o.decodeOwner(o.firstOwner.message)
	}
	o.owners = append(o.owners, o.firstOwner.ref)
	return o.firstOwner.err
}

// decodeOwner reads an OwnerReference: kind = 1, name = 3, uid = 4, apiVersion = 5,
// controller = 6, blockOwnerDeletion = 7.
func (o *object) decodeOwner(message []byte) (ref metav1.OwnerReference, err error) {
	f := fields{message: message}
	for f.next() {
		switch f.number {
		case 1:
			ref.Kind = o.intern(f.want(protowire.BytesType))
		case 3:
			ref.Name = transient(f.want(protowire.BytesType))
		case 4:
			ref.UID = types.UID(transient(f.want(protowire.BytesType)))
		case 5:
			ref.APIVersion = o.intern(f.want(protowire.BytesType))
		case 6:
			ref.Controller = f.boolean()
		case 7:
			ref.BlockOwnerDeletion = f.boolean()
		}
	}
	return ref, f.err
}

// boolean returns a pointer to the field's value.
func (f *fields) boolean() *bool {
	f.want(protowire.VarintType)
	if f.varint != 0 {
		return &yes
	}
	return &no
}

// intern returns a string for the bytes, the same for the same bytes. Lists are
// sorted, so the string is mostly one of the latest.
func (o *object) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	latest := &o.latest[(len(b)+int(b[len(b)-1]))%len(o.latest)]
	if *latest == string(b) {
		return *latest
	}
	s, ok := o.interned[string(b)]
	if !ok {
		if o.interned == nil {
			o.interned = map[string]string{}
		}
		s = string(b)
		o.interned[s] = s
	}
	*latest = s
	return s
}

// transient returns the bytes as a string without a copy. It changes with the
// stream's buffer, and so is good until the next object is read.
func transient(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
