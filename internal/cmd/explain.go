// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// errStuck ends explain-stuck with exitFindings. The report has said what is
// stuck.
var errStuck = fmt.Errorf("something is stuck: %w", errRemaining)

// explainOptions are what the command line of explain-stuck says.
type explainOptions struct {
	*globals
	targets
	output output[*look]
	// probe allows dry-run writes.
	probe bool
	// failed are the objects that were named and cannot be read.
	failed []explain.Failed
	// finalizers is a file with entries for the catalogue of finalizers.
	finalizers string
	catalogue  *finalizers.Catalogue
	// cause is the number of the only cause that is shown, 0 for all.
	cause int
	// each: what has to be done to each of many objects is wanted for all of them.
	each bool
	// besides are parts of the cluster whose claims are read as well, with their owners, to deal with what was found; nil for none.
	besides func(*look) []graph.Part
	// widened are the parts that the last look needed.
	widened graph.Parts
	// watch explains again until what was asked for is gone.
	watch   bool
	several several
}

const explainLong = `Explain why an object that is being deleted still exists: the root cause, the
next step, and the way from the object to the cause.

Without arguments everything that is being deleted in the namespace is
explained, with -A in the cluster. One cause that blocks many deletions is shown
once. Several causes have a line each, --cause N shows one. -o wide has the
evidence, and all ways out with their commands and what takes them back.

Verdicts: Stuck (nothing happens until a user or an admin acts), Progressing (it
ends by itself), Pending (the garbage collector has to act, and nothing prevents
that), NotTerminating, NotFound, and Unknown (not enough could be read).

The controller behind a finalizer is looked for by the catalogue of finalizers
and by what the cluster shows: who set the finalizer, what was installed with
the type, who has the rights, leases, pods. --finalizers adds what you know.

Nothing is changed. Dry runs ask the server whether finalizers can be removed
and objects deleted; --probe=false sends none. The commands that are shown
carry a guard where the API has one, so that they do nothing to another object
of the same name.

With --watch the explanation is given again whenever something changes, until
nothing that was asked for is being deleted any more, which is exit code 0.

Exit codes:
  0    nothing is stuck, as far as is known: Unknown counts as 0
  1    error, or an object that does not exist while nothing else is stuck
  2    something is stuck
  3    with --strict: incomplete, because something could not be read
  130  interrupted`

const explainExample = `  # Why is the namespace still there
  NAME explain-stuck namespace/shop

  # Everything that is being deleted in the cluster
  NAME explain-stuck -A

  # Follow it until it is gone
  NAME explain-stuck namespace/shop --watch

  # All that is known, and all ways out
  NAME explain-stuck namespace/shop -o wide

  # For a program
  NAME explain-stuck pod/web-0 -o json`

func newExplain(g *globals) *cobra.Command {
	o := &explainOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "explain-stuck [TYPE NAME | TYPE/NAME ... | TYPE] [-l SELECTOR] [-f FILE]",
		Aliases:           []string{"stuck", "why"},
		Short:             "Explain why objects that are being deleted still exist",
		Long:              explainLong,
		Example:           g.example(explainExample),
		ValidArgsFunction: g.completeTerminating,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.addStuckFlags(flags)
	o.output = newOutput(
		stuckReport,
		format[*look]{"", func(w io.Writer, style render.Style, l *look) error {
			return o.writeText(w, l, o.answer(style, l, false))
		}},
		format[*look]{"wide", func(w io.Writer, style render.Style, l *look) error {
			return o.writeText(w, l, o.answer(style, l, true))
		}},
		ticket(g, func(w io.Writer, style render.Style, l *look) error {
			return o.writeText(w, l, o.answer(style, l, true))
		}, func(l *look) ([]render.Moment, string) { return l.moments, "" }),
		format[*look]{"name", func(w io.Writer, _ render.Style, l *look) error { return render.StuckNames(w, l.report) }},
		format[*look]{"dot", func(w io.Writer, _ render.Style, l *look) error { return draw.DOT(w, o.picture(l)) }},
		format[*look]{"prometheus", func(w io.Writer, _ render.Style, l *look) error {
			return render.StuckMetrics(w, l.graph, l.report, l.managerHeld)
		}},
		format[*look]{"html", func(w io.Writer, _ render.Style, l *look) error { return draw.HTML(w, o.picture(l)) }},
	)
	o.output.addFlags(g, cmd)
	o.several.addFlags(g, cmd)
	flags.IntVar(&o.cause, "cause", 0, "Show only the cause with this number, and its ways out")
	register(cmd, "cause", o.completeCauses(func(number int, name string) string { return fmt.Sprintf("%d\t%s", number, name) }))
	flags.BoolVarP(&o.watch, "watch", "w", false, "Explain again when something changes, until what was asked for is gone")
	return cmd
}

// addStuckFlags adds what says which objects are explained, and by what.
func (o *explainOptions) addStuckFlags(flags *pflag.FlagSet) {
	o.addTargetFlags(flags)
	flags.BoolVar(&o.probe, "probe", true, "Ask the server by dry-run writes whether finalizers can be removed and objects deleted")
	flags.StringVar(&o.finalizers, "finalizers", "",
		"Take what is known of finalizers from this file first (YAML or JSON), before the built-in catalogue; - reads standard input")
}

// validateStuck finds objects that make no sense.
func (o *explainOptions) validateStuck() error {
	err := o.validateTargets()
	if err == nil && !o.given() && (o.selector != "" || o.fieldSelector != "") {
		return usageError{errors.New("a selector needs a type")}
	}
	return err
}

func (o *explainOptions) validate() error {
	if err := o.validateStuck(); err != nil {
		return err
	}
	switch name := o.output.name; {
	case o.cause < 0:
		return usageError{errors.New("--cause is a number from 1")}
	case o.cause > 0 && !o.output.isText() && name != ticketFormat:
		return usageError{errors.New("--cause does not go together with -o " + name)}
	case o.watch && len(o.from) > 0:
		return usageError{errors.New("--watch does not go together with --from: nothing happens in a file")}
	case o.watch && (name == "dot" || name == "html" || name == "prometheus" || name == ticketFormat):
		return usageError{fmt.Errorf("--watch does not go together with -o %s, which is about one moment", name)}
	case name == "prometheus" && (o.given() || !o.allNamespaces):
		return usageError{errors.New("-o prometheus is about the whole cluster: it goes with -A alone")}
	}
	return cmp.Or(o.several.validate(o.globals, o.output.name == "" && !o.watch && o.cause == 0), o.output.validate(o.globals))
}

func (o *explainOptions) run(ctx context.Context) error {
	if err := o.readFinalizers(); err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx)
	}
	if o.several.given() {
		return o.several.ask(ctx, o.globals, render.StuckColumns, o.standing)
	}
	l, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := o.nothingToExplain(ctx, l); err != nil {
		return errors.Join(err, o.finish(l.session, l.snapshot))
	}
	if o.output.name == ticketFormat {
		l.moments = timeline(ctx, l)
	}
	if err := o.print(l); err != nil {
		return err
	}
	return o.end(l, l.failed)
}

// standing explains in one of several clusters.
func (o *explainOptions) standing(ctx context.Context, there *globals) (render.Standing, error) {
	in := *o
	in.globals = there
	l, err := in.look(ctx)
	if err != nil {
		return render.Standing{}, err
	}
	return render.StuckStanding(l.report), errors.Join(l.failed, in.finish(l.session, l.snapshot))
}

// nothingToExplain returns an error when nothing is seen to be deleted because nothing
// could be read, or because the namespace does not exist.
func (o *explainOptions) nothingToExplain(ctx context.Context, l *look) error {
	if len(l.report.Objects) > 0 || l.failed != nil {
		return nil
	}
	namespace := l.session.namespace
	if o.allNamespaces {
		namespace = ""
	}
	if !o.given() && !listedAny(l.session, l.snapshot, namespace) {
		return errors.New("listing objects: nothing could be read")
	}
	if o.allNamespaces {
		return nil
	}
	return missingNamespace(ctx, l.session)
}

// end returns what the command ends with. The exit code is that of what is
// stuck, and the errors are said nevertheless.
func (o *explainOptions) end(l *look, failed error) error {
	err := o.conclude(l)
	if failed != nil && errors.Is(err, errStuck) {
		printError(o.ErrOut, failed, o.name+" explain-stuck")
		return err
	}
	return errors.Join(failed, err)
}

// missingObjects takes the objects that do not exist out of an error.
func missingObjects(err error) ([]graph.Identity, error) {
	if err == nil {
		return nil, nil
	}
	var absent []graph.Identity
	for _, m := range missing(err) {
		absent = append(absent, identified(m.kind, m.namespace, m.name))
	}
	return absent, utilerrors.FilterOut(err, func(err error) bool { return errors.As(err, new(missingError)) })
}

// selected returns the objects that are asked for: those that the arguments
// name, or everything that is being deleted.
func (o *explainOptions) selected(s *session, g *graph.Graph, found []graph.Object) []types.UID {
	var selected []types.UID
	if o.given() || len(found) > 0 {
		found = nodesOf(found)
		for i := range found {
			if o.named() || found[i].BeingDeleted() || len(o.args) == 0 {
				selected = append(selected, found[i].UID)
			}
		}
		return selected
	}
	for n := range g.Nodes() {
		if n.BeingDeleted() && o.isHere(s, n.Identity()) {
			selected = append(selected, n.UID())
		}
	}
	return selected
}

// isHere reports whether an object is in the namespace that is asked for, or that itself.
func (o *explainOptions) isHere(s *session, id graph.Identity) bool {
	return o.allNamespaces || id.Namespace == s.namespace || id.Resource.IsNamespace() && id.Name == s.namespace
}

// explain lets the engine complete what it can, with nobody else acting, and
// explains what is left.
func (o *explainOptions) explain(ctx context.Context, q *inquiry, g *graph.Graph, selected []types.UID) (*explain.Report, error) {
	snapshot, s := g.Snapshot(), q.session
	snapshot.Facts = s.reader.Facts(ctx, snapshot, deciding(g))
	if q.now.IsZero() {
		q.now = s.reader.Now(ctx)
	}
	server := simulator.New(snapshot, simulator.Options{Now: q.now, Server: s.reader.Server(ctx)})
	outcome, err := gc.New(server, g, gc.Options{SeesAll: true}).Collect(ctx, "")
	if err != nil {
		return nil, err
	}
	prober, err := o.prober(s)
	if err != nil {
		return nil, err
	}
	where := o.connection()
	report := explain.Explain(ctx, explain.Input{
		Graph: g, Outcomes: outcome.Outcomes, Cluster: s.reader, Workloads: q.workloads, Earlier: q.earlier, Now: q.now,
		Server: s.reader.Server(ctx),
		Prober: prober, Events: s.reader.Events, Failed: o.failed, Catalogue: o.catalogue,
		Wait: s.waiting(), Passed: s.passing(), Far: s.reader.Far(), Each: o.each, Kubectl: "kubectl" + where, Plugin: o.name + where,
	}, selected)
	return report, ctx.Err()
}

// connection returns the flags with which other commands reach the same
// cluster.
func (g *globals) connection() string {
	where := ""
	if value := g.config.KubeConfig; value != nil && *value != "" {
		where += " --kubeconfig=" + shell.Quote(*value)
	}
	if value := g.config.Context; value != nil && *value != "" {
		where += " --context=" + shell.Quote(*value)
	}
	return where
}

// wait lets time pass, or the context end.
var wait = evidence.Wait

// deciding returns the objects whose facts the simulation needs: pods and
// CustomResourceDefinitions that are on their way out or may get there.
func deciding(g *graph.Graph) []graph.Object {
	var roots []graph.Node
	for n := range g.Nodes() {
		if !n.Virtual() && (n.DeletingDependents() || n.OrphaningDependents()) {
			roots = append(roots, n)
		}
	}
	var objects []graph.Object
	for _, n := range graph.Descendants(roots...).Sorted() {
		if !n.Virtual() && (n.Resource().IsPod() || n.Resource().IsCRD()) {
			objects = append(objects, *n.Object())
		}
	}
	return objects
}

func (o *explainOptions) print(l *look) error { return o.output.print(o.globals, l) }

// stuckReport is the document of a look.
func stuckReport(l *look) runtime.Object {
	report := *l.report
	report.Unread = evidence.JoinGaps(report.Unread, l.unresolved)
	return render.NewStuckReport(l.snapshot, &report)
}

// notAsked says what the answer from a file lacks.
const notAsked = " cannot be asked by dry runs; unclear whether finalizers can be removed and objects deleted"

// unasked reports whether dry runs were wanted that a file cannot answer.
func (o *explainOptions) unasked(l *look) bool {
	return l.session.files != nil && o.probe && len(l.report.Causes) > 0
}

// picture draws the chains of a look.
func (o *explainOptions) picture(l *look) *draw.Picture {
	p := render.StuckPicture(l.report)
	p.Subtitle += o.where.In()
	p.Notes = incomplete(l.snapshot)
	if o.unasked(l) {
		p.Notes = append(p.Notes, "A file"+notAsked+".")
	}
	switch {
	case o.given():
		var ids []graph.Identity
		for i := range l.report.Objects {
			ids = append(ids, l.report.Objects[i].Object)
		}
		p.Title = "What holds " + render.NamesOf(ids)
	case o.allNamespaces:
		p.Title = "What holds terminating objects in the cluster"
	default:
		p.Title = "What holds terminating objects in namespace " + l.session.namespace
	}
	return p
}

// answer is how an explanation is written, with the command that carries out a way out where the arguments alone say what for.
func (o *explainOptions) answer(style render.Style, l *look, wide bool) *render.StuckAnswer {
	answer := &render.StuckAnswer{Style: style, Where: o.where, Now: l.report.Now, Cause: o.cause, Wide: wide}
	asked, all := o.asked(l.session)
	if !all || l.session.files != nil {
		return answer
	}
	answer.Plugin, answer.Of = o.name+o.connection(), asked
	return answer
}

// answering writes a report for a person.
type answering interface {
	Write(w io.Writer, report *explain.Report) error
}

func (o *explainOptions) writeText(w io.Writer, l *look, text answering) error {
	if len(l.report.Objects) > 0 {
		o.keepNumbers(l.session, l.report)
		return text.Write(w, l.report)
	}
	return o.writeNothing(w, l)
}

// writeNothing says, of a look that found no object, where it looked.
func (o *explainOptions) writeNothing(w io.Writer, l *look) error {
	where := "in namespace " + l.session.namespace
	if o.allNamespaces {
		where = "in the cluster"
	}
	what := "Nothing"
	if !l.snapshot.Complete() {
		what = "Nothing that could be read"
	}
	_, err := fmt.Fprintf(w, "%s is being deleted %s.\n", what, where)
	return err
}

// conclude says what could not be read and finds the exit code.
func (o *explainOptions) conclude(l *look) error {
	if err := o.finish(l.session, l.snapshot); err != nil {
		return err
	}
	if err := render.Unread(o.ErrOut, l.report, o.verbosity > 0); err != nil {
		return err
	}
	if o.unasked(l) {
		fmt.Fprintln(o.ErrOut, "note: a file"+notAsked)
	}
	switch {
	case o.strict && len(l.report.Unread)+len(l.unresolved) > 0:
		return errIncomplete
	case l.report.Verdict() == explain.Stuck:
		return errStuck
	}
	return nil
}
