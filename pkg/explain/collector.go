// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// collectorDelay is how long the garbage collector may take for one step.
const collectorDelay = 10 * time.Second

// foreground is the finalizer foregroundDeletion: blocking dependents go first,
// recursively.
func (w *walker) foreground(n graph.Node) []hold {
	const symptom = "gc-fg-blocking"
	blocking := n.BlockingDependents()
	because := "waits for its " + count(len(blocking), "blocking dependent")
	var holds []hold
	waiting := false
	for _, d := range blocking {
		switch {
		case slices.Contains(w.path, d.Object().UID):
			holds = append(holds, hold{symptom: symptom, because: because, cause: w.cycle(d)})
		case d.BeingDeleted():
			holds = append(holds, hold{symptom: symptom, because: because, next: &d})
		default:
			if c := w.untouched(n, d); c != nil {
				holds = append(holds, hold{symptom: symptom, because: because, cause: c})
			} else {
				waiting = true
			}
		}
	}
	switch {
	case w.namespaceGone(n.Object().Namespace):
	case waiting:
		holds = append(holds, w.collector(n, symptom, "the garbage collector has to delete its blocking dependents"))
	case len(blocking) == 0 && w.incomplete() != "":
		holds = append(holds, hold{symptom: symptom, because: "may wait for blocking dependents that could not be listed", cause: w.blind(n)})
	case len(blocking) == 0:
		holds = append(holds, w.collector(n, symptom, "the garbage collector has to remove the finalizer foregroundDeletion"))
	}
	return holds
}

// collector is a hold that only the garbage collector ends.
func (w *walker) collector(n graph.Node, symptom, because string) hold {
	h := w.manager(n, because, w.late(n))
	h.symptom = symptom
	return h
}

// blind is an owner in foreground deletion whose dependents are not all known.
func (w *walker) blind(n graph.Node) *Cause {
	return w.cause("gc-fg-blocking", n.Identity(), "unlisted", func(c *Cause) {
		c.Summary = "no blocking dependent was found, but " + w.incomplete()
		c.Evidence = []Evidence{field(n, "metadata.finalizers", metav1.FinalizerDeleteDependents)}
	})
}

// cycle is a ring of owners in foreground deletion, or one that owns itself.
// The garbage collector breaks only rings that it meets while it starts a
// deletion.
func (w *walker) cycle(d graph.Node) *Cause {
	ring := slices.Clone(w.path[slices.Index(w.path, d.Object().UID):])
	slices.Sort(ring)
	first := d
	for _, uid := range ring { // one cause for the ring, wherever it is entered
		if m, ok := w.Graph.Node(uid); ok && isForeground(m.Object()) {
			first = m
			break
		}
	}
	return w.cause("gc-fg-cycle", first.Identity(), fmt.Sprint(ring), func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("%d objects in foreground deletion block each other", len(ring))
		if len(ring) == 1 {
			c.Summary = "it is in foreground deletion and blocks itself"
		}
		c.Evidence = w.ringEvidence(ring)
		c.Remedies = []Remedy{w.deleteAgain(first, Safe, "takes this object out of foreground deletion, which breaks the ring: it goes, and what remains of the ring follows")}
	})
}

func (w *walker) ringEvidence(ring []types.UID) []Evidence {
	var evidence []Evidence
	for _, uid := range ring {
		m, ok := w.Graph.Node(uid)
		if !ok {
			continue
		}
		for _, ref := range m.Owners() {
			if ref.Blocking() && slices.Contains(ring, ref.UID) {
				evidence = append(evidence, field(m, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index),
					fmt.Sprintf("%s/%s, blockOwnerDeletion: true", ref.Kind, ref.Name)))
			}
		}
	}
	if more := len(evidence) - 2*maxShown; more > 0 {
		evidence = append(evidence[:2*maxShown], Evidence{Source: "the ring", Value: fmt.Sprintf("and %d more references", more)})
	}
	return evidence
}

// untouched says why a blocking dependent is not being deleted, and is nil when
// only the garbage collector has to act. The garbage collector gives up at the
// first reference that it cannot judge.
func (w *walker) untouched(owner, d graph.Node) *Cause {
	for _, ref := range d.Owners() {
		switch ref.Reason {
		case graph.Unresolvable:
			return w.reference("gc-fg-owner-unresolvable", owner, ref,
				fmt.Sprintf("%s also references %s %s, which the server does not serve: the garbage collector cannot judge that and leaves the dependent alone",
					d.Identity(), ref.APIVersion, ref.Kind))
		case graph.ClusterScopedDependent:
			return w.reference("gc-fg-ownerref-scope", owner, ref,
				fmt.Sprintf("%s is cluster-scoped and cannot have a namespaced owner: the garbage collector has given it up", d.Identity()))
		case graph.UnlistedOwner:
			return w.cause("unread", d.Identity(), "owner", func(c *Cause) {
				c.Summary = fmt.Sprintf("its owner %s/%s could not be looked for, so what becomes of it is not known", ref.Kind, ref.Name)
				c.Evidence = []Evidence{field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), ref.APIVersion+" "+ref.Kind+"/"+ref.Name)}
			})
		}
	}
	return nil
}

// reference is a cause in one owner reference of a dependent.
func (w *walker) reference(id string, owner graph.Node, ref graph.Reference, summary string) *Cause {
	d := ref.Dependent
	return w.cause(id, d.Identity(), string(owner.Object().UID), func(c *Cause) {
		c.Summary = summary
		if w.age(owner) > collectorDelay {
			c.Verdict = Stuck
		}
		c.Evidence = []Evidence{
			field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), fmt.Sprintf("%s %s/%s (%s)", ref.APIVersion, ref.Kind, ref.Name, ref.Reason)),
			field(owner, "metadata.finalizers", metav1.FinalizerDeleteDependents),
		}
		c.Remedies = []Remedy{
			w.deleteAgain(owner, Safe, "takes the owner out of foreground deletion: it goes now, and the dependent stays"),
			w.deleteAgain(d, Disruptive, "deletes the dependent; its owner follows"),
		}
		if at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index); ref.Reason == graph.Unresolvable {
			c.Remedies = append(c.Remedies, Remedy{
				Risk: Disruptive, Command: w.patch(d, operation{"test", at + "/uid", ref.UID}, operation{"remove", at, nil}),
				Effect: "drops the reference that cannot be judged; the garbage collector deletes the dependent at its next try, up to 17 minutes later",
			})
		}
	})
}

// orphan is the finalizer orphan: the references to the object are removed from
// its dependents first.
func (w *walker) orphan(n graph.Node) []hold {
	switch {
	case w.namespaceGone(n.Object().Namespace):
		return nil
	case w.pendingFinalizer(n, metav1.FinalizerOrphanDependents) || !n.HasDependents() && w.incomplete() == "":
		return []hold{w.collector(n, "gc-orphan-pending", "the garbage collector has to orphan its dependents")}
	}
	return []hold{{because: "its dependents are not orphaned yet", cause: w.cause("gc-orphan-pending", n.Identity(), "", func(c *Cause) {
		c.Summary = fmt.Sprintf("%d dependents still reference it; why the references are not removed is not known", len(n.Dependents()))
		c.Evidence = []Evidence{field(n, "metadata.finalizers", metav1.FinalizerOrphanDependents)}
		if missing := w.incomplete(); missing != "" {
			c.Evidence = append(c.Evidence, Evidence{Source: "the lists", Value: missing})
		}
	})}}
}
