// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// edge is a blocking reference of a dependent to an owner in foreground
// deletion.
type edge struct {
	owner, dependent graph.Node
	// keeper is the reference to another owner that keeps the dependent, nil
	// without one.
	keeper *graph.Reference
	// refused is the operation that the garbage collector is refused on the
	// dependent: DELETE, UPDATE, or empty for none.
	refused string
}

// evidence shows what the garbage collector has to do with the dependent.
func (e edge) evidence() Evidence {
	if e.keeper == nil {
		return evidence.Field(e.dependent, "metadata.deletionTimestamp", "not set")
	}
	return evidence.Field(e.dependent, fmt.Sprintf("metadata.ownerReferences[%d]", e.keeper.Index), fmt.Sprintf(keeps, ownerName(e.keeper)))
}

// ownerName names the owner that a reference states.
func ownerName(ref *graph.Reference) string { return ref.Kind + "/" + ref.Name }

// goes says when an owner is deleted that is taken out of foreground deletion.
func goes(owner graph.Node) string {
	o := owner.Object()
	switch grace := o.DeletionGracePeriodSeconds; {
	case slices.ContainsFunc(o.Finalizers, func(f string) bool { return f != metav1.FinalizerDeleteDependents }):
		return onceFinalized
	case o.Resource.GroupResource() == namespaces.GroupResource():
		return onceEmpty
	case o.Resource.GroupResource() == pods.GroupResource() && grace != nil && *grace > 0:
		return onceStopped
	}
	return atOnceThen
}

// afterwards says what becomes of the dependent once the owner is deleted.
func (e edge) afterwards() string {
	id := e.dependent.Identity()
	switch {
	case e.dependent.BeingDeleted():
		return fmt.Sprintf(deletedItself, id)
	case e.keeper != nil && e.refused == "UPDATE":
		return fmt.Sprintf(keptByOther, id, ownerName(e.keeper)) + untilChangeable
	case e.keeper != nil:
		return fmt.Sprintf(keptByOther, id, ownerName(e.keeper))
	case e.refused == "DELETE":
		return fmt.Sprintf(keptByRefusal, id)
	case slices.ContainsFunc(e.dependent.Owners(), func(ref graph.Reference) bool { return ref.State == graph.Unknown }):
		return fmt.Sprintf(dependsOnOwners, id)
	}
	return fmt.Sprintf(collectedThen, id)
}

// onceChangeable begins the effect of a change that is refused now.
func (e edge) onceChangeable() string {
	return fmt.Sprintf(onceAllowed, fmt.Sprintf(changeOf, e.dependent.Identity()))
}

// release makes the reference one that does not block.
func (w *walker) release(e edge, ref graph.Reference) Remedy {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index)
	return Remedy{
		Risk: Disruptive, Action: w.patch(e.dependent.Identity(), remedy.Test(at+"/uid", ref.UID), remedy.Replace(at+"/blockOwnerDeletion", false)),
		Effect: fmt.Sprintf(notWaitFor, e.dependent.Identity(), e.afterwards()),
	}
}

// drop removes the reference from the dependent.
func (w *walker) drop(e edge, ref graph.Reference) Remedy {
	id := e.dependent.Identity()
	r := w.dropReference(e.dependent, ref.Index, ref.UID, fmt.Sprintf(dropToOwner, id))
	switch last := len(e.dependent.Object().OwnerReferences) == 1; {
	case e.dependent.BeingDeleted() || e.keeper != nil:
		r.Effect += "; " + e.afterwards()
	case last:
		r.Loss = []remedy.Loss{{Kind: remedy.Leaks, Object: id, What: fmt.Sprintf(leftWithoutOwner, id)}}
	default:
		r.Effect += "; " + fmt.Sprintf(dependsOnOwners, "the dependent")
	}
	return r
}

// freeOwner returns the three classical ways to delete an owner in foreground
// deletion: without waiting at all, without waiting for this dependent, and
// without the reference.
func (w *walker) freeOwner(e edge) []Remedy {
	remedies := []Remedy{w.background(e)}
	if ref := e.reference(); ref != nil {
		remedies = append(remedies, w.release(e, *ref), w.drop(e, *ref))
	}
	return remedies
}

// background takes the owner out of foreground deletion.
func (w *walker) background(e edge) Remedy {
	return w.deleteAgain(e.owner, Safe, fmt.Sprintf(outOfForeground, goes(e.owner), e.afterwards()))
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

// freeDenied returns the ways to delete an owner whose dependent the garbage
// collector is refused to delete. Each says what must be allowed first.
func (w *walker) freeDenied(e edge) []Remedy {
	id := e.dependent.Identity()
	remedies := w.freeOwner(e)
	remedies[0].Effect = ownerFirst(w.asker, e) + remedies[0].Effect
	condition := first(w.asker, fmt.Sprintf(changeOf, id), func() admission.Reply { return w.asker.TryRelease(e.dependent, e.owner.UID()) })
	for i := range remedies[1:] {
		remedies[1+i].Effect = condition + remedies[1+i].Effect
	}
	return append(remedies, w.deleteAgain(e.dependent, Disruptive, fmt.Sprintf(onceAllowed, "that")+fmt.Sprintf(deleteNow, id)))
}

// freeKept returns the ways to delete an owner whose dependent the garbage
// collector is refused to release, and would keep: none deletes that.
func (w *walker) freeKept(e edge) []Remedy {
	remedies := []Remedy{w.background(e)}
	remedies[0].Effect = ownerFirst(w.asker, e) + remedies[0].Effect
	if ref := e.reference(); ref != nil {
		id := e.dependent.Identity()
		drop := w.dropReference(e.dependent, ref.Index, ref.UID, e.onceChangeable()+fmt.Sprintf(dropAsCollector, fmt.Sprintf(keptByOther, id, ownerName(e.keeper))))
		drop.Risk = Safe
		remedies = append(remedies, drop)
	}
	return remedies
}

// ownerFirst is first for another DELETE of the owner.
func ownerFirst(asker *admission.Asker, e edge) string {
	return first(asker, fmt.Sprintf(deletionOf, e.owner.Identity()), func() admission.Reply { return asker.TryDelete(e.owner, "") })
}

// first says what must be allowed before a remedy works, empty for nothing. It
// asks only while most probes are left: those that verdicts depend on come
// first.
func first(asker *admission.Asker, what string, ask func() admission.Reply) string {
	switch {
	case !asker.HalfLeft():
		return fmt.Sprintf(ifAllowed, what)
	case ask().OK():
		return ""
	}
	return fmt.Sprintf(onceAllowed, what)
}
