// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// cascades are the values of --cascade.
var cascades = map[string]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}

// deleteOptions are what the command line of delete says.
type deleteOptions struct {
	deletionOptions
	targets
	cascade        string
	gracePeriod    int64
	now, force     bool
	all            bool
	ignoreNotFound bool
}

const deleteLong = `Delete objects and their dependents: show a preview, ask, then delete, and do
the work of the garbage collector from here.

The preview runs the same algorithm on a copy of the cluster's metadata. It says
what would get stuck and why, what would break, which data is destroyed, and
which objects would be deleted, orphaned and kept. Every write states the UID
and the resourceVersion of the previewed object; an object that has changed is
read and decided about again. Objects that -l, --field-selector or --all chose
are deleted only in a version that still matches, and kept otherwise. The
dependents of an object that another user has deleted since with
--cascade=orphan stay.

The cluster needs no working garbage collector. Run the same command again to
resume an interrupted run.

Without a terminal there is no question: --yes answers it, and --confirm=DIGEST
answers it for exactly the writes that a dry run showed.

` + deletionExitCodes

const deleteExample = `  # What would happen
  NAME delete deployment/web --cascade=foreground --dry-run=client

  # Do it: shows a summary and asks
  NAME delete deployment/web --cascade=foreground

  # Keep the dependents
  NAME delete deployment/web --cascade=orphan --yes

  # In a script: exactly what was previewed, or nothing
  NAME delete deployment/web --confirm=sha256:...`

func newDelete(g *globals) *cobra.Command {
	o := &deleteOptions{deletionOptions: deletionOptions{globals: g, journaling: journaling{g: g}}}
	cmd := &cobra.Command{
		Use:               "delete [TYPE NAME | TYPE/NAME ... | TYPE --all] [-l SELECTOR] [-f FILE]",
		Short:             "Delete objects and their dependents, after a preview",
		Long:              deleteLong,
		Example:           g.example(deleteExample),
		ValidArgsFunction: g.completeObjects,
		RunE:              runs(o, &o.args),
	}
	o.addTargetFlags(cmd.Flags())
	o.addDeletionFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.cascade, "cascade", "background",
		`What happens to dependents: "background", "foreground" (deleted first) or "orphan" (kept)`)
	flags.Int64Var(&o.gracePeriod, "grace-period", -1,
		"Grace period of the named pods in seconds; a negative value keeps theirs. Without --force, 0 means 1")
	flags.BoolVar(&o.now, "now", false, "Give the named pods a grace period of one second, like --grace-period=1")
	flags.BoolVar(&o.force, "force", false,
		"Remove the named pods at once, without waiting for their kubelets: their containers might keep running. No finalizer is removed")
	flags.StringVar(&o.order, "order", "default",
		`"default" deletes the named objects at once; "safe" first deletes objects whose controller is deleted as well, and waits until they are gone`)
	flags.BoolVar(&o.all, "all", false, "Delete all objects of the named types in the namespace")
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "Treat an object that does not exist as deleted")
	g.completeValues(cmd, map[string][]string{"cascade": {"background", "foreground", "orphan"}, "order": orders})
	return cmd
}

func (o *deleteOptions) validate() error {
	if err := o.validateTargets(); err != nil {
		return err
	}
	if err := o.validateDeletion(); err != nil {
		return err
	}
	if err := o.validateGrace(); err != nil {
		return err
	}
	selected := o.selector != "" || o.fieldSelector != ""
	switch {
	case cascades[o.cascade] == "":
		return usageError{fmt.Errorf(`invalid --cascade %q: must be "background", "foreground" or "orphan"`, o.cascade)}
	case !o.given():
		return usageError{errors.New("nothing to delete: name objects, or a type with -l, --field-selector or --all, or files with -f")}
	case o.all && (selected || o.named()):
		return usageError{errors.New("--all takes types only, without names")}
	case len(o.args) > 0 && !o.named() && !o.all && !selected:
		return usageError{errors.New("types were named, but no objects: add names, -l, --field-selector or --all")}
	}
	return nil
}

func (o *deleteOptions) run(ctx context.Context) error {
	return o.unlessInterrupted(ctx, o.delete(ctx))
}

func (o *deleteOptions) delete(ctx context.Context) error {
	s, err := o.connectToWrite(ctx, o.pageSize)
	if err != nil {
		return err
	}
	found, failed := o.resolve(ctx, s)
	namespace, one := o.namespaceOf(s, found, missing(failed))
	g, whole, err := o.read(ctx, s, namespace, one, found)
	if err != nil {
		return err
	}
	snapshot := g.Snapshot()
	if err := identifiable(snapshot, found); err != nil {
		return err
	}
	if found, err = o.reselect(ctx, s, snapshot, found); err != nil {
		return err
	}
	ids := identities(nodesOf(found))
	if failed != nil {
		// The named object may be gone already, and its dependents not yet.
		var resumed []graph.Identity
		if resumed, failed = o.resume(g, failed); len(resumed) > 0 && o.cascade == "orphan" {
			return errTooLateToOrphan
		}
		ids = append(ids, resumed...)
	}
	absent := failed != nil
	if o.ignoreNotFound {
		failed = utilerrors.FilterOut(failed, func(err error) bool { return errors.As(err, new(missingError)) })
	}
	if failed != nil {
		return o.withGarbageHint(failed, s, g)
	}
	if len(ids) == 0 {
		return o.nothing(s, g, absent)
	}
	j := &change.Job{Cluster: s.cluster(), Graph: g, Whole: whole, Job: preview.Job{
		Policy: cascades[o.cascade], GracePeriodSeconds: o.seconds(), Targets: ids, Choose: o.choose(versionsOf(found)),
	}}
	j.Again = func(ctx context.Context) (*change.Job, error) { return o.lookAgain(ctx, j, namespace, one) }
	t := &telling{
		deletionOptions: &o.deletionOptions, session: s, dangers: o.dangers(g, ids),
		what:      fmt.Sprintf("delete %s (%s)", render.NamesOf(ids), o.cascade),
		demanding: (o.named() || o.fromFiles()) && !o.ignoreNotFound,
	}
	return t.execute(ctx, j)
}

// versionsOf returns the resourceVersions of objects by UID.
func versionsOf(objects []graph.Object) map[types.UID]string {
	versions := make(map[types.UID]string, len(objects))
	for i := range objects {
		versions[objects[i].UID] = objects[i].ResourceVersion
	}
	return versions
}

// lookAgain finds out what there is now for a job that somebody has agreed to. Its targets are those
// of before that are still there, by UID, and that the selection still has, if there is one; of what is gone, those of
// which dependents are left.
func (o *deleteOptions) lookAgain(ctx context.Context, before *change.Job, namespace string, one bool) (*change.Job, error) {
	s, err := o.connectToWrite(ctx, o.pageSize)
	if err != nil {
		return nil, err
	}
	selected, err := o.selectAgain(ctx, s)
	if err != nil {
		return nil, err
	}
	extra, err := unlistable(ctx, s, before.Targets)
	if err != nil {
		return nil, err
	}
	g, whole, err := o.read(ctx, s, namespace, one, extra, before.Targets...)
	if err != nil {
		return nil, err
	}
	j := *before
	if selected != nil {
		j.Choose = o.choose(selected)
	}
	j.Cluster, j.Graph, j.Whole, j.Workloads, j.Targets = s.cluster(), g, whole, nil, nil
	for _, id := range before.Targets {
		n, known := g.Node(id.UID)
		switch {
		case known && !n.Virtual():
			if selected != nil && selected[id.UID] == "" {
				continue // of those that are, the engine asks again when their version is another
			}
		default:
			if err := change.ProveGone(ctx, s.reader, id); err != nil {
				return nil, err
			}
			if !known {
				continue
			}
		}
		j.Targets = append(j.Targets, id)
	}
	return &j, nil
}

// selectAgain returns the versions of the objects that the selection has now, by UID; nil when there is none.
func (o *deleteOptions) selectAgain(ctx context.Context, s *session) (map[types.UID]string, error) {
	if selection, chose := o.selection(); !chose || selection == (cluster.Selection{}) || o.fromFiles() {
		return nil, nil //nolint:nilnil // there is none
	}
	found, err := o.resolve(ctx, s)
	return versionsOf(found), err
}

// unlistable reads those of the objects whose types no list has.
func unlistable(ctx context.Context, s *session, ids []graph.Identity) ([]graph.Object, error) {
	listed := map[schema.GroupResource]bool{}
	for _, r := range s.reader.Resources() {
		listed[r.GroupResource()] = true
	}
	var objects []graph.Object
	for _, id := range ids {
		if listed[id.Resource.GroupResource()] {
			continue
		}
		switch now, err := s.reader.Get(ctx, id.Resource, id.Namespace, id.Name); {
		case err == nil && now.UID == id.UID:
			objects = append(objects, now)
		case err != nil && !answer.NoSuchObject(err, id.Resource.GroupResource(), id.Name):
			return nil, fmt.Errorf("reading %s again: %w", id, err)
		}
	}
	return objects, nil
}

// identifiable refuses objects of which no write can say that it is for them: they
// have no UID, or one that an object of another name or namespace has as well. The
// precondition on the UID would let a write for the one change the other.
func identifiable(snapshot *graph.Snapshot, found []graph.Object) error {
	var errs []error
	for i := range found {
		o := &found[i]
		elsewhere := func(id graph.Identity) bool { return id.Name != o.Name || id.Namespace != o.Namespace }
		names, why := snapshot.Ambiguous(o.UID), ""
		switch other := slices.IndexFunc(names, elsewhere); {
		case o.UID == "":
			why = gc.NoUID
		case other >= 0:
			why = names[other].String() + " has the same UID, so a delete could be meant for either"
		default:
			continue
		}
		errs = append(errs, hintedError{
			fmt.Errorf("deleting %s: %s", o.Identity(), why),
			"nothing was changed; kubectl delete goes by the name alone, and removes just what has it",
		})
	}
	return errors.Join(errs...)
}

// errTooLateToOrphan says that dependents cannot be kept by deleting their owner.
var errTooLateToOrphan = hintedError{
	errors.New("the owner is gone already, so it cannot orphan its dependents: a garbage collector deletes them"),
	"check shows which references to remove to keep them; with another --cascade they are deleted",
}

// read reads what the deletion needs: the namespace of the targets for a plain
// background deletion of namespaced objects, whose dependents are all there. Where
// an owner is to be finished, by the policy or because it is met in the middle of
// a deletion, everything is read that the user may read: references lead by UID,
// and so by mistake from anywhere. The namespace is that of the targets if one is set. found are targets that
// the lists may lack, also are others. whole is as wholeOf has it.
func (o *deleteOptions) read(ctx context.Context, s *session, namespace string, one bool, found []graph.Object,
	also ...graph.Identity) (g, whole *graph.Graph, err error) {
	if o.scope == "namespace" && !one {
		return nil, nil, usageError{errors.New("--scope=namespace takes objects of one namespace only")}
	}
	scope := cluster.Scope{}
	switch {
	case !one || o.scope == "cluster":
	case o.scope == "auto" && o.cascade != "background":
		scope = cluster.Scope{Namespace: namespace, Widened: true}
	default:
		scope = cluster.Scope{Namespace: namespace, Labels: simulator.Labels()}
	}
	snapshot, err := s.reader.Snapshot(ctx, scope, found...)
	if err != nil {
		return nil, nil, err
	}
	g = graph.New(snapshot)
	if scope.Namespace == "" || o.scope != "auto" || scope.Widened || !change.Finishes(g, slices.Concat(uids(identities(found)), uids(also))) {
		return g, wholeOf(scope, g), nil
	}
	scope = cluster.Scope{Namespace: namespace, Widened: true}
	if snapshot, err = s.reader.Snapshot(ctx, scope, found...); err != nil {
		return nil, nil, err
	}
	g = graph.New(snapshot)
	return g, wholeOf(scope, g), nil
}

// namespaceOf returns the namespace in which the targets are, or were, and whether
// it is one, and theirs.
func (o *deleteOptions) namespaceOf(s *session, found []graph.Object, missing []missingError) (string, bool) {
	var namespaces []string
	for _, object := range found {
		namespaces = append(namespaces, object.Namespace)
	}
	for _, m := range missing {
		namespaces = append(namespaces, m.namespace)
	}
	slices.Sort(namespaces)
	switch namespaces = slices.Compact(namespaces); {
	case o.allNamespaces, len(namespaces) > 1:
		return "", false
	case len(namespaces) == 0:
		return s.namespace, true
	}
	return namespaces[0], namespaces[0] != ""
}

// resume turns errors about objects that do not exist into targets where
// dependents of such an object are left: an earlier run, or somebody else,
// deleted it and was stopped.
func (o *deleteOptions) resume(g *graph.Graph, failed error) ([]graph.Identity, error) {
	var resumed []graph.Identity
	remaining := []error{}
	for _, err := range flatten(failed) {
		var missing missingError
		if !errors.As(err, &missing) {
			remaining = append(remaining, err)
			continue
		}
		before := len(resumed)
		for n := range g.Nodes() {
			id := n.Identity()
			if n.Virtual() && missing.names(id) {
				resumed = append(resumed, id)
			}
		}
		if len(resumed) == before {
			remaining = append(remaining, err)
		} else {
			fmt.Fprintf(o.ErrOut, "%s %q does not exist any more; its dependents do.\n", missing.kind.GroupResource(), missing.name)
		}
	}
	return resumed, utilerrors.NewAggregate(remaining)
}

// withGarbageHint points at the leftovers of a deletion that was interrupted
// when even the direct dependents of the object were gone: nothing connects
// them to its name any more.
func (o *deleteOptions) withGarbageHint(failed error, s *session, g *graph.Graph) error {
	if len(missing(failed)) == 0 {
		return failed
	}
	hint := "nothing was changed; --ignore-not-found skips what does not exist"
	if garbage := o.garbage(s, g); garbage != "" {
		hint = "nothing was changed; " + garbage
	}
	return hintedError{failed, hint}
}

// garbage says how to see what an interrupted deletion has left, or is empty when
// nothing looks like it.
func (o *deleteOptions) garbage(s *session, g *graph.Graph) string {
	n := 0
	for node := range g.Nodes() {
		refs := node.Owners()
		if !o.allNamespaces && node.Namespace() != s.namespace {
			continue
		}
		if len(refs) > 0 && !node.BeingDeleted() &&
			!slices.ContainsFunc(refs, func(r graph.Reference) bool { return r.State != graph.Dangling }) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	namespace := s.namespace
	if o.allNamespaces {
		namespace = ""
	}
	return fmt.Sprintf("objects with only missing owners (%d), as an interrupted deletion leaves them, are shown by '%s --dry-run=client'",
		n, o.collectIn(namespace))
}

// nothing says that there is nothing to delete: no object matches, or all that
// were named are absent, and --ignore-not-found says that this is fine.
func (o *deleteOptions) nothing(s *session, g *graph.Graph, absent bool) error {
	if !o.named() && !(o.fromFiles() && absent) {
		where := " in namespace " + s.namespace
		switch {
		case o.fromFiles():
			where = " in the files"
		case o.allNamespaces:
			where = ""
		}
		fmt.Fprintf(o.ErrOut, "No resources found%s.\n", where)
		if garbage := o.garbage(s, g); garbage != "" {
			fmt.Fprintln(o.ErrOut, "hint: "+garbage)
		}
	}
	return cmp.Or(o.printNothing(g), o.finish(s, g.Snapshot()))
}
