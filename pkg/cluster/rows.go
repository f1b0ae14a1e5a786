// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/offline"
)

// acceptRows asks for the table that kubectl get prints, of which each row has its
// object, and acceptWhole for the objects alone.
const (
	acceptRows  = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	acceptWhole = "application/json"
)

// objects writes a list of whole objects, with READY and STATUS where the type has
// them.
func (s *saver) objects(resource *graph.Resource, namespace string, inOne bool) (version string, failed, err error) {
	include := metav1.IncludeObject
	if withoutStatus[resource.GroupResource().String()] || resource.Resource == "events" {
		include = metav1.IncludeNone
	}
	version, err = s.eachObject(s.ctx, resource, namespace, include, inOne, func(table *metav1.Table, object stdjson.RawMessage) error {
		return s.row(resource, table, object)
	})
	failed, err = parted(err)
	return version, failed, err
}

// eachObject reads a list, page by page or in one piece, and calls do for its objects: with the row of a table that kubectl
// get prints, unless none is included, and as much of the object as is.
func (r *Reader) eachObject(ctx context.Context, resource *graph.Resource, namespace string, include metav1.IncludeObjectPolicy, inOne bool, do func(*metav1.Table, stdjson.RawMessage) error) (version string, err error) {
	r.stats.lists.Add(1)
	for pages, size := (paging{}), pageSize(0); ; {
		parameters, accept, objects, asked := pageParameters(pages.token, size, inOne), acceptWhole, 0, time.Now()
		if include != metav1.IncludeNone {
			accept, parameters["includeObject"] = acceptRows, string(include)
		}
		var list metav1.ListMeta
		err := r.page(ctx, resource, namespace, accept, parameters, func(body io.Reader) (err error) {
			list, err = eachRow(body, func(table *metav1.Table, object stdjson.RawMessage) error {
				objects++
				return do(table, object)
			})
			return err
		})
		if err == nil {
			err = pages.page(objects, list.Continue)
		}
		if err != nil {
			return "", err
		}
		version, size = list.ResourceVersion, size.after(time.Since(asked))
		if pages.token == "" {
			return version, nil
		}
	}
}

// row writes an object. table is its row, nil when there is none.
func (s *saver) row(resource *graph.Resource, table *metav1.Table, object stdjson.RawMessage) error {
	if resource.Resource == "events" && !s.wantedEvent(object) {
		return nil
	}
	var whole unstructured.Unstructured
	var err error
	if whole.Object, err = offline.Decode(resource.GroupResource(), object); err != nil {
		return fmt.Errorf("reading the list of %s: %w", resource.GroupResource(), err)
	}
	var status Status
	if table != nil {
		status = rowStatus(table)
	}
	if status == (Status{}) && !withoutStatus[resource.GroupResource().String()] && !graph.BuiltinGroup(resource.Group) {
		status = conditionStatus(whole.Object)
	}
	if resource.GroupResource() == leases.GroupResource() {
		s.noteLease(&whole)
	}
	e, o, err := newEntry(resource, &whole)
	if err != nil {
		return fmt.Errorf("reading the list of %s: %w", resource.GroupResource(), err)
	}
	e.Ready, e.Status = status.Ready, status.Status
	return s.add(e, o)
}

// eachRow decodes a list while it streams in, and calls each for its objects: the
// rows of a table, or items.
func eachRow(in io.Reader, each func(table *metav1.Table, object stdjson.RawMessage) error) (metav1.ListMeta, error) {
	var list metav1.ListMeta
	table := &metav1.Table{}
	d := stdjson.NewDecoder(in)
	seen := false
	err := eachField(d, func(name string) error {
		switch name {
		case "metadata":
			return d.Decode(&list)
		case "columnDefinitions":
			return d.Decode(&table.ColumnDefinitions)
		case "rows":
			seen = true
			return eachOf(d, func() error { return row(d, table, each) })
		case "items":
			seen = true
			return eachOf(d, func() error {
				var object stdjson.RawMessage
				if err := d.Decode(&object); err != nil {
					return err
				}
				return each(nil, object)
			})
		}
		return d.Decode(&stdjson.RawMessage{})
	})
	if err == nil && !seen {
		err = errors.New("the server sent neither a table nor a list")
	}
	return list, err
}

// row decodes a row of a table.
func row(d *stdjson.Decoder, table *metav1.Table, each func(*metav1.Table, stdjson.RawMessage) error) error {
	var r struct {
		Cells  []any              `json:"cells"`
		Object stdjson.RawMessage `json:"object"`
	}
	if err := d.Decode(&r); err != nil {
		return err
	}
	table.Rows = []metav1.TableRow{{Cells: r.Cells}}
	return each(table, r.Object)
}

// eachField calls each for the fields of an object, of which it decodes the values. The
// object is all that there is to read.
func eachField(d *stdjson.Decoder, each func(name string) error) error {
	if err := opens(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := each(name.(string)); err != nil {
			return err
		}
	}
	if err := opens(d, '}'); err != nil {
		return err
	}
	if token, err := d.Token(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, fmt.Errorf("the server sent %s after the list", said(token)))
	}
	return nil
}

// opens reads a delimiter.
func opens(d *stdjson.Decoder, want stdjson.Delim) error {
	token, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case token != want:
		return fmt.Errorf("the server sent %s where a list has %v", said(token), want)
	}
	return nil
}

// said is a token as it stands in JSON, but for the quotes of a string.
func said(token stdjson.Token) string {
	if token == nil {
		return "null"
	}
	return fmt.Sprint(token)
}

// eachOf calls each for the elements of an array, or not at all for null.
func eachOf(d *stdjson.Decoder, each func() error) error {
	token, err := d.Token()
	if err != nil || token == nil {
		return err
	}
	if token != stdjson.Delim('[') {
		return fmt.Errorf("the server sent %s where a list has its objects", said(token))
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	return opens(d, ']')
}
