// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Asker asks a person.
type Asker interface {
	// Show shows a plan before it is carried out, also if nobody is asked.
	Show(p *Plan, l *Look) error
	// Ask returns the answer as it was given.
	Ask(ctx context.Context, q Question) (string, error)
}

// Question asks for consent: to all changes that are not dangerous, or to those of one cause that are.
type Question struct {
	Writes []Write
	// Choice is the dangerous one, nil for the others.
	Choice *Choice
	// Name has to be the answer, empty for "y" or "yes".
	Name   string
	Digest string
}

// agree finds out whether a plan may be carried out. It returns whether a person was asked, so that time has passed and a
// fresh look is due.
func (r *run) agree(ctx context.Context, p *Plan, l *Look) (asked bool, _ error) {
	beyond := slices.DeleteFunc(p.Writes(), func(w Write) bool { return r.agreed.HasAll(w.consents()...) })
	if len(beyond) == 0 {
		return false, nil
	}
	if r.shown {
		r.tell(Event{Changed: true})
	}
	if err := r.Asker.Show(p, l); err != nil {
		return false, err
	}
	r.shown = true
	var asks []change.Ask
	for _, q := range questions(p, beyond) {
		safe := q.Choice == nil && !slices.ContainsFunc(q.Writes, func(w Write) bool { return w.Risk.Exceeds(explain.Safe) })
		asks = append(asks, change.Ask{Name: q.Name, Plain: safe, Put: func(ctx context.Context) (string, error) { return r.Asker.Ask(ctx, q) }})
	}
	asked, err := r.consent.Agree(ctx, p.Digest, asks...)
	if err == nil {
		r.consented(beyond)
	}
	return asked, err
}

func (r *run) consented(writes []Write) {
	for i := range writes {
		r.agreed.Insert(writes[i].consents()...)
	}
}

// questions are those that a plan asks about changes that nobody has agreed to yet: one for all that are not dangerous, and one
// for each cause with others.
func questions(p *Plan, beyond []Write) []Question {
	open := sets.New[string]()
	for i := range beyond {
		open.Insert(beyond[i].Op.Key())
	}
	var all []Question
	plain := Question{Digest: p.Digest}
	for i := range p.Choices {
		c := &p.Choices[i]
		writes := slices.DeleteFunc(slices.Clone(c.Writes), func(w Write) bool { return !open.Has(w.Op.Key()) })
		if len(writes) == 0 {
			continue
		}
		if c.Risk == explain.Dangerous {
			all = append(all, dangerous(c, writes, p.Digest)...)
		} else {
			plain.Writes = append(plain.Writes, writes...)
		}
	}
	if plain.Writes = unique(plain.Writes); len(plain.Writes) > 0 {
		all = append([]Question{plain}, all...)
	}
	return all
}

// dangerous are the questions about dangerous changes for one cause: one for each finalizer that is removed, and one for the others.
// What has to be typed is the finalizer, the name of the only object that is lost or changed, or that of the object of the cause.
func dangerous(c *Choice, writes []Write, digest string) []Question {
	var all []Question
	for _, w := range writes {
		name := finalizerOf(w.dangerous())
		if lost := w.protected(); name == "" && len(lost) == 1 {
			name = lost[0].Name
		}
		at := slices.IndexFunc(all, func(q Question) bool { return q.Name == name })
		if at < 0 {
			at, all = len(all), append(all, Question{Choice: c, Name: name, Digest: digest})
		}
		all[at].Writes = append(all[at].Writes, w)
	}
	for i := range all {
		switch q := &all[i]; {
		case q.Name != "":
		case len(q.Writes) == 1:
			q.Name = q.Writes[0].dangerous().Object.Name
		default:
			q.Name = cmp.Or(c.Cause.Object.Name, q.Writes[0].dangerous().Object.Name)
		}
	}
	return all
}

// dangerous is the change that a question is about: what follows, where data is kept before.
func (w *Write) dangerous() *remedy.Op {
	if len(w.Then) > 0 && w.Then[0].Operation != nil {
		return w.Then[0].Operation
	}
	return &w.Op
}

// finalizerOf is the finalizer that a change removes, empty for other changes.
func finalizerOf(op *remedy.Op) string {
	if op.Verb == remedy.Finalize {
		return op.Value
	}
	for _, step := range op.Patch {
		if value, is := step.Value.(string); is && step.Op == "test" && strings.HasPrefix(step.Path, "/metadata/finalizers/") {
			return value
		}
	}
	return ""
}
