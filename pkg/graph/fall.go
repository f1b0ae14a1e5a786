// SPDX-License-Identifier: Apache-2.0

package graph

// Fall are objects that go, and what the garbage collector deletes after them.
type Fall struct {
	Set Set
	// Within is what may go; nil is for what loses all owners that keep it.
	Within *Set
}

// Spread adds the dependents that go, theirs, and so on.
func (f *Fall) Spread() {
	for queue := f.Set.Sorted(); len(queue) > 0; queue = queue[1:] {
		if queue[0].OrphaningDependents() {
			continue
		}
		for _, d := range queue[0].Dependents() {
			if !f.Set.Has(d) && f.takes(d, queue[0]) {
				f.Set.Add(d)
				queue = append(queue, d)
			}
		}
	}
}

// takes reports whether a dependent goes when an owner has: by the garbage collector's rules it is kept by an owner that exists, and by one of which it
// cannot be found out. What merely was not read here may be gone, or go.
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
