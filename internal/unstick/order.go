// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// order puts off what is refused as long as another cause is there that is dealt with: it follows when a look does not find that any more.
// So is a change of an object that is refused to the caller, whatever the answer to others is.
func (p *Plan) order(l *Look) {
	for i := range p.Choices {
		refusal := &p.Choices[i]
		if refusal.Cause.Class != finding.Refusal {
			continue
		}
		held, certain := sets.New(blocked(l, refusal.Cause)...), refusal.Cause.Verdict == explain.Stuck
		if needs := p.beyond(l, held); denies(refusal.Cause.Kind) && len(refusal.Writes) > 0 && needs != "" {
			refusal.Writes, refusal.Reason, refusal.Needs = nil, NotAllowed, needs
		}
		dealt := certain && (len(refusal.Writes) > 0 || refusal.Reason == NotEnough)
		for j := range p.Choices {
			c := &p.Choices[j]
			if c.After > 0 || c.Cause.Class == finding.Refusal {
				continue
			}
			refused := !certain && denies(refusal.Cause.Kind) &&
				slices.ContainsFunc(c.Writes, func(w Write) bool { return held.Has(w.Op.Object.UID) && w.Op.Verb == remedy.Patch })
			if refused || dealt && held.HasAny(blocked(l, c.Cause)...) {
				c.After = refusal.Rank
			}
		}
	}
}

// follow leaves out what ends with another cause that is dealt with.
func (p *Plan) follow() {
	for i := range p.Choices {
		c := &p.Choices[i]
		of := slices.IndexFunc(p.Choices, func(of Choice) bool { return of.Cause == c.Cause.Of && len(of.Writes) > 0 })
		if of >= 0 {
			c.Writes, c.Reason, c.After = nil, Follows, p.Choices[of].Rank
		}
	}
}

// beyond returns the risk that would have to be allowed for objects to be changed that are refused that change, empty where one of them
// needs no more: nothing that denies a write is passed for nothing.
func (p *Plan) beyond(l *Look, held sets.Set[types.UID]) (needs explain.Risk) {
	stay := sets.New[types.UID]()
	for i := range p.Choices {
		c := &p.Choices[i]
		changes := func(r explain.Remedy) bool { return r.Operation != nil && held.Has(r.Operation.Object.UID) }
		if c.Reason == NotAllowed && slices.ContainsFunc(c.Cause.Remedies, changes) {
			stay.Insert(blocked(l, c.Cause)...)
			needs = needs.Worse(c.Needs)
		}
	}
	if !stay.IsSuperset(held) {
		return ""
	}
	return needs
}

// denies reports whether a cause is that something denies a write, as a dry run of the caller's has met it.
func denies(kind explain.Kind) bool {
	return kind == finding.AdmWebhookDeny || kind == finding.AdmVapDeny || kind == finding.AdmRefused
}

// blocked are the objects that a cause blocks, of those that were asked for.
func blocked(l *Look, c *explain.Cause) []types.UID {
	var uids []types.UID
	for o := range l.Report.Blocked(c) {
		uids = append(uids, o.Object.UID)
	}
	return uids
}

// oncePerObject leaves out all but the first change of each object: the others would meet another version than the one that was
// proved. They follow in the next round.
func oncePerObject(writes []Write) []Write {
	seen := sets.New[graph.Identity]()
	return slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		again := seen.Has(w.Op.Object)
		seen.Insert(w.Op.Object)
		return again
	})
}
