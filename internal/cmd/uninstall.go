// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const uninstallLong = `Show what a tool takes away when it removes what it has deployed, and what it
leaves hanging. Nothing is changed without --prepare.

Simulates the tool's deletes, in its order and with its propagation, on a copy
of the cluster's metadata, as the preview of delete does. The answer says what
gets stuck and why, what breaks, what will hang when it is deleted later, which
data is lost, what is kept and why, and what is left behind although it belongs
to the release. What cannot be foreseen, such as the effect of a hook, is called
unknown.

With --prepare the custom resources that would get stuck are deleted first, as
delete --order=safe does it, after their own preview and with your consent, and
waited for. Then the answer is given again, and the tool's command is printed;
it is not run. With --dry-run these writes are shown, and nothing is changed.

With --remove-leftovers=PLAN, after the tool has run, what it has left behind is
printed as a file for delete -f, with the UIDs; nothing is deleted.
PLAN is what the same command printed before with -o json or -o yaml. Leftovers
that something uses, adopted, changed or recreated since are comments in the
file, as are those that hold data, that the tool keeps, or that could not be
checked.

Exit codes:
  0    nothing is foreseen to get stuck or break
  1    error
  2    something would get stuck or break, or might, or the tool would delete
       nothing; with --prepare: something remains; with --remove-leftovers:
       something that was left behind is kept, as a comment
  3    with --strict: incomplete, because something could not be read; with
       --prepare: refused for that reason; with --remove-leftovers: some
       leftovers could not be checked
  130  interrupted`

func newUninstall(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Show what helm, Flux, Argo CD, OLM or a prune leaves hanging",
		Long:  uninstallLong,
		Example: g.example(`  # Before an operator is removed
  NAME uninstall helm web -n shop

  # What Flux deletes with a Kustomization
  NAME uninstall flux kustomization/app -n flux-system

  # What the new manifests do not have any more
  NAME uninstall prune old/ new/`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return suggested(fmt.Errorf("unknown command %q", args[0]), args[0], commandNames(cmd))
			}
			return cmd.Help()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              cobra.ArbitraryArgs,
	}
	others := map[string]func(*globals) *cobra.Command{"helm": newUninstallHelm, "applyset": newUninstallApplySet, "prune": newUninstallPrune}
	for _, tool := range uninstall.Tools() {
		if other := others[tool.Name]; other != nil {
			cmd.AddCommand(other(g))
		} else {
			cmd.AddCommand(newUninstallObject(g, tool))
		}
	}
	return cmd
}

// uninstallOptions are what the command lines of all tools share.
type uninstallOptions struct {
	*globals
	args     []string
	pageSize int64
	prepare  bool
	// deletion is how what --prepare deletes is agreed to and done.
	deletion deletionOptions
	// saved is the file of the plan that was made before the tool ran.
	saved  string
	output output[*render.Uninstall]
	// tool is as documents call it.
	tool string
	// manifests is the digest of which objects the files have by which the tool is told what to delete, nil when there are none.
	manifests func() (string, error)
	// stated are flags for what was found and not said.
	stated []string
	// plans says what the tool does.
	plans func(ctx context.Context, s *session, w *uninstall.World) (*uninstall.Plan, error)
}

func (o *uninstallOptions) addFlags(cmd *cobra.Command) {
	addPageSize(cmd.Flags(), &o.pageSize)
	o.output = newOutput(
		func(u *render.Uninstall) runtime.Object { return u.Document() },
		format[*render.Uninstall]{"", func(w io.Writer, style render.Style, u *render.Uninstall) error {
			return render.UninstallText(w, style, o.where, u, false, o.next(u), o.afterwards(u))
		}},
		format[*render.Uninstall]{"wide", func(w io.Writer, style render.Style, u *render.Uninstall) error {
			return render.UninstallText(w, style, o.where, u, true, o.next(u), o.afterwards(u))
		}},
		format[*render.Uninstall]{"name", func(w io.Writer, _ render.Style, u *render.Uninstall) error {
			return render.UninstallNames(w, u)
		}},
	)
	o.output.addFlags(o.globals, cmd)
	o.addPrepareFlags(cmd)
	o.addLeftoversFlags(cmd)
	o.tool = cmd.Name()
}

// ofThisRun are the flags that say what one run does, how its writes are agreed to, and how it answers.
var ofThisRun = []string{"prepare", "yes", "interactive", "confirm", "timeout", "dry-run", "allow-incomplete", "output"}

// next is what the user had better do next: what gets stuck first, or else what the tool does; where nothing can be done first, it says
// why.
func (o *uninstallOptions) next(u *render.Uninstall) string {
	command := o.commandOf(u.Command)
	var steps []string
	switch {
	case u.Halt != nil:
		return ""
	case len(u.First(u.Forecast)) > 0:
		return o.again(append([]string{"from", "redact-key"}, ofThisRun...), append(o.stated, "--prepare")...) // which takes the cluster
	case u.Sticks(), u.Spoils() != nil:
		steps = append(steps, u.NoneFirst())
		if u.HooksToRead() {
			steps = append(steps, o.commandOf([]string{"helm", "get", "hooks", u.Name, "-n", u.Namespace}))
		}
	}
	if u.Strands() && command != "" {
		steps = append(steps, "delete first what hangs later, if it is not needed any more")
	}
	if command != "" && !u.Stopped() {
		steps = append(steps, command)
	}
	return strings.Join(steps, "; then: ")
}

func (o *uninstallOptions) validateArgs(n int, what string) error {
	if len(o.args) != n {
		return usageError{errors.New("needs " + what)}
	}
	return cmp.Or(o.output.validate(o.globals), validatePageSize(o.pageSize), o.validateLeftovers(), o.validatePrepare())
}

func (o *uninstallOptions) run(ctx context.Context) error {
	switch {
	case o.saved != "":
		return o.listsLeftovers(ctx)
	case o.prepare:
		return o.deletion.unlessInterrupted(ctx, o.prepares(ctx))
	}
	return o.show(ctx)
}

func (o *uninstallOptions) show(ctx context.Context) error {
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return err
	}
	u, err := o.foretell(ctx, s)
	if err != nil {
		return err
	}
	return o.answer(s, u)
}

// answer prints what was found out.
func (o *uninstallOptions) answer(s *session, u *render.Uninstall) error {
	if err := o.output.print(o.globals, u); err != nil {
		return err
	}
	snapshot := u.Preview.Graph.Snapshot()
	if err := o.finish(s, snapshot); err != nil {
		return err
	}
	switch {
	case failed(u) != nil:
		return errRemaining
	case o.strict && len(u.Unread) > 0:
		return errIncomplete
	}
	return nil
}

// failed is an error when something would get stuck or break, or the tool would delete nothing.
func failed(u *render.Uninstall) error {
	if u.Fails || u.Halt != nil {
		return errRemaining
	}
	return nil
}

// worldOf reads the whole cluster.
func worldOf(ctx context.Context, s *session) (*uninstall.World, error) {
	snapshot, err := s.reader.Snapshot(ctx, cluster.Scope{})
	if err != nil {
		return nil, err
	}
	g := graph.New(snapshot)
	return &uninstall.World{Graph: g, Namespace: s.namespace,
		Evidence: evidence.New(ctx, evidence.Source{Cluster: s.reader, Graph: g, Now: s.reader.Now(ctx)})}, nil
}

// foretell says what becomes of what the tool does.
func (o *uninstallOptions) foretell(ctx context.Context, s *session) (*render.Uninstall, error) {
	w, err := worldOf(ctx, s)
	if err != nil {
		return nil, err
	}
	nested := releases{globals: o.globals}
	w.Release = func(namespace, name string) (*uninstall.Release, error) {
		return nested.read(ctx, s, w, namespace, name)
	}
	p, err := o.plans(ctx, s, w)
	if err != nil {
		return nil, err
	}
	r, err := w.Foretell(p, func(job preview.Job) (*preview.Plan, *foresight.Forecast, error) {
		// It can carry nothing out: it is given nothing that makes clients that write.
		made, err := change.Make(ctx, &change.Job{Cluster: change.Cluster{Reader: s.reader}, Graph: w.Graph, Whole: w.Graph, Job: job},
			change.Options{})
		if err != nil {
			return nil, nil, err
		}
		return made.Plan, made.Forecast, nil
	})
	return &render.Uninstall{Report: r}, cmp.Or(err, ctx.Err())
}
