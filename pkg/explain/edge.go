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
	return evidence.Field(e.dependent, fmt.Sprintf("metadata.ownerReferences[%d]", e.keeper.Index),
		ownerName(e.keeper)+", which is there: the garbage collector keeps it for that")
}

// ownerName names the owner that a reference states.
func ownerName(ref *graph.Reference) string { return ref.Kind + "/" + ref.Name }

// goes says when an owner goes that is taken out of foreground deletion.
func goes(owner graph.Node) string {
	o := owner.Object()
	switch grace := o.DeletionGracePeriodSeconds; {
	case slices.ContainsFunc(o.Finalizers, func(f string) bool { return f != metav1.FinalizerDeleteDependents }):
		return "it goes when its other finalizers do"
	case o.Resource.GroupResource() == namespaces.GroupResource():
		return "it goes when it is empty"
	case o.Resource.GroupResource() == pods.GroupResource() && grace != nil && *grace > 0:
		return "it goes when its kubelet has ended it"
	}
	return "it goes now"
}

// afterwards says what becomes of the dependent when the owner is gone.
func (e edge) afterwards() string {
	name := e.dependent.Identity().String()
	switch {
	case e.dependent.BeingDeleted():
		return name + " is already being deleted and goes when what holds it does"
	case e.keeper != nil && e.refused == "UPDATE":
		return name + " stays, since " + ownerName(e.keeper) + " owns it, too, and its reference to the owner dangles until it may be changed"
	case e.keeper != nil:
		return name + " stays, since " + ownerName(e.keeper) + " owns it, too"
	case e.refused == "DELETE":
		return name + " stays, with a reference that dangles, until nothing refuses its deletion any more"
	case slices.ContainsFunc(e.dependent.Owners(), func(ref graph.Reference) bool { return ref.State == graph.Unknown }):
		return "what becomes of " + name + " depends on its other owners"
	}
	return "the garbage collector deletes " + name + " afterwards"
}

// release makes the reference one that does not block.
func (w *walker) release(e edge, ref graph.Reference) Remedy {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index)
	return Remedy{
		Risk: Disruptive, Action: w.patch(e.dependent.Identity(), remedy.Test(at+"/uid", ref.UID), remedy.Replace(at+"/blockOwnerDeletion", false)),
		Effect: "let the owner go without waiting for " + e.dependent.Identity().String() + "; " + e.afterwards(),
	}
}

// drop takes the reference out of the dependent.
func (w *walker) drop(e edge, ref graph.Reference) Remedy {
	name := e.dependent.Identity().String()
	r := w.dropReference(e.dependent, ref.Index, ref.UID, "drop the reference to the owner, which then does not wait for "+name)
	switch last := len(e.dependent.Object().OwnerReferences) == 1; {
	case e.dependent.BeingDeleted() || e.keeper != nil:
		r.Effect += "; " + e.afterwards()
	case last:
		r.Loss = []remedy.Loss{{Kind: remedy.Leaks, Object: e.dependent.Identity(), What: name + " has no owner then, and nothing deletes it any more"}}
	default:
		r.Effect += "; what becomes of that depends on its other owners"
	}
	return r
}

// freeOwner returns the three classical ways to let an owner in foreground
// deletion go: without waiting at all, without waiting for this dependent, and
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
	return w.deleteAgain(e.owner, Safe, "take the owner out of foreground deletion: "+goes(e.owner)+"; "+e.afterwards())
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

// unchangeable begins the effect of a change that is refused now.
func (e edge) unchangeable() string {
	return "once nothing refuses a change of " + e.dependent.Identity().String() + ": "
}

// freeDenied returns the ways to let an owner go whose dependent the garbage
// collector is refused to delete. Each says what must be allowed first.
func (w *walker) freeDenied(e edge) []Remedy {
	remedies := w.freeOwner(e)
	remedies[0].Effect = w.ownerFirst(e) + remedies[0].Effect
	condition := w.first("a change of "+e.dependent.Identity().String(), func() admission.Reply { return w.asker.TryRelease(e.dependent, e.owner.UID()) })
	for i := range remedies[1:] {
		remedies[1+i].Effect = condition + remedies[1+i].Effect
	}
	return append(remedies, w.deleteAgain(e.dependent, Disruptive,
		"once nothing refuses that any more: delete "+e.dependent.Identity().String()+" without waiting for the next try of the garbage collector"))
}

// freeKept returns the ways to let an owner go whose dependent the garbage
// collector is refused to release, and would keep: none deletes that.
func (w *walker) freeKept(e edge) []Remedy {
	remedies := []Remedy{w.background(e)}
	remedies[0].Effect = w.ownerFirst(e) + remedies[0].Effect
	if ref := e.reference(); ref != nil {
		name := e.dependent.Identity().String()
		drop := w.dropReference(e.dependent, ref.Index, ref.UID, e.unchangeable()+"drop its reference to the owner, as the garbage collector tries to do; "+
			name+" stays, since "+ownerName(e.keeper)+" owns it, too")
		drop.Risk = Safe
		remedies = append(remedies, drop)
	}
	return remedies
}

// ownerFirst is first for another DELETE of the owner.
func (w *walker) ownerFirst(e edge) string {
	return w.first("a deletion of "+e.owner.Identity().String(), func() admission.Reply { return w.asker.TryDelete(e.owner, "") })
}

// first says what must be allowed before a remedy works, empty for nothing. It
// asks only while most probes are left: those that verdicts depend on come
// first.
func (w *walker) first(what string, ask func() admission.Reply) string {
	switch {
	case !w.asker.HalfLeft():
		return "if nothing refuses " + what + ": "
	case ask().OK():
		return ""
	}
	return "once nothing refuses " + what + ": "
}
