// SPDX-License-Identifier: Apache-2.0

package collector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The finalizer orphan: garbagecollector.go, attemptToOrphanWorker.

// Orphan is the finalizer orphan: the references to the object are removed from its dependents first.
func Orphan(f *rules.Facts, m rules.Mark) ([]finding.Blocker, bool) {
	n := m.Node
	f.Needs(graph.Part{}) // references are by UID, and count wherever they are
	missing := f.Incomplete()
	switch {
	case f.NamespaceGone(n.Namespace()):
		return nil, true
	case f.Pending(n, metav1.FinalizerOrphanDependents) || !n.HasDependents() && missing.IsZero():
		return orphanTurn(f, n), true
	}
	c := &finding.Cause{
		Kind: finding.GcOrphanPending, At: n.Identity(), Verdict: finding.Unknown, Summary: say.Of(ReferencesKept, referencing(n)),
		Evidence: []finding.Fact{finding.Field(n, "metadata.finalizers", metav1.FinalizerOrphanDependents)},
	}
	if !missing.IsZero() {
		c.Evidence = append(c.Evidence, finding.At("the lists", "", missing))
	}
	return []finding.Blocker{{Because: say.Of(NotYetOrphaned), Cause: c}}, true
}

// orphanTurn is an owner whose references cannot be removed from a dependent, or which cannot be updated itself, or else at
// which it is the garbage collector's turn.
func orphanTurn(f *rules.Facts, n graph.Node) []finding.Blocker {
	if f.Age(n) <= rules.CollectorDelay {
		return turn(f, n, finding.GcOrphanPending, say.Of(OrphanDependents))
	}
	refusing, r := n, f.Admission.TryRemoval(n, metav1.FinalizerOrphanDependents)
	for i, d := range n.Dependents() {
		if !r.OK() || i >= evidence.MaxShown {
			break
		}
		refusing, r = d, f.Admission.TryRelease(d, n.UID())
	}
	by := write.Refusal(f, refusing, r, "UPDATE")
	if by == nil {
		return turn(f, n, finding.GcOrphanPending, say.Of(OrphanDependents))
	}
	c := &finding.Cause{
		Kind: finding.GcOrphanPending, At: n.Identity(), Key: "denied", Verdict: by.Verdict, Summary: say.Of(OrphanFinalizer),
		Decides:  write.Says(r.Refusal),
		Evidence: []finding.Fact{finding.Field(n, "metadata.finalizers", metav1.FinalizerOrphanDependents), r.Fact()},
	}
	if n.HasDependents() {
		c.Summary = say.Of(OrphaningDenied, referencing(n))
	}
	for _, ref := range refusing.Owners() {
		if ref.UID == n.UID() {
			c.Ways = append(c.Ways, dropping(ref, say.Of(RemoveNow)).At(finding.Safe)) // it is what the orphaning is for
		}
	}
	because := say.Of(Cannot, say.Of(UpdateOf, refusing.Identity()))
	if by.Verdict != finding.Stuck {
		because = say.Of(Might, say.Of(UpdateOf, refusing.Identity()))
	}
	return []finding.Blocker{{Symptom: finding.GcOrphanPending, Because: because, Cause: by}, {Because: because, Cause: c}}
}

// referencing says how many dependents still reference an owner.
func referencing(n graph.Node) say.Text {
	if n.CountDependents() == 1 {
		return say.Of(OneReferences)
	}
	return say.Of(SomeReference, evidence.Number(n.CountDependents(), "dependent"))
}
