// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// untouched says why a blocking dependent is not being deleted, and is nil when only the garbage collector has to act,
// which gives up at the first reference that it cannot resolve.
func untouched(f *rules.Facts, owner, d graph.Node) *finding.Cause {
	for _, ref := range d.Owners() {
		switch ref.Reason {
		case graph.Unresolvable, graph.InvalidName:
			return reference(f, finding.GcFgOwnerUnresolvable, owner, ref)
		case graph.ClusterScopedDependent:
			return reference(f, finding.GcFgOwnerrefScope, owner, ref)
		case graph.UnlistedOwner:
			return &finding.Cause{
				Kind: finding.NotRead, At: d.Identity(), Key: "owner", Verdict: finding.Unknown, Summary: say.Of(OwnerUnread, ownerName(&ref)),
				Evidence: []finding.Fact{finding.Field(d, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index),
					say.Of(OfVersion, ref.APIVersion, ownerName(&ref)))},
			}
		}
	}
	return nil
}

// acrossNamespaces is a blocking dependent in another namespace than its owner. The garbage collector takes the
// owner for absent there, and waits for the dependent all the same, by the UID
// (garbagecollector/graph_builder.go, blockingDependents). Whether the dependent is deleted is another question.
func acrossNamespaces(owner, d graph.Node) *finding.Cause {
	for _, ref := range d.Owners() {
		if ref.UID == owner.UID() && ref.Reason == graph.WrongNamespace && ref.Blocking() {
			return &finding.Cause{
				// by itself it blocks nothing
				Kind: finding.GcFgOwnerrefScope, At: d.Identity(), Key: string(owner.UID()) + " across", Verdict: finding.Progressing,
				Summary: say.Of(CrossesNamespaces, owner.Identity()), Evidence: []finding.Fact{referenceFact(ref)},
				Ways: []finding.Way{dropping(ref, say.Of(DropInvalid)).At(finding.Disruptive)},
			}
		}
	}
	return nil
}

// referenceFact is a reference with what is wrong with it.
func referenceFact(ref graph.Reference) finding.Fact {
	return finding.Field(ref.Dependent, fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index),
		say.Of(OfVersionThough, ref.APIVersion, ownerName(&ref), ref.Reason))
}

// unresolvable says to remove a reference that could not be resolved, and what follows. The garbage collector looks for a
// dependent's owners by their UIDs, so without a reference to it an owner does not wait for the dependent, and an object
// without references is no dependent. keeper is the reference to another owner, nil for none.
func unresolvable(owner graph.Node, ref graph.Reference, keeper *graph.Reference) say.Text {
	others := slices.DeleteFunc(slices.Clone(ref.Dependent.Owners()), func(r graph.Reference) bool { return r.Index == ref.Index })
	said := say.Of(DropUnresolvable)
	if ref.Reason == graph.ClusterScopedDependent {
		said = say.Of(DropNamespaced)
	}
	last := ref.UID == owner.UID() && !slices.ContainsFunc(others, func(r graph.Reference) bool { return r.UID == owner.UID() })
	switch {
	case last && len(others) == 0:
		return said.And(ThenOwnerless)
	case last:
		return said.And(ThenOthersDecide)
	case keeper != nil:
		return said.And(ThenReleasesIt, ownerName(keeper))
	}
	return said.And(ThenDeletesIt)
}

// reference is a cause in one owner reference of a dependent, which the garbage collector ignores for that.
func reference(f *rules.Facts, kind finding.Kind, owner graph.Node, ref graph.Reference) *finding.Cause {
	d, at := ref.Dependent, ref.Dependent.Identity()
	has := say.Of(AlsoReferences)
	if ref.UID == owner.UID() {
		has = say.Of(References)
	}
	other, end := rules.Keeper(owner, d), again(at, DeleteDependent).At(finding.Disruptive)
	if end.Loss = finding.Lost(remedy.LosesObject, at, LostDependent); other != nil {
		end.Loss = finding.Lost(remedy.LosesObject, at, LostOthersToo, ownerName(other))
	}
	c := &finding.Cause{
		Kind: kind, At: at, Key: string(owner.UID()), Verdict: finding.Unknown, Summary: say.Of(NamespacedOwner),
		Evidence: []finding.Fact{referenceFact(ref), finding.Field(owner, "metadata.finalizers", metav1.FinalizerDeleteDependents)},
		Ways: []finding.Way{finish(owner.Identity(), owner.Finalizers(), KeepDependent, goes(owner)), end,
			dropping(ref, unresolvable(owner, ref, other)).At(finding.Disruptive)},
	}
	switch ref.Reason {
	case graph.Unresolvable:
		c.Summary = say.Of(UnservedOwner, has, ref.APIVersion, ref.Kind).And(Ignores)
	case graph.InvalidName:
		c.Summary = say.Of(InvalidOwner, has, ownerName(&ref)).And(Ignores)
	}
	if f.Age(owner) > rules.CollectorDelay {
		c.Verdict = finding.Stuck
	}
	return c
}
