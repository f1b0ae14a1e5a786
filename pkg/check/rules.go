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

var rules = []Rule{
	{
		OwnerAbsent, Error, "The owner does not exist.",
		"The garbage collector deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		UIDMismatch, Error, "Another object has the owner's name: its UID is not the one that the reference states.",
		"The garbage collector treats the owner as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		WrongNamespace, Error, "The owner is in another namespace.",
		"The garbage collector looks in the object's own namespace only and treats the owner as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		CoordinatesMismatch, Error, "The object with the stated UID has another kind, group or name.",
		"The garbage collector looks for the owner by kind and name and treats it as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		UnresolvableKind, Error, "The server does not serve the stated apiVersion and kind.",
		"The garbage collector cannot look for the owner. It tries again for ever, and never deletes the object nor removes any of its references.",
	},
	{
		ClusterScopedDependent, Error, "A cluster-scoped object names an owner that is in a namespace.",
		"The garbage collector gives the object up: it never deletes it nor removes any of its references. Only if it sees a dependent in a namespace before the object, as happens when it starts or both are new, does it look for the owner in that namespace, and deletes the object if the owner is not there.",
	},
	{
		InvalidName, Error, "No object can have the owner's name.",
		"The garbage collector asks for something else than the owner: mostly it gets an error, tries again for ever, and keeps the object; it may also take the owner to be absent, and delete the object.",
	},
	{
		OwnsItself, Error, "The object is its own owner.",
		"The reference keeps the object, so the garbage collector never deletes it. If it blocks, a foreground deletion of the object waits for itself for ever.",
	},
	{
		OwnerCycle, Warning, "Objects own each other in a circle.",
		"Each is kept by the next, so the garbage collector never deletes any of them, even when all other owners are gone.",
	},
	{
		BlockingCycle, Warning, "Objects own each other in a circle of references with blockOwnerDeletion.",
		"Once two of them are in foreground deletion at the same time, they can wait for each other for ever.",
	},
	{
		RepeatedUID, Error, "Several references of the object state the same UID.",
		"The garbage collector removes references by UID: when it removes one of these, it removes all of them.",
	},
}

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
