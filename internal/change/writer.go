// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// sending is how long the answer to a change is waited for, whatever ends the run meanwhile.
	sending = 30 * time.Second
	// takingBack is how long taking a temporary change back may take.
	takingBack = 2 * sending
	// racing is how long others get who change an object all the time, longer each time.
	racing = 200 * time.Millisecond
	// mostTries is how often the same change may meet an object that was changed meanwhile.
	mostTries = 8
)

// Writer makes single changes: each is kept in the journal, sent for exactly the version that was looked at, and read back. It proves
// nothing: who has a change made has found out that it is right. All fields but Journal must be set. Its methods may be called by several
// goroutines at once.
type Writer struct {
	// Read reads an object whole, as it is now.
	Read func(context.Context, graph.Identity) (*unstructured.Unstructured, error)
	// List reads the objects of a type in a namespace whole.
	List func(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error)
	// Do sends a change (cluster.Sender).
	Do func(context.Context, *remedy.Op) error
	// Resource finds the type of an owner.
	Resource func(schema.GroupVersionKind) (graph.Resource, error)
	// Journal keeps what is changed; nil keeps nothing.
	Journal *Journal
	// Wait lets time pass, or the context end.
	Wait func(context.Context, time.Duration)
	// Now is the time, which only differences are taken of.
	Now func() time.Time
}

// Record is a change with what became of it.
type Record struct {
	Time   time.Time
	Change Change
	// Before is the object as it was, nil for none, and After what was made, as it was read back.
	Before, After *unstructured.Unstructured
	Status        Status
	// Back is what took the change back, or should have.
	Back *remedy.Op
	Err  error
	// taken is the object for which Back was sent, if that takes all of the change back.
	taken *unstructured.Unstructured
	// end keeps in the journal what became of it, with the UID of what was made.
	end func(Status, types.UID) error
}

// errReverted says why a change that was accepted is not there.
var errReverted = errors.New("the API server accepted it, but the object is as it was before: the server dropped the change, or a webhook or controller reverted it")

// Make makes a change of an object that is as before shows it, which is nil for what is made. The object is read back: Done is what is
// there then.
func (w *Writer) Make(ctx context.Context, c *Change, before *unstructured.Unstructured) Record {
	r := Record{Time: w.Now(), Change: *c, Before: before, end: func(Status, types.UID) error { return nil }}
	end := func(status Status, err error) Record {
		r.Status, r.Err = status, err
		return r
	}
	w.mark(&r.Change.Op)
	op := r.Change.Op
	var fields []remedy.Field
	if before != nil {
		var err error
		if fields, err = op.Fields(before.Object); err != nil || before.GetUID() != op.Object.UID {
			return end(Skipped, fmt.Errorf("%s: %w", op.Object, remedy.ErrChanged))
		}
		op = op.At(before.GetResourceVersion())
	}
	lets, err := w.lets(ctx, c)
	if err != nil {
		return end(Skipped, err)
	}
	finish, err := w.Journal.Begin(&r.Change, before, lets...)
	if err != nil {
		return end(Skipped, &JournalError{err})
	}
	r.end = func(s Status, made types.UID) error {
		if err := finish(s, made); err != nil {
			return &JournalError{err}
		}
		return nil
	}
	err = w.send(ctx, &op)
	if r.Status, r.Err = StatusOf(err), err; r.Status == Done {
		r.Status, r.After, r.Err = w.readBack(ctx, &r.Change.Op, fields, before)
	}
	made := r.Change.Op.Object.UID
	if made == c.Op.Object.UID { // that is what it had, and not what was made
		made = ""
	}
	if err := r.end(r.Status, made); err != nil {
		r.Err = errors.Join(r.Err, err)
	}
	return r
}

// mark marks what a change makes as that of this run.
func (w *Writer) mark(op *remedy.Op) {
	if op.Grant != nil && op.Mark == "" && w.Journal != nil {
		op.Mark = filepath.Base(w.Journal.Dir)
	}
}

// lets reads the other objects that a change lets go. Those that are gone need not be kept.
func (w *Writer) lets(ctx context.Context, c *Change) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, id := range c.Lets {
		switch o, err := w.Read(ctx, id); {
		case IsGone(id, o, err):
		case err != nil:
			return nil, fmt.Errorf("reading %s, which it lets go: %w", id, err)
		default:
			all = append(all, o)
		}
	}
	return all, nil
}

// send makes a change, and waits for the answer also when the run is over meanwhile: a request that was given up may still be carried
// out, after a look at what there is to take back.
func (w *Writer) send(ctx context.Context, op *remedy.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sending)
	defer cancel()
	return w.Do(ctx, op)
}

// readBack finds out what became of a change that the API server has accepted, and the UID of what it has made.
func (w *Writer) readBack(ctx context.Context, op *remedy.Op, fields []remedy.Field,
	before *unstructured.Unstructured) (_ Status, made *unstructured.Unstructured, _ error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sending)
	defer cancel()
	now, err := w.Read(ctx, op.Object)
	gone := answer.NoSuchObject(err, op.Object.Resource.GroupResource(), op.Object.Name)
	switch {
	case op.Creates() && gone:
		return Reverted, nil, errReverted
	case op.Creates() && err == nil && (op.Grant == nil || op.Made(now)):
		op.Object.UID = now.GetUID()
		return Done, now, nil
	case op.Creates() && err == nil:
		return Skipped, nil, errors.New("another object has its name by now")
	case before != nil && IsGone(op.Object, now, err):
		return Done, nil, nil
	case err != nil:
		return Unanswered, nil, fmt.Errorf("reading %s back: %w", op.Object, err)
	case op.Verb == remedy.Delete && now.GetDeletionTimestamp() != nil:
		return Done, nil, nil
	case op.Verb == remedy.Delete, now.GetResourceVersion() == before.GetResourceVersion():
		return Reverted, nil, errReverted
	}
	if _, standing := remedy.Reverse(fields, before.Object, now.Object); len(fields) > 0 && standing == remedy.AsBefore {
		return Reverted, nil, errReverted
	}
	return Done, nil, nil
}

// TakeBack ends a temporary change with that status, of its object as it is now, and reads back that it has ended. It
// sends nothing when the object is as it was before. When no answer to the change ever came, its object is changed to and fro: the change,
// which was for one version, cannot be made late then. The result is NotTakenBack when others have changed what the change made.
func (w *Writer) TakeBack(ctx context.Context, c *Change, before *unstructured.Unstructured, status Status) Record {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takingBack)
	defer cancel()
	r := Record{Time: w.Now(), Change: *c, Before: before, Status: NotTakenBack}
	version := ""
	for tries := 0; ; tries++ {
		ended, err := w.takeBack(ctx, &r, status, &version)
		switch {
		case ended:
			r.Status, r.Err = TakenBack, errors.Join(err, w.Journal.takenBack(&c.Op))
			return r
		case tries < mostTries && ctx.Err() == nil && passes(err):
			if err != nil {
				w.Wait(ctx, time.Duration(1+tries)*racing)
			}
			continue
		}
		if r.Err = err; err == nil {
			r.Err = errKept
		}
		return r
	}
}

// errRaced says that an object was changed between the look at it and what was sent to take a change back: it is to be looked at again.
var errRaced = errors.New("others change the object all the time")

// raced returns the error of a request that was for the version of the last look, as errRaced when the object has another by now.
func raced(err error) error {
	if errors.Is(err, remedy.ErrChanged) {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
}

// errKept says why a change is not taken back although the API server accepted that.
var errKept = errors.New("the API server accepts that it is taken back, and it is there again each time")

// passes reports whether taking a change back is to be tried again: it was sent and is to be read back, others were faster, or the answer
// proves nothing.
func passes(err error) bool {
	return err == nil || errors.Is(err, errRaced) || !errors.Is(err, remedy.ErrChanged) && StatusOf(err) == Unanswered
}

// takeBack looks at the object of a change, and sends what takes that back, if there is something to take back. It reports whether there is
// nothing; an error is why, then. version is the one that was sent for before, without an error: what does not change it has no effect,
// since the API server adds it as a default.
func (w *Writer) takeBack(ctx context.Context, r *Record, status Status, version *string) (ended bool, _ error) {
	c := &r.Change
	now, err := w.Read(ctx, c.Op.Object)
	if err != nil && !IsGone(c.Op.Object, now, err) {
		return false, err
	}
	back, obstacle, err := w.back(ctx, &c.Op, r.Before, now, err)
	switch {
	case r.tookBack(now) && (!fenced(now) || fenced(r.Before)):
		return true, nil
	case back != nil && *version == now.GetResourceVersion():
		if stands(&c.Op, r.Before, now) {
			return false, errKept
		}
		return true, nil
	case back != nil:
		r.Back = back
		err := w.send(ctx, new(back.At(now.GetResourceVersion())))
		if apierrors.IsForbidden(err) && c.Op.Grant != nil && back.Verb == remedy.Delete { // then without its subject it may stay
			if r.Back = ungrant(&c.Op, now); r.Back == nil {
				return true, nil
			}
			err = w.send(ctx, new(r.Back.At(now.GetResourceVersion())))
		}
		if err != nil {
			return false, raced(err)
		}
		if *version, r.taken = now.GetResourceVersion(), nil; obstacle == "" {
			r.taken = now
		}
		return false, nil
	case obstacle == Gone && r.Back != nil && c.Op.Creates():
		return true, nil
	case obstacle == Gone:
		return true, errGone
	case obstacle == Undone && r.Back == nil && mayArrive(status, r.Before, now):
		return false, raced(w.fence(ctx, c, now))
	case obstacle == Undone && fenced(now) && !fenced(r.Before): // the answer to that was lost
		return false, raced(w.TakeBack(ctx, fence(c, r.Before), r.Before, Done).Err)
	case obstacle == Undone:
		return true, nil
	case obstacle == Replaced:
		return false, errors.New(Words(obstacle))
	}
	return false, errors.Join(fmt.Errorf("%s: %w", c.Op.Object, remedy.ErrChanged), err)
}

// tookBack reports whether what was sent has taken the change back: what is there of it by now others have added.
func (r *Record) tookBack(now *unstructured.Unstructured) bool {
	if r.taken == nil || now == nil || now.GetUID() != r.taken.GetUID() {
		return false
	}
	fields, err := r.Back.Fields(r.taken.Object)
	if err != nil || len(fields) == 0 {
		return false
	}
	_, standing := remedy.Reverse(fields, r.taken.Object, now.Object)
	return standing != remedy.AsBefore
}

// stands reports whether something that a change has made is there as it was made.
func stands(op *remedy.Op, before, now *unstructured.Unstructured) bool {
	if before == nil {
		return true
	}
	fields, _ := op.Fields(before.Object)
	return slices.ContainsFunc(fields, func(f remedy.Field) bool {
		is, _ := remedy.At(now.Object, f.Path)
		entries, list := f.Is.([]any)
		if !list {
			return f.Is != nil && remedy.Within(f.Is, is)
		}
		was, _ := f.Was.([]any)
		there, _ := is.([]any)
		return slices.ContainsFunc(entries, func(e any) bool {
			made := func(other any) bool { return remedy.Within(e, other) }
			return !slices.ContainsFunc(was, made) && slices.ContainsFunc(there, made)
		})
	})
}

// mayArrive reports whether a change of which no answer came might still be made: it was sent for the version that its object still has.
func mayArrive(status Status, before, now *unstructured.Unstructured) bool {
	return status != Done && before != nil && now.GetResourceVersion() == before.GetResourceVersion()
}

// fence changes an object and changes it back, so that a write of which no answer came, and which was for the version before, is refused
// when it arrives at last.
func (w *Writer) fence(ctx context.Context, c *Change, now *unstructured.Unstructured) error {
	f := fence(c, now)
	made := w.Make(ctx, f, now)
	if made.Status != Done {
		return made.Err
	}
	return w.TakeBack(ctx, f, now, Done).Err
}

const fenceAnnotation = "kubectl-gc/fence"

// fence is the change of an object, as it was before a change, that keeps that from being made late.
func fence(c *Change, before *unstructured.Unstructured) *Change {
	step := remedy.Add("/metadata/annotations/kubectl-gc~1fence", "1")
	if len(before.GetAnnotations()) == 0 {
		step = remedy.Add("/metadata/annotations", map[string]any{fenceAnnotation: "1"})
	}
	return &Change{Op: remedy.PatchOf(c.Op.Object, step), Cause: c.Cause, Why: fencing, Risk: c.Risk, Temporary: true}
}

func fenced(o *unstructured.Unstructured) bool {
	return o != nil && o.GetAnnotations()[fenceAnnotation] != ""
}

// errGone says that an object does not exist any more, so that nothing of it is to be taken back.
var errGone = errors.New("the object does not exist any more")

// IsGone reports whether the answer to a GET proves that an object does not exist: nothing has its name, or another object has.
func IsGone(id graph.Identity, current *unstructured.Unstructured, err error) bool {
	return answer.NoSuchObject(err, id.Resource.GroupResource(), id.Name) || err == nil && current.GetUID() != id.UID
}
