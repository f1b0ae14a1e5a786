// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// worker carries out tasks: it decides, and has the writer write what was decided. It owns what it
// must not do twice, or has to know of its own writes; whose turn it is it does not decide. It may be
// used by several goroutines, each with a task of another object.
type worker struct {
	state     *state
	snapshot  *graph.Snapshot
	scope     *scope
	reader    *reader
	builder   *graphBuilder
	scheduler *scheduler
	writer    *writer
	report    *report
	// deletion is what the user said of it, and ahead what has to go before.
	deletion DeleteOptions
	ahead    *ahead
	// orphans are the targets whose dependents are to stay.
	orphans memo
	// lookedAgain are owners in foreground deletion whose blocking dependents were looked at once more.
	lookedAgain memo

	mu sync.Mutex
	// releases has what is done to the dependents of owners that orphan them.
	releases map[number]ownerRelease
}

// do carries out one task.
func (w *worker) do(ctx context.Context, t task) {
	v, ok := w.state.view(t.object)
	if !ok || v.gone {
		if t.kind == release {
			w.builder.orphanWhenReleased(t.owner)
		}
		return
	}
	if doubt := w.doubt(v, t.target); doubt != "" {
		w.report.doubted(t.object, doubt)
		return
	}
	switch t.kind {
	case deleteTarget:
		w.deleteTarget(ctx, v, t.target)
	case attempt:
		w.attempt(ctx, v)
	case goAhead:
		w.goAhead(ctx, v)
	case release:
		w.release(ctx, v, t.owner)
	case finish:
		w.finish(ctx, v)
	}
	if ctx.Err() != nil {
		w.report.unreached(t.object) // it may be, and when it is not, its state tells
	}
}

// doubt says why nothing is written to an object: it is not certain which one that
// would change. A precondition on the UID does not help where several objects have
// it. It is empty for nearly all.
func (w *worker) doubt(v view, t *Target) string {
	switch {
	case v.also != "":
		return v.also + " has the same UID, so a write could be meant for either"
	case t != nil && !w.snapshot.IsAt(&v.object, t.Resource.GroupResource(), t.Namespace, t.Name):
		return t.Identity.String() + " was named, which has the same UID"
	}
	return ""
}

// deleteTarget sends the user's delete, to the resource that the user named.
func (w *worker) deleteTarget(ctx context.Context, v view, t *Target) {
	o, options := v.object, w.deletion
	if t.Resource.GroupResource() != o.Resource.GroupResource() {
		o.Resource = &t.Resource
	}
	deleteOptions := metav1.DeleteOptions{PropagationPolicy: &options.Policy, GracePeriodSeconds: options.GracePeriodSeconds}
	if options.Policy == metav1.DeletePropagationOrphan {
		w.orphans.first(v.number)
	}
	planned, _ := w.snapshot.Object(o.UID)
	o, accepted := w.writer.deleteTarget(ctx, v.number, planned, o, deleteOptions, cmp.Or(options.Reason, byUser), t)
	if o.BeingDeleted() && accepted {
		w.takeUp(ctx, v.number, o)
	}
}

// takeUp goes on with a deletion that was begun before the user's delete was accepted, by
// somebody else or by a request whose answer was lost: there may be no event. Whether
// another policy took its place only the server knows: pods in their grace period
// and terminating namespaces do not hear it.
func (w *worker) takeUp(ctx context.Context, n number, o graph.Object) {
	if _, ok := w.writer.read(ctx, o, nil); !ok {
		return
	}
	w.state.setDeleteSent(n, false)
	switch v, ok := w.state.view(n); {
	case !ok || v.gone:
	case v.object.OrphaningDependents():
		w.builder.lookAtOrphaning(n)
	case v.object.DeletingDependents():
		w.scheduler.lookAtForeground(n)
	}
}

// attempt decides about one object and carries the decision out
// (garbagecollector.go, attemptToDeleteItem). The object is not read again: the
// preconditions of every write prove that it is as the state has it.
func (w *worker) attempt(ctx context.Context, v view) {
	o := v.object
	switch {
	case o.DeletingDependents():
		w.scheduler.lookAtForeground(v.number)
		return
	case v.beingDeleted || v.deleteSent || len(o.OwnerReferences) == 0 || w.spare(v.number, &o):
		return
	}
	refs := w.withoutOrphaned(w.reader.classify(ctx, &o))
	if ctx.Err() != nil || refs.empty() {
		return // what could not be asked is not unknown
	}
	d := Decide(&o, refs, w.state.dependentsOf(v))
	switch d.Action {
	case ActionKeep:
		w.report.kept(v.number, &o, d.Reason, refs.Unknown)
	case ActionRemoveOwnerReferences:
		if now, ok := w.patch(ctx, v.number, o, ActionRemoveOwnerReferences, Patch{RemoveOwners: d.Owners}, d.Reason); ok {
			w.report.kept(v.number, &now, d.Reason, nil)
		}
	case ActionDelete:
		w.collect(ctx, v.number, o, d, task{kind: attempt, object: v.number})
	}
}

// withoutOrphaned leaves out the dangling references that state the UID of an owner
// that orphans, and are mistaken otherwise. They are about to be removed, and until
// then say nothing: the garbage collector deletes such an object because of them or
// releases it, by who comes first.
func (w *worker) withoutOrphaned(refs References) References {
	orphaned := func(ref metav1.OwnerReference) bool { return w.state.isOrphaning(w.state.of(ref.UID)) }
	if slices.ContainsFunc(refs.Dangling, orphaned) {
		refs.Dangling = slices.DeleteFunc(slices.Clone(refs.Dangling), orphaned)
	}
	return refs
}

// goAhead deletes an object that goes with targets before these go, as long as it does.
func (w *worker) goAhead(ctx context.Context, v view) {
	o := v.object
	if v.deleteSent {
		return
	}
	d, why := w.ahead.decide(ctx, v)
	switch {
	case ctx.Err() != nil:
		return
	case v.beingDeleted && why == nil:
		w.takeUp(ctx, v.number, o)
		return
	case v.beingDeleted: // its end is waited for, and brought about by others
		return
	case why != nil:
		w.report.guarded(v.number, fmt.Errorf("not deleted ahead of its owner or container: %w", why))
		return
	}
	d.Reason = goesEarly
	w.collect(ctx, v.number, o, d, task{kind: goAhead, object: v.number})
}

// collect deletes an object that no owner keeps. again is what decides about it anew.
func (w *worker) collect(ctx context.Context, n number, o graph.Object, d Decision, again task) {
	if !w.writer.allowed(n, ActionDelete, &o) {
		return
	}
	if d.UnblockFirst && hasBlocking(o.OwnerReferences) {
		patched, ok := w.patch(ctx, n, o, ActionUnblockOwnerReferences, Patch{Unblock: true},
			"a dependent of it is in foreground deletion, and the two could wait for each other")
		if !ok {
			return
		}
		o = patched
	}
	w.state.setRound(n)
	anew := w.writer.deleteDecided(ctx, n, o, metav1.DeleteOptions{PropagationPolicy: policies[d.Policy]}, d.Reason,
		func(now graph.Object) bool {
			return equalOwners(now.OwnerReferences, o.OwnerReferences) && !now.BeingDeleted() && policyOf(&now) == policyOf(&o)
		})
	if anew {
		w.scheduler.enqueue(again)
	}
}

// policies are what the options of deletes point to. They must not be changed.
var policies = map[metav1.DeletionPropagation]*metav1.DeletionPropagation{
	metav1.DeletePropagationBackground: new(metav1.DeletePropagationBackground),
	metav1.DeletePropagationForeground: new(metav1.DeletePropagationForeground),
	metav1.DeletePropagationOrphan:     new(metav1.DeletePropagationOrphan),
}

func hasBlocking(refs []metav1.OwnerReference) bool {
	for _, ref := range refs {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			return true
		}
	}
	return false
}

// patch changes an object, and has what led to it decided about anew when it is
// another by then. It returns the object as it is afterwards, and whether the patch was
// accepted.
func (w *worker) patch(ctx context.Context, n number, o graph.Object, action Action, p Patch, reason string) (graph.Object, bool) {
	now, accepted, anew := w.writer.patch(ctx, n, o, action, p, reason)
	if anew {
		w.retry(n, action, p)
	}
	return now, accepted
}

// retry queues what led to a patch once more.
func (w *worker) retry(n number, action Action, p Patch) {
	switch {
	case action == ActionRemoveFinalizer:
		w.scheduler.enqueue(task{kind: finish, object: n})
	case action == ActionRemoveOwnerReferences && len(p.RemoveOwners) == 1 && w.state.isOrphaning(w.state.of(p.RemoveOwners[0])):
		w.scheduler.enqueue(task{kind: release, object: n, owner: w.state.of(p.RemoveOwners[0])})
	default:
		w.scheduler.enqueue(task{kind: attempt, object: n})
	}
}

// finish takes the garbage collector's own finalizer off an object, if what it
// stands for is done. Whether it is only who has read all that may depend on the
// object can tell.
func (w *worker) finish(ctx context.Context, v view) {
	spot := w.reader.blindSpot(&v.object)
	switch {
	case v.blocking == 0 && w.scheduler.putOff(task{kind: finish, object: v.number}):
	case spot != "":
		w.report.left(v.number, "left to a garbage collector that can read every possible dependent: "+spot)
	case w.scheduler.finishes(v.number) && w.scheduler.proofs.failure() != nil:
		w.report.left(v.number, "not finished, because it could not be proved that nothing else depends on it: "+
			w.scheduler.proofs.failure().Error())
	case v.object.OrphaningDependents():
		w.finishOrphan(ctx, v)
	case v.deletingDependents:
		w.finishForeground(ctx, v)
	}
}

// finishForeground takes the finalizer foregroundDeletion off an object that
// nothing blocks any more. What blocks it is looked at once more, since that may
// have failed (garbagecollector.go, processDeletingDependentsItem); what becomes of
// it leads back here.
func (w *worker) finishForeground(ctx context.Context, v view) {
	o := v.object
	switch {
	case v.blocking > 0 && w.lookedAgain.first(v.number):
		for _, d := range w.state.blockingDependents(v.number) {
			if !w.state.isDeletingDependents(d) {
				w.scheduler.enqueue(task{kind: attempt, object: d})
			}
		}
	case v.blocking == 0 && o.HasFinalizer(metav1.FinalizerDeleteDependents):
		w.patch(ctx, v.number, o, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerDeleteDependents}, "nothing blocks it any more")
	}
}

// finishOrphan takes the finalizer orphan off an object that has no dependents
// any more (garbagecollector.go, attemptToOrphanWorker).
func (w *worker) finishOrphan(ctx context.Context, v view) {
	if v.live > 0 {
		w.builder.lookAtOrphaning(v.number)
		return
	}
	w.patch(ctx, v.number, v.object, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerOrphanDependents},
		"its dependents are orphaned")
}

// release removes a dependent's references to an owner that orphans it.
func (w *worker) release(ctx context.Context, v view, owner number) {
	if !w.state.isOrphaning(owner) && !w.spares(owner) {
		return
	}
	o, _ := w.state.view(owner)
	if references, _ := edgeOf(v.object.OwnerReferences, o.object.UID); references {
		l := w.letGo(&o)
		now, released := w.patch(ctx, v.number, v.object, ActionRemoveOwnerReferences, l.patch, l.reason)
		if released && (w.scope.everything || w.hasLeft(&now)) && w.reader.givesUp(v.object.OwnerReferences, v.object.Namespace) {
			w.scheduler.decideAgain(v.number)
		}
	}
	w.builder.orphanWhenReleased(owner)
}

// ownerRelease is what is done to the dependents of an owner that orphans them, and why.
type ownerRelease struct {
	patch  Patch
	reason string
}

// letGo returns what is done to the dependents of the owner, the same for all.
func (w *worker) letGo(owner *view) ownerRelease {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, known := w.releases[owner.number]
	if !known {
		l = ownerRelease{
			patch:  Patch{RemoveOwners: []types.UID{owner.object.UID}},
			reason: "orphaned by " + owner.object.Resource.Kind + "/" + owner.object.Name,
		}
		w.releases[owner.number] = l
	}
	return l
}

// hasLeft reports whether an owner of the object went in the run, or is in foreground
// deletion and the run goes on with that: what becomes of its dependents is the run's
// business.
func (w *worker) hasLeft(o *graph.Object) bool {
	return slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool {
		n := w.state.of(ref.UID)
		return w.scheduler.entered.has(n) || w.scope.inScope(n) && w.state.removed(n)
	})
}

// spares reports whether the owner is gone, and was a target that the server let
// orphan its dependents. Somebody else, who does not know all of them, may have
// completed the deletion: a garbage collector does not know the instances of a
// CustomResourceDefinition for the first half minute, and would delete them
// then.
func (w *worker) spares(owner number) bool {
	v, ok := w.state.view(owner)
	return ok && v.gone && v.orphaned && w.orphans.has(owner)
}

// spare has the references to owners that spare the object removed, and reports
// whether there are any.
func (w *worker) spare(n number, o *graph.Object) bool {
	any := false
	for _, ref := range o.OwnerReferences {
		if owner := w.state.of(ref.UID); w.spares(owner) {
			any = true
			w.scheduler.enqueue(task{kind: release, object: n, owner: owner})
		}
	}
	return any
}
