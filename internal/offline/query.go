// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// query is what the parameters of a list ask for.
type query struct {
	limit  int
	at     place
	labels labels.Selector
	fields fields.Selector
	// words are texts that a match contains.
	words [][]byte
	// about: events about one object are asked for, of which a file has all or none.
	about bool
}

// selectable are the fields by which a server selects objects of a type, beside the
// name and the namespace, as far as a snapshot holds them
// (k8s.io/kubernetes/pkg/apis/core/v1, AddFieldLabelConversionsFor...).
var selectable = map[string][]string{
	"pods": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName",
	},
	"events": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"reason", "reportingComponent", "source", "type",
	},
	"namespaces":       {"status.phase"},
	"nodes":            {"spec.unschedulable"},
	"replicasets.apps": {"status.replicas"},
	"jobs.batch":       {"status.successful"},
}

// newQuery reads the parameters.
func newQuery(t *target, parameters url.Values) (*query, error) {
	q := &query{}
	var err error
	if limit := parameters.Get("limit"); limit != "" {
		if q.limit, err = strconv.Atoi(limit); err != nil {
			return nil, apierrors.NewBadRequest("the limit is no number")
		}
	}
	if q.at, err = parsePlace(parameters.Get("continue")); err != nil {
		return nil, err
	}
	if q.labels, err = labels.Parse(parameters.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if q.fields, err = fields.ParseSelector(parameters.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, selectable[t.GroupResource().String()]...)
	for _, r := range q.fields.Requirements() {
		if !slices.Contains(known, r.Field) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
		q.about = q.about || r.Field == "involvedObject.uid" && r.Operator != "!="
		if text, err := json.Marshal(r.Value); err == nil && (r.Operator == "=" || r.Operator == "==") && len(r.Value) > 0 {
			q.words = append(q.words, text)
		}
	}
	return q, nil
}

// mayBeIn reports whether objects of the namespace may be in the chunk.
func (q *query) mayBeIn(c *chunk, namespace string) bool {
	return namespace == "" || c.First < namespace+"0" && c.Last >= namespace+"/" // "0" comes after "/"
}

// all reports whether every object of the list is asked for.
func (q *query) all(l *list, t *target) bool {
	return q.labels.Empty() && q.fields.Empty() && (t.namespace == "" || t.namespace == l.Namespace)
}

// mayMatch reports whether what has the text may be asked for.
func (q *query) mayMatch(text []byte) bool {
	return !slices.ContainsFunc(q.words, func(word []byte) bool { return !bytes.Contains(text, word) })
}

// matches reports whether an object is asked for.
func (q *query) matches(t *target, m *view, e *Entry) (bool, error) {
	switch {
	case t.namespace != "" && m.Namespace != t.namespace, !q.labels.Matches(labels.Set(m.Labels)):
		return false, nil
	case q.fields.Empty():
		return true, nil
	}
	set := fields.Set{"metadata.name": m.Name, "metadata.namespace": m.Namespace}
	beyond := slices.ContainsFunc(q.fields.Requirements(), func(r fields.Requirement) bool { return !set.Has(r.Field) })
	if beyond && !e.Whole {
		return false, notHeld(fmt.Sprintf("the snapshot holds only the metadata of the %s", t.GroupResource()))
	}
	if beyond {
		var object map[string]any
		if err := json.Unmarshal(e.Object, &object); err != nil {
			return false, fmt.Errorf("reading the snapshot: %w", err)
		}
		for _, r := range q.fields.Requirements() {
			if !set.Has(r.Field) {
				set[r.Field] = textAt(object, strings.Split(r.Field, "."))
			}
		}
	}
	return q.fields.Matches(set), nil
}

// textAt returns the value at a path as a field selector compares it.
func textAt(object map[string]any, path []string) string {
	var value any = object
	for _, field := range path {
		fields, _ := value.(map[string]any)
		value = fields[field]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// body is the answer to a list while it is made.
type body struct {
	bytes.Buffer
	count int
}

// newBody begins the answer.
func newBody(l *list, want wanted) *body {
	b := &body{}
	b.Write(want.head(&l.List))
	return b
}

// add adds an object.
func (b *body) add(l *list, want wanted, e *Entry) error {
	item, err := want.item(&l.List, e)
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	if b.count++; b.count > 1 {
		b.WriteByte(',')
	}
	b.Write(item)
	return nil
}

// end ends the answer, with the token of the next page.
func (b *body) end(l *list, next place) []byte {
	meta, _ := json.Marshal(metav1.ListMeta{ResourceVersion: l.End.ResourceVersion, Continue: next.token()}) // strings
	b.WriteString(`],"metadata":`)
	b.Write(meta)
	b.WriteByte('}')
	return b.Bytes()
}
