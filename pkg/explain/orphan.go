// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The finalizer orphan: garbagecollector.go, attemptToOrphanWorker.

// orphan is the finalizer orphan: the references to the object are removed from its dependents first.
func (w *walker) orphan(n graph.Node) []hold {
	w.evidence.Needs(graph.Part{}) // references are by UID, and count wherever they are
	switch {
	case w.evidence.NamespaceGone(n.Namespace()):
		return nil
	case w.pendingFinalizer(n, metav1.FinalizerOrphanDependents) || !n.HasDependents() && w.incomplete() == "":
		if denied := w.orphanDenied(n); denied != nil {
			return denied
		}
		return []hold{w.protection(n, finding.GcOrphanPending, orphanDependents)}
	}
	return []hold{{because: notYetOrphaned, cause: w.cause(finding.GcOrphanPending, n.Identity(), "", func(c *Cause) {
		c.Summary = fmt.Sprintf(referencesKept, referencing(n.CountDependents()))
		c.Evidence = []Evidence{evidence.Field(n, "metadata.finalizers", metav1.FinalizerOrphanDependents)}
		if missing := w.incomplete(); missing != "" {
			c.Evidence = append(c.Evidence, Evidence{Source: theLists, Value: missing})
		}
	})}}
}

// orphanDenied is an owner whose references cannot be removed from a dependent, or which cannot be updated itself.
func (w *walker) orphanDenied(n graph.Node) []hold {
	if w.rules.Age(n) <= rules.CollectorDelay {
		return nil
	}
	refusing, r := n, w.asker.TryRemoval(n, metav1.FinalizerOrphanDependents)
	for i, d := range n.Dependents() {
		if !r.OK() || i >= evidence.MaxShown {
			break
		}
		refusing, r = d, w.asker.TryRelease(d, n.UID())
	}
	root := w.refusal(refusing, r, "UPDATE")
	if root == nil {
		return nil
	}
	because := fmt.Sprintf(collectorCannot[root.Verdict == Stuck], "update "+refusing.Identity().String())
	c := w.cause(finding.GcOrphanPending, n.Identity(), "denied", func(c *Cause) {
		if c.Verdict, c.Summary = root.Verdict, orphanFinalizer; n.HasDependents() {
			c.Summary = fmt.Sprintf(orphaningDenied, referencing(n.CountDependents()))
		}
		c.Evidence = []Evidence{evidence.Field(n, "metadata.finalizers", metav1.FinalizerOrphanDependents), asked(r)}
		for _, ref := range refusing.Owners() {
			if ref.UID == n.UID() {
				way := w.dropReference(refusing, ref.Index, ref.UID, removeNow)
				way.Risk, way.Loss = Safe, nil // it is what the orphaning is for
				c.Remedies = append(c.Remedies, way)
			}
		}
	})
	return []hold{{symptom: finding.GcOrphanPending, because: because, cause: root}, {because: because, cause: c}}
}
