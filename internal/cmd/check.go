// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// errWrong ends check with exitFindings. The report has said what is wrong.
var errWrong = fmt.Errorf("owner references are wrong: %w", errRemaining)

// checkOptions are what the command line of check says.
type checkOptions struct {
	*globals
	targets
	rules    []string
	severity string
	settle   time.Duration
	// olderThan leaves young objects out, and baseline, a file, what is known.
	olderThan time.Duration
	baseline  string
	known     *check.Baseline // nil for none
	flags     *pflag.FlagSet
	several   several
	output    output[*checkAnswer]
}

const checkLong = `Find owner references that are wrong, and say what the garbage collector does
about each: an owner that does not exist, or is in another namespace, or has
another UID or kind; a kind that the server does not serve; circles of owners;
and more. See --rule for all.

Without arguments all objects of the namespace are checked, with -A all of the
cluster; otherwise those that are named. Nothing is changed.

The answer is a row for each problem, the worst first; alike ones share a row.
-o wide has the rules, the references, what the garbage collector does about
each, and a patch that puts it right.

Severities: error (the garbage collector deletes the object, loses its right
owner, or can never handle it), warning (it keeps the object, but does not do
what one would expect) and info. Errors and warnings are findings for the exit
code.

While objects are created and deleted, owners change between two lists. So
findings are rechecked after --settle; those that are gone are dropped, also
where the garbage collector has deleted the object. --settle=0 reports what is
wrong at this moment. An owner that could not be looked up is no finding; the
answer says that it is incomplete.

With --baseline only what an earlier report, of -o json, does not have is
reported: it knows objects and owners by their names. --older-than leaves out
objects that were made only just now.

Exit codes:
  0    nothing is wrong, as far as could be read
  1    error, or an object that does not exist
  2    at least one finding of severity warning or error
  3    with --strict: incomplete, because something could not be read
  130  interrupted`

// checkExample has NAME where the program's name goes.
const checkExample = `  # The namespace at hand
  NAME check

  # The whole cluster; fail when not everything could be read
  NAME check -A --strict

  # One object, or the objects of a type
  NAME check deployment/web
  NAME check pods

  # Only what the garbage collector will delete, or can never handle
  NAME check -A --severity=error

  # What the garbage collector does about each, and the patches
  NAME check -A -o wide

  # For code scanning
  NAME check -A -o sarif

  # Write down what is wrong, and report only what is new from then on
  NAME check -A -o json > known.json; NAME check -A --baseline=known.json`

// severityWords are other words for severities.
var severityWords = map[string]string{"warn": check.Warning.String(), "err": check.Error.String()}

func newCheck(g *globals) *cobra.Command {
	o := &checkOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "check [TYPE NAME | TYPE/NAME ... | TYPE] [-l SELECTOR] [-f FILE]",
		Short:             "Find owner references that are wrong",
		Long:              checkLong,
		Example:           g.example(checkExample),
		ValidArgsFunction: g.completeObjects,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.flags = flags
	o.addTargetFlags(flags)
	flags.StringSliceVar(&o.rules, "rule", nil, "Apply only these rules: "+strings.Join(check.RuleIDs(), ", "))
	flags.StringVar(&o.severity, "severity", check.Info.String(), "Report only what is at least as bad: "+
		strings.Join(check.Severities(), ", "))
	flags.DurationVar(&o.settle, "settle", 5*time.Second,
		"After this time look again at what is wrong, and report what still is; 0 looks once, and so shows what the garbage collector is about to delete, too")
	flags.StringVar(&o.baseline, "baseline", "",
		"Report only what this report, written by -o json or yaml, does not have; - reads standard input")
	flags.DurationVar(&o.olderThan, "older-than", 0, "Report only what is wrong with objects that were made at least so long ago")
	o.output = newOutput(
		func(a *checkAnswer) runtime.Object { return render.NewCheckReport(a.snapshot, a.report) },
		format[*checkAnswer]{"", func(w io.Writer, style render.Style, a *checkAnswer) error {
			return render.CheckText(w, style, o.where, a.report)
		}},
		format[*checkAnswer]{"wide", func(w io.Writer, style render.Style, a *checkAnswer) error {
			return render.CheckDetails(w, style, o.where, a.report)
		}},
		format[*checkAnswer]{"name", func(w io.Writer, _ render.Style, a *checkAnswer) error { return render.CheckNames(w, a.report) }},
		format[*checkAnswer]{"sarif", func(w io.Writer, _ render.Style, a *checkAnswer) error {
			build, _ := debug.ReadBuildInfo() // nil without one
			return render.SARIF(w, clientVersion(build).GitVersion, a.snapshot, a.report)
		}},
		format[*checkAnswer]{"junit", func(w io.Writer, _ render.Style, a *checkAnswer) error {
			return render.JUnit(w, o.where, o.rules, a.snapshot, a.report)
		}},
		format[*checkAnswer]{"prometheus", func(w io.Writer, _ render.Style, a *checkAnswer) error {
			return render.CheckMetrics(w, a.snapshot, a.report, a.now)
		}},
	)
	o.output.addFlags(g, cmd)
	o.several.addFlags(g, cmd)
	g.completeValues(cmd, map[string][]string{"severity": check.Severities()})
	register(cmd, "rule", completeList(check.RuleIDs()))
	return cmd
}

// completeList completes several words of a list, separated by commas.
func completeList(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		before := word[:strings.LastIndex(word, ",")+1]
		var values []string
		for _, w := range words {
			if !slices.Contains(strings.Split(before, ","), w) {
				values = append(values, before+w)
			}
		}
		return matching(values, nil, word), cobra.ShellCompDirectiveNoFileComp
	}
}

// checkAnswer is what was checked, and what was found.
type checkAnswer struct {
	snapshot *graph.Snapshot
	report   *check.Report
	now      time.Time // by the server's clock
}

func (o *checkOptions) validate() error {
	if err := o.validateTargets(); err != nil {
		return err
	}
	if full := severityWords[o.severity]; full != "" {
		o.severity = full
	}
	if _, ok := check.ParseSeverity(o.severity); !ok {
		return usageError{fmt.Errorf("invalid --severity %q: must be one of %s", o.severity, strings.Join(check.Severities(), ", "))}
	}
	for _, rule := range o.rules {
		if !slices.Contains(check.RuleIDs(), rule) {
			return usageError{fmt.Errorf("unknown --rule %q: must be one of %s", rule, strings.Join(check.RuleIDs(), ", "))}
		}
	}
	switch {
	case o.settle < 0:
		return usageError{errors.New("--settle must not be negative")}
	case o.olderThan < 0:
		return usageError{errors.New("--older-than must not be negative")}
	case o.baseline == "" && o.flags.Changed("baseline"): // an empty variable of a script
		return usageError{errors.New("--baseline needs a file")}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError{fmt.Errorf("invalid --selector: %w", err)}
	}
	return cmp.Or(o.several.validate(o.globals, o.output.name == ""), o.output.validate(o.globals))
}

func (o *checkOptions) run(ctx context.Context) error {
	if err := o.readBaseline(); err != nil {
		return err
	}
	if o.several.given() {
		return o.several.ask(ctx, o.globals, render.CheckColumns, o.standing)
	}
	l, err := o.look(ctx, true)
	if err != nil {
		return err
	}
	if l.report.Objects == 0 {
		if err := o.nothingToCheck(ctx, l); err != nil {
			return errors.Join(err, l.failed, o.finish(l.session, l.graph.Snapshot()))
		}
		fmt.Fprintln(o.ErrOut, "No objects were checked: there are none here, or none of these.")
	}
	if l, err = o.settled(ctx, l); err != nil {
		return err
	}
	report, known := o.filtered(l)
	if err := o.print(l, report); err != nil {
		return err
	}
	if known > 0 {
		fmt.Fprintf(o.ErrOut, "Not shown, because the baseline has them: %s.\n", counted(known, "finding"))
	}
	if err := o.finish(l.session, l.graph.Snapshot()); err != nil || l.failed != nil {
		return errors.Join(l.failed, err)
	}
	if wrong(report) {
		return errWrong
	}
	return nil
}

// standing checks one of several clusters.
func (o *checkOptions) standing(ctx context.Context, there *globals) (render.Standing, error) {
	in := *o
	in.globals = there
	l, err := in.look(ctx, true)
	if err != nil {
		return render.Standing{}, err
	}
	if l, err = in.settled(ctx, l); err != nil {
		return render.Standing{}, err
	}
	report, _ := in.filtered(l)
	return render.CheckStanding(report), errors.Join(l.failed, in.finish(l.session, l.graph.Snapshot()))
}

// readBaseline reads what is known already.
func (o *checkOptions) readBaseline() error {
	if o.baseline == "" {
		return nil
	}
	data, err := readInput(o.baseline, o.In)
	if err == nil {
		var findings []check.Finding
		if findings, err = render.ParseCheckReport(data); err == nil {
			o.known = check.NewBaseline(findings)
		}
	}
	if err != nil {
		return hintedError{fmt.Errorf("reading the baseline %s: %w", calledFile(o.baseline), reason(err)),
			"'" + o.name + " check -o json' writes one"}
	}
	return nil
}

// readInput reads a file, or standard input for a dash.
func readInput(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// filtered returns the findings that were asked for, without those of the
// baseline, and how many these are.
func (o *checkOptions) filtered(l *checked) (report *check.Report, known int) {
	least, _ := check.ParseSeverity(o.severity) // was validated
	report = l.report.Filtered(o.rules, least)
	if o.olderThan > 0 {
		report = report.OlderThan(l.now.Add(-o.olderThan))
	}
	if o.known == nil {
		return report, 0
	}
	all := len(report.Findings)
	report = report.New(o.known)
	return report, all - len(report.Findings)
}

// wrong reports whether there is a finding for the exit code.
func wrong(r *check.Report) bool {
	worst, _ := r.Worst()
	return worst > check.Info
}

// nothingToCheck returns an error when no object was checked because nothing
// could be read, or because the namespace does not exist.
func (o *checkOptions) nothingToCheck(ctx context.Context, l *checked) error {
	if snapshot := l.graph.Snapshot(); snapshot.Len() == 0 && !snapshot.Complete() {
		return errors.New("listing objects: nothing could be read")
	}
	if o.allNamespaces || l.failed != nil {
		return nil
	}
	return missingNamespace(ctx, l.session)
}

// checked is one look at the cluster.
type checked struct {
	session *session
	graph   *graph.Graph
	report  *check.Report // of all rules
	now     time.Time     // by the server's clock, if that was asked for
	// failed are the errors about objects that were named.
	failed error
}

// look reads the cluster and checks what was asked for. An object that is named
// and gone is an error in the first look only: later it was deleted meanwhile.
// So is that nothing can be read of what is named: later, the first look counts.
func (o *checkOptions) look(ctx context.Context, first bool) (*checked, error) {
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return nil, err
	}
	var named []graph.Object
	var failed error
	if o.given() {
		if named, failed = o.resolve(ctx, s); !first {
			_, failed = missingObjects(failed)
		}
		if ctx.Err() != nil || first && failed != nil && len(named) == 0 {
			return nil, cmp.Or(ctx.Err(), failed)
		}
		named = o.unhandled(s, named, first)
	}
	scope := o.scope(s, named)
	g, err := o.read(ctx, s, scope, named)
	if err != nil {
		return nil, err
	}
	where := o.connection()
	report := check.Check(g, check.Options{
		Select: o.selected(s, g, named), Partial: scope.Namespace != "",
		Kubectl: "kubectl" + where, Plugin: o.name + where,
		WithoutRemedies: o.output.name == "" || o.output.name == "name" || o.output.name == "prometheus",
	})
	l := &checked{session: s, graph: g, report: report, failed: failed}
	if o.olderThan > 0 || o.output.name == "prometheus" {
		l.now = s.reader.Now(ctx)
	}
	return l, nil
}

// read reads what the answer needs. The owners of a few objects are read one by
// one; when one is not where a reference says, everything is listed, to find
// out where it is. Of what was named and is not there nothing is needed.
func (o *checkOptions) read(ctx context.Context, s *session, scope cluster.Scope, named []graph.Object) (*graph.Graph, error) {
	if o.given() && len(named) == 0 {
		return graph.New(&graph.Snapshot{Mapper: s.reader.Mapper()}), nil
	}
	if 0 < len(named) && len(named) <= maxOwnerReads {
		owners := scope
		owners.OwnersOnly = true
		snapshot, err := s.reader.Snapshot(ctx, owners, named...)
		if err != nil {
			return nil, err
		}
		if g := graph.New(snapshot); snapshot.Complete() && everyOwnerFound(g) {
			return g, nil
		}
	}
	snapshot, err := s.reader.Snapshot(ctx, scope, named...)
	if err != nil {
		return nil, err
	}
	g := graph.New(snapshot)
	if more := o.otherVersions(ctx, s, g); len(more) > 0 {
		for _, owner := range more {
			snapshot.Add(owner)
		}
		g = graph.New(snapshot)
	}
	return g, nil
}

// otherVersions reads owners without a namespace, up to maxOwnerReads, of which
// references state a version that is not served, while another version of the
// kind is. They are not listed for one namespace, so that only the apiVersion is
// wrong would not be seen. It returns those that have the stated UID.
func (o *checkOptions) otherVersions(ctx context.Context, s *session, g *graph.Graph) []graph.Object {
	var owners []graph.Object
	asked := map[types.UID]bool{}
	for n := range g.Doubtful() {
		for _, ref := range n.Owners() {
			if ref.Reason != graph.Unresolvable || !ref.Owner.Virtual() || asked[ref.UID] || len(asked) == maxOwnerReads {
				continue
			}
			mapping, err := s.reader.Mapper().RESTMapping(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
			if err != nil {
				continue
			}
			resource := graph.ResourceOf(mapping)
			if resource.Namespaced || g.Snapshot().Covers(resource.GroupResource(), "", ref.Name) {
				continue
			}
			asked[ref.UID] = true
			if owner, err := s.reader.Get(ctx, resource, "", ref.Name); err == nil && owner.UID == ref.UID {
				owners = append(owners, owner)
			}
		}
	}
	return owners
}

// scope is the namespace of what is checked, or the cluster, without the labels
// that are not needed.
func (o *checkOptions) scope(s *session, named []graph.Object) cluster.Scope {
	namespace := s.namespace
	if len(named) > 0 {
		namespace = named[0].Namespace
	}
	elsewhere := func(n graph.Object) bool { return n.Namespace != namespace }
	if o.allNamespaces || slices.ContainsFunc(named, elsewhere) {
		namespace = ""
	}
	scope := cluster.Scope{Namespace: namespace}
	if o.given() || o.selector == "" {
		scope.Labels = []string{}
	}
	return scope
}

// selected tells which objects are checked, nil for all. Types that the garbage collector
// does not handle are not among them, unless they were named.
func (o *checkOptions) selected(s *session, g *graph.Graph, named []graph.Object) func(graph.Node) bool {
	if o.given() {
		var selected graph.Set
		for i := range named {
			if n, read := g.Node(named[i].UID); read {
				selected.Add(n)
			}
		}
		return selected.Has
	}
	handled := handledBy(s.reader.Resources())
	selector, _ := labels.Parse(o.selector) // was validated
	if o.allNamespaces && selector.Empty() && g.Snapshot().Only(handled) {
		return nil // all of them
	}
	return func(n graph.Node) bool {
		return (o.allNamespaces || n.Namespace() == s.namespace) && handled(n.Resource()) &&
			(selector.Empty() || selector.Matches(labels.Set(n.Object().Labels)))
	}
}

// handledBy tells whether a type is one of those. The same one is mostly asked
// for many times.
func handledBy(resources []*graph.Resource) func(*graph.Resource) bool {
	known := map[schema.GroupResource]bool{}
	for _, r := range resources {
		known[r.GroupResource()] = true
	}
	var latest *graph.Resource
	var answer bool
	return func(r *graph.Resource) bool {
		if r != latest {
			latest, answer = r, known[r.GroupResource()]
		}
		return answer
	}
}

// unhandled warns of named objects whose owner references nobody acts on, and
// returns the others.
func (o *checkOptions) unhandled(s *session, named []graph.Object, warn bool) []graph.Object {
	handled := handledBy(s.reader.Resources())
	return slices.DeleteFunc(named, func(n graph.Object) bool {
		if warn && !handled(n.Resource) {
			fmt.Fprintf(o.ErrOut, "warning: not checked: %s: the garbage collector does not handle %s\n", n.Name, n.Resource.GroupResource())
		}
		return !handled(n.Resource)
	})
}

// print writes the answer in the format asked for.
func (o *checkOptions) print(l *checked, report *check.Report) error {
	return o.output.print(o.globals, &checkAnswer{l.graph.Snapshot(), report, l.now})
}
