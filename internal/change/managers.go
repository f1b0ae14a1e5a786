// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// rewritten reports whether others have written the value since that a step takes back, though it is what the change made: the API server
// knows them as managers of the field. A scaling of others leaves none, as the API server loses who writes by the subresource. A list as a
// whole is of whoever has written to it last.
func rewritten(op *remedy.Op, step remedy.Step, now *unstructured.Unstructured) bool {
	managers := now.GetManagedFields()
	if value, _ := remedy.At(now.Object, step.Path); step.Op == "test" || !isScalar(value) {
		return false
	}
	ours, theirs := false, false
	for _, e := range managers {
		var set fieldpath.Set
		if e.FieldsV1 != nil && set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)) == nil && manages(&set, now.Object, step.Path) {
			ours, theirs = ours || e.Manager == remedy.FieldManager, theirs || e.Manager != remedy.FieldManager
		}
	}
	return theirs || !ours && op.Verb == remedy.Scale && graph.BuiltinGroup(op.Object.Resource.Group) && len(managers) > 0
}

// manages reports whether the fields of a manager hold the one at a JSON pointer into an object. An entry of a list has the values of its
// key.
func manages(fields *fieldpath.Set, object any, pointer string) bool {
	keys := strings.Split(pointer, "/")[1:]
	for i, key := range keys {
		inner, _ := remedy.At(object, "/"+key)
		is := fieldpath.FieldNameElement(remedy.Unescape.Replace(key))
		if _, isList := object.([]any); isList {
			is = keyOf(fields, inner)
		}
		if i == len(keys)-1 {
			return fields.Members.Has(is)
		}
		fields, object = fields.WithPrefix(is), inner
	}
	return false
}

// keyOf is the key by which fields know an entry of a list, empty for none.
func keyOf(fields *fieldpath.Set, entry any) (key fieldpath.PathElement) {
	values, _ := entry.(map[string]any)
	fields.Children.Iterate(func(is fieldpath.PathElement) { // All does not end where its caller does
		if is.Key != nil &&
			!slices.ContainsFunc(*is.Key, func(f value.Field) bool { return !value.Equals(f.Value, value.NewValueInterface(values[f.Name])) }) {
			key = is
		}
	})
	return key
}

func isScalar(value any) bool {
	switch value.(type) {
	case nil, []any, map[string]any:
		return false
	}
	return true
}
