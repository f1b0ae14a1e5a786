// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// conclusion makes the Report of a run that is over: what became of each object, by the object as it
// is where that tells, and otherwise by what was noted of it. It owns what went with something else.
type conclusion struct {
	server Server
	state  *state
	scope  *scope
	report *report
	// lost and entered are those of the writer and the scheduler, proofs too.
	lost, entered *memo
	proofs        *proofs
	// policy is that of a deletion.
	policy metav1.DeletionPropagation
	// vanished are the contents of what is gone in the end, and emptying those of what is being deleted then.
	vanished, emptying graph.Containers
}

// conclude returns what is to be said. left are the tasks that were not begun.
func (k *conclusion) conclude(left []task) *Report {
	for _, t := range left {
		k.report.unreached(t.object)
	}
	k.includeFollowers()
	for v := range k.scope.containers {
		switch {
		case v.gone:
			k.vanished.Add(v.object.Identity())
		case v.object.BeingDeleted():
			k.emptying.Add(v.object.Identity())
		}
	}
	included, following := k.scope.members(), map[types.UID]bool{} // whether these are deleted was not seen, and does not concern the run
	for _, o := range k.scope.left() {
		following[o.UID] = true
	}
	result := &Report{Steps: k.report.steps, Outcomes: make([]Outcome, 0, len(included))}
	for _, n := range included {
		v, ok := k.state.view(n)
		if !ok || following[v.object.UID] {
			continue // a missing owner
		}
		o := k.outcome(v, k.report.fates.Get(n))
		_, known := k.state.node(n)
		o.Appeared = !known
		result.Outcomes = append(result.Outcomes, o)
	}
	k.explainNamespaces(result.Outcomes)
	result.Outcomes = append(result.Outcomes, k.nameless()...)
	compare := func(a, b Outcome) int { return a.Object.Identity().Compare(b.Object.Identity()) }
	if !slices.IsSortedFunc(result.Outcomes, compare) {
		slices.SortFunc(result.Outcomes, compare)
	}
	return result
}

// nameless returns the outcomes of objects without UID. No write could say which
// object it is for, and no event of which one it tells.
func (k *conclusion) nameless() []Outcome {
	objects := k.report.nameless
	if k.scope.everything {
		for _, number := range k.scope.members() {
			if n, ok := k.state.node(number); ok && !n.HasUID() && !n.Virtual() && !n.AllSolid() {
				objects = append(objects, *n.Object())
			}
		}
	}
	outcomes := make([]Outcome, len(objects))
	for i, o := range objects {
		outcomes[i] = Outcome{Object: o, Result: Unknown, Reason: say.Of(NoUID), Undecidable: k.scope.everything}
	}
	return outcomes
}

// includeFollowers includes what depends on objects that a collection has deleted and
// that are held: it goes with them.
func (k *conclusion) includeFollowers() {
	if !k.scope.everything {
		return // all that depends on targets is included
	}
	var held []graph.Node
	for _, number := range k.scope.members() {
		n, known := k.state.node(number)
		if v, ok := k.state.view(number); known && ok && !n.BeingDeleted() && !v.gone && v.object.BeingDeleted() && n.HasDependents() {
			held = append(held, n)
		}
	}
	for n := range graph.Descendants(held...).All() {
		if k.scope.within(n.Namespace()) {
			k.scope.include(numberOf(n))
		}
	}
}

// reachable is a Server that may be out of reach.
type reachable interface {
	// Away returns for how long the server could not be reached by now, 0 when it can be.
	Away() time.Duration
}

// away is for how long the server could not be reached by now, in whole seconds; 0 for a
// moment. What is known of objects is as old.
func (k *conclusion) away() time.Duration {
	s, ok := k.server.(reachable)
	if !ok || s.Away() < moment {
		return 0
	}
	return s.Away().Round(time.Second)
}

// moment is how long a server may be out of reach without a word about that.
const moment = 5 * time.Second

// outcome says what became of an object: by the object as it is, where that tells,
// and otherwise by what was noted last and still holds.
func (k *conclusion) outcome(v view, f *fate) Outcome {
	if f == nil {
		f = &fate{}
	}
	o := Outcome{Object: v.object}
	lost, orphaned := k.state.lostReferences(v.number)
	undecided := f.open(&v.object)
	failure, failed := k.failed(v, f)
	switch {
	case v.gone:
		o.Result = Deleted
	case f.doubt != "":
		o.Result, o.Reason, o.Undecidable = Unknown, say.Plain(f.doubt), k.scope.everything
	case failed:
		o.Result, o.Reason = Remaining, failure
	case !lost && k.passesBy(v):
		o.Result, o.Reason = Untouched, k.untouched(v).And(beingDeleted)
	case v.object.BeingDeleted():
		o.Result = Remaining
		k.explain(&o, v, f)
	case v.lost:
		o.Result, o.Reason = Unknown, say.Of(unserved)
	case v.deleteSent:
		o.Result, o.Reason = Remaining, say.Of(endUnseen)
	case k.emptying.Has(v.object.Resource, v.object.Namespace):
		k.goesWith(&o)
	case len(undecided) > 0:
		o.Result = Unknown
		if orphaned {
			o.Result = Orphaned
		} else if lost {
			o.Result = OwnerReferenceRemoved
		}
		k.undecided(&o, undecided)
	case k.vanished.Has(v.object.Resource, v.object.Namespace) && k.proofs.failure() != nil:
		o.Result, o.Reason = Unknown, say.Of(unproved, k.proofs.failure())
	case k.vanished.Has(v.object.Resource, v.object.Namespace):
		o.Result, o.Reason = Remaining, say.Of(outlives)
	case k.abandoned(v) || f.unreached:
		o.Result, o.Reason = Remaining, k.notReached(v)
	case orphaned:
		o.Result = Orphaned
	case lost:
		o.Result, o.Reason = OwnerReferenceRemoved, say.Plain(f.stays(&v.object))
	case k.ownerLost(v) != "":
		o.Result, o.Reason = Unknown, say.Of(ownerUnknown, k.ownerLost(v))
	default:
		o.Result, o.Reason = Untouched, say.Plain(f.stays(&v.object))
		if o.Reason.IsZero() {
			o.Reason = k.untouched(v)
		}
	}
	return o
}

// failed says why it is not known to be done what had to be, if a write failed, was not sent, or could not be followed.
func (k *conclusion) failed(v view, f *fate) (why say.Text, failed bool) {
	switch {
	case f.err != nil && errors.As(f.err, new(answer.UnsentError)):
		return say.Of(notSent, f.err), true
	case answer.Indeterminate(f.err) && !v.object.BeingDeleted():
		return say.Of(noAnswer, f.err), true
	case f.err != nil && !answer.Indeterminate(f.err) && k.lost.has(v.number):
		return say.Of(refusedLater, f.err), true
	case f.err != nil && !answer.Indeterminate(f.err):
		return say.Of(refused, f.err), true
	case f.guarded != nil:
		return say.Plain(f.guarded), true
	case k.away() > 0 && (v.object.BeingDeleted() || v.deleteSent):
		return say.Of(serverAway, k.away()), true
	}
	return say.Text{}, false
}

// notReached says of an object that the run ended before what had to be done to it.
func (k *conclusion) notReached(v view) say.Text {
	if k.abandoned(v) {
		return say.Of(nothingKeeps)
	}
	return say.Of(notReached)
}

// goesWith says of an object with what it goes, and who has to get to it for that.
func (k *conclusion) goesWith(o *Outcome) {
	id, _ := k.emptying.Of(o.Object.Resource, o.Object.Namespace)
	who := theServer
	if id.Resource.IsNamespace() {
		who = theNamespaces
	}
	o.Result, o.GoesWith, o.Reason = Remaining, &id, say.Of(goesWith, id, who)
}

// undecided says why it is not known what else becomes of an object: what went wrong,
// if anything did, and otherwise what is so.
func (k *conclusion) undecided(o *Outcome, open []UnknownReference) {
	why := slices.IndexFunc(open, func(ref UnknownReference) bool { return k.inVain(&o.Object, &ref) })
	o.Reason, o.Undecided = say.Plain(unknownReason(open[max(why, 0)])), true
	o.Undecidable = k.scope.everything && why < 0
}

// inVain reports whether the server was asked for the owner by the run and did not
// tell, although there was no such gap in what was read before.
func (k *conclusion) inVain(o *graph.Object, ref *UnknownReference) bool {
	if !ref.failed() {
		return false
	}
	n, ok := k.state.graph.Node(o.UID)
	return !ok || !slices.ContainsFunc(n.Owners(), func(before graph.Reference) bool {
		return before.Reason == graph.UnlistedOwner && before.UID == ref.UID && before.Name == ref.Name
	})
}

// abandoned reports whether all owners of an object that was not decided about
// are gone, or wait for their dependents' deletion: the run ended before. An owner
// that was in foreground deletion before, and that nothing led the run to, is not
// its business.
func (k *conclusion) abandoned(v view) bool {
	for _, ref := range v.object.OwnerReferences {
		owner, ok := k.state.view(k.state.of(ref.UID))
		if mine := k.entered.has(owner.number) || k.scope.targets[owner.number]; !ok ||
			!owner.gone && !(owner.object.DeletingDependents() && mine) {
			return false
		}
	}
	return len(v.object.OwnerReferences) > 0
}

// mostNamed is the number of finalizers that a reason names.
const mostNamed = 20

// named names finalizers, and counts those that are too many.
func named(finalizers []string) string {
	if len(finalizers) <= mostNamed {
		return strings.Join(finalizers, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(finalizers[:mostNamed], ", "), len(finalizers)-mostNamed)
}

// explain says what a terminating object waits for.
func (k *conclusion) explain(o *Outcome, v view, f *fate) {
	var reasons []say.Text
	for _, finalizer := range v.object.Finalizers {
		if !graph.IsCollectorFinalizer(finalizer) {
			o.Finalizers = append(o.Finalizers, finalizer)
		}
	}
	if len(o.Finalizers) > 0 {
		reasons = append(reasons, say.Of(OfFinalizers, named(o.Finalizers)))
	}
	if v.object.InGrace() {
		reasons = append(reasons, say.Of(ofKubelet))
	}
	if f.left != "" {
		reasons = append(reasons, say.Plain(f.left))
	}
	if v.object.OrphaningDependents() && f.left == "" {
		reasons = append(reasons, k.notOrphaned(v.number))
	}
	switch {
	case !v.object.DeletingDependents() || f.left != "":
	case !k.entered.has(v.number) && !k.scope.targets[v.number]:
		reasons = append(reasons, say.Of(begunBefore))
	case v.blocking == 0:
		reasons = append(reasons, say.Of(foregroundLeft))
	}
	if v.object.HasFinalizer(metav1.FinalizerDeleteDependents) && v.blocking > 0 {
		for _, n := range k.state.blockingDependents(v.number) {
			if d, ok := k.state.view(n); ok {
				o.WaitingFor = append(o.WaitingFor, d.object.Identity())
			}
		}
		reasons = append(reasons, blockedBy(v.blocking)) // last: WaitingFor is named after it
	}
	o.Reason = say.Join("; ", reasons...)
	if o.Reason.IsZero() && !v.object.Resource.IsNamespace() {
		o.Reason = say.Of(noBlocker)
	}
}

// notOrphaned says what keeps an owner from having orphaned its dependents: that
// some are not to be touched, if anything.
func (k *conclusion) notOrphaned(owner number) say.Text {
	for _, n := range k.state.dependents(owner) {
		if d, ok := k.state.view(n); ok && !k.scope.within(d.object.Namespace) {
			return say.Of(orphansOutside, k.scope.namespace)
		}
	}
	return say.Of(notOrphaned)
}

// explainNamespaces says of namespaces that remain what is left in them, also of what is no business of the run, as
// the events tell. The namespace controller keeps them until that is gone (namespace_controller.go).
func (k *conclusion) explainNamespaces(outcomes []Outcome) {
	left := map[string][]graph.Identity{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Result == Remaining && o.Object.Resource.IsNamespace() && o.Object.BeingDeleted() && o.Reason.IsZero() {
			left[o.Object.Name] = nil
		}
	}
	if len(left) == 0 {
		return
	}
	for _, o := range k.state.terminating() {
		if ids, explains := left[o.Namespace]; explains {
			left[o.Namespace] = append(ids, o.Identity())
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Result == Remaining && o.GoesWith == nil && !o.Object.BeingDeleted() { // its deletion was refused
			if ids, explains := left[o.Object.Namespace]; explains {
				left[o.Object.Namespace] = append(ids, o.Object.Identity())
			}
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if _, explains := left[o.Object.Name]; !explains || !o.Object.Resource.IsNamespace() || !o.Reason.IsZero() {
			continue
		}
		o.Reason = say.Of(namespaceStays)
		spec := slices.Clone(k.state.graph.Snapshot().Facts.Namespaces[o.Object.UID].Finalizers)
		if others := slices.DeleteFunc(spec, func(f string) bool { return f == namespaceFinalizer }); len(others) > 0 {
			o.Reason = say.Of(specHolds, strings.Join(others, ", "))
		}
		if o.WaitingFor = left[o.Object.Name]; len(o.WaitingFor) > 0 {
			slices.SortFunc(o.WaitingFor, graph.Identity.Compare)
			o.Reason = say.Of(contentsFirst) // WaitingFor is named after it
		}
	}
}

// namespaceFinalizer is the one in a namespace's spec that the namespace controller removes.
const namespaceFinalizer = "kubernetes"

func blockedBy(n int) say.Text {
	if n == 1 {
		return say.Of(oneBlocks)
	}
	return say.Of(someBlock, n)
}

// passesBy reports whether an object that somebody else deleted before is no business of the
// run, because that orphans what it depends on.
func (k *conclusion) passesBy(v view) bool {
	n, known := k.state.node(v.number)
	if !known || !n.BeingDeleted() || k.policy != metav1.DeletePropagationOrphan || k.scope.targets[v.number] {
		return false
	}
	return slices.ContainsFunc(v.object.OwnerReferences, func(ref metav1.OwnerReference) bool {
		owner, ok := k.state.view(k.state.of(ref.UID))
		return ok && !owner.gone && !owner.object.BeingDeleted() && !owner.deleteSent
	})
}

// untouched says why an object that depends on a target was never looked at:
// an owner of it is still there.
func (k *conclusion) untouched(v view) say.Text {
	for _, ref := range v.object.OwnerReferences {
		if owner, ok := k.state.view(k.state.of(ref.UID)); ok && !owner.gone {
			return say.Of(ownerExists, ref.Kind, ref.Name)
		}
	}
	return say.Text{}
}

// ownerLost returns an owner of which it is not known whether it still exists, empty when there is
// none, or another owner is still there.
func (k *conclusion) ownerLost(v view) string {
	lost := ""
	for _, ref := range v.object.OwnerReferences {
		switch owner, ok := k.state.view(k.state.of(ref.UID)); {
		case !ok || owner.gone:
		case !owner.lost:
			return ""
		case lost == "":
			lost = ref.Kind + "/" + ref.Name
		}
	}
	return lost
}
