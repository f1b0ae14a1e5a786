// SPDX-License-Identifier: Apache-2.0

package graph

import "slices"

// Fall are objects that go, and what is deleted with and after them.
type Fall struct {
	Set Set
	// Within is what may go; nil is for what loses all owners that keep it.
	Within *Set
}

// Spread adds the dependents that go, what is in a namespace or of a definition that goes, what goes after these, and so on.
func (f *Fall) Spread() {
	queue := f.Set.Sorted()
	for len(queue) > 0 {
		var containers []Node
		for ; len(queue) > 0; queue = queue[1:] {
			next := queue[0]
			if next.Resource().IsNamespace() || next.Resource().IsCRD() {
				containers = append(containers, next)
			}
			if next.OrphaningDependents() {
				continue
			}
			for _, d := range next.Dependents() {
				if !f.Set.Has(d) && f.takes(d, next) {
					f.Set.Add(d)
					queue = append(queue, d)
				}
			}
		}
		if len(containers) > 0 { // all at once: each time all nodes are gone over
			queue = slices.DeleteFunc(Contents(containers[0].graph, containers...), func(n Node) bool { return !f.Set.Add(n) })
		}
	}
}

// takes reports whether a dependent goes when an owner has: by the garbage collector's rules it is kept by an owner that exists, and by one
// of which it cannot be found out. What merely was not read here may be gone, or go.
func (f *Fall) takes(d, owner Node) bool {
	owned := false
	for _, ref := range d.Owners() {
		unread := ref.State == Unknown && ref.Reason == UnlistedOwner
		switch {
		case ref.State == Dangling:
		case ref.State == Unknown && !unread:
			return false
		case ref.State == Solid && f.Within == nil && !f.Set.Has(ref.Owner):
			return false
		case ref.Owner == owner:
			owned = true
		}
	}
	return owned && (f.Within == nil || f.Within.Has(d))
}
