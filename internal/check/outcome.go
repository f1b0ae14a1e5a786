// SPDX-License-Identifier: Apache-2.0

package check

// Outcome is what the garbage collector makes of an object, as far as one finding tells. Of several findings about
// an object the latest in this order counts.
type Outcome uint8

// The outcomes.
const (
	// Open: the finding does not tell, or nothing happens to the object because of it.
	Open Outcome = iota
	// Never: the garbage collector never deletes the object.
	Never
	// Unsure: what the garbage collector does depends on what is not known.
	Unsure
	// Orphaned: the object loses its owner, and is never deleted then.
	Orphaned
	// Deleted: the garbage collector deletes the object.
	Deleted
)

// outcomeOf is the outcome of an object with a finding about a dangling reference, or about one that shares its UID.
func (s *subject) outcomeOf() Outcome {
	switch s.fate {
	case deleted:
		return Deleted
	case stripped:
		return Orphaned
	case undecided:
		return Unsure
	}
	return Open
}
