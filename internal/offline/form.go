// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
)

// form is how objects are wanted.
type form int

const (
	whole form = iota
	metadataOnly
	table
)

// wanted is how objects are wanted, and of those that are printed, how much of themselves beside.
type wanted struct {
	form
	included metav1.IncludeObjectPolicy
}

// wantedOf reads what a request accepts, of which the first counts.
func wantedOf(request *http.Request) wanted {
	w := wanted{included: cmp.Or(metav1.IncludeObjectPolicy(request.URL.Query().Get("includeObject")), metav1.IncludeMetadata)}
	switch accept := request.Header.Get("Accept"); {
	case strings.Contains(accept, "as=Table"):
		w.form = table
	case strings.Contains(accept, "as=PartialObjectMetadata"):
		w.form = metadataOnly
	}
	return w
}

// columns are those that are held.
var columns = []metav1.TableColumnDefinition{{Name: "Ready", Type: "string"}, {Name: "Status", Type: "string"}}

// one is an object of a list as the answer to a GET of it.
func (w wanted) one(l *List, e *Entry) ([]byte, error) {
	switch w.form {
	case table:
		row, err := w.row(l, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(&metav1.Table{
			TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ColumnDefinitions: columns, Rows: []metav1.TableRow{*row},
		})
	case metadataOnly:
		return withKind(e.Object, "meta.k8s.io/v1", "PartialObjectMetadata", true)
	default:
		return withKind(e.Object, schema.GroupVersion{Group: l.Group, Version: l.Version}.String(), l.Kind, false)
	}
}

// item is an object of a list within the answer to that.
func (w wanted) item(l *List, e *Entry) ([]byte, error) {
	switch w.form {
	case table:
		row, err := w.row(l, e)
		if err != nil {
			return nil, err
		}
		return json.Marshal(row)
	case metadataOnly:
		metadata := rawjson.Field(e.Object, "metadata")
		if metadata == nil {
			return nil, errors.New("it is corrupted: an object has no metadata")
		}
		return slices.Concat([]byte(`{"metadata":`), metadata, []byte("}")), nil
	default:
		return e.Object, nil
	}
}

// row is an object as kubectl get prints it, with the columns that are held.
func (w wanted) row(l *List, e *Entry) (*metav1.TableRow, error) {
	cell := func(value string) any {
		if value == "" {
			return nil
		}
		return value
	}
	row := &metav1.TableRow{Cells: []any{cell(e.Ready), cell(e.Status)}}
	included := wanted{form: metadataOnly}
	switch w.included {
	case metav1.IncludeNone:
		return row, nil
	case metav1.IncludeObject:
		included.form = whole
	case metav1.IncludeMetadata:
	}
	object, err := included.one(l, e)
	row.Object = runtime.RawExtension{Raw: object}
	return row, err
}

// head is how the answer to a list begins.
func (w wanted) head(l *List) []byte {
	kind, items := metav1.TypeMeta{Kind: l.Kind + "List", APIVersion: schema.GroupVersion{Group: l.Group, Version: l.Version}.String()},
		"items"
	switch w.form {
	case metadataOnly:
		kind = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}
	case table:
		kind, items = metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, "rows"
	case whole:
	}
	head, _ := json.Marshal(kind) // strings
	head = head[:len(head)-1]
	if w.form == table {
		text, _ := json.Marshal(columns) // strings
		head = append(append(head, `,"columnDefinitions":`...), text...)
	}
	return append(head, `,"`+items+`":[`...)
}

// withKind returns an object, or its metadata alone, with its apiVersion and kind.
func withKind(object []byte, apiVersion, kind string, metadata bool) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	if metadata {
		fields = map[string]json.RawMessage{"metadata": fields["metadata"]}
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for name, value := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = text
	}
	return json.Marshal(fields)
}
