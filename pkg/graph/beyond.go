// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
