// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// acceptRows asks for the table that kubectl get prints, of which each row has its object.
const acceptRows = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// objects writes a list of whole objects, with READY and STATUS where the type has them: as the table has them, or, where they can be told
// from Kubernetes' own types, in protobuf, which costs the server a tenth.
func (s *saver) objects(resource *graph.Resource, namespace string, begin func()) (version string, err error) {
	if o, err := newObject(resource.GroupVersionKind()); err == nil {
		if _, told := printedOf(o); told || withoutStatus[resource.GroupResource().String()] || resource.Resource == "events" {
			if version, err = s.typed(resource, namespace, begin); !errors.Is(err, errNewer) {
				return version, err
			}
			begin()
		}
	}
	return s.eachObject(s.ctx, resource, namespace, metav1.IncludeObject, begin, func(table *metav1.Table, object stdjson.RawMessage) error {
		var status Status
		if table != nil {
			status = rowStatus(table)
		}
		if status == (Status{}) && !graph.BuiltinGroup(resource.Group) {
			status = rawConditionStatus(object)
		}
		e, err := offline.EntryOf(resource.GroupResource(), object)
		if err != nil {
			return err
		}
		o, err := objectOf(resource, e)
		if err != nil {
			return err
		}
		return s.entry(e, status, o)
	})
}

// typed writes a list of whole objects of one of Kubernetes' own types.
func (s *saver) typed(resource *graph.Resource, namespace string, begin func()) (version string, err error) {
	p := s.newPageReader(nil)
	p.accept, p.whole.held = acceptTyped, true
	p.begin = func(*listing) { begin() }
	p.decode = func(l *listing, body io.Reader) (wire.List, error) {
		return p.whole.decode(&p.decoder, body, l.resource, func(text []byte, packed bool, o runtime.Object) error {
			if resource.IsPod() && isNewer(text, packed) {
				return takerError{errNewer}
			}
			if event, is := o.(*corev1.Event); is && event.Type != corev1.EventTypeWarning && !s.ending[event.InvolvedObject.UID] {
				return p.handed(nil)
			}
			e, err := offline.NewEntry(resource.GroupResource(), o)
			if err != nil {
				return err
			}
			status, _ := printedOf(o)
			meta := graph.NewObject(resource, o.(metav1.Object))
			return p.handed(s.entry(e, status, &meta))
		})
	}
	l := &listing{resource: resource, namespace: namespace}
	err = p.all(s.ctx, l)
	return l.version, err
}

// eachObject reads a list, and calls do for its objects: with the row of a table that kubectl get prints, unless none is
// included, and as much of the object as is. When the list has to be read again, it calls begin.
func (r *Reader) eachObject(ctx context.Context, resource *graph.Resource, namespace string, include metav1.IncludeObjectPolicy,
	begin func(), do func(*metav1.Table, stdjson.RawMessage) error) (version string, err error) {
	p := r.newPageReader(nil)
	p.accept = acceptRows
	p.begin = func(*listing) { begin() }
	p.decode = func(_ *listing, body io.Reader) (wire.List, error) {
		return eachRow(body, func(table *metav1.Table, object stdjson.RawMessage) error { return p.handed(do(table, object)) })
	}
	l := &listing{resource: resource, namespace: namespace, include: include}
	err = p.all(ctx, l)
	return l.version, err
}

// entry writes the entry of an object.
func (s *saver) entry(e *offline.Entry, status Status, o *graph.Object) error {
	if o.Resource.GroupResource() == leases.GroupResource() {
		if err := s.noteLease(e.Object); err != nil {
			return err
		}
	}
	e.Ready, e.Status = status.Ready, status.Status
	return s.add(e, o)
}

// objectOf is of an entry what is noted of it: who it is, whether it is being deleted, and whose it is.
func objectOf(resource *graph.Resource, e *offline.Entry) (*graph.Object, error) {
	metadata, o := rawjson.Field(e.Object, "metadata"), &graph.Object{Resource: resource}
	var err error
	rawjson.Fields(metadata, func(name, value []byte) {
		switch string(name) {
		case "name":
			o.Name = rawjson.String(value)
		case "namespace":
			o.Namespace = rawjson.String(value)
		case "uid":
			o.UID = types.UID(rawjson.String(value))
		case "deletionTimestamp":
			err = cmp.Or(err, json.Unmarshal(value, &o.DeletionTimestamp))
		case "ownerReferences":
			err = cmp.Or(err, json.Unmarshal(value, &o.OwnerReferences))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading an object of %s: %w", resource.GroupResource(), err)
	}
	return o, nil
}

// eachRow splits a list while it streams in, and calls each for its objects: the
// rows of a table, or items.
func eachRow(body io.Reader, each func(table *metav1.Table, object stdjson.RawMessage) error) (wire.List, error) {
	var list metav1.ListMeta
	in := &boundedReader{body, longestAnswer, longestAnswer}
	table, seen, stream := &metav1.Table{}, false, rawjson.NewStream(in)
	err := stream.Fields(func(name string) error {
		in.left = in.most // for each of what is in memory at a time
		switch name {
		case "metadata":
			return decodeNext(stream, &list)
		case "columnDefinitions":
			return decodeNext(stream, &table.ColumnDefinitions)
		case "rows":
			seen = true
			return stream.Elements(in.each(func(row []byte) error {
				var cells, object []byte
				rawjson.Fields(row, func(name, value []byte) {
					switch string(name) {
					case "cells":
						cells = value
					case "object":
						object = value
					}
				})
				table.Rows = []metav1.TableRow{{}}
				if cells != nil {
					if err := stdjson.Unmarshal(cells, &table.Rows[0].Cells); err != nil {
						return err
					}
				}
				return each(table, object)
			}))
		case "items":
			seen = true
			return stream.Elements(in.each(func(object []byte) error { return each(nil, object) }))
		}
		_, err := stream.Value()
		return err
	})
	if err == nil && !seen {
		err = errors.New("the server sent neither a table nor a list")
	}
	return listOf(&list), err
}

// decodeNext decodes the next value of a stream.
func decodeNext(stream *rawjson.Stream, into any) error {
	value, err := stream.Value()
	if err != nil {
		return err
	}
	return stdjson.Unmarshal(value, into)
}
