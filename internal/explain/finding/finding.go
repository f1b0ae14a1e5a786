// SPDX-License-Identifier: Apache-2.0

// Package finding has what rules find, as values: blockers, causes and ways out. Its texts are values, and
// commands are made in one place, explain.
//
// The functions that make values are not inlined: in some hundred places that makes the program 45 kB larger.
package finding

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Fact is one fact that a cause rests on.
type Fact = evidence.Fact

// Field is a fact about a field of an object.
func Field(n graph.Node, path string, value any) Fact { return evidence.At(n.Identity(), path, value) }

// FieldSays is a fact about a field of an object, in words.
func FieldSays(n graph.Node, path, w string, args ...any) Fact {
	return evidence.At(n.Identity(), path, say.Of(w, args...))
}

// At is a fact about a field of what the source is: an object, or words for a place.
func At(source any, path string, value any) Fact { return evidence.At(source, path, value) }

// AtSays is a fact about what the source is, in words.
func AtSays(source any, path, w string, args ...any) Fact {
	return evidence.At(source, path, say.Of(w, args...))
}

// Facts are facts that were read as they are.
func Facts(read ...Fact) []Fact { return slices.Clone(read) }

// Blocker is one that keeps an object: a cause, another object that must be deleted first, or neither for what acts by itself.
type Blocker struct {
	// Symptom is the kind of the step, zero for a step that has none.
	Symptom Kind
	Because say.Text
	Cause   *Cause
	Next    *graph.Node
	// Finalizer is the one of metadata.finalizers that keeps the object, empty for other reasons.
	Finalizer string
}

// Cause is what blocks objects.
type Cause struct {
	Kind Kind
	At   graph.Identity
	// Key tells several of a kind at one object apart. Shared: it tells them apart wherever they are.
	Key    string
	Shared bool

	Verdict Verdict
	// Until is when a Progressing cause should have ended; it may be zero.
	Until   time.Time
	Summary say.Text
	// Decides is the fact that decides, for a Summary that says more or less than that. An answer has it however little room there is.
	Decides    say.Text
	Evidence   []Fact
	Controller *Controller
	// Driver is the name of the CSI driver whose controller that is, empty for others.
	Driver string
	// Waits reports whether an object waits for the same; nil where its finalizers or its type tell that.
	Waits func(graph.Node) bool
	// Covers reports whether what refuses is asked about any write to an object, or its deletion; nil for other causes.
	Covers func(graph.Node) bool
	Ways   []Way
	// Own are facts about one of the objects that share the cause, and OwnWays are for it. They are kept for the first few;
	// OwnWays for all of them where that is wanted. Without Own the objects are not counted, and ways that are the same are one.
	Own     []Fact
	OwnWays []Way
	// First is a fact about the first of the objects that has one of its path.
	First *Fact
	// Worst: of the objects that share the cause the gravest verdict counts.
	Worst bool
	// Grows: what the rule says later counts as well, as it makes of one cause what it finds of several objects.
	Grows bool
	// Alike: At is the first of several objects that the cause blocks in the same way, and none of them waits for that one.
	Alike bool
	// Of is the cause with which alone this one ends; nil for others.
	Of *Cause
}

// Put adds a way out, in the place of the one with its slot.
func (c *Cause) Put(way Way) {
	if i := slices.IndexFunc(c.Ways, func(have Way) bool { return have.Slot == way.Slot }); i >= 0 {
		c.Ways[i] = way
		return
	}
	c.Ways = append(c.Ways, way)
}

// Said is the Summary with what decides.
func (c *Cause) Said() say.Text {
	if c.Decides.IsZero() || strings.Contains(c.Summary.String(), c.Decides.String()) {
		return c.Summary
	}
	return c.Summary.Splice(1, 1, say.Of(InParentheses, c.Decides))
}

// Fact is the cause as evidence of another.
func (c *Cause) Fact() Fact { return evidence.At(c.At, "", c.Summary) }

// Controller is what should act.
type Controller struct {
	Name     say.Text
	Liveness string
	Evidence []Fact
	// Logs is how to read what it logs, nil for no way. Known is what the catalogue says of its finalizer, and Among are those
	// of which one may be it. They come after the evidence.
	Logs  *remedy.Look
	Known []finalizers.Match
	Among []Fact
	// Ways have it run again. They come before those of the cause.
	Ways []Way
}

// Way is a way out.
type Way struct {
	// Effect is what it is for.
	Effect say.Text
	// Risk is what the rule knows of its risk, empty for nothing: then a patch is Disruptive. The change itself and what is lost can raise it.
	Risk Risk
	// Op is the change, nil for none; Look is what a person looks at instead, nil for nothing.
	Op   *remedy.Op
	Look *remedy.Look
	Loss []remedy.Loss
	// Data is lost as well, but where the way Keeps it: what keeps it comes before. nil for none.
	Data *remedy.Loss
	Kept bool
	// Blind: what else is lost is not known, or cannot be named.
	Blind bool
	// Keeps: it keeps data that other ways would lose, and frees nothing.
	Keeps bool
	// Partial: a person has to do more, or to judge whether it is the way out. Temporary: it is to be taken back.
	Partial, Temporary bool
	// Leftover: its object is left over from what does not exist any more, so that its deletion, after a backup, ends nothing that works.
	Leftover bool
	// In are the namespaces in which alone it is a way out for what waits, empty for all.
	In []string
	// Facts are what it rests on beyond the cause.
	Facts []Fact
	// Slot is of a way that is put together again when more is known: it takes the place of those with the same slot, whatever
	// their causes. It is empty for others.
	Slot string
}

// Lost is a loss of an object, or about one.
func Lost(kind remedy.LossKind, at graph.Identity, w string, args ...any) []remedy.Loss {
	return []remedy.Loss{{Kind: kind, Object: at, What: say.Of(w, args...)}}
}

// Does is a way out that is a change.
func Does(op remedy.Op, w string, args ...any) Way { return Way{Effect: say.Of(w, args...), Op: &op} }

// See is a way out that begins with a look.
func See(look remedy.Look, w string, args ...any) Way {
	return Way{Effect: say.Of(w, args...), Look: &look}
}

// At returns the way out with a risk that is known beside that of its change.
func (w Way) At(r Risk) Way {
	w.Risk = r.Worse(w.Risk)
	return w
}
