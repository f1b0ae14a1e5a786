// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// unstickOptions are what the command line of unstick says.
type unstickOptions struct {
	explainOptions
	consenting
	journaling
	allow   string
	causes  []string
	undoDir string
	answers output[*unstickAnswer]

	// picks are the numbers of the command line, with their words.
	picks   []unstick.Pick
	numbers []string
	// session is that of the first look.
	session   *session
	followers unstick.Followers
	journal   *change.Journal
}

// unstickAnswer is a plan, or what a run did.
type unstickAnswer struct {
	where *answer.Where
	look  *unstick.Look
	plan  *unstick.Plan
	// server is what the API server says to the changes, by their keys.
	server map[string]error
	// report is that of a run, nil for a plan, and outcome what that has come to.
	report  *unstick.Report
	outcome *unstick.Outcome
	// backup is the directory of the journal, and undo the command that takes back what was done; empty for none.
	backup, undo string
}

const unstickLong = `Free objects whose deletion is stuck: explain them, choose for each cause the
least risky way out that a program can carry out, show the plan, ask, do it, and
explain again, until nothing is stuck that may be freed.

Without arguments this is about everything that is being deleted in the
namespace, with -A in the cluster. --cause picks a cause by its name, or a way
out of it, as explain-stuck prints them. A number is that of the last answer
about the same objects: a cause, or, if there is only one, a way out; 3.2 is way
out 2 of cause 3. It is refused when it means something else by now.

--allow is the highest risk: "safe" loses nothing, "disruptive" interrupts
something, "dangerous" may lose data, or leave something behind that the
controller of a finalizer would have cleaned up. A way out that you pick is
allowed. What is dangerous is agreed to by typing a name, for each
cause.

Every change is proved again right before: its object is read, the explanation
is repeated, and the change is sent for exactly the version that was read.
Temporary changes, such as an exemption from a webhook, are taken back at
the end. Each object is kept as it was in --backup; --undo puts back what can be
put back.

Never: a namespace is not finalized while it has content, a finalizer is not
removed while its controller makes progress, and a list of finalizers is never
emptied at once.

Exit codes:
  0    everything that was asked for is gone, with the dependents that were
       terminating with it
  1    error, or not confirmed
  2    something is still being deleted or Unknown; or would be
  3    with --strict: incomplete, because something could not be read
  130  interrupted`

const unstickExample = `  # What would be done
  NAME unstick namespace/shop --dry-run=client

  # Do it: shows the plan and asks
  NAME unstick namespace/shop

  # Also what interrupts something
  NAME unstick namespace/shop --allow=disruptive

  # Way out 2 that explain-stuck has just shown
  NAME unstick deployment/web 2

  # Put back what an earlier run has changed
  NAME unstick --undo DIR`

func newUnstick(g *globals) *cobra.Command {
	o := &unstickOptions{explainOptions: explainOptions{globals: g, each: true, besides: besidesStuck}, journaling: journaling{g: g}}
	cmd := &cobra.Command{
		Use:               "unstick [TYPE NAME | TYPE/NAME ... | TYPE] [N ...] [-l SELECTOR] [-f FILE]",
		Short:             "Free objects whose deletion is stuck, by the least risky way out",
		Long:              unstickLong,
		Example:           g.example(unstickExample),
		ValidArgsFunction: g.completeTerminating,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.flags = flags
	o.addStuckFlags(flags)
	o.answers = newOutput(
		(*unstickAnswer).document,
		format[*unstickAnswer]{"", func(w io.Writer, style render.Style, a *unstickAnswer) error {
			return o.write(w, a, &render.UnstickText{Style: style})
		}},
		format[*unstickAnswer]{"wide", func(w io.Writer, style render.Style, a *unstickAnswer) error {
			return o.write(w, a, &render.UnstickText{Style: style, Wide: true})
		}},
		ticket(g, func(w io.Writer, style render.Style, a *unstickAnswer) error {
			return o.write(w, a, &render.UnstickText{Style: style, Wide: true})
		}, (*unstickAnswer).moments),
		format[*unstickAnswer]{"name", func(w io.Writer, _ render.Style, a *unstickAnswer) error { return a.names(w) }},
	)
	o.answers.addFlags(g, cmd)
	flags.StringVar(&o.allow, "allow", string(explain.Safe), `The highest risk of what is done: "safe", "disruptive" or "dangerous"`)
	flags.StringSliceVar(&o.causes, "cause", nil,
		"Deal with this cause only, ID@OBJECT, or with a way out of it, ID@OBJECT:WAY, as explain-stuck names them, or with all of an ID; may be repeated")
	o.addDryRun(`"client" shows what would be done, "server" also asks the server about the changes, "none" does it`)
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask about what is safe")
	flags.StringVar(&o.confirm, "confirm", "", "Go ahead only if the changes are those with this digest, which --dry-run printed")
	flags.DurationVar(&o.timeout, "timeout", 0,
		"How long to wait for what may still be freed; 0 gives up when nothing has changed for a while")
	o.journaling.addFlags(flags, "Keep each object as it was in a new directory below this one")
	flags.StringVar(&o.undoDir, "undo", "", "Take back what the run with this directory has changed, as undo does")
	register(cmd, "undo", o.completeRuns)
	register(cmd, "cause", o.completeCauses(func(_ int, name string) string { return name }))
	g.completeValues(cmd, map[string][]string{"dry-run": dryRuns, "allow": {"safe", "disruptive", "dangerous"}})
	return cmd
}

// number is a cause, or a cause and a way out.
var number = pattern.New(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// takePicks takes the numbers at the end of the arguments: after TYPE NAME they are names.
func (o *unstickOptions) takePicks() error {
	end := len(o.args)
	for end > 0 && number().MatchString(o.args[end-1]) {
		end--
	}
	objects := o.args[:end]
	if len(objects) > 0 && !slices.ContainsFunc(objects, func(a string) bool { return strings.Contains(a, "/") }) && end < len(o.args) {
		return nil
	}
	for _, text := range o.args[end:] {
		first, second, both := strings.Cut(text, ".")
		var p unstick.Pick
		p.Way, _ = strconv.Atoi(first) // up to six digits
		if both {
			p.Cause = p.Way
			p.Way, _ = strconv.Atoi(second)
		}
		if p.Way == 0 || both && p.Cause == 0 {
			return usageError{fmt.Errorf("%s: numbers are counted from 1", text)}
		}
		o.picks = append(o.picks, p)
	}
	o.args, o.numbers = objects, o.args[end:]
	return nil
}

func (o *unstickOptions) validate() error {
	if err := o.takePicks(); err != nil {
		return err
	}
	if err := cmp.Or(o.validateStuck(), o.validateBackup(), o.validateConsent(o.globals)); err != nil {
		return err
	}
	risky := explain.Risk(o.allow)
	switch {
	case risky != explain.Safe && risky != explain.Disruptive && risky != explain.Dangerous:
		return usageError{fmt.Errorf(`invalid --allow %q: must be "safe", "disruptive" or "dangerous"`, o.allow)}
	case o.undoDir == "" && o.flags.Changed("undo"): // an empty variable of a script
		return usageError{errors.New("--undo needs the directory of a run")}
	case slices.Contains(o.causes, "") || len(o.causes) == 0 && o.flags.Changed("cause"):
		return usageError{errors.New("--cause needs the identifier of a cause")}
	case o.yes && o.confirm != "":
		return usageError{errors.New("--yes and --confirm are two answers: one of them goes")}
	case o.undoDir != "" && (o.given() || o.allNamespaces || len(o.picks) > 0 || len(o.from) > 0):
		return usageError{errors.New("--undo takes no objects: what it puts back is in its directory")}
	}
	return o.answers.validate(o.globals)
}

func (o *unstickOptions) run(ctx context.Context) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	if o.undoDir != "" {
		if err := o.reach(ctx, o.dryRun == "server"); err != nil {
			return err
		}
		r, err := o.journaling.read(o.undoDir)
		if err != nil {
			return err
		}
		return o.undo(ctx, &o.consenting, r, undoWhat{})
	}
	if err := o.readFinalizers(); err != nil {
		return err
	}
	if len(o.from) == 0 {
		if err := o.reach(ctx, o.dryRun != "none"); err != nil {
			return err
		}
		if err := o.open(ctx); err != nil {
			return err
		}
		defer func() { _ = o.journal.Close() }() // after what is printed, unless free has closed it
	}
	l, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := o.nothingToExplain(ctx, l); err != nil {
		return errors.Join(err, o.finish(l.session, l.snapshot))
	}
	o.session = l.session
	options, err := o.choosing(l)
	if err != nil {
		return cmp.Or(l.failed, err) // numbers were those of what was there
	}
	if len(l.report.Objects) == 0 && o.answers.isText() {
		return o.ended(l, o.writeNothing(o.Out, l))
	}
	first := o.seen(ctx, l)
	if o.dryRun != "none" {
		err = o.preview(ctx, first, options)
	} else {
		err = o.free(ctx, first, options)
	}
	return o.ended(l, err)
}

// choosing is what the command line says of what may be done.
func (o *unstickOptions) choosing(l *look) (*unstick.Options, error) {
	options := &unstick.Options{Allow: explain.Risk(o.allow), NoBackup: o.backup == noBackup ||
		len(o.from) == 0 && o.where.UID == "", Patient: o.timeout > 0}
	for _, text := range o.causes {
		name := unstick.ParseName(text)
		if number().MatchString(text) {
			return nil, usageError{fmt.Errorf("--cause=%s: the number of a cause is an argument: %s unstick %s", text, o.name,
				strings.Join(append(slices.Clone(o.args), text), " "))}
		}
		if !slices.ContainsFunc(finding.Kinds(), func(k explain.Kind) bool { return k.ID == name.ID }) {
			return nil, usageError{fmt.Errorf("--cause %s: there is no such cause", name.ID)}
		}
		picked, err := unstick.Resolve(l.report, []unstick.Name{name})
		if err != nil {
			return nil, o.lookAgain(l, fmt.Errorf("--cause=%s: %w", name, err))
		}
		options.Picked = append(options.Picked, picked...)
	}
	if len(o.picks) > 0 {
		picked, err := o.takeNumbers(l)
		if err != nil {
			return nil, err
		}
		options.Picked = append(options.Picked, picked...)
	}
	return options, nil
}

// preview shows what would be done.
func (o *unstickOptions) preview(ctx context.Context, l *unstick.Look, options *unstick.Options) error {
	a := &unstickAnswer{where: o.where, look: l, plan: unstick.Choose(l, options)}
	writes := a.plan.Writes()
	if o.dryRun == "server" {
		a.server = map[string]error{}
		for i := range writes {
			a.server[writes[i].Op.Key()] = o.sender.Do(ctx, &writes[i].Op)
		}
	}
	if err := o.answers.print(o.globals, a); err != nil {
		return err
	}
	o.noneChosen(a.plan)
	if o.answers.isText() && len(writes) > 0 {
		fmt.Fprintf(o.Out, "Approve exactly this: --confirm=%s\n", answer.Short(a.plan.Digest))
	}
	for _, err := range a.server {
		if err != nil {
			return errRemaining
		}
	}
	for i := range a.plan.Choices {
		if c := &a.plan.Choices[i]; c.Cause.Verdict == explain.Stuck && len(c.Writes) == 0 && c.Reason != unstick.Follows {
			return errRemaining
		}
	}
	if slices.ContainsFunc(l.Report.Objects, func(e explain.Explanation) bool { return e.Verdict == explain.Unknown }) {
		return errRemaining
	}
	return nil
}

// open makes the journal of a run, and has what earlier runs have left open taken back, if the user agrees.
func (o *unstickOptions) open(ctx context.Context) error {
	if o.dryRun == "none" {
		var err error
		if o.journal, err = o.begin(change.Header{}); err != nil {
			return err
		}
	}
	return o.resume(ctx, &o.consenting, o.journal)
}

// free carries out plan after plan.
func (o *unstickOptions) free(ctx context.Context, first *unstick.Look, options *unstick.Options) error {
	journal := o.journal
	edges := &unstick.Edges{
		Writer: o.writer(journal), Collect: o.collecting(journal), Look: o.lookOn, Asker: o, Log: o.tell,
	}
	o.followers.Note(first)
	report, err := edges.Run(ctx, first, options, o.beforehand())
	backup := ""
	if journal.Used() {
		backup = journal.Dir
	}
	err = errors.Join(err, journal.Close())
	if report.Plan != nil && len(report.Records) == 0 {
		o.noneChosen(report.Plan)
	}
	outcome := o.followers.Outcome(report)
	if len(report.Records) > 0 || err == nil {
		a := &unstickAnswer{where: o.where, look: report.Last, plan: report.Plan, report: report, outcome: outcome, backup: backup}
		if backup != "" && o.undoable(ctx, backup) {
			a.undo = o.undoCommand(backup)
		}
		if printErr := o.answers.print(o.globals, a); printErr != nil {
			return errors.Join(err, printErr)
		}
		if a.undo != "" && o.answers.isText() {
			fmt.Fprintln(o.Out, "Undo:    "+a.undo)
		}
		if on := o.goingOn(report.Last); on != "" && o.answers.isText() {
			fmt.Fprintf(o.Out, "Next:    %s\n", on)
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && o.timeout > 0:
		fmt.Fprintf(o.ErrOut, "Timed out after %s. Run the same command again to resume.\n", o.timeout)
		return errRemaining
	case errors.Is(err, change.ErrNotConfirmed) && backup != "":
		return errors.New("not confirmed: nothing more was changed")
	case err != nil:
		return o.explained(err)
	case !outcome.Done(), o.stays:
		return errRemaining
	}
	return nil
}

// undoable reports whether a change of the run can be taken back, as far as that is known.
func (o *unstickOptions) undoable(ctx context.Context, dir string) bool {
	r, err := change.ReadJournal(dir)
	w := o.writer(nil)
	return err != nil || r.Undoable(context.WithoutCancel(ctx), &w)
}

// tell says what happens on the way.
func (o *unstickOptions) tell(e unstick.Event) {
	switch {
	case e.Changed:
		fmt.Fprintln(o.ErrOut, "\nThere is more to do now:")
	case e.Wrote != nil && o.answers.isText() && (e.Wrote.Result == unstick.Done || e.Wrote.Result == unstick.TakenBack ||
		e.Wrote.Result == unstick.Skipped):
		fmt.Fprintln(o.ErrOut, render.UnstickRecord(e.Wrote))
	case len(e.Waiting) > 0:
		fmt.Fprintln(o.ErrOut, render.UnstickWaiting(&e, time.Now()))
	}
}

// Show implements unstick.Asker.
func (o *unstickOptions) Show(p *unstick.Plan, l *unstick.Look) error {
	style, err := o.style(o.ErrOut)
	if err != nil {
		return err
	}
	o.keepNumbers(o.session, l.Report)
	return (&render.UnstickText{Style: style, Where: o.where, Secrets: o.secrets}).Plan(o.ErrOut, l, p)
}

// Ask implements unstick.Asker on a terminal. Without one the answer is no.
func (o *unstickOptions) Ask(ctx context.Context, q unstick.Question) (string, error) {
	if !isTerminal(o.In) {
		hint := "--confirm=" + answer.Short(q.Digest) + " goes ahead with exactly these changes"
		if q.Choice == nil && !slices.ContainsFunc(q.Writes, func(w unstick.Write) bool { return w.Risk.Exceeds(explain.Safe) }) {
			hint = "--yes goes ahead with what is safe; " + hint
		}
		return "", hintedError{errors.New("asking for consent: there is no terminal"), hint}
	}
	return o.ask(ctx, render.UnstickQuestion(&q, o.where), false)
}

// moments are the changes of a run, for a ticket.
func (a *unstickAnswer) moments() (moments []render.Moment, undo string) {
	if a.report == nil {
		return nil, ""
	}
	for i := range a.report.Records {
		r := &a.report.Records[i]
		moments = append(moments, render.Moment{Time: r.Time, Object: r.Write.Op.Object, What: render.UnstickRecord(r)})
	}
	return moments, a.undo
}

func (a *unstickAnswer) document() runtime.Object {
	if a.report != nil {
		return render.NewUnstickReport(a.report, a.outcome, a.backup)
	}
	return render.NewUnstickPlan(a.look, a.plan, a.server)
}

// write writes an answer for a person, who may pick by its numbers then.
func (o *unstickOptions) write(w io.Writer, a *unstickAnswer, text *render.UnstickText) error {
	text.Where, text.Secrets = a.where, o.secrets
	o.keepNumbers(o.session, a.look.Report)
	if a.report != nil {
		return text.Report(w, a.report, a.outcome)
	}
	text.Server = a.server
	return text.Plan(w, a.look, a.plan)
}

// names prints what is freed, or would be changed, as kubectl's -o name does.
func (a *unstickAnswer) names(w io.Writer) error {
	if a.report != nil {
		return render.ObjectNames(w, slices.Values(a.outcome.Freed))
	}
	return render.ChangedNames(w, a.plan)
}
