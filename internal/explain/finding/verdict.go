// SPDX-License-Identifier: Apache-2.0

package finding

// Verdict says how an object's deletion stands.
type Verdict string

// The verdicts, the worst last.
const (
	// NotFound: there is no such object.
	NotFound       Verdict = "NotFound"
	NotTerminating Verdict = "NotTerminating"
	// Pending: the garbage collector has to act, and nothing prevents that.
	Pending Verdict = "Pending"
	// Progressing: something is in progress that ends by itself.
	Progressing Verdict = "Progressing"
	// Unknown: what could be read does not decide it.
	Unknown Verdict = "Unknown"
	// Stuck: nothing will happen until a user acts.
	Stuck Verdict = "Stuck"
)

var gravity = map[Verdict]int{NotFound: 0, NotTerminating: 1, Pending: 2, Progressing: 3, Unknown: 4, Stuck: 5}

// Worse returns the graver of two verdicts.
func (v Verdict) Worse(other Verdict) Verdict {
	if gravity[other] > gravity[v] {
		return other
	}
	return v
}

// Gravity orders verdicts: the worst has the greatest.
func (v Verdict) Gravity() int { return gravity[v] }
