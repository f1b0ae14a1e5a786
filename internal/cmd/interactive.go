// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// validateInteractive finds flags that contradict --interactive
// (kubectl/pkg/cmd/delete/delete.go, Validate).
func (d *deletionOptions) validateInteractive() error {
	switch {
	case d.interactive && (d.yes || d.confirm != ""):
		return usageError{errors.New("--interactive asks, and --yes and --confirm answer: use only one of them")}
	case d.interactive && d.dryRun != "none":
		return usageError{errors.New("--interactive cannot be used with --dry-run, which asks nothing")}
	}
	return nil
}

// Show implements change.Asker.
func (t *telling) Show(p *change.Plan) error {
	style, err := t.style(t.ErrOut)
	if err != nil {
		return err
	}
	shown := t.preview(p)
	if t.steps {
		shown.Plan, shown.Asking = render.NewDeletionPlan(p.Plan), true
	}
	if err := shown.Text(t.ErrOut, style, t.steps); err != nil {
		return err
	}
	if p.Takes >= time.Second && t.wait {
		fmt.Fprintf(t.ErrOut, "It might take %s, because of grace periods and controllers.\n", duration.HumanDuration(p.Takes))
	}
	return nil
}

// tell says what happens on the way.
func (t *telling) tell(e change.Event) {
	switch {
	case e.Unread != nil:
		_ = render.Warnings(t.ErrOut, e.Unread) // what follows says the same
	case e.LeftOut != nil:
		fmt.Fprintf(t.ErrOut, "Left out, because they are gone, replaced, or not chosen any more: %s.\n", render.NamesOf(e.LeftOut))
	case e.Changed != nil:
		fmt.Fprintf(t.ErrOut, "\nThis has changed since you were asked, first %s. What would happen now:\n",
			render.NamesOf([]graph.Identity{*e.Changed}))
	case e.Begins:
		t.progress = newProgress(t.deletionOptions)
	case e.Wrote != nil:
		t.progress.wrote(*e.Wrote)
	case e.Ends:
		t.progress.end(t.ErrOut)
	}
}

// Ask implements change.Asker on a terminal. Without one the answer is no.
func (t *telling) Ask(ctx context.Context, q change.Question) (string, error) {
	switch digest := answer.Short(q.Plan.Digest); {
	case t.mayAsk(&q):
		what := t.what + t.where.In()
		if t.backup == "" || t.backup == noBackup {
			what += ", without --backup"
		}
		return t.ask(ctx, questionText(what, &q), !isTerminal(t.In))
	case q.System:
		return "", hintedError{
			fmt.Errorf("asking for consent: %s belongs to the system, and there is no terminal to type its name on", q.Name),
			"--confirm=" + digest + " goes ahead with exactly these writes",
		}
	default:
		return "", hintedError{errors.New("asking for consent: there is no terminal"),
			"--yes goes ahead; --confirm=" + digest + " goes ahead with exactly these writes"}
	}
}

// mayAsk reports whether there is somebody to ask: a terminal, or with --interactive
// whoever writes to standard input, as kubectl has it. What belongs to the system is
// agreed to on a terminal alone.
func (d *deletionOptions) mayAsk(q *change.Question) bool {
	return isTerminal(d.In) || d.interactive && !q.System
}

// questionText asks whether something is to be done, where, and repeats the worst of it.
func questionText(what string, q *change.Question) string {
	what = render.Line(strings.ToUpper(what[:1]) + what[1:])
	typing := fmt.Sprintf(" Type %q to continue: ", q.Name)
	switch count, text := render.Destroyed(q.Destroyed); {
	case q.System:
		return what + "? It belongs to the system." + typing
	case count == 0:
		return what + "? (y/N): "
	case count == 1:
		return render.Line(fmt.Sprintf("%s and DESTROY %s on %s?", what, cmp.Or(q.Destroyed[0].Size, "all"), q.Destroyed[0].On())) + typing
	default:
		return fmt.Sprintf("%s and DESTROY %s?", what, text) + typing
	}
}
