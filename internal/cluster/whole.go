// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// List returns all whole objects of a resource, as Read does, in the namespace or, when that
// is empty, everywhere. What no explanation looks at is left out (see reduce).
func (r *Reader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	return r.listWhole(ctx, resource, namespace, "")
}

// EachMentioning calls begin, and then yield with each object of a List that has a field of
// one of the names, wherever. The others are not even decoded. When the list has to be read
// again, it calls begin again: what came before does not count. An error of yield ends the
// list, and so does any of the server: then not all objects were seen.
func (r *Reader) EachMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, fields []string, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	quoted := make([][]byte, len(fields))
	for i, field := range fields {
		quoted[i] = []byte(`"` + field + `"`)
	}
	return r.eachWith(ctx, &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace}, containsAny(quoted),
		begin, func(o *unstructured.Unstructured) error {
			reduce(resource, o)
			return yield(o)
		})
}

// EachNaming is EachMentioning for objects that have one of the texts anywhere, also within a longer one. Nothing is left out of them but
// the data of Secrets and ConfigMaps.
func (r *Reader) EachNaming(ctx context.Context, resource schema.GroupVersionResource, namespace string, texts []string, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	wanted := make([][]byte, len(texts))
	for i, text := range texts {
		wanted[i] = []byte(text)
	}
	return r.eachWith(ctx, &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace},
		containsAny(wanted), begin, yield)
}

// Whole reads whole objects: single ones and lists, with everything that is in them.
type Whole struct {
	*Sender
	Reader *Reader
}

// EachObject is EachNaming for all objects of a resource.
func (w Whole) EachObject(ctx context.Context, resource schema.GroupVersionResource, namespace string, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	l := &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace, data: true}
	return w.Reader.eachWith(ctx, l, func([]byte) bool { return true }, begin, yield)
}

// eachWith yields the objects of a list of which the JSON is wanted.
func (r *Reader) eachWith(ctx context.Context, l *listing, wanted func(item []byte) bool, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	return r.eachWhole(ctx, l, begin, func(item []byte) error {
		if !wanted(item) {
			return nil
		}
		var o unstructured.Unstructured
		if err := json.Unmarshal(item, &o.Object); err != nil {
			return err
		}
		return yield(&o)
	})
}

// containsAny returns a function that reports whether a text has one of others. Many of them are looked for at once, by how they begin.
func containsAny(texts [][]byte) func([]byte) bool {
	const few, width, bits = 4, 8, 16
	if len(texts) <= few || slices.ContainsFunc(texts, func(text []byte) bool { return len(text) < width }) {
		return func(in []byte) bool {
			return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(in, text) })
		}
	}
	hash := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) * 0x9E3779B97F4A7C15 >> (64 - bits) }
	var beginnings [1 << bits]bool
	begin := map[uint64][][]byte{}
	for _, text := range texts {
		h := hash(text)
		beginnings[h], begin[h] = true, append(begin[h], text)
	}
	return func(in []byte) bool {
		for i := 0; i+width <= len(in); i++ {
			if h := hash(in[i:]); beginnings[h] && slices.ContainsFunc(begin[h], func(text []byte) bool { return bytes.HasPrefix(in[i:], text) }) {
				return true
			}
		}
		return false
	}
}

// EachTyped is EachMentioning for all objects of one of Kubernetes' own types, in Go's. What
// no explanation looks at is left out. An object is good until yield returns, but what it points
// to may be kept.
func (r *Reader) EachTyped(ctx context.Context, resource schema.GroupVersionResource, kind, namespace string, begin func(),
	yield func(runtime.Object) error) error {
	return r.eachTyped(ctx, &graph.Resource{GroupVersionResource: resource, Kind: kind}, namespace, nil, begin, yield)
}

// eachTyped is EachTyped without certain fields of the objects where they come in protobuf;
// nil is for those of which nobody asks.
func (r *Reader) eachTyped(ctx context.Context, resource *graph.Resource, namespace string, drop wire.Drop, begin func(),
	yield func(runtime.Object) error) error {
	p := r.newPageReader(nil)
	p.accept, p.whole.drop = acceptTyped, drop
	p.begin = func(*listing) { begin() }
	p.decode = func(l *listing, body io.Reader) (wire.List, error) {
		return p.whole.decode(&p.decoder, body, l.resource, func(_ []byte, _ bool, o runtime.Object) error { return p.handed(yield(o)) })
	}
	begin()
	return p.all(ctx, &listing{resource: resource, namespace: namespace})
}

// acceptTyped asks for objects of Kubernetes' own types as they are.
const acceptTyped = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// accepts is the form in which a list is asked for.
func (p *pageReader) accepts(l *listing) string {
	if l.taker != nil {
		return acceptTyped
	}
	return p.accept
}

// decodeBoth decodes a list of whole objects, of which the listing's Taker takes all and add
// the metadata.
func (p *pageReader) decodeBoth(l *listing, body io.Reader, add func(*graph.Object) error) (wire.List, error) {
	return p.whole.decode(&p.decoder, body, l.resource, func(text []byte, packed bool, o runtime.Object) error {
		if err := l.taker.Take(o); err != nil {
			return takerError{err}
		}
		if packed {
			return p.decoder.Item(text, add)
		}
		return decodeItem(text, add)
	})
}

// wholeDecoder decodes lists of whole objects, one after the other.
type wholeDecoder struct {
	// drop is left out of objects before they are decoded; nil is for their heavyFields.
	drop wire.Drop
	// held: a file has them. What that does not hold is left out, and nothing else.
	held   bool
	buffer []byte
}

// decode calls each for every object of a list of the type, as it came, packed or in JSON, and
// decoded, but for what no explanation looks at. The object is another one once each has returned.
func (d *wholeDecoder) decode(decoder *wire.Decoder, body io.Reader, of *graph.Resource,
	each func(text []byte, packed bool, o runtime.Object) error) (wire.List, error) {
	kind := of.GroupVersionKind()
	o, err := newObject(kind)
	if err != nil {
		return wire.List{}, err
	}
	add := func(text []byte, packed bool, unpack func() error) error {
		o.Reset()
		if err := unpack(); err != nil {
			return err
		}
		if !d.held {
			reduceTyped(o)
		}
		return each(text, packed, o)
	}
	switch packed, whole, err := recognizes(body); {
	case err != nil:
		return wire.List{}, err
	case packed:
		list := metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List"}
		return decoder.Split(whole, list, func(message []byte) error {
			return add(message, true, func() error { return o.Unmarshal(d.light(decoder, of, message)) })
		})
	default:
		return decodeJSON(whole, func(text []byte) error {
			return add(text, false, func() error { return json.Unmarshal(text, o) })
		})
	}
}

// typedObject is an object of one of Kubernetes' own types, which has a form in protobuf.
type typedObject interface {
	runtime.Object
	Reset()
	Unmarshal(message []byte) error
}

func newObject(kind schema.GroupVersionKind) (typedObject, error) {
	o, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	typed, ok := o.(typedObject)
	if !ok {
		return nil, fmt.Errorf("%T has no form in protobuf", o)
	}
	return typed, nil
}

// light returns an object of the type in protobuf without what is not to be decoded.
func (d *wholeDecoder) light(decoder *wire.Decoder, of *graph.Resource, message []byte) []byte {
	drop := d.drop
	if d.held {
		drop = d.notHeld(decoder, of, message)
	} else if drop == nil {
		drop = heavyFields[of.GroupResource()]
		if of.IsPod() && !d.keepsManagers(decoder, message) {
			drop = heavyOfMostPods
		}
	}
	light, buffer := drop.From(message, d.buffer)
	d.buffer = buffer
	return light
}

// keepsManagers is that for a pod in protobuf.
func (d *wholeDecoder) keepsManagers(decoder *wire.Decoder, message []byte) (keeps bool) {
	err := decoder.Item(message, func(o *graph.Object) error {
		meta := o.Metadata()
		keeps = keepsManagers(&meta, true)
		return nil
	})
	return keeps || err != nil // decoding it whole says what is wrong
}

// listWhole lists the whole objects that a field selector matches; an empty one matches
// all.
func (r *Reader) listWhole(ctx context.Context, resource schema.GroupVersionResource, namespace,
	fields string) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	l := &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace, fields: fields}
	err := r.eachWhole(ctx, l, func() { items = nil }, func(item []byte) error {
		o, err := decodeWhole(resource, item)
		items = append(items, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// decodeWhole returns an object of a list, reduced.
func decodeWhole(resource schema.GroupVersionResource, item []byte) (unstructured.Unstructured, error) {
	var o unstructured.Unstructured
	if err := json.Unmarshal(item, &o.Object); err != nil {
		return o, err
	}
	reduce(resource, &o)
	return o, nil
}

// eachWhole calls begin, and then yield with the JSON of each object of a list.
func (r *Reader) eachWhole(ctx context.Context, l *listing, begin func(), yield func(item []byte) error) error {
	p := r.newPageReader(nil)
	if p.accept = runtime.ContentTypeJSON; !l.data {
		p.accept = strings.Replace(acceptable(l.resource.GroupVersionResource), "PartialObjectMetadata;", "PartialObjectMetadataList;", 1)
	}
	p.begin = func(*listing) { begin() }
	p.decode = func(_ *listing, body io.Reader) (wire.List, error) {
		return decodeJSON(body, func(item []byte) error {
			return p.handed(yield(item))
		})
	}
	begin()
	return p.all(ctx, l)
}

// handed counts an object that was handed to who takes the list, or returns his error.
func (p *pageReader) handed(err error) error {
	if err != nil {
		return takerError{err}
	}
	return p.count()
}

// takerError is the error of who takes a list: to read the list in another way is no help.
type takerError struct{ error }

// Unwrap returns what it is about.
func (e takerError) Unwrap() error { return e.error }

// all reads a list to its end.
func (p *pageReader) all(ctx context.Context, l *listing) error {
	for {
		if more, err := p.next(ctx, l); !more || err != nil {
			return err
		}
	}
}
