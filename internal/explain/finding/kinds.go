// SPDX-License-Identifier: Apache-2.0

package finding

import "slices"

// Class groups causes. Order and behaviour depend on it, never on identifiers, which are for people.
type Class int

// The classes.
const (
	// Waits: something else has to happen first.
	Waits Class = iota
	// Collector: the garbage collector and its own finalizers.
	Collector
	// Refusal: something rejects the write that is needed.
	Refusal
	// Controllers: a controller has to remove a finalizer.
	Controllers
	// NotStuck: the object is not being deleted.
	NotStuck
	// Unclear: what could be read does not decide it.
	Unclear
)

// Kind is a kind of cause, or of a step on the way to one.
type Kind struct {
	// ID is stable.
	ID    string
	Class Class
	// Meaning says it in a few words.
	Meaning string
}

var kinds []Kind

// Kinds returns all kinds, by their identifiers.
func Kinds() []Kind { return slices.Clone(kinds) }

// kind declares a Kind.
func kind(id string, class Class, meaning string) Kind {
	k := Kind{id, class, meaning}
	kinds = append(kinds, k)
	return k
}
