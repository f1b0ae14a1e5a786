// SPDX-License-Identifier: Apache-2.0

// Package collector has the rules of the garbage collector's own finalizers, and of what it would never look at again.
package collector

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The finalizer foregroundDeletion: garbagecollector.go, processDeletingDependentsItem and attemptToDeleteItem.

// HalfDeleted is an object that nothing blocks and that still exists.
func HalfDeleted(n graph.Node) finding.Blocker {
	return finding.Blocker{Because: say.Of(NothingBlocks), Cause: &finding.Cause{
		Kind: finding.HalfDeleted, At: n.Identity(), Verdict: finding.Stuck, Summary: say.Of(DeletionBroken),
		Evidence: []finding.Fact{
			finding.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			finding.Field(n, "metadata.finalizers", "none"),
		},
		Ways: []finding.Way{again(n.Identity(), FinishDeletion)},
	}}
}

// Foreground is the finalizer foregroundDeletion: blocking dependents are deleted first, recursively. One that is on the way
// here closes a Cycle.
func Foreground(f *rules.Facts, m rules.Mark) ([]finding.Blocker, bool) {
	n, blockers := m.Node, blindCollector(f, m.Node)
	f.Needs(graph.Part{}) // references are by UID, and count wherever they are
	acts, waiting := len(blockers) == 0 && !f.NamespaceGone(n.Namespace()), false
	blocking := n.BlockingDependents()
	waits := finding.Blocker{Symptom: finding.GcFgBlocking,
		Because: say.Of(WaitsForDependents, evidence.Some(len(blocking), "blocking dependent"))}
	if c := remadeDependents(f, n, blocking); c != nil {
		b := waits
		b.Cause = c
		blockers = append(blockers, b)
		blocking = slices.DeleteFunc(slices.Clone(blocking), func(d graph.Node) bool {
			made := d.Object().CreationTimestamp.Time
			return made.After(evidence.Requested(n.Object())) && f.Now.Sub(made) < passing
		})
		if len(blocking) == 0 {
			return blockers, true
		}
	}
	for _, d := range blocking {
		if c := acrossNamespaces(n, d); c != nil {
			blockers = append(blockers, finding.Blocker{Symptom: finding.GcFgOwnerrefScope, Because: waits.Because, Cause: c})
		}
		b := waits
		if d.BeingDeleted() {
			b.Next = &d
		} else if b.Cause = untouched(f, n, d); b.Cause == nil {
			refused := denied(f, n, d)
			waiting = waiting || len(refused) == 0 || refused[0].Cause.Verdict != finding.Stuck
			blockers = append(blockers, refused...)
			continue
		}
		blockers = append(blockers, b)
	}
	switch {
	case acts && len(blocking) == 0:
		blockers = append(blockers, alone(f, n)...)
	case acts && waiting:
		blockers = append(blockers, turn(f, n, finding.GcFgBlocking, say.Of(DeleteDependents))...)
	}
	return blockers, true
}

// turn is an object at which the garbage collector has to act, and which it might not, as long as it cannot list a type.
func turn(f *rules.Facts, n graph.Node, symptom finding.Kind, because say.Text) []finding.Blocker {
	c := blinding(f, n)
	if c == nil || f.Manager().Dead {
		return f.Protected(n, symptom, because)
	}
	return []finding.Blocker{{Symptom: symptom, Because: say.Of(BlindAfterRestart, because), Cause: c}}
}

// blinding is the cause for which a type cannot be listed, when the garbage collector should have acted on the object, on a
// server where that does not start before it has listed all types; nil for none.
func blinding(f *rules.Facts, n graph.Node) *finding.Cause {
	if f.Server().CollectsWithoutAll() || !f.Late(n) {
		return nil
	}
	for _, u := range f.Unlisted {
		if c := definition.Unlisted(f, u); c != nil {
			return c
		}
	}
	return nil
}

// alone is an owner without blocking dependents.
func alone(f *rules.Facts, n graph.Node) []finding.Blocker {
	switch {
	case blinding(f, n) != nil:
		return turn(f, n, finding.GcFgBlocking, say.Of(EndForeground))
	case !f.Incomplete().IsZero():
		return []finding.Blocker{{Symptom: finding.GcFgBlocking, Because: say.Of(UnlistedBlockers), Cause: &finding.Cause{
			Kind: finding.GcFgBlocking, At: n.Identity(), Key: "unlisted", Verdict: finding.Unknown, Summary: say.Of(NoneFound, f.Incomplete()),
			Evidence: []finding.Fact{finding.Field(n, "metadata.finalizers", metav1.FinalizerDeleteDependents)},
		}}}
	case f.Age(n) > rules.CollectorDelay:
		if by := write.Refusal(f, n, f.Admission.TryRemoval(n, metav1.FinalizerDeleteDependents), "UPDATE"); by != nil {
			return []finding.Blocker{{Symptom: finding.GcFgBlocking, Because: say.Of(CannotRemoveIt), Cause: by}}
		}
	}
	return turn(f, n, finding.GcFgBlocking, say.Of(RemoveForeground))
}

// passing is how old a dependent is at most of which it does not matter how far its own deletion is, when others come after
// it.
const passing = time.Minute

// remadeDependents are blocking dependents that were created after the deletion of their owner, which is kept as long as
// more are created. Each look meets others, in whatever state: their blockers are not those of the owner.
func remadeDependents(f *rules.Facts, n graph.Node, blocking []graph.Node) *finding.Cause {
	late := lateDependents(n, blocking)
	if len(late) == 0 || f.Age(n) <= rules.CollectorDelay {
		return nil
	}
	c := &finding.Cause{Kind: finding.GcFgRecreated, At: n.Identity(), Verdict: finding.Unknown}
	created, creator := evidence.Number(len(late), "blocking dependent"), ""
	for _, d := range late {
		if _, err := f.Whole(d); err != nil {
			continue // gone since the graph was read, as dependents on their way are: by whom it was created it does not say any more
		}
		creator = cmp.Or(creator, f.FirstManager(d))
		c.Evidence = append(c.Evidence, finding.FieldSays(d, "metadata.creationTimestamp", CreationBy,
			d.Object().CreationTimestamp.UTC().Format(time.RFC3339), cmp.Or(f.FirstManager(d), "a user")))
		if len(c.Evidence) == evidence.MaxShown {
			break
		}
	}
	c.Ways = []finding.Way{edge{owner: n, dependent: late[0], keeper: rules.Keeper(n, late[0])}.background()}
	maker, named := f.Finder.Server(n, creator)
	if maker == nil {
		stop := say.Of(StopItsCreator, creator)
		if creator == "" {
			stop = say.Of(FindCreator)
		}
		c.Summary, c.Ways = say.Of(CreatedLate, created), append(c.Ways, finding.Way{Effect: stop, Risk: finding.Disruptive})
		return c
	}
	c.Summary = say.Of(RecreatedLate, created, maker.ID())
	if named && persists(n, late, f.Now) {
		c.Verdict = finding.Stuck
	}
	stop := finding.Way{Risk: finding.Disruptive}
	if node, known := f.Graph.Node(maker.ID().UID); known && maker.Replicas > 0 {
		stop = pod.ScaleDown(f.Reader, node, say.Text{})
	}
	stop.Effect, stop.Temporary = say.Of(StopController, maker.ID()), stop.Op == nil || stop.Op.Back != nil
	c.Ways = append(c.Ways, stop)
	return c
}

// persists reports whether the creator of the late dependents of an owner goes on: it has created one within the last
// minute, more than a minute after the deletion, which no controller overlooks so long that heeds deletions.
func persists(owner graph.Node, late []graph.Node, now time.Time) bool {
	asked := evidence.Requested(owner.Object())
	return slices.ContainsFunc(late, func(d graph.Node) bool {
		made := d.Object().CreationTimestamp.Time
		return made.Sub(asked) > passing && now.Sub(made) < passing
	})
}

// lateDependents are those that were made after the deletion of their owner, the last first.
func lateDependents(n graph.Node, dependents []graph.Node) []graph.Node {
	asked := evidence.Requested(n.Object())
	late := slices.DeleteFunc(slices.Clone(dependents), func(d graph.Node) bool { return !d.Object().CreationTimestamp.After(asked) })
	slices.SortStableFunc(late, func(a, b graph.Node) int {
		return b.Object().CreationTimestamp.Compare(a.Object().CreationTimestamp.Time)
	})
	return late
}

// blindCollector is an owner in foreground deletion of a type that the garbage collector cannot list: it does not see the
// owner, and never looks at it.
func blindCollector(f *rules.Facts, n graph.Node) []finding.Blocker {
	var blockers []finding.Blocker
	for _, u := range f.Unlisted {
		if u.GroupResource() != n.Resource().GroupResource() {
			continue
		}
		if root := definition.Unlisted(f, u); root != nil {
			because := say.Of(TypeUnlisted)
			blockers = append(blockers, finding.Blocker{Symptom: finding.GcBlind, Because: because, Cause: root},
				finding.Blocker{Because: because, Cause: blind(n.Identity(), n.Finalizers(), goes(n), root.Fact())})
		}
	}
	return blockers
}

// BlindTo is an object that can be read in another version alone, if it is an owner in foreground deletion; nil for others.
func BlindTo(id graph.Identity, o *unstructured.Unstructured) *finding.Cause {
	if !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return nil
	}
	end := AtOnce
	if len(o.GetFinalizers()) > 1 {
		end = OnceFinalized
	}
	id.Resource.Version = o.GroupVersionKind().Version
	return blind(id, o.GetFinalizers(), end, finding.AtSays(id, "apiVersion", ReadableIn, o.GetAPIVersion()))
}

// blind is an owner in foreground deletion that the garbage collector does not see; end says when it is deleted otherwise.
func blind(id graph.Identity, finalizers []string, end say.Word, why finding.Fact) *finding.Cause {
	return &finding.Cause{
		Kind: finding.GcBlind, At: id, Verdict: finding.Stuck, Summary: say.Of(SeesNot),
		Evidence: []finding.Fact{finding.At(id, "metadata.finalizers", metav1.FinalizerDeleteDependents), why},
		Ways:     []finding.Way{finish(id, finalizers, Blindly, end)},
	}
}

// denied is what refuses that the garbage collector deletes a blocking dependent, or, when another owner keeps it, releases
// it, and that it does not: none when nothing is known to. Unless that is certain, it is still the collector's turn.
func denied(f *rules.Facts, owner, d graph.Node) []finding.Blocker {
	if f.Age(owner) <= rules.CollectorDelay {
		return nil
	}
	e := edge{owner: owner, dependent: d, keeper: rules.Keeper(owner, d), refused: "DELETE"}
	ofOwner, ofDependent := say.Of(DeleteIts, d.Identity()), say.Of(DeleteIt)
	var r admission.Reply
	if e.keeper != nil {
		e.refused = "UPDATE"
		ofOwner, ofDependent = say.Of(ReleaseIts, d.Identity()), say.Of(ReleaseFrom, owner.Identity())
		r = f.Admission.TryRelease(d, owner.UID())
	} else {
		alike := "dependent of " + string(owner.UID())
		if f.Manager().Dead { // then it is no wonder that nothing is deleted
			alike = "dependent"
		}
		r = f.Admission.TryDelete(d, alike)
	}
	by := write.Refusal(f, d, r, e.refused)
	if by == nil {
		return nil
	}
	because, summary := say.Of(Cannot, ofOwner), say.Of(Cannot, ofDependent).And(RetriesRarely)
	if by.Verdict != finding.Stuck {
		because, summary = say.Of(Might, ofOwner), say.Of(Might, ofDependent).And(YouCannot)
	}
	c := *f.Once(finding.GcFgDenied, fmt.Sprintf("%s %s %s %t", owner.UID(), e.refused, by.At, by.Verdict == finding.Stuck),
		func(c *finding.Cause) {
			c.At, c.Verdict, c.Summary, c.Decides = d.Identity(), by.Verdict, summary, write.Says(r.Refusal)
			c.Evidence = []finding.Fact{e.fact(), r.Fact()}
			c.Ways = e.free(f.Admission)
		})
	c.Own = []finding.Fact{e.fact()}
	if by.Verdict == finding.Stuck {
		c.Of = by
	}
	return []finding.Blocker{{Symptom: finding.GcFgDenied, Because: because, Cause: by},
		{Symptom: finding.GcFgBlocking, Because: because, Cause: &c}}
}

// Cycle is a ring of owners in foreground deletion, or one that owns itself. The garbage collector breaks only rings that it
// meets while it starts a deletion.
func Cycle(f *rules.Facts, d graph.Node, path []types.UID) *finding.Cause {
	ring, first := slices.Sorted(slices.Values(path)), d
	for _, uid := range ring { // one cause for the ring, wherever it is entered
		if m, ok := f.Graph.Node(uid); ok && m.Object().HasFinalizer(metav1.FinalizerDeleteDependents) {
			first = m
			break
		}
	}
	c := &finding.Cause{
		Kind: finding.GcFgCycle, At: first.Identity(), Key: fmt.Sprint(ring), Verdict: finding.Stuck, Summary: say.Of(CycleOf, len(ring)),
		Evidence: ringEvidence(f.Graph, ring), Ways: []finding.Way{finish(first.Identity(), first.Finalizers(), BreakCycle)},
	}
	if len(ring) == 1 {
		c.Summary = say.Of(BlocksItself)
	}
	return c
}

// ringEvidence are the references of a ring.
func ringEvidence(g *graph.Graph, ring []types.UID) []finding.Fact {
	var facts []finding.Fact
	for _, uid := range ring {
		m, ok := g.Node(uid)
		if !ok {
			continue
		}
		for _, ref := range m.Owners() {
			if ref.Blocking() && slices.Contains(ring, ref.UID) {
				facts = append(facts, finding.Field(m, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index),
					fmt.Sprintf("%s/%s, blockOwnerDeletion: true", ref.Kind, ref.Name)))
			}
		}
	}
	if more := len(facts) - 2*evidence.MaxShown; more > 0 {
		facts = append(facts[:2*evidence.MaxShown], finding.AtSays("the cycle", "", MoreReferences, more))
	}
	return facts
}
