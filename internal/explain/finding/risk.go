// SPDX-License-Identifier: Apache-2.0

package finding

// Risk says what a remedy may cost.
type Risk string

// The risks, the least first.
const (
	Safe       Risk = "safe"
	Disruptive Risk = "disruptive"
	Dangerous  Risk = "dangerous"
)

var risks = map[Risk]int{Safe: 0, Disruptive: 1, Dangerous: 2}

// Exceeds reports whether a risk is greater than another.
func (r Risk) Exceeds(other Risk) bool { return risks[r] > risks[other] }

// Worse returns the greater of two risks.
func (r Risk) Worse(other Risk) Risk {
	if other.Exceeds(r) {
		return other
	}
	return r
}

// Compare orders risks: the least first.
func (r Risk) Compare(other Risk) int { return risks[r] - risks[other] }
