// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The finalizer foregroundDeletion: garbagecollector.go, processDeletingDependentsItem
// and attemptToDeleteItem.

// foreground is the finalizer foregroundDeletion: blocking dependents are deleted first, recursively.
func (w *walker) foreground(n graph.Node) []hold {
	w.evidence.Needs(graph.Part{}) // references are by UID, and count wherever they are
	blocking := n.BlockingDependents()
	because := fmt.Sprintf(waitsForDependents, evidence.Some(len(blocking), "blocking dependent"))
	holds := w.blindCollector(n)
	blind := len(holds) > 0
	if c := w.remadeDependents(n, blocking); c != nil {
		holds = append(holds, hold{symptom: finding.GcFgBlocking, because: because, cause: c})
		blocking = slices.DeleteFunc(slices.Clone(blocking), func(d graph.Node) bool {
			made := d.Object().CreationTimestamp.Time
			return made.After(evidence.Requested(n.Object())) && w.evidence.Now.Sub(made) < passing
		})
		if len(blocking) == 0 {
			return holds
		}
	}
	waiting := false
	for _, d := range blocking {
		if c := w.acrossNamespaces(n, d); c != nil {
			holds = append(holds, hold{symptom: finding.GcFgOwnerrefScope, because: because, cause: c})
		}
		switch {
		case slices.Contains(w.path, d.UID()):
			holds = append(holds, hold{symptom: finding.GcFgBlocking, because: because, cause: w.cycle(d)})
		case d.BeingDeleted():
			holds = append(holds, hold{symptom: finding.GcFgBlocking, because: because, next: &d})
		default:
			if c := w.untouched(n, d); c != nil {
				holds = append(holds, hold{symptom: finding.GcFgBlocking, because: because, cause: c})
			} else {
				denied, certain := w.denied(n, d)
				holds = append(holds, denied...)
				waiting = waiting || !certain
			}
		}
	}
	switch {
	case w.evidence.NamespaceGone(n.Namespace()), blind:
	case waiting:
		holds = append(holds, w.protection(n, finding.GcFgBlocking, deleteDependents))
	case len(blocking) == 0 && w.late(n) && w.blindingType(n) != nil:
		holds = append(holds, w.protection(n, finding.GcFgBlocking, endForeground))
	case len(blocking) == 0 && w.incomplete() != "":
		holds = append(holds, hold{symptom: finding.GcFgBlocking, because: unlistedBlockers, cause: w.blind(n)})
	case len(blocking) == 0:
		if w.rules.Age(n) > rules.CollectorDelay {
			if c := w.refusal(n, w.asker.TryRemoval(n, metav1.FinalizerDeleteDependents), "UPDATE"); c != nil {
				return append(holds, hold{symptom: finding.GcFgBlocking, because: cannotRemoveIt, cause: c})
			}
		}
		holds = append(holds, w.protection(n, finding.GcFgBlocking, removeForeground))
	}
	return holds
}

// passing is how old a dependent is at most of which it does not matter how far its own deletion
// is, when others come after it.
const passing = time.Minute

// remadeDependents are blocking dependents that were created after the deletion of their owner, which is kept as long as
// more are created. Each look meets others, in whatever state: their blockers are not those of the owner.
func (w *walker) remadeDependents(n graph.Node, blocking []graph.Node) *Cause {
	late := lateDependents(n, blocking)
	if len(late) == 0 || w.rules.Age(n) <= rules.CollectorDelay {
		return nil
	}
	return w.cause(finding.GcFgRecreated, n.Identity(), "", func(c *Cause) {
		for _, d := range late[:min(len(late), evidence.MaxShown)] {
			created := fmt.Sprintf(creationBy, d.Object().CreationTimestamp.UTC().Format(time.RFC3339), cmp.Or(w.firstManager(d), aUser))
			c.Evidence = append(c.Evidence, evidence.Field(d, "metadata.creationTimestamp", created))
		}
		created, creator := evidence.Number(len(late), "blocking dependent"), w.firstManager(late[0])
		free := w.background(edge{owner: n, dependent: late[0], keeper: keeper(n, late[0])})
		maker, named := w.finder.Server(n, creator)
		if maker == nil {
			stop := Remedy{Risk: Disruptive, Effect: fmt.Sprintf(stopItsCreator, creator)}
			if creator == "" {
				stop.Effect = findCreator
			}
			c.Summary, c.Remedies = fmt.Sprintf(createdLate, created), []Remedy{free, stop}
			return
		}
		c.Summary = fmt.Sprintf(recreatedLate, created, maker.ID())
		if named && persists(n, late, w.evidence.Now) {
			c.Verdict = Stuck
		}
		stop := Remedy{Risk: Disruptive, Temporary: true, Effect: fmt.Sprintf(stopController, maker.ID())}
		if maker.Replicas > 0 {
			stop.Action = w.scaleToNone(maker.ID(), int64(maker.Replicas), false)
		}
		c.Remedies = []Remedy{free, stop}
	})
}

// persists reports whether the creator of the late dependents of an owner goes on: it has created one within the last minute, more than a
// minute after the deletion, which no controller overlooks so long that heeds deletions.
func persists(owner graph.Node, late []graph.Node, now time.Time) bool {
	asked := evidence.Requested(owner.Object())
	return slices.ContainsFunc(late, func(d graph.Node) bool {
		made := d.Object().CreationTimestamp.Time
		return made.Sub(asked) > passing && now.Sub(made) < passing
	})
}

// lateDependents are those that were made after the deletion of their owner.
func lateDependents(n graph.Node, dependents []graph.Node) []graph.Node {
	asked := evidence.Requested(n.Object())
	return slices.DeleteFunc(slices.Clone(dependents), func(d graph.Node) bool { return !d.Object().CreationTimestamp.After(asked) })
}

// blindCollector is an owner in foreground deletion that the garbage collector
// cannot see.
func (w *walker) blindCollector(n graph.Node) []hold {
	var holds []hold
	for _, root := range w.blindTo(n) {
		holds = append(holds, hold{symptom: finding.GcBlind, because: typeUnlisted, cause: root}, hold{because: typeUnlisted, cause: w.collectorBlind(n, root)})
	}
	return holds
}

// denied is a blocking dependent that the garbage collector cannot delete, or, when another owner keeps it, cannot
// release: nil when nothing is known to reject that. It is certain when not only the caller is known to be rejected.
func (w *walker) denied(owner, d graph.Node) (holds []hold, certain bool) {
	if w.rules.Age(owner) <= rules.CollectorDelay {
		return nil, false
	}
	e := edge{owner: owner, dependent: d, keeper: keeper(owner, d), refused: "DELETE"}
	var r admission.Reply
	if e.keeper != nil {
		e.refused = "UPDATE"
		r = w.asker.TryRelease(d, owner.UID())
	} else {
		alike := "dependent of " + string(owner.UID())
		if w.health().dead() { // then it is no wonder that nothing is deleted
			alike = "dependent"
		}
		r = w.asker.TryDelete(d, alike)
	}
	root := w.refusal(d, r, e.refused)
	if root == nil {
		return nil, false
	}
	certain = root.Verdict == Stuck
	ofOwner, ofDependent := e.tasks()
	more := []Evidence{e.evidence()}
	c := w.shared(fmt.Sprintf("%s %s %s %t", owner.UID(), e.refused, root.Object, certain), finding.GcFgDenied, d.Identity(), func(c *Cause) {
		c.Verdict, c.Summary = root.Verdict, fmt.Sprintf(deniedSays[certain], ofDependent)
		c.Evidence, more = []Evidence{e.evidence(), asked(r)}, nil
		if e.keeper != nil {
			c.Remedies = w.freeKept(e)
		} else {
			c.Remedies = w.freeDenied(e)
		}
	})
	w.join(c, more...)
	because := fmt.Sprintf(collectorCannot[certain], ofOwner)
	return []hold{{symptom: finding.GcFgDenied, because: because, cause: root}, {symptom: finding.GcFgBlocking, because: because, cause: c}}, certain
}

// keeper returns the reference of a dependent to another owner, which exists: the garbage collector keeps the dependent
// because of that. It is nil without one.
func keeper(owner, d graph.Node) *graph.Reference {
	for _, ref := range d.Owners() {
		if ref.UID != owner.UID() && ref.State == graph.Solid {
			return &ref
		}
	}
	return nil
}

// blind is an owner in foreground deletion whose dependents are not all known.
func (w *walker) blind(n graph.Node) *Cause {
	return w.cause(finding.GcFgBlocking, n.Identity(), "unlisted", func(c *Cause) {
		c.Summary = fmt.Sprintf(noneFound, w.incomplete())
		c.Evidence = []Evidence{evidence.Field(n, "metadata.finalizers", metav1.FinalizerDeleteDependents)}
	})
}

// cycle is a ring of owners in foreground deletion, or one that owns itself.
// The garbage collector breaks only rings that it meets while it starts a
// deletion.
func (w *walker) cycle(d graph.Node) *Cause {
	ring := slices.Clone(w.path[slices.Index(w.path, d.UID()):])
	slices.Sort(ring)
	first := d
	for _, uid := range ring { // one cause for the ring, wherever it is entered
		if m, ok := w.Graph.Node(uid); ok && isForeground(m.Object()) {
			first = m
			break
		}
	}
	return w.cause(finding.GcFgCycle, first.Identity(), fmt.Sprint(ring), func(c *Cause) {
		if c.Verdict, c.Summary = Stuck, fmt.Sprintf(cycleOf, len(ring)); len(ring) == 1 {
			c.Summary = blocksItself
		}
		c.Evidence = ringEvidence(w.Graph, ring)
		c.Remedies = []Remedy{w.deleteAgain(first, Safe, breakCycle)}
	})
}

// ringEvidence are the references of a ring.
func ringEvidence(g *graph.Graph, ring []types.UID) []Evidence {
	var facts []Evidence
	for _, uid := range ring {
		m, ok := g.Node(uid)
		if !ok {
			continue
		}
		for _, ref := range m.Owners() {
			if ref.Blocking() && slices.Contains(ring, ref.UID) {
				facts = append(facts, evidence.Field(m, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index),
					fmt.Sprintf("%s/%s, blockOwnerDeletion: true", ref.Kind, ref.Name)))
			}
		}
	}
	if more := len(facts) - 2*evidence.MaxShown; more > 0 {
		facts = append(facts[:2*evidence.MaxShown], Evidence{Source: theCycle, Value: fmt.Sprintf(moreReferences, more)})
	}
	return facts
}

// untouched says why a blocking dependent is not being deleted, and is nil when only the garbage collector has to act,
// which gives up at the first reference that it cannot resolve.
func (w *walker) untouched(owner, d graph.Node) *Cause {
	for _, ref := range d.Owners() {
		switch ref.Reason {
		case graph.Unresolvable, graph.InvalidName:
			return w.reference(finding.GcFgOwnerUnresolvable, owner, ref)
		case graph.ClusterScopedDependent:
			return w.reference(finding.GcFgOwnerrefScope, owner, ref)
		case graph.UnlistedOwner:
			return w.cause(finding.NotRead, d.Identity(), "owner", func(c *Cause) {
				c.Summary = fmt.Sprintf(ownerUnread, ownerName(&ref))
				c.Evidence = []Evidence{evidence.Field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), ref.APIVersion+" "+ref.Kind+"/"+ref.Name)}
			})
		}
	}
	return nil
}

// acrossNamespaces is a blocking dependent in another namespace than its owner. The garbage collector takes the
// owner for absent there, and waits for the dependent all the same, by the UID
// (garbagecollector/graph_builder.go, blockingDependents). Whether the dependent is deleted is another question.
func (w *walker) acrossNamespaces(owner, d graph.Node) *Cause {
	for _, ref := range d.Owners() {
		if ref.UID != owner.UID() || ref.Reason != graph.WrongNamespace || !ref.Blocking() {
			continue
		}
		return w.cause(finding.GcFgOwnerrefScope, d.Identity(), string(owner.UID())+" across", func(c *Cause) {
			c.Verdict = Progressing // by itself it blocks nothing
			c.Summary = fmt.Sprintf(crossesNamespaces, owner.Identity())
			c.Evidence = []Evidence{referenceFact(ref)}
			c.Remedies = []Remedy{w.dropReference(d, ref.Index, ref.UID, dropInvalid)}
		})
	}
	return nil
}

// referenceFact is a reference with what is wrong with it.
func referenceFact(ref graph.Reference) Evidence {
	return evidence.Field(ref.Dependent, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), fmt.Sprintf("%s %s/%s (%s)", ref.APIVersion, ref.Kind, ref.Name, ref.Reason))
}

// unresolvable says to remove a reference that could not be resolved, and what follows. The garbage collector looks for a
// dependent's owners by their UIDs, so without a reference to it an owner does not wait for the dependent, and an object
// without references is no dependent. keeper is the reference to another owner, nil for none.
func unresolvable(owner graph.Node, ref graph.Reference, keeper *graph.Reference) string {
	others := slices.DeleteFunc(slices.Clone(ref.Dependent.Owners()), func(r graph.Reference) bool { return r.Index == ref.Index })
	said := dropUnresolvable
	if ref.Reason == graph.ClusterScopedDependent {
		said = dropNamespaced
	}
	last := ref.UID == owner.UID() && !slices.ContainsFunc(others, func(r graph.Reference) bool { return r.UID == owner.UID() })
	switch {
	case last && len(others) == 0:
		return said + thenOwnerless
	case last:
		return said + thenOthersDecide
	case keeper != nil:
		return said + fmt.Sprintf(thenReleasesIt, ownerName(keeper))
	}
	return said + thenDeletesIt
}

// reference is a cause in one owner reference of a dependent.
func (w *walker) reference(id Kind, owner graph.Node, ref graph.Reference) *Cause {
	d := ref.Dependent
	return w.cause(id, d.Identity(), string(owner.UID()), func(c *Cause) {
		c.Summary = ignored(owner, ref)
		if w.rules.Age(owner) > rules.CollectorDelay {
			c.Verdict = Stuck
		}
		c.Evidence = []Evidence{
			referenceFact(ref),
			evidence.Field(owner, "metadata.finalizers", metav1.FinalizerDeleteDependents),
		}
		other, end := keeper(owner, d), w.deleteAgain(d, Disruptive, deleteDependent)
		if end.Loss = losesObject(d.Identity(), lostDependent); other != nil {
			end.Loss = losesObject(d.Identity(), lostOthersToo, ownerName(other))
		}
		c.Remedies = []Remedy{
			w.deleteAgain(owner, Safe, fmt.Sprintf(keepDependent, goes(owner))), end,
			w.dropReference(d, ref.Index, ref.UID, unresolvable(owner, ref, other)),
		}
	})
}
