// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/diff"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// errDifferent ends diff when something differs: with 1, as diff has it.
var errDifferent = errors.New("something differs")

// exitsAsDiff annotates the command whose errors end with exitTrouble: 1 says that
// something differs.
const exitsAsDiff = "exits-as-diff"

// exitTrouble is the exit code for errors of diff.
const exitTrouble = 2

// live is the word for the cluster itself.
const live = "live"

// diffOptions are what the command line of diff says.
type diffOptions struct {
	*globals
	args   []string
	output output[*diffAnswer]
}

const diffLong = `Compare two snapshots, or a snapshot with the cluster: which objects appeared,
which vanished, and of which a deletion has begun, owners or finalizers have
changed. An object is the same one when its UID is.

BEFORE and AFTER are files as for --from, or the word live for the cluster
itself, which AFTER is when it is left out. With -n only that namespace is
compared. What one side could not read is not compared, and is said to be so.

Exit codes:
  0    nothing differs, as far as could be compared
  1    something differs
  2    error
  3    with --strict: incomplete, because something could not be read
  130  interrupted`

const diffExample = `  # What has happened since
  NAME snapshot -o before.snapshot && NAME diff before.snapshot

  # Two files, for a program
  NAME snapshot -o a.snapshot && NAME snapshot -o b.snapshot && NAME diff a.snapshot b.snapshot -o json

  # As a page, of one namespace
  NAME snapshot -o before.snapshot && NAME diff before.snapshot -n default -o html > diff.html`

func newDiff(g *globals) *cobra.Command {
	o := &diffOptions{globals: g}
	cmd := &cobra.Command{
		Use:         "diff BEFORE [AFTER]",
		Short:       "Compare two snapshots, or a snapshot with the cluster",
		Long:        diffLong,
		Example:     g.example(diffExample),
		RunE:        runs(o, &o.args),
		Annotations: map[string]string{needsCluster: "diff takes files as its arguments", exitsAsDiff: ""},
	}
	o.output = newOutput(
		func(a *diffAnswer) runtime.Object { return render.NewDiff(a.before, a.after, a.report) },
		format[*diffAnswer]{"", func(w io.Writer, style render.Style, a *diffAnswer) error {
			return render.DiffText(w, style, o.where, a.before, a.after, a.report)
		}},
		format[*diffAnswer]{"html", func(w io.Writer, _ render.Style, a *diffAnswer) error {
			return render.DiffHTML(w, o.where, a.before, a.after, a.report)
		}},
	)
	o.output.addFlags(g, cmd)
	return cmd
}

func (o *diffOptions) validate() error {
	switch {
	case len(o.args) == 0:
		return usageError{errors.New("what to compare must be named: a file, or two")}
	case len(o.args) > 2:
		return usageError{fmt.Errorf("unexpected argument %q", o.args[2])}
	case len(o.args) == 1:
		o.args = append(o.args, live)
	}
	if o.args[0] == "-" && o.args[1] == "-" {
		return usageError{errors.New("standard input can be only one of them")}
	}
	return o.output.validate(o.globals)
}

// diffAnswer is what was compared, and what differs.
type diffAnswer struct {
	before, after render.DiffSide
	report        *diff.Report
}

func (o *diffOptions) run(ctx context.Context) error {
	var sides [2]render.DiffSide
	var snapshots [2]*graph.Snapshot
	for i, name := range o.args {
		var err error
		if sides[i], snapshots[i], err = o.read(ctx, name); err != nil {
			return err
		}
	}
	report := diff.Compare(snapshots[0], snapshots[1], o.asked())
	if err := o.output.print(o.globals, &diffAnswer{sides[0], sides[1], report}); err != nil {
		return err
	}
	for i, s := range snapshots {
		if !s.Complete() {
			fmt.Fprintf(o.ErrOut, "%s:\n", sides[i].Name)
		}
		if err := render.Warnings(o.ErrOut, s); err != nil {
			return err
		}
	}
	switch {
	case o.strict && (!snapshots[0].Complete() || !snapshots[1].Complete()):
		return errIncomplete
	case len(report.Differences) > 0:
		return errDifferent
	}
	return nil
}

// read reads a side.
func (o *diffOptions) read(ctx context.Context, name string) (render.DiffSide, *graph.Snapshot, error) {
	side := *o.globals
	if name != live {
		side.from = []string{name}
	}
	s, err := side.connect(ctx, cluster.AutoPageSize)
	if err != nil {
		return render.DiffSide{}, nil, err
	}
	o.where = cmp.Or(o.where, side.where)
	scope := cluster.Scope{Labels: []string{}}
	if s.enforced {
		scope.Namespace = s.namespace
	}
	snapshot, err := s.reader.Snapshot(ctx, scope)
	if err != nil {
		return render.DiffSide{}, nil, err
	}
	return render.NewDiffSide(name, s.reader.Now(ctx), snapshot), snapshot, nil
}

// asked tells which objects are compared: with -n those of the namespace.
func (o *diffOptions) asked() func(*graph.Object) bool {
	namespace := ""
	if o.config.Namespace != nil {
		namespace = *o.config.Namespace
	}
	if namespace == "" {
		return nil
	}
	return func(object *graph.Object) bool { return object.Namespace == namespace }
}
