// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// undoOptions are what the command line of undo says.
type undoOptions struct {
	*globals
	journaling
	consenting
	only []string
	undoWhat
	args []string
}

// undoWhat says what of a run is taken back.
type undoWhat struct {
	// temporary: only what the run would have taken back itself.
	temporary bool
	// wanted are the objects that are made again, nil for all, and then with all else.
	wanted func(graph.Identity) bool
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
	flags.StringSliceVar(&o.only, "only", nil, "Only recreate these deleted objects, each TYPE/NAME; with -n those of a namespace")
	flags.StringVar(&o.identity, "backup-identity", "", "File with the private key, of age or ssh, that decrypts the Secrets that were kept")
	o.addFlags(flags, "Where the journals of runs are")
	g.completeValues(cmd, map[string][]string{"dry-run": dryRuns})
	return cmd
}

func (o *undoOptions) validate() error {
	if len(o.only) > 0 && o.temporary {
		return errors.New("--only and --temporary exclude each other: deleted objects are no temporary changes")
	}
	for _, only := range o.only {
		if kind, name, ok := strings.Cut(only, "/"); !ok || kind == "" || name == "" {
			return fmt.Errorf("--only=%s: it must be TYPE/NAME", only)
		}
	}
	return cmp.Or(o.validateBackup(), o.validateConsent(o.globals))
}

// chosen reports whether an object is one of --only, whose types are written as kubectl prints them, or as the server names them.
func (o *undoOptions) chosen(id graph.Identity) bool {
	if namespace := *o.config.Namespace; namespace != "" && id.Namespace != "" && id.Namespace != namespace {
		return false
	}
	r := id.Resource
	return slices.ContainsFunc(o.only, func(only string) bool {
		of, name, _ := strings.Cut(only, "/")
		of = strings.ToLower(of)
		if mapper, err := o.config.ToRESTMapper(); err == nil && name == id.Name {
			if named, err := mapper.ResourceFor(schema.ParseGroupResource(of).WithVersion("")); err == nil &&
				named.GroupResource() == r.GroupResource() {
				return true
			}
		}
		return name == id.Name &&
			slices.Contains([]string{strings.ToLower(r.Kind), r.Resource, r.GroupResource().String(), strings.ToLower(r.Kind) + "." + r.Group}, of)
	})
}

func (o *undoOptions) run(ctx context.Context) error {
	if err := o.reach(ctx, o.dryRun == "server"); err != nil {
		return err
	}
	r, err := o.find()
	if err != nil {
		return err
	}
	if o.identity != "" {
		if r.Keys, err = change.ReadIdentities(o.identity); err != nil {
			return fmt.Errorf("reading --backup-identity: %w", err)
		}
	}
	if len(o.only) > 0 {
		o.wanted = o.chosen
	}
	return o.undo(ctx, &o.consenting, r, o.undoWhat)
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
	r := lastStanding(all, func(r *change.Recorded) bool { return !o.temporary || len(r.Open()) > 0 })
	switch {
	case r != nil && o.doubtful > filepath.Base(r.Dir):
		return nil, hintedError{fmt.Errorf("looking for the last run: it might be %s, which could not be read", o.doubtful),
			"name the run: " + o.name + " history lists those that can be read"}
	case r != nil:
		return r, nil
	}
	why := "no run on this cluster has left a change"
	if o.temporary {
		why = "no run on this cluster has left a temporary change"
	}
	if o.where.UID == "" {
		why = "unclear which cluster this is: namespace kube-system could not be read"
	}
	return nil, hintedError{errors.New("looking for the last run: " + why),
		o.name + " history lists the runs; --backup=DIR names where their journals are"}
}

// lastStanding is the last run of which that is true and that has left changes, but for those that took others back; nil for none.
func lastStanding(all []*change.Recorded, is func(*change.Recorded) bool) *change.Recorded {
	for _, r := range slices.Backward(all) {
		if !r.Back() && r.Standing() > 0 && is(r) {
			return r
		}
	}
	return nil
}

// read reads the journal of a run on this cluster.
func (j *journaling) read(dir string) (*change.Recorded, error) {
	r, err := change.ReadJournal(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hintedError{fmt.Errorf("no run has its journal in %s", dir),
			j.g.name + " history lists the runs; --backup=DIR names where their journals are"}
	case err != nil:
		return nil, fmt.Errorf("reading the journal: %w", err)
	case r.Where.UID == "":
		return nil, hintedError{fmt.Errorf("the run did not know its cluster (%s): namespace kube-system could not be read then", &r.Where),
			"look at its changes: " + j.g.name + " history -o json, and take back by hand what stands"}
	case j.g.where.UID == "":
		return nil, hintedError{errors.New("unclear whether the run was on this cluster: namespace kube-system could not be read"),
			"use credentials that may get namespace kube-system"}
	case !r.Same(j.g.where.UID):
		return nil, hintedError{fmt.Errorf("the run was on another cluster: %s (%s), and this is %s (%s)", &r.Where, r.Where.UID, j.g.where,
			j.g.where.UID), "--context and --kubeconfig choose the cluster"}
	}
	return r, nil
}

// undoing is how a run is taken back.
type undoing struct {
	*change.Recorded
	// lost are the objects of its backup, and plan is how they are made again.
	lost []restore.Saved
	plan *restore.Plan
	// reversals take its other changes back.
	reversals []change.Reversal
	// part: not all of the run is to be taken back.
	part bool
}

// lookBack finds out how a run is taken back, as everything is now.
func (j *journaling) lookBack(ctx context.Context, r *change.Recorded, lost []restore.Saved, o undoWhat) *undoing {
	w := j.writer(nil)
	u := &undoing{Recorded: r, lost: lost, plan: w.Restoration(ctx, lost, o.wanted), part: o.temporary || o.wanted != nil}
	if o.wanted == nil {
		u.reversals = slices.DeleteFunc(r.Undo(ctx, &w, u.lost), func(v change.Reversal) bool { return o.temporary && !v.Entry.Temporary })
		for i := range u.reversals { // a claim that is recreated uses its volume again
			v := &u.reversals[i]
			if v.Later = v.Obstacle == change.Destroys && u.plan.Writes() > 0; u.plan.Left() {
				v.Withhold()
			}
		}
	}
	return u
}

// digest is the same as long as the same would be done.
func (u *undoing) digest() string {
	return preview.Checksum(u.plan.Digest(), change.DigestOf(u.reversals))
}

// lost are the objects that a run has deleted, with what later runs have done about them.
func (j *journaling) lost(r *change.Recorded) []restore.Saved {
	all, err := j.recorded()
	if err != nil {
		j.g.unread(err)
	}
	lost := r.Lost()
	r.Since(lost, all)
	return lost
}

// show prints how a run is taken back. It returns how many changes are made for that, and whether something is left.
func (j *journaling) show(u *undoing, markEnded bool) (changes int, left bool, _ error) {
	fmt.Fprintln(j.g.Out, render.RunTitle(u.Recorded))
	if err := render.Restoration(j.g.Out, u.plan); err != nil {
		return 0, false, err
	}
	changes, left = u.plan.Writes(), u.plan.Left()
	var ended []int
	for i := range u.reversals {
		v := &u.reversals[i]
		if err := render.Reversal(j.g.Out, v); err != nil {
			return 0, false, err
		}
		left = left || v.Left()
		if v.Possible() {
			changes++
		} else if v.Ended() && markEnded { // by a run that was interrupted, or by others
			ended = append(ended, v.Entry.Number)
		}
	}
	if err := u.MarkTakenBack(time.Now(), ended...); err != nil {
		return 0, false, fmt.Errorf("writing the journal: %w", err)
	}
	return changes, left, nil
}

// undo shows what takes a run back, asks, and does it.
func (j *journaling) undo(ctx context.Context, c *consenting, r *change.Recorded, o undoWhat) error {
	release, err := claim(r)
	if err != nil {
		return err
	}
	defer release()
	var lost []restore.Saved
	if !o.temporary {
		lost = j.lost(r)
	}
	if o.wanted != nil && !slices.ContainsFunc(lost, func(s restore.Saved) bool { return o.wanted(s.Object) }) {
		return hintedError{errors.New("nothing that this run has deleted is one of --only"),
			"without --only, undo --dry-run lists what it would recreate; -n names the namespace"}
	}
	u := j.lookBack(ctx, r, lost, o)
	changes, left, err := j.show(u, c.dryRun == "none")
	switch {
	case err != nil:
		return err
	case changes == 0 && left:
		fmt.Fprintln(j.g.Out, "Nothing can be taken back."+j.earlier(r))
		return errRemaining
	case changes == 0:
		fmt.Fprintln(j.g.Out, "Nothing to take back."+j.earlier(r))
		return u.complete(c.dryRun != "none")
	case c.dryRun == "client":
		fmt.Fprintf(j.g.Out, "Approve exactly this: --confirm=%s\n", answer.Short(u.digest()))
		return nil
	case c.dryRun == "server":
		return j.askServer(ctx, u)
	}
	if err := j.agrees(ctx, c, u.digest(), fmt.Sprintf("Take this back (%s) in %s? (y/N): ", counted(changes, "change"),
		j.g.where)); err != nil {
		return err
	}
	if len(lost) > 0 && j.lookBack(ctx, r, lost, o).digest() != u.digest() {
		return hintedError{errors.New("what can be taken back has changed since the question; nothing was changed"),
			"run it again, and look at what it shows"}
	}
	bindings, err := j.takeAllBack(ctx, u)
	return cmp.Or(err, j.bound(ctx, bindings))
}

// earlier says which run stands that was before one of which nothing can be taken back, empty for none.
func (j *journaling) earlier(r *change.Recorded) string {
	all, _ := j.recorded() // what cannot be read was said
	before := lastStanding(all, func(other *change.Recorded) bool { return other.Started.Before(r.Started) })
	if before == nil {
		return ""
	}
	return fmt.Sprintf(" The run before it: %s undo %s", j.g.name, filepath.Base(before.Dir))
}

// agrees returns nil if the user agrees to a plan that was shown.
func (j *journaling) agrees(ctx context.Context, c *consenting, digest, question string) error {
	_, err := c.beforehand().Agree(ctx, digest, change.Ask{Plain: true, Put: func(ctx context.Context) (string, error) {
		if !isTerminal(j.g.In) {
			return "", hintedError{errors.New("asking for consent: there is no terminal"),
				"--yes goes ahead; --confirm=" + answer.Short(digest) + " with exactly this"}
		}
		return j.g.ask(ctx, question, false)
	}})
	return err
}

// askServer sends what takes changes back as dry runs. What has to be made first is not there for the others.
func (j *journaling) askServer(ctx context.Context, u *undoing) error {
	var failed []error
	try := func(op *remedy.Op) {
		if err := j.sender.Do(ctx, op); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", render.Change(op), err))
		}
	}
	for _, op := range u.plan.Tries() {
		try(&op)
	}
	for i := range u.reversals {
		if op := u.reversals[i].Op; op != nil {
			try(op)
		}
	}
	return errors.Join(failed...)
}

// takeAllBack takes changes back that were agreed to, each as its object is by then. What it changes is kept in a journal, too.
// It returns which claims are to be bound to which volumes.
func (j *journaling) takeAllBack(ctx context.Context, u *undoing) (bindings []restore.Binding, _ error) {
	journal, err := j.begin(change.Header{Undoes: u.Dir, Redoes: u.Back()})
	if err != nil {
		return nil, err
	}
	w := j.writer(journal)
	failed := u.plan.Left()
	if u.plan.Writes() > 0 {
		ids, all := w.Restore(ctx, u.Dir, u.plan, func(made change.Record) { fmt.Fprintln(j.g.Out, render.Undone(&made)) })
		bindings = u.plan.Bindings(ids)
		for i := range u.reversals {
			if v := &u.reversals[i]; !all && v.Possible() {
				if v.Withhold(); !v.Possible() {
					fmt.Fprintln(j.g.Out, render.Kept(v))
				}
			}
		}
		failed = failed || !all
	}
	if err := u.complete(failed); err != nil {
		return bindings, errors.Join(err, journal.Close())
	}
	for i := range u.reversals {
		v := &u.reversals[i]
		switch {
		case !v.Possible():
			failed = failed || v.Left()
			continue
		case ctx.Err() != nil:
			return bindings, errors.Join(ctx.Err(), journal.Close())
		case v.Later && !j.comes(ctx, &w, u, v):
			fmt.Fprintln(j.g.Out, render.Kept(v))
			failed = true
			continue
		case v.Ends():
			failed = !j.takeBack(ctx, &w, u.Recorded, &v.Entry) || failed
			continue
		}
		made := w.Undo(ctx, u.Recorded, v)
		fmt.Fprintln(j.g.Out, render.Undone(&made))
		if made.Status != change.Done {
			failed = true
			continue
		}
		if err := u.MarkTakenBack(time.Now(), v.Entry.Number); err != nil {
			return bindings, errors.Join(fmt.Errorf("writing the journal: %w", err), journal.Close())
		}
	}
	if err := errors.Join(ctx.Err(), journal.Close()); err != nil || !failed {
		return bindings, err
	}
	return bindings, errRemaining
}

// complete keeps that a restoration is complete: all that was lost was asked for, and is there or comes by itself.
func (u *undoing) complete(failed bool) error {
	if failed || u.part {
		return nil
	}
	if err := u.MarkTakenBack(time.Now(), u.Completed(u.lost, u.reversals)...); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

// comes waits until a change can be taken back that could not be before what was deleted was recreated.
func (j *journaling) comes(ctx context.Context, w *change.Writer, u *undoing, v *change.Reversal) bool {
	for range 30 {
		if now := u.Reverse(ctx, w, v.Entry); now.Op != nil {
			*v = now
			return true
		}
		wait(ctx, time.Second)
	}
	return false
}

// completeRuns completes the directories of runs.
func (j *journaling) completeRuns(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	base, err := j.base()
	if err != nil || base == "" || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	dirs, _ := change.Journals(base)
	for i := range dirs {
		dirs[i] = filepath.Base(dirs[i])
	}
	return append([]string{"last"}, dirs...), cobra.ShellCompDirectiveDefault
}
