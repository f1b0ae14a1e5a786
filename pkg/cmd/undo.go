// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/pkg/change"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
)

// undoOptions are what the command line of undo says.
type undoOptions struct {
	*globals
	journaling
	consenting
	temporary bool
	args      []string
}

const undoLong = `Take back what an earlier run of this program has changed, the last change
first. Each change is compared with the object as it was before, and as it is
now: what others have changed since is kept. "last" is the last run on this
cluster that changed something.

Exit codes:
  0    done, or nothing to take back
  1    error, or not confirmed
  2    a change that was to be taken back was not
  130  interrupted`

const undoExample = `  # What would be taken back of the last run
  NAME undo --dry-run

  # Take it back
  NAME undo

  # A run that history lists
  NAME undo 20260102-030405-123456789`

func newUndo(g *globals) *cobra.Command {
	o := &undoOptions{globals: g, journaling: journaling{g: g}}
	cmd := &cobra.Command{
		Use:               "undo [last | RUN | DIR]",
		Short:             "Take back what an earlier run has changed",
		Long:              undoLong,
		Example:           g.example(undoExample),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeRuns,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.flags = flags
	o.addDryRun(`"client" shows what would be taken back, "server" also asks the server, "none" does it`)
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask")
	flags.StringVar(&o.confirm, "confirm", "", "Go ahead only if the changes are those with this digest, which --dry-run printed")
	flags.BoolVar(&o.temporary, "temporary", false, "Take back only what the run would have taken back itself: its temporary changes")
	o.addFlags(flags, "Where the journals of runs are")
	g.completeValues(cmd, map[string][]string{"dry-run": dryRuns})
	return cmd
}

func (o *undoOptions) validate() error { return o.validateConsent(o.globals) }

func (o *undoOptions) run(ctx context.Context) error {
	if err := o.reach(ctx, o.dryRun == "server"); err != nil {
		return err
	}
	r, err := o.find()
	if err != nil {
		return err
	}
	return o.undo(ctx, &o.consenting, r, o.temporary)
}

// find finds the run.
func (o *undoOptions) find() (*change.Recorded, error) {
	if len(o.args) > 0 && o.args[0] != "last" {
		dir := o.args[0]
		if base, err := o.base(); err == nil && base != "" && filepath.Base(dir) == dir { // as history names it
			all := o.dirs(base)
			if i := slices.IndexFunc(all, func(known string) bool { return filepath.Base(known) == dir }); i >= 0 {
				dir = all[i]
			}
		}
		return o.read(dir)
	}
	all, err := o.recorded()
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(all) {
		if !r.Back() && r.Standing() > 0 && (!o.temporary || len(r.Open()) > 0) {
			return r, nil
		}
	}
	why := "no run on this cluster has left a change"
	if o.temporary {
		why = "no run on this cluster has left a temporary change"
	}
	if o.where.UID == "" {
		why = "it is not known which cluster this is: namespace kube-system could not be read"
	}
	return nil, hintedError{errors.New("looking for the last run: " + why), o.name + " history lists the runs; --backup=DIR names where their journals are"}
}

// read reads the journal of a run on this cluster.
func (j *journaling) read(dir string) (*change.Recorded, error) {
	r, err := change.ReadJournal(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hintedError{fmt.Errorf("no run has its journal in %s", dir), j.g.name + " history lists the runs; --backup=DIR names where their journals are"}
	case err != nil:
		return nil, fmt.Errorf("reading the journal: %w", err)
	case r.Where.UID == "":
		return nil, hintedError{fmt.Errorf("the run did not know its cluster (%s): namespace kube-system could not be read then", &r.Where), "look at its changes: " + j.g.name + " history -o json, and take back by hand what stands"}
	case j.g.where.UID == "":
		return nil, hintedError{errors.New("it is not known whether the run was on this cluster: namespace kube-system could not be read"), "use credentials that may get namespace kube-system"}
	case !r.Same(j.g.where.UID):
		return nil, hintedError{fmt.Errorf("the run was on another cluster: %s (%s), and this is %s (%s)", &r.Where, r.Where.UID, j.g.where, j.g.where.UID), "--context and --kubeconfig choose the cluster"}
	}
	return r, nil
}

// undo shows what takes a run back, asks, and does it.
func (j *journaling) undo(ctx context.Context, c *consenting, r *change.Recorded, temporary bool) error {
	release, err := claim(r)
	if err != nil {
		return err
	}
	defer release()
	w := j.writer(nil)
	reversals := slices.DeleteFunc(r.Undo(ctx, &w), func(v change.Reversal) bool { return temporary && !v.Entry.Temporary })
	fmt.Fprintln(j.g.Out, render.RunTitle(r))
	possible, left := 0, false
	for i := range reversals {
		v := &reversals[i]
		if err := render.Reversal(j.g.Out, v); err != nil {
			return err
		}
		left = left || v.Left()
		if v.Possible() {
			possible++
		} else if v.Ended() && c.dryRun == "none" { // by a run that was interrupted, or by others
			if err := r.MarkTakenBack(v.Entry.Number, time.Now()); err != nil {
				return fmt.Errorf("writing the journal: %w", err)
			}
		}
	}
	digest := change.DigestOf(reversals)
	switch {
	case possible == 0 && left:
		fmt.Fprintln(j.g.Out, "Nothing can be taken back.")
		return errRemaining
	case possible == 0:
		fmt.Fprintln(j.g.Out, "Nothing to take back.")
		return nil
	case c.dryRun == "client":
		fmt.Fprintf(j.g.Out, "Approve exactly this: --confirm=%s\n", digest)
		return nil
	case c.dryRun == "server":
		return j.askServer(ctx, reversals)
	}
	if err := j.agrees(ctx, c, digest, fmt.Sprintf("Take back %s in %s? (y/N): ", counted(possible, "change"), j.g.where)); err != nil {
		return err
	}
	return j.takeAllBack(ctx, r, reversals)
}

// agrees returns nil if the user agrees to a plan that was shown.
func (j *journaling) agrees(ctx context.Context, c *consenting, digest, question string) error {
	_, err := c.beforehand().Agree(ctx, digest, change.Ask{Plain: true, Put: func(ctx context.Context) (string, error) {
		if !isTerminal(j.g.In) {
			return "", hintedError{errors.New("asking for consent: there is no terminal"), "--yes goes ahead; --confirm=" + digest + " with exactly this"}
		}
		return j.g.ask(ctx, question, false)
	}})
	return err
}

// askServer sends what takes changes back as dry runs.
func (j *journaling) askServer(ctx context.Context, reversals []change.Reversal) error {
	var failed []error
	for i := range reversals {
		if op := reversals[i].Op; op != nil {
			if err := j.sender.Do(ctx, op); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", render.Change(op), err))
			}
		}
	}
	return errors.Join(failed...)
}

// takeAllBack takes changes back that were agreed to, each as its object is by then. What it changes is kept in a journal, too.
func (j *journaling) takeAllBack(ctx context.Context, r *change.Recorded, reversals []change.Reversal) error {
	journal, err := j.begin(change.Header{Undoes: r.Dir, Redoes: r.Back()})
	if err != nil {
		return err
	}
	w := j.writer(journal)
	failed := false
	for i := range reversals {
		v := &reversals[i]
		switch {
		case !v.Possible():
			failed = failed || v.Left()
			continue
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), journal.Close())
		case v.Ends():
			failed = !j.takeBack(ctx, &w, r, &v.Entry) || failed
			continue
		}
		made := w.Undo(ctx, r, v)
		fmt.Fprintln(j.g.Out, render.Undone(&made))
		if made.Status != change.Done {
			failed = true
			continue
		}
		if err := r.MarkTakenBack(v.Entry.Number, time.Now()); err != nil {
			return errors.Join(fmt.Errorf("writing the journal: %w", err), journal.Close())
		}
	}
	if err := journal.Close(); err != nil || !failed {
		return err
	}
	return errRemaining
}

// completeRuns completes the directories of runs.
func (o *undoOptions) completeRuns(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	base, err := o.base()
	if err != nil || base == "" || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	dirs, _ := change.Journals(base)
	for i := range dirs {
		dirs[i] = filepath.Base(dirs[i])
	}
	return append([]string{"last"}, dirs...), cobra.ShellCompDirectiveDefault
}

// historyOptions are what the command line of history says.
type historyOptions struct {
	*globals
	journaling
	output output[[]*change.Recorded]
}

const historyLong = `List the runs of this program that have changed something: when, where, what
was asked for, how many changes were made, and how many of them still stand. It
asks no cluster.`

func newHistory(g *globals) *cobra.Command {
	o := &historyOptions{globals: g, journaling: journaling{g: g}}
	cmd := &cobra.Command{
		Use:               "history",
		Short:             "List what earlier runs have changed",
		Long:              historyLong,
		Args:              func(_ *cobra.Command, args []string) error { return noArguments(args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(o, nil),
	}
	o.output = newOutput(render.NewHistory,
		format[[]*change.Recorded]{"", func(w io.Writer, _ render.Style, all []*change.Recorded) error { return render.History(w, all) }},
		format[[]*change.Recorded]{"name", func(w io.Writer, _ render.Style, all []*change.Recorded) error { return render.RunNames(w, all) }},
	)
	o.output.addFlags(g, cmd)
	cmd.Flags().StringVar(&o.backup, "backup", "", "Where the journals of runs are (default: below kubectl-gc/journal in $XDG_STATE_HOME)")
	return cmd
}

func (o *historyOptions) validate() error { return o.output.validate(o.globals) }

func (o *historyOptions) run(context.Context) error {
	base, err := o.base()
	if err != nil {
		return err
	}
	var all []*change.Recorded
	unread := false
	for _, dir := range o.dirs(base) {
		r, err := change.ReadJournal(dir)
		if err != nil {
			o.unread(err)
			unread = true
			continue
		}
		all = append(all, r)
	}
	if unread && len(all) == 0 {
		return errors.New("listing the runs: none could be read")
	}
	return o.output.print(o.globals, all)
}
