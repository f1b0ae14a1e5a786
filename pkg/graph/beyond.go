// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxBeyond is the number of namespaces that Beyond names.
const maxBeyond = 3

// Beyond says for a type that could not be listed everywhere in which
// namespaces that does not matter, since it could be listed there: "outside
// namespace shop". It is empty when there are none, or when something smaller
// than all objects of the type could not be read.
func (s *Snapshot) Beyond(u Unlisted) string {
	if u.Namespace != "" || u.Name != "" || u.Resource == "" {
		return ""
	}
	listed := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Listed(u.GroupResource()))), func(namespace string) bool { return namespace == "" })
	switch n := len(listed); {
	case n == 0:
		return ""
	case n == 1:
		return "outside namespace " + listed[0]
	case n <= maxBeyond:
		return "outside namespaces " + strings.Join(listed, ", ")
	default:
		return fmt.Sprintf("outside %d namespaces", n)
	}
}

// BlindSpot says what was not read of that which may validly depend on an owner in
// the namespace, or on one without a namespace when that is empty; it is empty when
// all of it was. Dependents of a namespaced owner are in its namespace, those of
// another may be anywhere.
func (s *Snapshot) BlindSpot(namespace string) string {
	var missing, elsewhere []string
	for _, u := range s.Unlisted() {
		if u.Resource == "" {
			missing = append(missing, "the types of "+strings.TrimSuffix(u.GroupVersion().String(), "/"))
		}
	}
	for resource, namespaced := range s.typesWithScope() {
		switch {
		case s.ListedIn(resource, namespace), namespace != "" && !namespaced:
		case namespace == "" && namespaced && len(s.listed[resource]) > 0:
			elsewhere = append(elsewhere, resource.String())
		default:
			missing = append(missing, resource.String())
		}
	}
	switch {
	case len(missing) > 0:
		return few(missing) + " were not read"
	case len(elsewhere) > 0:
		return few(elsewhere) + " in other namespaces were not read"
	}
	return ""
}

// typesWithScope goes over the resources of Types, and says which have namespaces.
// Of what was listed only that is known, which is taken from how it was listed.
func (s *Snapshot) typesWithScope() iter.Seq2[schema.GroupResource, bool] {
	return func(yield func(schema.GroupResource, bool) bool) {
		for _, r := range s.Types {
			if !yield(r.GroupResource(), r.Namespaced) {
				return
			}
		}
		for resource, listed := range s.listed {
			_, everywhere := listed[""]
			if s.Types == nil && !yield(resource, !everywhere) {
				return
			}
		}
	}
}

// few names the first of the names, in their order, and counts the others.
func few(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxBeyond; more > 0 {
		names = append(names[:maxBeyond:maxBeyond], fmt.Sprintf("%d other types", more))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}
