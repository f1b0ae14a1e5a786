// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// reviveOptions are what the command line of revive says.
type reviveOptions struct {
	*globals
	journaling
	consenting
	secureOnly bool
	args       []string
	// claims are the claims and volumes among the args, others explains the rest, and trial sends dry runs.
	claims []graph.Identity
	others explainOptions
	trial  *cluster.Sender
	// begins: it was agreed to, and the journal of this run is there.
	begins bool
}

const reviveLong = `Keep objects that are being deleted by mistake, and still exist. A deletion
cannot be taken back, so a plan with one question lets them go and recreates
them.

A PersistentVolumeClaim or PersistentVolume is kept with its data: the volume is
set to Retain; the workloads that use a claim are scaled to 0, so that it goes;
the finalizers of a volume are removed; then claim and volume are recreated and
bound to each other, and workload and reclaim policy set back. --secure only
sets the volume to Retain.

Any other object is revived if no controller acts on its finalizers: its
dependents are orphaned, its finalizers removed, it is recreated with them, and
its dependents are linked to it again. Not revived are namespaces, definitions,
nodes, Pods, Jobs, Secrets and ServiceAccounts.

A run that was interrupted is completed by the same command or, when the objects
are gone, by undo.

Exit codes:
  0    done
  1    error, or not confirmed
  2    something was not done
  130  interrupted`

const reviveExample = `  # Keep the data, whatever happens to the claim
  NAME revive pvc/data-db-0 -n shop --secure

  # Keep the claims
  NAME revive pvc/data-db-0 pvc/data-db-1 -n shop

  # Keep a custom resource whose operator does not run, and all that it owns
  NAME revive postgres/orders -n shop`

func newRevive(g *globals) *cobra.Command {
	o := &reviveOptions{globals: g, journaling: journaling{g: g},
		others: explainOptions{globals: g, probe: true, each: true, besides: everything}}
	o.others.pageSize = cluster.AutoPageSize
	cmd := &cobra.Command{
		Use:               "revive TYPE/NAME...",
		Short:             "Keep objects that are being deleted by mistake",
		Long:              reviveLong,
		Example:           g.example(reviveExample),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.flags = flags
	o.addDryRun(`"client" shows what would be done, "none" does it`)
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask")
	flags.StringVar(&o.confirm, "confirm", "", "Go ahead only if the changes are those with this digest, which --dry-run printed")
	flags.BoolVar(&o.secureOnly, "secure", false, "Only set the volumes to Retain, which keeps their data")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait until the objects are gone")
	flags.StringVar(&o.backup, "backup", "", "Where the journal of the run is (default: below kubectl-gc/journal in $XDG_STATE_HOME)")
	g.completeValues(cmd, map[string][]string{"dry-run": {"none", "client"}})
	return cmd
}

func (o *reviveOptions) validate() error {
	if o.dryRun == "server" || o.backup == noBackup {
		return usageError{errors.New("revive keeps a journal, and asks the server in any case: --dry-run=client shows its plan")}
	}
	for _, arg := range o.args {
		kind, name, _ := strings.Cut(arg, "/")
		if kind == "" || name == "" {
			return usageError{fmt.Errorf("%q is not TYPE/NAME", arg)}
		}
		switch strings.ToLower(kind) {
		case "pvc", "persistentvolumeclaim", "persistentvolumeclaims":
			namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return err
			}
			o.claims = append(o.claims, evidence.Identity(evidence.Claims, namespace, name))
		case "pv", "persistentvolume", "persistentvolumes":
			o.claims = append(o.claims, evidence.Identity(evidence.Volumes, "", name))
		default:
			o.others.args = append(o.others.args, arg)
		}
	}
	if o.secureOnly && len(o.others.args) > 0 {
		return usageError{errors.New("--secure is for claims and volumes")}
	}
	return cmp.Or(validateNames(o.others.args), o.validateConsent(o.globals))
}

// everything has all of the cluster read: what depends on an object may be anywhere.
func everything(*look) []graph.Part { return []graph.Part{{}} }

// plan looks at what is there, and finds out what is to be done.
func (o *reviveOptions) plan(ctx context.Context) (*change.Revival, error) {
	ids, l := slices.Clone(o.claims), new(look)
	if len(o.others.args) > 0 {
		var err error
		if l, err = o.others.look(ctx); err != nil {
			return nil, err
		}
		for i := range l.report.Objects {
			if l.report.Objects[i].Verdict == explain.NotFound {
				return nil, fmt.Errorf("%s: not found", l.report.Objects[i].Object)
			}
			ids = append(ids, l.report.Objects[i].Object)
		}
	}
	w := o.writer(nil)
	r, err := w.Revive(ctx, ids, o.secureOnly, l.report, l.graph)
	if err != nil || o.secureOnly {
		return r, err
	}
	if !o.begins {
		r.Interrupted = o.interrupted(r.Objects)
	}
	return r, w.Recreatable(ctx, r, o.trial.Do)
}

// interrupted are the directories of earlier revivals of objects that are not complete.
func (o *reviveOptions) interrupted(objects []graph.Identity) (dirs []string) {
	runs, _ := o.recorded() // what cannot be read was said
	for _, run := range runs {
		letsGo := func(p change.Planned) bool {
			return slices.ContainsFunc(objects, func(id graph.Identity) bool { return id.UID == p.Object.UID && len(p.Owners) == 0 })
		}
		if len(run.Asked) > 0 && run.Asked[0] == "revive" && run.Standing() > 0 && slices.ContainsFunc(run.Planned, letsGo) {
			dirs = append(dirs, run.Dir)
		}
	}
	return dirs
}

// begun is the command that completes an earlier run which has let go what was asked for, and is gone by now; empty for none.
func (o *reviveOptions) begun(ctx context.Context) string {
	w := o.writer(nil)
	var gone []graph.Identity
	runs, _ := o.recorded()
	for _, run := range runs {
		for _, p := range run.Planned {
			if slices.ContainsFunc(o.args, func(arg string) bool { return strings.HasSuffix(arg, "/"+p.Object.Name) }) {
				if now, err := w.Read(ctx, p.Object); change.IsGone(p.Object, now, err) {
					gone = append(gone, p.Object)
				}
			}
		}
	}
	var all []string
	for _, dir := range o.interrupted(gone) {
		all = append(all, o.undoCommand(dir))
	}
	if len(all) == 0 {
		return ""
	}
	return "an earlier run was interrupted, which is completed by: " + strings.Join(all, "; ")
}

func (o *reviveOptions) run(ctx context.Context) error {
	if err := o.reach(ctx, false); err != nil {
		return err
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return kubeconfigError(err)
	}
	if o.trial, err = cluster.NewSender(config, o.stats, remedy.FieldManager, true); err != nil {
		return err
	}
	r, err := o.plan(ctx)
	if err != nil {
		err = fmt.Errorf("planning: %w", err)
		if hint := o.begun(ctx); hint != "" {
			err = hintedError{err, hint}
		}
		return err
	}
	if err := render.Revival(o.Out, o.where, r, o.secureOnly); err != nil {
		return err
	}
	switch digest := digestOf(r); {
	case o.secureOnly && len(r.Changes) == 0:
		fmt.Fprintln(o.Out, "Nothing to do: the reclaim policy is Retain already.")
		return nil
	case o.dryRun == "client":
		fmt.Fprintf(o.Out, "Approve exactly this: --confirm=%s\n", answer.Short(digest))
		return nil
	default:
		if err := o.agrees(ctx, &o.consenting, digest, fmt.Sprintf("Do this in %s? (y/N): ", o.where)); err != nil {
			return err
		}
	}
	again, err := o.plan(ctx)
	if err == nil && digestOf(again) != digestOf(r) {
		err = errors.New("it has changed since the question")
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return o.revive(ctx, again)
}

// digestOf is the same as long as the same would be done.
func digestOf(r *change.Revival) string {
	var keys []any
	for i := range r.Changes {
		keys = append(keys, r.Changes[i].Op.Key())
	}
	for i := range r.Orphans {
		keys = append(keys, r.Orphans[i].Identity())
	}
	return preview.Checksum(append(keys, r.Objects, r.Interrupted)...)
}

// revive does it: what it lets go is in the journal before the first change, and the undo of that journal recreates it. What has gone is
// recreated also when something else could not be let go.
func (o *reviveOptions) revive(ctx context.Context, r *change.Revival) error {
	journal, err := o.begin(change.Header{Digest: digestOf(r)})
	if err != nil {
		return err
	}
	o.begins = true
	if !o.secureOnly {
		err = journal.Keep(r)
	}
	if err == nil {
		err = o.letGo(ctx, journal, r)
	}
	if closed := journal.Close(); closed != nil || o.secureOnly || err != nil && !o.partly(ctx, r) {
		return cmp.Or(err, closed)
	}
	for _, dir := range append([]string{journal.Dir}, r.Interrupted...) {
		completed := o.complete(ctx, dir)
		if err = cmp.Or(err, completed); err != nil {
			return err
		}
	}
	return err
}

// partly reports whether something is gone that was to be let go.
func (o *reviveOptions) partly(ctx context.Context, r *change.Revival) bool {
	w := o.writer(nil)
	return ctx.Err() == nil && slices.ContainsFunc(r.Objects, func(id graph.Identity) bool {
		now, err := w.Read(ctx, id)
		return change.IsGone(id, now, err)
	})
}

// complete recreates what a run has let go, and takes its other changes back. What of these a deleted volume leaves is over.
func (o *reviveOptions) complete(ctx context.Context, dir string) error {
	recorded, err := o.read(dir)
	if err != nil {
		return err
	}
	release, err := claim(recorded)
	if err != nil {
		return err
	}
	defer release()
	u := o.lookBack(ctx, recorded, o.lost(recorded), undoWhat{})
	if _, _, err := o.journaling.show(u, true); err != nil {
		return err
	}
	bindings, err := o.takeAllBack(ctx, u)
	if err != nil {
		return err
	}
	var numbers []int
	for i := range recorded.Changes {
		numbers = append(numbers, recorded.Changes[i].Number)
	}
	return cmp.Or(recorded.MarkTakenBack(time.Now(), numbers...), o.bound(ctx, bindings))
}

// bound waits until claims have their volumes.
func (j *journaling) bound(ctx context.Context, bindings []restore.Binding) (err error) {
	w, end := j.writer(nil), time.Now().Add(bindingTakes)
	for _, b := range bindings {
		for ; ; wait(ctx, time.Second) {
			now, unread := w.Read(ctx, b.Claim)
			gone := change.IsGone(b.Claim, now, unread)
			if gone && !b.Made { // one that the volume had
				break
			}
			if !gone && unread == nil && evidence.Nested(now, "status", "phase") == "Bound" &&
				evidence.Nested(now, "spec", "volumeName") == b.Volume {
				fmt.Fprintln(j.g.Out, render.Bound(b.Claim, b.Volume))
				break
			}
			if gone || ctx.Err() != nil || time.Now().After(end) {
				fmt.Fprintln(j.g.Out, render.Unbound(b.Claim, b.Volume, unread))
				err = cmp.Or(ctx.Err(), errRemaining)
				break
			}
		}
	}
	return err
}

// bindingTakes is how long kube-controller-manager may take to bind a claim: it looks at each every 15 seconds.
const bindingTakes = time.Minute
