// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// deletionExitCodes ends the help of what deletes.
const deletionExitCodes = `Exit codes:
  0    done
  1    error, or not confirmed
  2    something remains; the report says what it waits for. With --dry-run:
       something would get stuck, might because its controller is deleted, too,
       or would break
  3    refused: something that could not be read might change the outcome
  130  interrupted`

// deletionOptions are what the command lines of delete and collect share.
type deletionOptions struct {
	*globals
	consenting
	journaling
	steps           bool
	interactive     bool
	wait            bool
	concurrency     int
	allowIncomplete tolerance
	scope           string
	order           string
	output          output[*deletionAnswer]
	// ran: there is a report, of which the user has been told.
	ran bool
}

func (d *deletionOptions) addDeletionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	d.flags = flags
	d.addDryRun(`"client" shows what would happen, "server" also asks the server about the writes, "none" does it`)
	flags.BoolVar(&d.steps, "steps", false, "Show each write, in order; with --dry-run as -o wide does")
	flags.BoolVarP(&d.yes, "yes", "y", false, "Do not ask")
	flags.BoolVarP(&d.interactive, "interactive", "i", false, "Ask even when standard input is not a terminal")
	flags.StringVar(&d.confirm, "confirm", "", "Go ahead only if the writes are those with this digest, which --dry-run printed")
	flags.BoolVar(&d.wait, "wait", true, "Wait for pods' grace periods and for controllers that remove finalizers")
	flags.DurationVar(&d.timeout, "timeout", 0, "How long to wait for objects to be deleted; 0 gives up when nothing has changed for a while")
	flags.IntVar(&d.concurrency, "concurrency", 16, "Number of writes in flight")
	d.journaling.addFlags(flags, "Keep each object that is deleted or changed, whole, in a new directory below this one")
	flags.Var(&d.allowIncomplete, "allow-incomplete",
		"Go ahead although something that could not be read might change the outcome; with API groups or types as its value, when nothing else is missing")
	flags.Lookup("allow-incomplete").NoOptDefVal = "true"
	flags.StringVar(&d.scope, "scope", "auto",
		`What to read: "cluster", "namespace", or "auto", which is what the answer needs, as far as you are allowed to read it`)
	d.output = newOutput(
		(*deletionAnswer).document,
		format[*deletionAnswer]{"", func(w io.Writer, style render.Style, a *deletionAnswer) error {
			return writeDeletion(w, style, a, d.steps || d.dryRun == "server")
		}},
		format[*deletionAnswer]{"wide", func(w io.Writer, style render.Style, a *deletionAnswer) error {
			return writeDeletion(w, style, a, true)
		}},
		ticket(d.globals, func(w io.Writer, style render.Style, a *deletionAnswer) error {
			return writeDeletion(w, style, a, true)
		}, (*deletionAnswer).moments),
		format[*deletionAnswer]{"name", func(w io.Writer, _ render.Style, a *deletionAnswer) error {
			return render.DeletedNames(w, a.report.Outcomes)
		}},
		format[*deletionAnswer]{"dot", func(w io.Writer, _ render.Style, a *deletionAnswer) error { return draw.DOT(w, a.picture()) }},
		format[*deletionAnswer]{"html", func(w io.Writer, _ render.Style, a *deletionAnswer) error { return draw.HTML(w, a.picture()) }},
	)
	d.output.addFlags(d.globals, cmd)
	d.completeValues(cmd, map[string][]string{"dry-run": dryRuns, "scope": scopes})
}

// scopes are the values of --scope.
var scopes = []string{"auto", "namespace", "cluster"}

func (d *deletionOptions) validateDeletion() error {
	if err := cmp.Or(d.validateBackup(), d.validateConsent(d.globals)); err != nil {
		return err
	}
	switch {
	case !slices.Contains(scopes, d.scope):
		return usageError{fmt.Errorf(`invalid --scope %q: must be "auto", "namespace" or "cluster"`, d.scope)}
	case d.order != "" && !slices.Contains(orders, d.order):
		return usageError{fmt.Errorf(`invalid --order %q: must be "default" or "safe"`, d.order)}
	case d.concurrency < 1:
		return usageError{errors.New("--concurrency must be at least 1")}
	case d.dryRun == "none" && (d.output.name == "dot" || d.output.name == "html"):
		return usageError{fmt.Errorf("-o %s draws a preview: it needs --dry-run", d.output.name)}
	}
	return cmp.Or(d.validateInteractive(), d.output.validate(d.globals))
}

// telling is a deletion as the user is told of it, and asked.
type telling struct {
	*deletionOptions
	session *session
	// what is done, as a command says it.
	what string
	// dangers are said before the preview, and so before the question.
	dangers []string
	// demanding: it is an error when something that the command names is not there.
	demanding bool
	progress  *progress
}

// execute previews a job, and unless it is a dry run asks and does it.
func (t *telling) execute(ctx context.Context, j *change.Job) error {
	p, err := change.Make(ctx, j, change.Options{
		Safe: t.order == orderSafe, Beforehand: t.beforehand(), Tolerance: t.allowIncomplete.Tolerance,
		NoWait: !t.wait, Timeout: t.timeout, Concurrency: t.concurrency, Asker: t, Log: t.tell,
		Keep: func(ctx context.Context, p *change.Plan) (*change.Journal, error) {
			return t.keep(ctx, t.session.reader, p)
		},
	})
	if err != nil {
		return err
	}
	for _, danger := range t.dangers {
		fmt.Fprintln(t.ErrOut, "Warning: "+render.Line(danger))
	}
	if n := p.Secrets(); n > 0 && t.backup != "" && t.backup != noBackup && !t.secrets {
		fmt.Fprintf(t.ErrOut, "The data of %s is not backed up (--backup-secrets).\n", counted(n, "Secret"))
	}
	if t.dryRun != "none" {
		return t.show(ctx, p)
	}
	// What could not be read is said before the question, also when it is tolerated.
	if err := t.warn(t.session, p.Graph.Snapshot()); err != nil {
		return err
	}
	consent, err := p.Consent(ctx)
	switch {
	case err != nil:
		return err
	case consent.Gone:
		return t.withoutTargets(consent)
	case len(consent.Plan.Report.Steps) == 0:
		return t.withoutSteps(consent.Plan)
	}
	return t.perform(ctx, consent)
}

// show prints the preview of a job, with what the server says to it in a server dry run.
func (t *telling) show(ctx context.Context, p *change.Plan) error {
	plan := render.NewDeletionPlan(p.Plan)
	plan.Foresee(p.Forecast, t.order == orderSafe)
	if t.dryRun == "server" {
		answers, err := p.AskServer(ctx)
		if err != nil {
			return err
		}
		note(plan, answers)
	}
	shown := t.preview(p)
	shown.Plan = plan
	if t.dryRun == "server" {
		shown.What += ", asked of the server"
	}
	if err := t.printAnswer(&deletionAnswer{graph: p.Graph, report: p.Report, preview: shown}); err != nil {
		return err
	}
	if err := t.finish(t.session, p.Graph.Snapshot()); err != nil {
		return err
	}
	return cmp.Or(t.refusals(plan), t.wouldStick(p))
}

// note adds the server's answers to a plan.
func note(plan *render.DeletionPlan, answers *change.Answers) {
	for i, err := range answers.Steps {
		plan.Steps[i].Server = render.NewServerAnswer(err)
		if errors.As(err, new(cluster.NotAskedError)) {
			plan.Steps[i].Server = render.NewNotAsked(err)
		}
	}
	plan.Afterwards = render.NewAfterwards(answers.Others, answers.Asked, answers.Said)
}

// withoutTargets ends a deletion of which no target is left: what would have gone with them need not be gone.
func (t *telling) withoutTargets(consent *change.Consent) error {
	defer t.finishStats(t.session)
	if len(consent.Left) == 0 {
		fmt.Fprintln(t.ErrOut, "The objects that you agreed to delete are gone: nothing is left to do.")
		return t.printNothing(consent.Plan.Graph)
	}
	fmt.Fprintf(t.ErrOut,
		"Nothing was changed: the chosen objects are gone, or not chosen any more. Of those that you agreed to delete, these still exist: %s.\n",
		render.NamesOf(consent.Left))
	return cmp.Or(t.printNothing(consent.Plan.Graph), errRemaining)
}

// withoutSteps ends a job whose preview has no steps: all is done, or what remains
// waits for something that no write of the job would bring about.
func (t *telling) withoutSteps(p *change.Plan) error {
	fmt.Fprintln(t.ErrOut, render.NoSteps(p.Report))
	remaining := &gc.Report{Outcomes: p.Report.Remaining()}
	if t.output.own() == nil { // a document has what nobody can decide about, too
		remaining.Outcomes = slices.DeleteFunc(slices.Clone(p.Report.Outcomes), func(o gc.Outcome) bool {
			return o.Result != gc.Remaining && o.Result != gc.Unknown
		})
	}
	for i := range remaining.Outcomes {
		if o := &remaining.Outcomes[i]; o.Object.BeingDeleted() {
			o.Result = gc.Remaining // as yet, whatever the preview hopes for
		}
	}
	return cmp.Or(t.printReport(p.Graph, []render.Event{}, remaining), t.finishWarned(t.session, p.Graph.Snapshot()), remains(remaining))
}

// remains is the exit code of a run, errRemaining exactly when its report lists what
// remains.
func remains(report *gc.Report) error {
	if len(report.Remaining()) > 0 {
		return errRemaining
	}
	return nil
}

// wouldStick is the exit code of a dry run: something would get stuck, or might
// because its controller goes as well, or something else would break; with --strict also that not all could be read that tells.
func (t *telling) wouldStick(p *change.Plan) error {
	switch {
	case p.Sticks():
		return errRemaining
	case t.strict && p.Forecast != nil && len(p.Forecast.Unread) > 0:
		return errIncomplete
	}
	return nil
}

// deletionAnswer is the preview of a job, or what a run of it did.
type deletionAnswer struct {
	where  *answer.Where
	graph  *graph.Graph
	report *gc.Report
	// preview is that of a dry run, nil for a run. events are the writes of a run.
	preview *render.Preview
	events  []render.Event
	// undo is the command that takes a run back, empty for none.
	undo string
}

func (a *deletionAnswer) document() runtime.Object {
	if a.preview != nil {
		return a.preview.Plan.WithOutcome()
	}
	return render.NewDeletionReport(a.graph.Snapshot(), a.events, a.report)
}

// moments are the writes of a run, for a ticket.
func (a *deletionAnswer) moments() (moments []render.Moment, undo string) {
	for i := range a.events {
		moments = append(moments, a.events[i].Moment())
	}
	return moments, a.undo
}

// picture draws a preview.
func (a *deletionAnswer) picture() *draw.Picture {
	p := render.OutcomePicture(a.graph, a.report.Outcomes, a.preview.Forecast)
	p.Title = "Preview: " + cmp.Or(a.preview.What, "nothing to delete")
	if steps := len(a.preview.Plan.Steps); steps > 0 {
		p.Subtitle = counted(len(p.Nodes), "object") + a.where.In() + ", " + counted(steps, "write") + ", " + a.preview.Plan.Digest
	}
	p.Notes = slices.Concat(incomplete(a.graph.Snapshot()), a.preview.Lines())
	return p
}

// writeDeletion writes an answer for a person, that of a preview with its steps or their number.
func writeDeletion(w io.Writer, style render.Style, a *deletionAnswer, steps bool) error {
	if a.preview == nil {
		return render.Summary(w, style, a.where, a.report.Outcomes)
	}
	return a.preview.Text(w, style, steps)
}

// refusals reports what the server said no to in a dry run, and to what it said
// nothing. What it was not asked about is neither: the exit code is that of the
// rest.
func (d *deletionOptions) refusals(plan *render.DeletionPlan) error {
	refused, unanswered, notAsked := 0, 0, 0
	var why []string
	for _, step := range plan.Steps {
		switch {
		case step.Server == nil || step.Server.Accepted:
		case step.Server.NotAsked:
			notAsked++
			why = append(why, step.Server.Message)
		case step.Server.Unanswered:
			unanswered++
		default:
			refused++
		}
	}
	if refused > 0 {
		fmt.Fprintf(d.ErrOut, "The server would refuse %d of %d writes.\n", refused, len(plan.Steps))
	}
	if unanswered > 0 {
		fmt.Fprintf(d.ErrOut, "The server did not answer %d of %d writes.\n", unanswered, len(plan.Steps))
	}
	if notAsked > 0 {
		slices.Sort(why)
		fmt.Fprintf(d.ErrOut, "The server was not asked about %d of %d writes: %s.\n", notAsked, len(plan.Steps),
			render.Line(strings.Join(slices.Compact(why), "; ")))
	}
	if refused+unanswered > 0 || plan.Afterwards != nil && len(plan.Afterwards.Refused) > 0 {
		return errRemaining
	}
	return nil
}

// unlessInterrupted returns the error with which a command has ended. What was interrupted before anything was
// written says so.
func (d *deletionOptions) unlessInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !d.ran {
		fmt.Fprintln(d.ErrOut, interrupted(&gc.Report{}, false, ""))
	}
	return err
}

// perform does the job on the cluster and reports.
func (t *telling) perform(ctx context.Context, consent *change.Consent) error {
	p := consent.Plan
	result, err := consent.Run(ctx)
	if result == nil {
		return err
	}
	t.ran = true
	report, again := result.Report, t.again(p.Job, result.Report)
	if printErr := t.printReport(result.Job.Graph, t.progress.events, report); printErr != nil {
		return unreported(printErr, report, again)
	}
	if undo := t.undoes(); undo != "" {
		fmt.Fprintln(t.ErrOut, "Undo:    "+undo)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		if remains(report) != nil {
			fmt.Fprintf(t.ErrOut, "Timed out after %s. %s\n", t.timeout, again)
		}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(t.ErrOut, interrupted(report, p.Managed, again))
		return err
	case err != nil:
		return err
	}
	t.finishStats(t.session) // what was not read was accepted before the first write: --strict is about answers
	return remains(report)
}

// unreported is the error of a run of which the report could not be written. That is all that
// anybody learns of what it has changed.
func unreported(err error, report *gc.Report, again string) error {
	deleted, remaining := 0, len(report.Remaining())
	for _, o := range report.Outcomes {
		if o.Result == gc.Deleted {
			deleted++
		}
	}
	err = fmt.Errorf("writing the report of a run that is over (gone: %d, remaining: %d): %w", deleted, remaining, err)
	if remaining > 0 {
		return hintedError{err, strings.ToLower(again[:1]) + strings.TrimSuffix(again[1:], ".")}
	}
	return err
}

func (d *deletionOptions) printAnswer(a *deletionAnswer) error {
	a.where, a.undo = d.where, d.undoes()
	return d.output.print(d.globals, a)
}

func (d *deletionOptions) printReport(g *graph.Graph, events []render.Event, report *gc.Report) error {
	return d.printAnswer(&deletionAnswer{graph: g, report: report, events: events})
}

// printNothing writes the document of a run without writes, for programs; people
// have been told.
func (d *deletionOptions) printNothing(g *graph.Graph) error {
	report := &gc.Report{}
	switch {
	case d.output.isText():
		return nil
	case d.dryRun != "none":
		return d.printAnswer(&deletionAnswer{graph: g, report: report,
			preview: &render.Preview{Report: report, Plan: render.NewDeletionPlan(preview.Nothing(g))}})
	}
	return d.printReport(g, []render.Event{}, report)
}

// identities returns the identities of objects.
func identities(objects []graph.Object) []graph.Identity {
	var ids []graph.Identity
	for i := range objects {
		ids = append(ids, objects[i].Identity())
	}
	return ids
}

func uids(ids []graph.Identity) []types.UID {
	var result []types.UID
	for _, id := range ids {
		result = append(result, id.UID)
	}
	return result
}
