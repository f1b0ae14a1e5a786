// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// edge is a blocking reference of a dependent to an owner in foreground deletion.
type edge struct {
	owner, dependent graph.Node
	// keeper is the reference to another owner that keeps the dependent, nil without one.
	keeper *graph.Reference
	// refused is the operation that the garbage collector is refused on the dependent: DELETE, UPDATE, or empty for none.
	refused string
}

// fact shows what the garbage collector has to do with the dependent.
func (e edge) fact() finding.Fact {
	if e.keeper == nil {
		return finding.Field(e.dependent, "metadata.deletionTimestamp", evidence.NotSet)
	}
	return finding.FieldSays(e.dependent, fmt.Sprintf("metadata.ownerReferences[%d]", e.keeper.Index), Keeps, ownerName(e.keeper))
}

// ownerName names the owner that a reference states.
func ownerName(ref *graph.Reference) graph.Identity { return evidence.Named(ref.Kind, "", ref.Name) }

// goes says when an owner is deleted that is taken out of foreground deletion.
func goes(owner graph.Node) say.Word {
	o := owner.Object()
	switch grace := o.DeletionGracePeriodSeconds; {
	case slices.ContainsFunc(o.Finalizers, func(f string) bool { return f != metav1.FinalizerDeleteDependents }):
		return OnceFinalized
	case o.Resource.IsNamespace():
		return OnceEmpty
	case o.Resource.IsPod() && grace != nil && *grace > 0:
		return OnceStopped
	}
	return AtOnce
}

// afterwards says what becomes of the dependent once the owner is deleted.
func (e edge) afterwards() say.Text {
	id := e.dependent.Identity()
	switch {
	case e.dependent.BeingDeleted():
		return say.Of(DeletedItself, id)
	case e.keeper != nil && e.refused == "UPDATE":
		return say.Of(KeptByOther, id, ownerName(e.keeper)).And(UntilChangeable)
	case e.keeper != nil:
		return say.Of(KeptByOther, id, ownerName(e.keeper))
	case e.refused == "DELETE":
		return say.Of(KeptByRefusal, id)
	case slices.ContainsFunc(e.dependent.Owners(), func(ref graph.Reference) bool { return ref.State == graph.Unknown }):
		return say.Of(DependsOnOwners, id)
	}
	return say.Of(CollectedThen, id)
}

// finish removes the finalizer foregroundDeletion from an owner, which stands for nothing else: a DELETE would remove orphan as well.
func finish(id graph.Identity, finalizers []string, w string, args ...any) finding.Way {
	steps := remedy.Unfinalize(finalizers, func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	return finding.Does(remedy.PatchOf(id, steps...), w, args...).At(finding.Safe)
}

// again sends a DELETE with background propagation. The UID guards it.
func again(id graph.Identity, w string, args ...any) finding.Way {
	return finding.Does(remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), w, args...)
}

// dropping removes one owner reference of a dependent.
func dropping(ref graph.Reference, effect say.Text) finding.Way {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index)
	op := remedy.PatchOf(ref.Dependent.Identity(), remedy.Test(at+"/uid", ref.UID), remedy.Remove(at))
	return finding.Way{Effect: effect, Op: &op}
}

// release makes the reference one that does not block.
func (e edge) release(ref graph.Reference) finding.Way {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index)
	return finding.Does(remedy.PatchOf(e.dependent.Identity(), remedy.Test(at+"/uid", ref.UID),
		remedy.Replace(at+"/blockOwnerDeletion", false)), NotWaitFor, e.dependent.Identity(), e.afterwards()).At(finding.Disruptive)
}

// drop removes the reference from the dependent.
func (e edge) drop(ref graph.Reference) finding.Way {
	id := e.dependent.Identity()
	way := dropping(ref, say.Of(DropToOwner, id)).At(finding.Disruptive)
	switch last := len(e.dependent.Object().OwnerReferences) == 1; {
	case e.dependent.BeingDeleted() || e.keeper != nil:
		way.Effect = way.Effect.Then(say.Plain("; ")).Then(e.afterwards())
	case last:
		way.Loss = finding.Lost(remedy.Leaks, id, LeftWithoutOwner, id)
	default:
		way.Effect = way.Effect.Then(say.Plain("; ")).Then(say.Of(DependsOnOwners, "the dependent"))
	}
	return way
}

// ways are the three classical ways to delete an owner in foreground deletion: without waiting at all, without waiting for
// this dependent, and without the reference.
func (e edge) ways() []finding.Way {
	ways := []finding.Way{e.background()}
	if ref := e.reference(); ref != nil {
		ways = append(ways, e.release(*ref), e.drop(*ref))
	}
	return ways
}

// background takes the owner out of foreground deletion.
func (e edge) background() finding.Way {
	return finish(e.owner.Identity(), e.owner.Finalizers(), OutOfForeground, goes(e.owner), e.afterwards())
}

// reference returns the dependent's reference to the owner.
func (e edge) reference() *graph.Reference {
	for _, ref := range e.dependent.Owners() {
		if ref.UID == e.owner.UID() {
			return &ref
		}
	}
	return nil
}

// changeable and deletable begin the effect of what works once the dependent can be changed, or the owner deleted.
func (e edge) changeable() say.Text { return say.Of(ChangeOf, e.dependent.Identity()) }

// FreeOwner is the way to delete an owner in foreground deletion without a dependent that is blocked itself.
func FreeOwner(owner, dependent graph.Node) finding.Way {
	e := edge{owner: owner, dependent: dependent, keeper: rules.Keeper(owner, dependent)}
	way := e.background()
	way.Effect, way.Risk = say.Of(FreesOnly, owner.Identity(), way.Effect), finding.Disruptive
	return way
}

// free are the ways to delete an owner whose dependent the garbage collector is refused to delete, or to release, which
// would keep it: then none deletes that. Each says what must be allowed first.
func (e edge) free(reviewer *admission.Reviewer) []finding.Way {
	id, ways := e.dependent.Identity(), e.ways()
	first := unless(reviewer, say.Of(ChangeOf, e.owner.Identity()),
		func() admission.Reply { return reviewer.TryRemoval(e.owner, metav1.FinalizerDeleteDependents) })
	ways[0].Effect = first.Then(ways[0].Effect)
	if e.keeper != nil {
		ways = ways[:1]
		if ref := e.reference(); ref != nil {
			ways = append(ways,
				dropping(*ref, say.Of(OnceAllowed, e.changeable()).And(DropAsCollector, say.Of(KeptByOther, id, ownerName(e.keeper)))).At(finding.Safe))
		}
		return ways
	}
	condition := unless(reviewer, e.changeable(), func() admission.Reply { return reviewer.TryRelease(e.dependent, e.owner.UID()) })
	for i := range ways[1:] {
		ways[1+i].Effect = condition.Then(ways[1+i].Effect)
	}
	last := again(id, OnceAllowed, "that").At(finding.Disruptive)
	last.Effect = last.Effect.And(DeleteNow, id)
	return append(ways, last)
}

// unless says what must be allowed before a remedy works, nil for nothing. It asks only while most probes are left: those
// that verdicts depend on come first.
func unless(reviewer *admission.Reviewer, what say.Text, ask func() admission.Reply) say.Text {
	switch {
	case !reviewer.HalfLeft():
		return say.Of(IfAllowed, what)
	case ask().OK():
		return say.Text{}
	}
	return say.Of(OnceAllowed, what)
}
