// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// letGo makes the changes, and waits until the objects are gone. After an error the volumes stay retained.
func (o *reviveOptions) letGo(ctx context.Context, journal *change.Journal, r *change.Revival) error {
	w := o.writer(journal)
	hint := "complete or take back the rest: " + o.undoCommand(journal.Dir)
	if r.Secured > 0 {
		hint = "the volumes that were secured keep their data; " + hint
	}
	others := false
	for i := range r.Changes {
		c := &r.Changes[i]
		if r.Frees(c) {
			others = true
			continue
		}
		if err := o.store(ctx, &w, c); err != nil {
			return hintedError{fmt.Errorf("%s: %w", render.Change(&c.Op), err), hint}
		}
	}
	if others {
		if err := o.free(ctx, journal, r); err != nil {
			return hintedError{err, "run it again, or, if it is gone, complete it: " + o.undoCommand(journal.Dir)}
		}
	}
	for _, id := range r.Objects {
		if o.secureOnly {
			break
		}
		if err := o.until(ctx, id, "it is gone", func(*unstructured.Unstructured) bool {
			o.secured(ctx, &w, id)
			return false
		}); err != nil {
			return hintedError{err, hint}
		}
	}
	return nil
}

// store changes what claims and volumes need. Where others were faster, or no answer came, it is looked whether the change is there by now.
func (o *reviveOptions) store(ctx context.Context, w *change.Writer, c *change.Change) error {
	var first *unstructured.Unstructured
	for looks := 1; looks <= mostLooks; looks++ {
		now, err := w.Read(ctx, c.Op.Object)
		switch {
		case change.IsGone(c.Op.Object, now, err) && (c.Op.Unfinalizes() || c.Op.Verb == remedy.Delete):
			return nil // it is to go
		case err != nil, now.GetUID() != c.Op.Object.UID:
			return cmp.Or(err, remedy.ErrChanged)
		}
		first = cmp.Or(first, now)
		if fields, err := c.Op.Fields(first.Object); err == nil {
			switch _, standing := remedy.Reverse(fields, first.Object, now.Object); standing {
			case remedy.Made:
				fmt.Fprintln(o.Out, render.Undone(&change.Record{Change: *c, Status: change.Done}))
				return nil
			case remedy.Altered:
				return remedy.ErrChanged
			}
		}
		if changed, err := o.makes(ctx, w, c, now); err != nil || !changed {
			return err
		}
		wait(ctx, time.Second)
	}
	return errBusy
}

// secured has a volume retained again that others would have deleted with its claim, as long as that is there.
func (o *reviveOptions) secured(ctx context.Context, w *change.Writer, id graph.Identity) {
	if !slices.Contains(o.claims, id.Unidentified()) {
		return
	}
	if r, err := w.Revive(ctx, []graph.Identity{id.Unidentified()}, true, nil, nil); err == nil { // again in a second otherwise
		for i := range r.Changes {
			_ = o.store(ctx, w, &r.Changes[i])
		}
	}
}

// makes makes a change of an object that is as before shows it. It reports whether it is to be looked at again: others were faster, or no
// answer came.
func (o *reviveOptions) makes(ctx context.Context, w *change.Writer, c *change.Change,
	before *unstructured.Unstructured) (again bool, _ error) {
	made := w.Make(ctx, c, before)
	if made.Status == change.Done {
		fmt.Fprintln(o.Out, render.Undone(&made))
		return false, nil
	}
	if err := cmp.Or(made.Err, remedy.ErrChanged); made.Status != change.Unanswered && !answer.Retryable(err) && !apierrors.IsConflict(err) &&
		!apierrors.IsNotFound(err) {
		fmt.Fprintln(o.Out, render.Undone(&made))
		return false, err
	}
	return true, nil
}

// mostLooks is how often a revival looks again, because dependents come or others write what it lets go.
const mostLooks = 20

var errBusy = errors.New("others write it, or create dependents of it, all the time, or the API server does not answer")

// free lets go what is neither claim nor volume. All of the plan is found out again before each change, which is for the version that was
// looked at then: that nobody acts on a finalizer, and what depends on the objects. What has come to is orphaned, too, before the
// finalizers are removed.
func (o *reviveOptions) free(ctx context.Context, journal *change.Journal, r *change.Revival) error {
	claims := o.claims
	o.claims = nil
	defer func() { o.claims = claims }()
	w := o.writer(journal)
	for looks, orphaned := 1, false; ; looks++ {
		now, err := o.plan(ctx)
		switch {
		case err != nil:
			return err
		case !now.Within(r):
			return errors.New("it has changed since the question")
		case looks > mostLooks:
			return errBusy
		}
		verb := remedy.Patch
		if !orphaned || len(now.Orphans) > 0 {
			if verb, orphaned = remedy.Delete, true; looks > 1 {
				if err := journal.KeepOrphans(now); err != nil {
					return err
				}
			}
		}
		done, err := o.freed(ctx, &w, now, verb)
		if err != nil || done && verb == remedy.Patch || len(o.others.args) == 0 {
			return err
		}
		orphaned = orphaned && (done || verb == remedy.Patch)
	}
}

// freed makes the changes of a verb, and waits until dependents are orphaned. It reports whether all were made. What is gone by then is not
// asked about again.
func (o *reviveOptions) freed(ctx context.Context, w *change.Writer, now *change.Revival, verb remedy.Verb) (done bool, err error) {
	done, o.others.args = true, nil
	for n, id := range now.Objects {
		again := false
		for i := range now.Changes {
			c := &now.Changes[i]
			if c.Op.Object.UID != id.UID || c.Op.Verb != verb {
				continue
			}
			if again, err = o.makes(ctx, w, c, now.Kept[n]); err != nil {
				return false, fmt.Errorf("%s: %w", render.Change(&c.Op), err)
			}
			done = done && !again
		}
		left := false
		if err := o.until(ctx, id, "its dependents are orphaned", func(now *unstructured.Unstructured) bool {
			left = again || verb == remedy.Patch || !slices.ContainsFunc(now.GetFinalizers(), graph.IsCollectorFinalizer)
			return left
		}); err != nil {
			return false, err
		}
		if left {
			o.others.args = append(o.others.args, id.Resource.GroupResource().String()+"/"+id.Name)
		}
	}
	return done, nil
}

// until waits until an object is as it should be, or gone.
func (o *reviveOptions) until(ctx context.Context, id graph.Identity, what string, is func(*unstructured.Unstructured) bool) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for w := o.writer(nil); ; wait(ctx, time.Second) {
		now, err := w.Read(ctx, id)
		switch {
		case change.IsGone(id, now, err), err == nil && is(now):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: waiting until %s: %w; %s explain-stuck says what it waits for", id, what, ctx.Err(), o.name)
		}
	}
}
