// SPDX-License-Identifier: Apache-2.0

package check

import "slices"

// Severity says how bad a finding is. A later one is worse.
type Severity uint8

// The severities.
const (
	// Info: nothing comes of it, or it explains what is going on already.
	Info Severity = iota
	// Warning: the garbage collector keeps the object, and will not do with it,
	// its owner or its reference what somebody expects.
	Warning
	// Error: the garbage collector deletes the object, or can never handle it.
	Error
)

var severityNames = []string{"info", "warning", "error"}

// String returns the severity's name as it stands in documents.
func (s Severity) String() string { return severityNames[s] }

// Severities returns the names of the severities, the least first.
func Severities() []string { return slices.Clone(severityNames) }

// ParseSeverity returns the severity of that name.
func ParseSeverity(name string) (Severity, bool) {
	i := slices.Index(severityNames, name)
	return Severity(max(i, 0)), i >= 0
}

// Rule is something that can be wrong with owner references.
type Rule struct {
	// ID is stable, and in kebab-case.
	ID string
	// Severity is the worst that a finding of the rule has.
	Severity Severity
	// Summary says in a few words what is wrong.
	Summary string
	// Consequence says what the garbage collector does about it.
	Consequence string
}

// The identifiers of the rules.
const (
	OwnerAbsent            = "owner-absent"
	UIDMismatch            = "uid-mismatch"
	WrongNamespace         = "wrong-namespace"
	CoordinatesMismatch    = "coordinates-mismatch"
	UnresolvableKind       = "unresolvable-kind"
	ClusterScopedDependent = "cluster-scoped-dependent"
	InvalidName            = "invalid-name"
	OwnsItself             = "owns-itself"
	OwnerCycle             = "owner-cycle"
	BlockingCycle          = "blocking-cycle"
	RepeatedUID            = "repeated-uid"
)

// Rules returns all rules, in the order in which documents list them. It must
// not be changed.
func Rules() []Rule { return rules }

// RuleIDs returns the identifiers of all rules.
func RuleIDs() []string {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = r.ID
	}
	return ids
}
