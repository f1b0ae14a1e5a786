// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Tolerance is what may be unreadable when something is to be changed. Its zero value tolerates nothing.
type Tolerance struct {
	// All tolerates everything, also that no safe order is known for it.
	All bool
	// Names are API groups, "core" for that without a name, and types as kubectl
	// writes them, RESOURCE or RESOURCE.GROUP.
	Names []string
}

// coreGroup stands for the API group without a name.
const coreGroup = "core"

// nameOf is what tolerates something that could not be read: its group when that
// could not even be asked for its types, otherwise the type.
func nameOf(u graph.Unlisted) string {
	if u.Resource != "" {
		return u.GroupResource().String()
	}
	return groupOf(u)
}

func groupOf(u graph.Unlisted) string {
	if u.Group == "" {
		return coreGroup
	}
	return u.Group
}

// Intolerable returns the names of what could not be read and is not tolerated, in
// order.
func (t *Tolerance) Intolerable(unlisted []graph.Unlisted) []string {
	var names []string
	for _, u := range unlisted {
		if !t.All && !slices.Contains(t.Names, groupOf(u)) && !slices.Contains(t.Names, nameOf(u)) {
			names = append(names, nameOf(u))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
