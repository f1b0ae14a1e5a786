// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/change"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// putBack takes back what an earlier run has changed.
func (o *unstickOptions) putBack(ctx context.Context) error {
	recorded, err := unstick.ReadJournal(o.undo)
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	if err := o.prepare(ctx, o.dryRun == "server"); err != nil {
		return err
	}
	if !recorded.Same(o.where.Server, o.where.UID) { // UIDs guard most changes, names the others
		return hintedError{fmt.Errorf("the run was on another cluster: %s, and this is %s", recorded.Server, o.where.Server), "--context and --kubeconfig choose the cluster"}
	}
	release, err := recorded.Claim()
	switch {
	case errors.Is(err, unstick.ErrGoing):
		return hintedError{err, "wait until it has ended, or interrupt it: it takes back what is temporary"}
	case err != nil:
		return fmt.Errorf("reading the journal: %w", err)
	}
	defer release()
	reversals := recorded.Undo(ctx, &unstick.Reading{Read: o.operator.Read, Resource: o.resource})
	possible := 0
	for i := range reversals {
		if err := render.Reversal(o.Out, &reversals[i]); err != nil {
			return err
		}
		if reversals[i].Op != nil {
			possible++
		}
	}
	switch {
	case possible == 0:
		fmt.Fprintln(o.Out, "Nothing to put back.")
		return nil
	case o.dryRun == "client":
		return nil
	case o.dryRun == "none" && !o.yes:
		if !isTerminal(o.In) {
			return hintedError{errors.New("asking for consent: there is no terminal"), "--yes goes ahead"}
		}
		answer, err := o.ask(ctx, fmt.Sprintf("Put back %s? (y/N): ", counted(possible, "change")), false)
		if err != nil {
			return err
		}
		if !change.Agrees(answer, "") {
			return unstick.ErrNotConfirmed
		}
	}
	return o.reverse(ctx, recorded, reversals)
}

// resource finds the type of a kind.
func (o *unstickOptions) resource(kind schema.GroupVersionKind) (graph.Resource, error) {
	mapper, err := o.config.ToRESTMapper()
	if err != nil {
		return graph.Resource{}, kubeconfigError(err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return graph.Resource{}, err
	}
	return graph.ResourceOf(mapping), nil
}

// reverse makes the changes that take others back.
func (o *unstickOptions) reverse(ctx context.Context, recorded *unstick.Recorded, reversals []unstick.Reversal) error {
	var failed []error
	for i := range reversals {
		v := &reversals[i]
		if v.Op == nil {
			continue
		}
		if err := o.operator.Do(ctx, v.Op); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", render.Change(v.Op), err))
			continue
		}
		if o.dryRun == "server" {
			continue
		}
		fmt.Fprintln(o.Out, "done: "+render.Change(v.Op))
		if err := recorded.MarkTakenBack(v.Entry.Number, time.Now()); err != nil {
			failed = append(failed, fmt.Errorf("writing the journal: %w", err))
		}
	}
	return errors.Join(failed...)
}

// resume takes back what an interrupted run on this cluster has changed for a while, and could not take back.
func (o *unstickOptions) resume(ctx context.Context) error {
	base, err := o.base()
	if base == "" || o.dryRun != "none" && err != nil { // a dry run keeps nothing
		return nil
	}
	if err != nil {
		return err
	}
	dirs, err := unstick.Journals(base)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		recorded, err := unstick.ReadJournal(dir)
		if err != nil {
			o.unreadJournal(err)
			continue
		}
		if len(recorded.Open()) == 0 || !recorded.Same(o.where.Server, o.where.UID) {
			continue
		}
		o.finishRun(ctx, recorded)
	}
	return nil
}

func (o *unstickOptions) unreadJournal(err error) {
	fmt.Fprintf(o.ErrOut, "warning: reading the journal of an earlier run, which may have left a temporary change: %s\n", render.Line(err.Error()))
}

// finishRun takes back what an earlier run has left open, unless that is still going; a dry run only says so.
func (o *unstickOptions) finishRun(ctx context.Context, recorded *unstick.Recorded) {
	release, err := recorded.Claim()
	switch {
	case errors.Is(err, unstick.ErrGoing):
		return
	case err != nil:
		o.unreadJournal(err)
		return
	}
	defer release()
	if len(recorded.Open()) == 0 { // it has ended since, and has taken back what it had changed
		return
	}
	fmt.Fprintf(o.ErrOut, "The run of %s has not taken back what it changed temporarily (%s):\n", recorded.Started.Format(time.RFC3339), recorded.Dir)
	for _, e := range recorded.Open() {
		if o.dryRun != "none" {
			fmt.Fprintln(o.ErrOut, "  open: "+render.Change(e.Op))
			continue
		}
		o.takeBack(ctx, recorded, &e)
	}
}

// takeBack takes one change of an earlier run back.
func (o *unstickOptions) takeBack(ctx context.Context, recorded *unstick.Recorded, e *unstick.Entry) {
	sent, err := unstick.TakeBack(ctx, o.operator.Read, o.operator.Do, e.Op)
	text := render.Change(e.Op.Back)
	switch {
	case unstick.IsGone(err):
		fmt.Fprintf(o.ErrOut, "  nothing to take back: %s: %s\n", render.Change(e.Op), err)
	case errors.Is(err, remedy.ErrChanged) && e.Result != unstick.Done:
		fmt.Fprintf(o.ErrOut, "  nothing to take back: it is not certain that it was made, and it is not there: %s\n", render.Change(e.Op))
	case err != nil:
		fmt.Fprintf(o.ErrOut, "  NOT taken back: %s: %s\n  Do it by hand: %s\n", text, render.Line(err.Error()), render.Command(e.Op.Back, "kubectl"+o.connection()))
		return
	case !sent && e.MayArrive(time.Now()):
		fmt.Fprintf(o.ErrOut, "  not there, but it might still arrive; the next run looks again: %s\n", render.Change(e.Op))
		return
	case !sent:
		fmt.Fprintf(o.ErrOut, "  nothing to take back: it is as it was before: %s\n", render.Change(e.Op))
	default:
		fmt.Fprintf(o.ErrOut, "  taken back: %s\n", text)
	}
	if err := recorded.MarkTakenBack(e.Number, time.Now()); err != nil {
		fmt.Fprintf(o.ErrOut, "warning: writing the journal: %s\n", render.Line(err.Error()))
	}
}
