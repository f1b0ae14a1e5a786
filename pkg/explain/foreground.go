// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// The finalizer foregroundDeletion: garbagecollector.go, processDeletingDependentsItem
// and attemptToDeleteItem.

// collectorDelay is how long the garbage collector may take for one step.
const collectorDelay = 10 * time.Second

// foreground is the finalizer foregroundDeletion: blocking dependents go first,
// recursively.
func (w *walker) foreground(n graph.Node) []hold {
	symptom := gcFgBlocking
	w.evidence.Needs(graph.Part{}) // references are by UID, and count wherever they are
	blocking := n.BlockingDependents()
	because := "waits for its " + count(len(blocking), "blocking dependent")
	holds := w.blindCollector(n)
	blind := len(holds) > 0
	if c := w.remadeDependents(n, blocking); c != nil {
		holds = append(holds, hold{symptom: symptom, because: because, cause: c})
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
			holds = append(holds, hold{symptom: gcFgOwnerrefScope, because: because, cause: c})
		}
		switch {
		case slices.Contains(w.path, d.UID()):
			holds = append(holds, hold{symptom: symptom, because: because, cause: w.cycle(d)})
		case d.BeingDeleted():
			holds = append(holds, hold{symptom: symptom, because: because, next: &d})
		default:
			if c := w.untouched(n, d); c != nil {
				holds = append(holds, hold{symptom: symptom, because: because, cause: c})
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
		holds = append(holds, w.collector(n, symptom, "the garbage collector has to delete its blocking dependents"))
	case len(blocking) == 0 && w.late(n) && w.blindingType(n) != nil:
		holds = append(holds, w.collector(n, symptom, "the garbage collector has to end its deletion"))
	case len(blocking) == 0 && w.incomplete() != "":
		holds = append(holds, hold{symptom: symptom, because: "may wait for blocking dependents that could not be listed", cause: w.blind(n)})
	case len(blocking) == 0:
		if w.age(n) > collectorDelay {
			if c := w.refusal(n, w.asker.TryRemoval(n, metav1.FinalizerDeleteDependents), "UPDATE"); c != nil {
				return append(holds, hold{symptom: symptom, because: "the garbage collector cannot remove the finalizer foregroundDeletion", cause: c})
			}
		}
		holds = append(holds, w.collector(n, symptom, "the garbage collector has to remove the finalizer foregroundDeletion"))
	}
	return holds
}

// passing is how old a dependent is at most of which it does not matter how far its own deletion
// is, when others come after it.
const passing = time.Minute

// remadeDependents are blocking dependents that were made after the deletion of
// their owner: as long as somebody goes on making them, the owner stays. Each look
// meets others, in whatever state: what holds them is not what holds the owner.
func (w *walker) remadeDependents(n graph.Node, blocking []graph.Node) *Cause {
	late := lateDependents(n, blocking)
	if len(late) == 0 || w.age(n) <= collectorDelay {
		return nil
	}
	return w.cause(gcFgRecreated, n.Identity(), "", func(c *Cause) {
		c.Summary = "after it was deleted, " + evidence.Number(len(late), "blocking dependent") + " came to be; whoever makes them may go on"
		for _, d := range late[:min(len(late), evidence.MaxShown)] {
			creator := w.firstManager(d)
			c.Evidence = append(c.Evidence, evidence.Field(d, "metadata.creationTimestamp", d.Object().CreationTimestamp.UTC().Format(time.RFC3339)+", by "+cmp.Or(creator, "a person")))
		}
		free := w.background(edge{owner: n, dependent: late[0], keeper: keeper(n, late[0])})
		maker := w.finder.Server(n, w.firstManager(late[0]))
		if maker == nil {
			c.Remedies = []Remedy{free, {Risk: Disruptive, Effect: "stop what makes them, " + cmp.Or(w.firstManager(late[0]), "which is not known") + ", until the owner is gone"}}
			return
		}
		c.Summary = fmt.Sprintf("after it was deleted, %s came to be; %s, which serves such owners, makes them again", evidence.Number(len(late), "blocking dependent"), maker.ID())
		stop := Remedy{Risk: Disruptive, Temporary: true, Effect: fmt.Sprintf("stop %s until the owner is gone, and all else that it does; scale it up again then", maker.ID())}
		if maker.Replicas > 0 {
			stop.Action = w.scaleToNone(maker.ID(), int64(maker.Replicas), false)
		}
		c.Remedies = []Remedy{free, stop}
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
		const because = "the garbage collector cannot list objects of its type"
		holds = append(holds, hold{symptom: gcBlind, because: because, cause: root}, hold{because: because, cause: w.collectorBlind(n, root)})
	}
	return holds
}

// denied is a blocking dependent that the garbage collector may not delete, or,
// when another owner keeps it, may not release: nil when nothing is known to
// refuse that. It is certain when not only the caller is known to be refused.
func (w *walker) denied(owner, d graph.Node) (holds []hold, certain bool) {
	if w.age(owner) <= collectorDelay {
		return nil, false
	}
	e := edge{owner: owner, dependent: d, keeper: keeper(owner, d), refused: "DELETE"}
	task, because := "delete it", "delete its dependent "+d.Identity().String()
	var r admission.Reply
	if e.keeper != nil {
		e.refused = "UPDATE"
		task, because = "drop its reference to "+owner.Identity().String(), "drop the reference of its dependent "+d.Identity().String()
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
	because = "the garbage collector may not " + because
	if !certain {
		because = strings.Replace(because, "may not", "may not be allowed to", 1)
	}
	more := []Evidence{e.evidence()}
	c := w.shared(fmt.Sprintf("%s %s %s %t", owner.UID(), e.refused, root.Object, certain), gcFgDenied, d.Identity(), func(c *Cause) {
		c.Verdict = root.Verdict
		c.Summary = "the garbage collector may not " + task + ", and tries again ever more rarely, up to 17 minutes apart"
		if !certain {
			c.Summary = "the garbage collector may not be allowed to " + task + ": you are not"
		}
		c.Evidence, more = []Evidence{e.evidence(), asked(r)}, nil
		if e.keeper != nil {
			c.Remedies = w.freeKept(e)
		} else {
			c.Remedies = w.freeDenied(e)
		}
	})
	w.join(c, more...)
	return []hold{{symptom: gcFgDenied, because: because, cause: root}, {symptom: gcFgBlocking, because: because, cause: c}}, certain
}

// keeper returns the reference of a dependent to another owner, which is there:
// the garbage collector keeps the dependent for that. It is nil without one.
func keeper(owner, d graph.Node) *graph.Reference {
	for _, ref := range d.Owners() {
		if ref.UID != owner.UID() && ref.State == graph.Solid {
			return &ref
		}
	}
	return nil
}

// collector is a hold that only the garbage collector ends.
func (w *walker) collector(n graph.Node, symptom Kind, because string) hold {
	h := w.manager(n, because, w.late(n))
	h.symptom = symptom
	return h
}

// blind is an owner in foreground deletion whose dependents are not all known.
func (w *walker) blind(n graph.Node) *Cause {
	return w.cause(gcFgBlocking, n.Identity(), "unlisted", func(c *Cause) {
		c.Summary = "no blocking dependent was found, but " + w.incomplete()
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
	return w.cause(gcFgCycle, first.Identity(), fmt.Sprint(ring), func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("%d objects in foreground deletion block each other", len(ring))
		if len(ring) == 1 {
			c.Summary = "it is in foreground deletion and blocks itself"
		}
		c.Evidence = w.ringEvidence(ring)
		c.Remedies = []Remedy{w.deleteAgain(first, Safe, "take this object out of foreground deletion, which breaks the ring: it goes, and what remains of the ring follows")}
	})
}

func (w *walker) ringEvidence(ring []types.UID) []Evidence {
	var facts []Evidence
	for _, uid := range ring {
		m, ok := w.Graph.Node(uid)
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
		facts = append(facts[:2*evidence.MaxShown], Evidence{Source: "the ring", Value: fmt.Sprintf("and %d more references", more)})
	}
	return facts
}

// untouched says why a blocking dependent is not being deleted, and is nil when
// only the garbage collector has to act. The garbage collector gives up at the
// first reference that it cannot judge.
func (w *walker) untouched(owner, d graph.Node) *Cause {
	for _, ref := range d.Owners() {
		switch ref.Reason {
		case graph.Unresolvable:
			return w.reference(gcFgOwnerUnresolvable, owner, ref,
				fmt.Sprintf("%s %s %s %s, which the server does not serve: the garbage collector cannot judge that and leaves the dependent alone",
					d.Identity(), references(owner, ref), ref.APIVersion, ref.Kind))
		case graph.ClusterScopedDependent:
			return w.reference(gcFgOwnerrefScope, owner, ref,
				fmt.Sprintf("%s is cluster-scoped and cannot have a namespaced owner: the garbage collector has given it up", d.Identity()))
		case graph.InvalidName:
			return w.reference(gcFgOwnerUnresolvable, owner, ref,
				fmt.Sprintf("%s %s %s/%s, a name that no object can have: the garbage collector cannot judge that and leaves the dependent alone",
					d.Identity(), references(owner, ref), ref.Kind, ref.Name))
		case graph.UnlistedOwner:
			return w.cause(notRead, d.Identity(), "owner", func(c *Cause) {
				c.Summary = fmt.Sprintf("its owner %s/%s could not be looked for, so what becomes of it is not known", ref.Kind, ref.Name)
				c.Evidence = []Evidence{evidence.Field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), ref.APIVersion+" "+ref.Kind+"/"+ref.Name)}
			})
		}
	}
	return nil
}

// acrossNamespaces is a blocking dependent in another namespace than its owner. The garbage collector takes the
// owner for absent there, and waits for the dependent all the same, by the UID
// (garbagecollector/graph_builder.go, blockingDependents). What becomes of the dependent is another question.
func (w *walker) acrossNamespaces(owner, d graph.Node) *Cause {
	for _, ref := range d.Owners() {
		if ref.UID != owner.UID() || ref.Reason != graph.WrongNamespace || !ref.Blocking() {
			continue
		}
		return w.cause(gcFgOwnerrefScope, d.Identity(), string(owner.UID())+" across", func(c *Cause) {
			c.Verdict = Progressing // by itself it holds nothing up
			c.Summary = fmt.Sprintf("it references %s from another namespace, which an owner reference may not: that owns nothing, and blocks the owner all the same", owner.Identity())
			c.Evidence = []Evidence{evidence.Field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), fmt.Sprintf("%s %s/%s (%s)", ref.APIVersion, ref.Kind, ref.Name, ref.Reason))}
			c.Remedies = []Remedy{w.dropReference(d, ref.Index, ref.UID, "drop the illegal reference: the owner does not wait for the dependent any more")}
		})
	}
	return nil
}

// references says that a dependent has a reference, besides the one to the owner or as that.
func references(owner graph.Node, ref graph.Reference) string {
	if ref.UID == owner.UID() {
		return "references its owner as"
	}
	return "also references"
}

// afterDrop says what follows when a dependent has lost a reference that could not be judged.
// next is what the garbage collector does with one that still has a reference to the owner: it
// looks for a dependent's owners by their UIDs, so without any the owner waits for it no more, and
// who has no owner at all is nobody's dependent.
func afterDrop(owner graph.Node, ref graph.Reference, next string) string {
	others := slices.DeleteFunc(slices.Clone(ref.Dependent.Owners()), func(r graph.Reference) bool { return r.Index == ref.Index })
	switch {
	case ref.UID != owner.UID(), slices.ContainsFunc(others, func(r graph.Reference) bool { return r.UID == owner.UID() }):
		return "; at its next try, up to 17 minutes later, the garbage collector " + next
	case len(others) == 0:
		return ", which is the one to the owner: the dependent stays, without an owner, and the owner waits for it no more"
	}
	return ", which is the one to the owner, who waits for the dependent no more: whether that stays its other references decide"
}

// reference is a cause in one owner reference of a dependent.
func (w *walker) reference(id Kind, owner graph.Node, ref graph.Reference, summary string) *Cause {
	d := ref.Dependent
	return w.cause(id, d.Identity(), string(owner.UID()), func(c *Cause) {
		c.Summary = summary
		if w.age(owner) > collectorDelay {
			c.Verdict = Stuck
		}
		c.Evidence = []Evidence{
			evidence.Field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), fmt.Sprintf("%s %s/%s (%s)", ref.APIVersion, ref.Kind, ref.Name, ref.Reason)),
			evidence.Field(owner, "metadata.finalizers", metav1.FinalizerDeleteDependents),
		}
		c.Remedies = []Remedy{
			w.deleteAgain(owner, Safe, "take the owner out of foreground deletion: "+goes(owner)+", and the dependent stays"),
			w.deleteAgain(d, Disruptive, "delete the dependent, which the owner waits for"),
		}
		leaks, next := "the dependent, which the garbage collector leaves alone", "deletes the dependent"
		if k := keeper(owner, d); k != nil {
			leaks += ", and which " + ownerName(k) + " owns, too"
			next = "drops the one to the owner, too, and the dependent stays, since " + ownerName(k) + " owns it"
		}
		c.Remedies[1].Loss = losesObject(d.Identity(), "%s", leaks)
		at, what := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index), "that cannot be judged"
		if ref.Reason == graph.ClusterScopedDependent {
			what = "that a cluster-scoped object cannot have"
		}
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Disruptive, Action: w.patch(d.Identity(), remedy.Test(at+"/uid", ref.UID), remedy.Remove(at)),
			Effect: "drop the reference " + what + afterDrop(owner, ref, next),
		})
	})
}
