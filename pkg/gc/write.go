// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxConflicts is the number of conflicts after which an object has to wait for its next turn.
const maxConflicts = 3

// maxTurns is how often an object is decided about anew because of conflicts before the conflict is the answer. After maxConflicts turns
// each takes a turnPause longer than the one before.
const (
	maxTurns  = 20
	turnPause = 10 * time.Millisecond
)

// The reasons of the user's own deletes, and of those that have to come before one.
const (
	byUser    = "named by the user"
	goesEarly = "deleted before its controller"
)

// writer sends writes, again where that is right, and takes what became of them into the state and the report. It decides nothing: when an
// object is another than the one that was decided about, it says so. It may be used by several goroutines.
type writer struct {
	// failing are the owners whose end the server has not accepted, since it was away or had too much to do.
	failing firsts
	// lost are the objects of which a write was not answered, which may be carried out late.
	lost   memo
	server Server
	state  *state
	report *report
	// open are the objects that are on their way out.
	open *openSet
	// apply takes a change into the state, and does what it gives reason to.
	apply func(Event)
	// told reports whether the server's events tell what becomes of an object.
	told func(resource *graph.Resource, namespace string) bool
	// guard and observer are those of the Options.
	guard     func(Action, graph.Object) error
	observer  Observer
	observing sync.Mutex
	// silence is why the run was given up, nil while it was not.
	silence atomic.Pointer[error]
}

// deleteDecided deletes an object that the Collector itself decided to delete. After a conflict, or without an answer, it is read again: if
// it is as it was in what led to the decision, which same tells, the delete is sent again, always with the version that was read; otherwise
// the object is decided about anew (garbagecollector/operations.go, deleteObject; that goes by UID alone after the first conflict, and so
// may delete what has got another owner by then), which it returns.
func (w *writer) deleteDecided(ctx context.Context, n number, o graph.Object, options metav1.DeleteOptions, reason string,
	same func(graph.Object) bool) (anew bool) {
	for conflicts, losses := 0, 0; ; {
		t := w.tryDelete(ctx, n, o, options, reason, false, w.read)
		if t.done {
			return false
		}
		t.count(&conflicts, &losses)
		switch {
		case losses > 1, conflicts >= maxConflicts && !moved(o, t.now):
			w.deleted(ctx, n, t.step)
			return false
		case conflicts >= maxConflicts, !same(t.now):
			if !w.again(ctx, n) {
				w.deleted(ctx, n, t.step)
				return false
			}
			w.state.setDeleteSent(n, false)
			w.open.set(n, t.now.BeingDeleted())
			return true
		}
		o = t.now
	}
}

// deleteTarget deletes an object that the user chose, as long as the selector that chose it has it, and unless somebody else has deleted it
// since it was planned so that its dependents stay: another delete would undo that. It returns the object as the last delete found it, and
// whether the server accepted that. Every delete states the version that was read last; who keeps changing the object keeps it in the end.
// When one that a selector chose was changed before its turn, as the server's events tell, the selector is asked first.
func (w *writer) deleteTarget(ctx context.Context, n number, planned, o graph.Object, options metav1.DeleteOptions, reason string,
	target *Target) (last graph.Object, accepted bool) {
	why := ""
	stays := func(now graph.Object) bool {
		if *options.PropagationPolicy != metav1.DeletePropagationOrphan && now.OrphaningDependents() && !planned.OrphaningDependents() {
			why = orphanedSince
		}
		return why != ""
	}
	look := func(ctx context.Context, o graph.Object, failure error) (graph.Object, bool) {
		if target.Reselect == nil {
			now, ok := w.read(ctx, o, failure)
			return now, ok && !stays(now)
		}
		now, selected, err := target.Reselect(ctx, w.server)
		if err == nil && (!selected || now.UID != o.UID) {
			if _, exists := w.read(ctx, o, failure); exists {
				why = cmp.Or(target.Unselected, unselected)
			}
			return graph.Object{}, false
		}
		if err != nil && failure == nil {
			err = fmt.Errorf("asking whether it still matches the selector: %w", err)
		}
		now, ok := w.take(ctx, o, now, err, failure)
		return now, ok && !stays(now)
	}
	if stays(o) {
		w.leave(n, &o, why)
		return o, false
	}
	if target.Reselect != nil && o.ResourceVersion != target.Matched {
		now, ok := look(ctx, o, nil)
		if !ok {
			if why != "" {
				w.leave(n, &o, why)
			}
			return o, false
		}
		o = now
	}
	for conflicts, losses, ends := 0, 0, false; ; {
		t := w.tryDelete(ctx, n, o, options, reason, ends, look)
		if why != "" && w.leave(n, &o, why) {
			return o, false
		}
		if t.done {
			return o, t.step.Err == nil
		}
		if t.count(&conflicts, &losses); losses > 1 || !w.again(ctx, n) {
			w.deleted(ctx, n, t.step)
			return o, false
		}
		ends = !t.lost && !moved(o, t.now) && dropsTheLast(&t.now, options)
		o = t.now
	}
}

// Why a target is left alone.
const (
	unselected    = "it does not match the selector any more"
	orphanedSince = "another user has deleted it since, with --cascade=orphan: its dependents are to stay"
)

// leave records why a target was left alone, and reports false if a delete of it has had its effect all the same.
func (w *writer) leave(n number, o *graph.Object, why string) bool {
	if why != orphanedSince && w.carriedOut(n, o) {
		return false
	}
	w.settled(n, true)
	if v, ok := w.state.view(n); ok {
		w.report.passed(n, &v.object, why)
	}
	return true
}

// try is a delete that met with a conflict or was not answered, and the object as it is now.
type try struct {
	step Step
	now  graph.Object
	lost bool // not answered
	// done: there is nothing left to do; what became of the delete is recorded.
	done bool
}

func (t *try) count(conflicts, losses *int) {
	if t.lost {
		*losses++
	} else {
		*conflicts++
	}
}

// reread reads an object again after a failure, as writer.read does.
type reread func(ctx context.Context, o graph.Object, failure error) (graph.Object, bool)

// tryDelete sends one delete, and reads the object again unless the answer settles it.
func (w *writer) tryDelete(ctx context.Context, n number, o graph.Object, options metav1.DeleteOptions, reason string,
	ends bool, read reread) try {
	t := try{step: w.sendDelete(ctx, n, o, options, ends), done: true}
	t.step.Reason = reason
	t.lost = w.isLost(ctx, n, t.step.Err)
	if t.step.Err == nil || !t.lost && !apierrors.IsConflict(t.step.Err) && !apierrors.IsNotFound(t.step.Err) {
		w.deleted(ctx, n, t.step)
		return t
	}
	if v, ok := w.state.view(n); ok && v.gone { // as an event has told meanwhile
		w.settled(n, true)
		if t.lost { // and that this is not what the delete did nobody can say
			t.step.Err = nil
			w.write(n, t.step)
		}
		return t
	}
	now, ok := read(ctx, o, t.step.Err)
	switch {
	case ok && apierrors.IsNotFound(t.step.Err):
		w.deleted(ctx, n, t.step)
	case t.lost && w.carriedOut(n, &o):
		t.step.Err = nil
		w.deleted(ctx, n, t.step)
	case !ok && t.lost:
		w.deleted(ctx, n, t.step)
	case !ok:
		w.settled(n, true)
	default:
		t.now, t.done = now, false
	}
	return t
}

// sendDelete sends one delete, and returns what it was and the answer. ends: as the API server refuses a delete with the version that takes
// off the garbage collector's own finalizer, the last of the object, that is removed first. A terminating object is gone by that.
func (w *writer) sendDelete(ctx context.Context, n number, o graph.Object, options metav1.DeleteOptions, ends bool) Step {
	p := &preconditions{uid: o.UID, version: o.ResourceVersion} // not &o.UID, which would keep all of it
	p.UID, p.ResourceVersion, options.Preconditions = &p.uid, &p.version, &p.Preconditions
	w.state.setDeleteSent(n, true)
	w.open.set(n, true)
	if ends {
		removes := Patch{RemoveFinalizer: o.Finalizers[0]}
		now, err := w.server.Patch(ctx, o, removes)
		if err != nil || free(&now) {
			return Step{Action: ActionDelete, Object: o, Options: options, Err: err}
		}
		p.version = now.ResourceVersion
		if err = w.server.Delete(ctx, o.Identity(), options); err != nil {
			w.write(n, Step{Action: ActionRemoveFinalizer, Object: o, Patch: removes, Reason: byUser})
		}
		return Step{Action: ActionDelete, Object: o, Options: options, Err: err}
	}
	err := w.server.Delete(ctx, o.Identity(), options)
	return Step{Action: ActionDelete, Object: o, Options: options, Err: err}
}

// preconditions are those of a delete with what they point to.
type preconditions struct {
	metav1.Preconditions
	uid     types.UID
	version string
}

// settled records that a delete of the object is not on its way, if that is certain.
func (w *writer) settled(n number, certain bool) {
	if certain {
		w.state.setDeleteSent(n, false)
		w.open.set(n, false)
	}
}

// carriedOut reports whether a delete of the object, as it was then, has had its effect by now.
func (w *writer) carriedOut(n number, o *graph.Object) bool {
	v, ok := w.state.view(n)
	return ok && (v.gone || v.object.BeingDeleted() && !o.BeingDeleted())
}

// unanswered reports whether it is unknown what became of a write. Its preconditions make it safe to repeat.
func unanswered(ctx context.Context, err error) bool {
	return !unsent(ctx, err) && answer.Indeterminate(err)
}

// isLost reports whether it is unknown what became of a write to the object, and remembers that.
func (w *writer) isLost(ctx context.Context, n number, err error) bool {
	lost := unanswered(ctx, err)
	if lost {
		w.lost.first(n)
	}
	return lost
}

// again reports whether an object that met with a conflict may be decided about once more. After some turns that takes a pause, and in the
// end it is refused.
func (w *writer) again(ctx context.Context, n number) bool {
	turns := w.state.turn(n)
	if turns > maxTurns {
		return false
	}
	if over := turns - maxConflicts; over > 0 {
		select {
		case <-time.After(time.Duration(over) * turnPause):
		case <-ctx.Done():
		}
	}
	return true
}

const (
	// passing is for how long the end of an owner is tried again while the server is away or has too much to do, and passingPause the time
	// between two tries.
	passing      = 30 * time.Second
	passingPause = 500 * time.Millisecond
)

// passes lets some time pass after the server was away or had too much to do, and reports whether it may be tried again. What the write
// rests on has to be proved again for that.
func (w *writer) passes(ctx context.Context, n number) bool {
	if w.failing.sinceFirst(n) > passing {
		return false
	}
	select {
	case <-time.After(passingPause):
	case <-ctx.Done():
	}
	return true
}

// moved reports whether an object is another version than it was. If it is not, a conflict was not about what anybody else did. An
// admission webhook may answer so; and the API server does, to every delete with a resourceVersion that takes the garbage collector's own
// finalizers off and finds nothing left to wait for (registry/generic/registry/store.go, Delete, with the empty result of
// updateForGracefulDeletionAndFinalizers). Only the user's delete can ask for that: the garbage collector's own policy keeps them.
func moved(o, now graph.Object) bool { return now.ResourceVersion != o.ResourceVersion }

// deleted takes the server's answer to a delete. A NotFound is an answer of an object that is there: a webhook may refuse a delete with the
// error that it got itself. Absence is what a read shows.
func (w *writer) deleted(ctx context.Context, n number, s Step) {
	w.settled(n, s.Err != nil && !unanswered(ctx, s.Err))
	if !unsent(ctx, s.Err) {
		w.write(n, s)
	}
	if s.Err == nil && !w.told(s.Object.Resource, s.Object.Namespace) {
		w.look(ctx, n, s.Object)
	}
}

// unsent reports whether a request was not sent because the context has ended.
func unsent(ctx context.Context, err error) bool {
	return err != nil && err == ctx.Err() //nolint:errorlint // the error of a request whose own time is over wraps the same
}

// read reads an object, after a write that failed so unless that is nil, and takes what it finds into the state. It returns false when the
// object is gone or cannot be read.
func (w *writer) read(ctx context.Context, o graph.Object, failure error) (graph.Object, bool) {
	now, err := w.server.Get(ctx, *o.Resource, o.Namespace, o.Name)
	return w.take(ctx, o, now, err, failure)
}

// take takes the answer to a read into the state, as read says.
func (w *writer) take(ctx context.Context, o, now graph.Object, err, failure error) (graph.Object, bool) {
	switch {
	case isGone(err, &o), err == nil && now.UID != o.UID:
		w.apply(Event{Object: o, Removed: true})
		return graph.Object{}, false
	case unsent(ctx, err):
		return graph.Object{}, false
	case err == nil && (now.Name != o.Name || now.Namespace != o.Namespace):
		w.report.failed(w.state.of(o.UID), fmt.Errorf("the server answers with %s when it is asked for %s", now.Identity(), o.Identity()))
		return graph.Object{}, false
	case err != nil:
		if answer.Indeterminate(failure) && answer.Indeterminate(err) {
			w.giveUp(err)
		}
		if failure != nil {
			err = fmt.Errorf("%w, and reading it again: %w", failure, err)
		}
		w.report.failed(w.state.of(o.UID), err)
		return graph.Object{}, false
	}
	if apierrors.IsConflict(failure) && older(&now, &o) {
		w.state.refute(&o)
	}
	w.apply(Event{Object: now})
	return now, true
}

// giveUp ends the run: neither a write nor the question what became of it was answered, each of which the server has repeated for as long
// as it makes sense.
func (w *writer) giveUp(err error) {
	//nolint:errorlint // its cause is not the run's
	w.silence.CompareAndSwap(nil, new(fmt.Errorf("the API server does not answer any more: %v", err)))
}

// silent returns the error of giveUp.
func (w *writer) silent() error {
	if err := w.silence.Load(); err != nil {
		return *err
	}
	return nil
}

// patch changes an object. It returns the object as it is afterwards, and whether the patch was accepted; and after a conflict, maxTurns
// times at most, that what led to the patch is to be decided about anew.
func (w *writer) patch(ctx context.Context, n number, o graph.Object, action Action, p Patch,
	reason string) (now graph.Object, accepted, anew bool) {
	if !w.allowed(n, action, &o) {
		return graph.Object{}, false, false
	}
	patched, err := w.server.Patch(ctx, o, p)
	if w.isLost(ctx, n, err) {
		now, ok := w.read(ctx, o, err)
		switch {
		case !ok:
			if v, known := w.state.view(n); p.RemoveFinalizer != "" && known && v.gone {
				err = nil // that is what it does
			}
			w.write(n, Step{Action: action, Object: o, Reason: reason, Patch: p, Err: err})
			return graph.Object{}, false, false
		case p.done(&now):
			patched, err = now, nil
		case p.RemoveFinalizer != "": // what it rests on has to be proved again
			if w.passes(ctx, n) {
				return graph.Object{}, false, true
			}
		default:
			patched, err = w.server.Patch(ctx, o, p)
		}
	}
	switch {
	case unsent(ctx, err):
		return graph.Object{}, false, false
	case err == nil:
	case apierrors.IsNotFound(err): // which proves nothing
		if _, ok := w.read(ctx, o, err); !ok {
			return graph.Object{}, false, false
		}
	case p.RemoveFinalizer != "" && answer.Retryable(err) && w.passes(ctx, n):
		return graph.Object{}, false, true
	case apierrors.IsConflict(err):
		now, ok := w.read(ctx, o, err)
		anew = ok && moved(o, now) && w.again(ctx, n)
		if !ok || anew {
			return graph.Object{}, false, anew
		}
	}
	w.write(n, Step{Action: action, Object: o, Reason: reason, Patch: p, Err: err})
	if err != nil {
		return graph.Object{}, false, false
	}
	// An object that a patch removes comes back with the version that it had.
	if moved(o, patched) || p.RemoveFinalizer != "" {
		w.applyOwn(patched)
	}
	return patched, true, false
}

// done reports whether an object is as the patch would make it.
func (p Patch) done(o *graph.Object) bool {
	return equalOwners(p.OwnerReferences(o.OwnerReferences), o.OwnerReferences) && len(p.Finalizers(o.Finalizers)) == len(o.Finalizers)
}

// applyOwn takes the result of a write into the state without waiting for its event. An object whose last finalizer the patch took off is
// gone.
func (w *writer) applyOwn(o graph.Object) {
	w.apply(Event{Object: o, Removed: free(&o)})
}

// isGone reports whether the error says that this object does not exist.
func isGone(err error, o *graph.Object) bool {
	return answer.NoSuchObject(err, o.Resource.GroupResource(), o.Name)
}

// look reads an object of which a delete was accepted and of which no event will tell.
func (w *writer) look(ctx context.Context, n number, o graph.Object) {
	if _, ok := w.read(ctx, o, nil); ok {
		w.state.setDeleteSent(n, false)
	}
}

// allowed asks the guard about a write to the object.
func (w *writer) allowed(n number, action Action, o *graph.Object) bool {
	if w.guard == nil {
		return true
	}
	err := w.guard(action, *o)
	if err != nil {
		w.report.guarded(n, err)
	}
	return err == nil
}

// write tells the observer and the report what the server answered.
func (w *writer) write(n number, s Step) {
	w.observing.Lock()
	defer w.observing.Unlock()
	s.Unanswered = s.Err != nil && w.lost.has(n)
	w.report.step(n, s)
	if w.observer != nil {
		w.observer(s)
	}
}
