// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
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

	"github.com/kubectl-gc/kubectl-gc/pkg/cluster/wire"
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
func (r *Reader) EachMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, fields []string, begin func(), yield func(*unstructured.Unstructured) error) error {
	quoted := make([][]byte, len(fields))
	for i, field := range fields {
		quoted[i] = []byte(`"` + field + `"`)
	}
	return r.eachWhole(ctx, &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace}, begin, func(item []byte) error {
		if !slices.ContainsFunc(quoted, func(name []byte) bool { return bytes.Contains(item, name) }) {
			return nil
		}
		o, err := decodeWhole(resource, item)
		if err != nil {
			return err
		}
		return yield(&o)
	})
}

// EachTyped is EachMentioning for all objects of one of Kubernetes' own types, in Go's. What
// no explanation looks at is left out.
func (r *Reader) EachTyped(ctx context.Context, resource schema.GroupVersionResource, kind, namespace string, begin func(), yield func(runtime.Object) error) error {
	p := r.newPageReader(nil)
	p.accept = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	p.begin = func(*listing) { begin() }
	add := func(decode func(into runtime.Object) error) error {
		o, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
		if err == nil {
			err = decode(o)
		}
		if err != nil {
			return err
		}
		reduceTyped(o)
		return p.handed(yield(o))
	}
	list := metav1.TypeMeta{APIVersion: resource.GroupVersion().String(), Kind: kind + "List"}
	drop, buffer := heavyFields[resource.GroupResource()], []byte(nil)
	p.decode = func(_ *listing, body io.Reader) (wire.List, error) {
		switch packed, whole, err := recognizes(body); {
		case err != nil:
			return wire.List{}, err
		case packed:
			return p.decoder.Split(whole, list, func(message []byte) error {
				message, buffer = drop.From(message, buffer)
				return add(func(into runtime.Object) error { return unpack(message, into) })
			})
		default:
			return decodeJSON(whole, func(text []byte) error {
				return add(func(into runtime.Object) error { return json.Unmarshal(text, into) })
			})
		}
	}
	begin()
	return p.all(ctx, &listing{resource: &graph.Resource{GroupVersionResource: resource}, namespace: namespace})
}

// unpack decodes an object of a list in protobuf.
func unpack(message []byte, into runtime.Object) error {
	o, ok := into.(interface{ Unmarshal(message []byte) error })
	if !ok {
		return fmt.Errorf("%T has no form in protobuf", into)
	}
	return o.Unmarshal(message)
}

// listWhole lists the whole objects that a field selector matches; an empty one matches
// all.
func (r *Reader) listWhole(ctx context.Context, resource schema.GroupVersionResource, namespace, fields string) ([]unstructured.Unstructured, error) {
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
	p.accept = strings.Replace(acceptable(l.resource.GroupVersionResource), "PartialObjectMetadata;", "PartialObjectMetadataList;", 1)
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
