// SPDX-License-Identifier: Apache-2.0

// Package wire decodes lists of object metadata while they stream in, and keeps
// of each object what the ownership graph needs. Lists of whole objects it takes apart.
//
// The encoding is Kubernetes' protobuf envelope (apimachinery,
// runtime/serializer/protobuf) around a PartialObjectMetadataList
// (apis/meta/v1, generated.proto). Most of its bytes are managed fields and
// annotations; they are skipped by their length and never looked at. What is
// kept is what client-go's decoder returns, object by object.
//
// Nothing here talks to a server.
package wire

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// magic opens every body in this encoding (runtime/serializer/protobuf,
// protoEncodingPrefix).
const magic = "k8s\x00"

const (
	listAPIVersion = "meta.k8s.io/v1"
	listKind       = "PartialObjectMetadataList"
)

// Recognizes reports whether a body that begins with the four bytes is in this
// encoding.
func Recognizes(start []byte) bool { return string(start) == magic }

// List is what a list says of itself.
type List struct {
	ResourceVersion string
	// Continue is the token of the next page, empty at the last.
	Continue string
	// Remaining is the number of objects that the next pages hold: 0 at the
	// last, and when the server does not say.
	Remaining int64
}

// KindError says that a body holds something else than the list that was asked for.
type KindError struct {
	APIVersion, Kind string
	// Want is what was asked for, a list of metadata when it is empty.
	Want metav1.TypeMeta
}

// Error implements error.
func (e *KindError) Error() string {
	return fmt.Sprintf("the server sent %s, %s instead of %s, %s", e.APIVersion, e.Kind, cmp.Or(e.Want.APIVersion, listAPIVersion),
		cmp.Or(e.Want.Kind, listKind))
}

// buffers are those of decoders that are at rest: there may be hundreds of
// short lists, a namespace each, which would all have one of their own.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

// Decoder decodes lists, one after the other. It keeps strings that repeat. The zero value is ready for use; a Decoder must not be used by
// several goroutines at once.
type Decoder struct {
	// Labels are the keys of the labels that are kept; nil keeps all.
	Labels []string

	stream stream
	object object
}

// Decode reads a list to its end and calls each for its objects, in order. An
// object has no Resource; it and what it points to belong to the decoder and
// are valid until each returns, but for the strings that objects share:
// namespaces, finalizers, labels, and kinds and versions of owners. An error of each ends the
// list and is returned as it is. With any error, the objects that each was
// called for are not the whole list.
func (d *Decoder) Decode(r io.Reader, each func(*graph.Object) error) (List, error) {
	return d.read(r, metav1.TypeMeta{APIVersion: listAPIVersion, Kind: listKind}, func(message []byte) error { return d.Item(message, each) })
}

// Item decodes the metadata of one object, whole or not, and calls each for it as Decode does.
func (d *Decoder) Item(message []byte, each func(*graph.Object) error) error {
	if err := d.item(message); err != nil {
		return fmt.Errorf("decoding a list: %w", err)
	}
	return each(&d.object.Object)
}

// Split is Decode for a list of whole objects of the kind, whose messages it hands to each
// as they are. They are valid until each returns.
func (d *Decoder) Split(r io.Reader, want metav1.TypeMeta, each func(message []byte) error) (List, error) {
	return d.read(r, want, each)
}

// read reads a list to its end, and calls each for the messages of its objects.
func (d *Decoder) read(r io.Reader, want metav1.TypeMeta, each func(message []byte) error) (List, error) {
	in := buffers.Get().(*bufio.Reader)
	in.Reset(r)
	d.stream.in = in
	defer func() {
		in.Reset(nil)
		d.stream.in = nil
		buffers.Put(in)
	}()
	var list List
	found, err := d.envelope(want, &list, each)
	switch {
	case err != nil:
		return list, err
	case !found:
		return list, errors.New("decoding a list: the body has none")
	}
	return list, nil
}

// envelope reads a runtime.Unknown: typeMeta = 1, raw = 2, and its encoding,
// which is not used. It reports whether there was a list in it.
func (d *Decoder) envelope(want metav1.TypeMeta, list *List, each func([]byte) error) (found bool, err error) {
	s := &d.stream
	s.left = endless
	prefix, err := s.next(uint64(len(magic)))
	if err != nil || string(prefix) != magic {
		return false, errors.New("decoding a list: the body is not Kubernetes' protobuf")
	}
	kind := false
	for {
		number, length, err := s.field()
		switch {
		case errors.Is(err, io.EOF) && !kind:
			return found, errors.New("decoding a list: the body does not say what it is")
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return found, fmt.Errorf("decoding a list: %w", err)
		case number == 1:
			kind, err = true, s.decode(length, func(message []byte) error { return checkKind(message, want) })
		case number == 2 && found:
			err = errors.New("decoding a list: the body has two")
		case number == 2:
			found = true
			err = d.list(length, list, each)
		default:
			err = s.skip(length)
		}
		if err != nil {
			return found, err
		}
	}
}

// checkKind reads a runtime.TypeMeta: apiVersion = 1, kind = 2.
func checkKind(message []byte, want metav1.TypeMeta) error {
	got := KindError{Want: want}
	for f := (fields{message: message}); f.next(); {
		switch f.number {
		case 1:
			got.APIVersion = string(f.want(protowire.BytesType))
		case 2:
			got.Kind = string(f.want(protowire.BytesType))
		}
	}
	if got.APIVersion != want.APIVersion || got.Kind != want.Kind {
		return &got
	}
	return nil
}

// list reads a list, as all of Kubernetes' are: metadata = 1, items = 2.
func (d *Decoder) list(length uint64, list *List, each func([]byte) error) error {
	s := &d.stream
	s.left = length
	defer func() { s.left = endless }()
	for {
		number, length, err := s.field()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
		case number == 1:
			err = s.decode(length, list.decode)
		case number == 2:
			var message []byte
			if message, err = s.next(length); err == nil {
				if err := each(message); err != nil {
					return err
				}
			}
		default:
			err = s.skip(length)
		}
		if err != nil {
			return fmt.Errorf("decoding a list: %w", err)
		}
	}
}

// decode reads a ListMeta: resourceVersion = 2, continue = 3,
// remainingItemCount = 4.
func (l *List) decode(message []byte) error {
	f := fields{message: message}
	for f.next() {
		switch f.number {
		case 2:
			l.ResourceVersion = string(f.want(protowire.BytesType))
		case 3:
			l.Continue = string(f.want(protowire.BytesType))
		case 4:
			f.want(protowire.VarintType)
			l.Remaining = int64(f.varint)
		}
	}
	return f.err
}

// item reads a PartialObjectMetadata: metadata = 1.
func (d *Decoder) item(message []byte) error {
	d.object.reset()
	f := fields{message: message}
	for f.next() {
		if f.number == 1 {
			if err := d.object.decode(f.want(protowire.BytesType), d.Labels); err != nil {
				return err
			}
		}
	}
	d.object.finish()
	return f.err
}
