// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/change"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

// leftoversOptions say which leftovers are deleted.
type leftoversOptions struct {
	// plan is the file of the plan that was made before the tool ran, and include names the objects that are deleted.
	plan    string
	include []string
	// held are targets of the run that must not be deleted any more, by what a later look has found.
	held map[types.UID]bool
	// now is how they are after a run, nil without one.
	now *leftoversNow
}

func (o *uninstallOptions) addLeftoversFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.leftovers.plan, "remove-leftovers", "", "After the tool has run: list what it has left behind by this plan, which -o json or yaml printed before, and delete what --include names, with a preview and your consent; - is standard input")
	flags.StringSliceVar(&o.leftovers.include, "include", nil, "With --remove-leftovers: delete this object, TYPE/NAME or, when there are several, TYPE/NAMESPACE/NAME; all others are listed, and kept")
	o.deletion.flags = flags
	o.deletion.addDryRun(`With --prepare or --remove-leftovers: "client" shows what would happen, "server" also asks the server about the writes, "none" does it`)
	o.completeValues(cmd, map[string][]string{"dry-run": dryRuns})
}

func (o *uninstallOptions) validateLeftovers() error {
	d, given := &o.deletion, o.deletion.flags.Changed("remove-leftovers")
	switch {
	case given && o.leftovers.plan == "":
		return usageError{errors.New("--remove-leftovers needs the file of a plan")}
	case given && o.prepare:
		return usageError{errors.New("--prepare is for the time before the tool runs, and --remove-leftovers for the time after it")}
	case given && len(o.from) > 0:
		return usageError{errors.New("--remove-leftovers needs a cluster: a file cannot be changed")}
	case !given && len(o.leftovers.include) > 0:
		return usageError{errors.New("--include needs --remove-leftovers")}
	case !given && !o.prepare && d.dryRun != "none":
		return usageError{errors.New("--dry-run needs --prepare or --remove-leftovers: nothing else is changed")}
	case !given && (!o.prepare || len(o.from) > 0): // which is for validatePrepare
		return nil
	}
	return d.validateConsent(o.globals)
}

// afterwards is how what the tool leaves behind is deleted, empty when that is nothing, or something else comes first.
func (o *uninstallOptions) afterwards(u *render.Uninstall) string {
	if u.Halt != nil || len(u.Left) == 0 || o.files != nil || len(uninstall.First(u.Sight)) > 0 {
		return ""
	}
	return fmt.Sprintf("save this plan now: %s > plan.json; after the tool has run: %s", o.again("--output=json"), o.again("--remove-leftovers=plan.json"))
}

// removes deletes what the tool has left behind.
func (o *uninstallOptions) removes(ctx context.Context) error {
	saved, err := o.savedPlan()
	if err != nil {
		return err
	}
	s, err := o.connectToWrite(ctx, o.pageSize)
	if err != nil {
		return err
	}
	if err := o.isOf(saved, s.namespace); err != nil {
		return err
	}
	l, err := o.lookForLeftovers(ctx, s, saved)
	if err != nil {
		return err
	}
	if o.output.isText() {
		return o.remove(ctx, s, l, saved)
	}
	answer := &leftoversAnswer{Saved: saved, now: l}
	o.deletion.output = newOutput((*deletionAnswer).document, format[*deletionAnswer]{"", func(_ io.Writer, _ render.Style, a *deletionAnswer) error {
		answer.deletion = a.document()
		return nil
	}})
	err = o.remove(ctx, s, l, saved)
	if o.leftovers.now != nil {
		answer.now = o.leftovers.now
	} else if err != nil && answer.deletion == nil && !errors.Is(err, errIncomplete) && !errors.Is(err, errRemaining) {
		return err
	}
	documents := output[*leftoversAnswer]{
		name: o.output.name, json: o.output.json, template: o.output.template,
		document: func(a *leftoversAnswer) runtime.Object {
			return render.NewLeftoversReport(a.now.graph.Snapshot(), a.Saved, a.now.all, a.deletion)
		},
		formats: []format[*leftoversAnswer]{{"name", func(w io.Writer, _ render.Style, a *leftoversAnswer) error { return render.LeftoverNames(w, a.now.all) }}},
	}
	return cmp.Or(documents.print(o.globals, answer), err)
}

// leftoversAnswer is what became of leftovers, and of their deletion if there is any.
type leftoversAnswer struct {
	*uninstall.Saved
	now      *leftoversNow
	deletion runtime.Object
}

// remove lists what is kept, deletes what was named of the others, and lists what is left then.
func (o *uninstallOptions) remove(ctx context.Context, s *session, l *leftoversNow, saved *uninstall.Saved) error {
	out := o.ErrOut
	if o.deletion.dryRun != "none" {
		out = o.Out
	}
	kept := slices.DeleteFunc(slices.Clone(l.all), func(l uninstall.Leftover) bool { return !l.Gone && l.Held == nil })
	if err := o.list(out, kept); err != nil {
		return err
	}
	targets := l.targets()
	if len(targets) == 0 {
		fmt.Fprintln(o.ErrOut, "Nothing is deleted: name with --include the leftovers that are not in use any more.")
		return cmp.Or(o.finish(s, l.graph.Snapshot()), l.unread(), l.remaining())
	}
	o.leftovers.held = map[types.UID]bool{}
	t := &telling{
		deletionOptions: &o.deletion, session: s, what: fmt.Sprintf("delete what %s left behind: %s", saved.Title(), render.NamesOf(targets)), dangers: l.dangers(),
	}
	err := t.execute(ctx, o.removal(s, l, saved, targets))
	if !o.deletion.ran {
		return cmp.Or(err, l.remaining())
	}
	now, failed := o.lookForLeftovers(context.WithoutCancel(ctx), s, saved)
	if failed != nil {
		return cmp.Or(err, failed)
	}
	o.leftovers.now, err = now, cmp.Or(err, now.remaining())
	stays := slices.DeleteFunc(slices.Clone(now.all), func(l uninstall.Leftover) bool { return l.Gone })
	switch {
	case !o.output.isText():
		return err
	case len(stays) == 0:
		fmt.Fprintf(o.Out, "Nothing is left of what %s left behind.\n", saved.Title())
		return err
	}
	fmt.Fprintf(o.Out, "Of what %s left behind:\n", saved.Title())
	return cmp.Or(err, o.list(o.Out, stays))
}

// list prints what became of leftovers, for a person.
func (o *uninstallOptions) list(w io.Writer, all []uninstall.Leftover) error {
	if !o.output.isText() {
		return nil
	}
	style, err := o.style(w)
	if err != nil {
		return err
	}
	return render.Leftovers(w, style, all, o.output.name == "wide")
}

// savedPlan reads the plan.
func (o *uninstallOptions) savedPlan() (*uninstall.Saved, error) {
	text, err := o.content(o.leftovers.plan)
	if err != nil {
		return nil, err
	}
	saved, err := render.ReadUninstallPlan(text)
	if err != nil {
		return nil, hintedError{fmt.Errorf("reading %s: %w", calledFile(o.leftovers.plan), err), "before the tool runs, save the plan: the same command with -o json > plan.json"}
	}
	return saved, nil
}

// isOf returns an error when the plan is of something else than the command line.
func (o *uninstallOptions) isOf(saved *uninstall.Saved, namespace string) error {
	_, name, typed := strings.Cut(o.args[0], "/")
	if !typed {
		name = o.args[0]
	}
	if saved.Tool == o.tool && saved.Namespace == namespace && (saved.Name == name || saved.Name == "") {
		return o.manifestsAre(saved.Manifests)
	}
	return hintedError{
		fmt.Errorf("%s is the plan of %s in namespace %s", calledFile(o.leftovers.plan), saved.Title(), saved.Namespace),
		fmt.Sprintf("this command is about %s %s in namespace %s; -n names another", o.tool, name, namespace),
	}
}

// manifestsAre returns an error unless the files of the command line have the objects of which a plan is, if any.
func (o *uninstallOptions) manifestsAre(planned string) error {
	if o.manifests == nil {
		return nil
	}
	now, err := o.manifests()
	if err != nil || now == planned {
		return err
	}
	return hintedError{
		fmt.Errorf("%s and %s have other objects than when %s was made", calledFile(o.args[0]), calledFile(o.args[1]), calledFile(o.leftovers.plan)),
		"give the manifests of which the plan was made",
	}
}

// leftoversNow are the leftovers as a look has found them.
type leftoversNow struct {
	graph *graph.Graph
	all   []uninstall.Leftover
}

// targets are those that may be deleted.
func (l *leftoversNow) targets() []graph.Identity {
	var ids []graph.Identity
	for i := range l.all {
		if !l.all[i].Gone && l.all[i].Held == nil {
			ids = append(ids, l.all[i].Object)
		}
	}
	return ids
}

// dangers are said before anything is asked.
func (l *leftoversNow) dangers() []string {
	var all []string
	changed := slices.DeleteFunc(slices.Clone(l.all), func(l uninstall.Leftover) bool { return l.Gone || l.Held != nil || !l.Changed })
	if len(changed) > 0 {
		all = append(all, "changed since the plan: "+render.NamesOf((&leftoversNow{all: changed}).targets()))
	}
	for i := range l.all {
		if d := &l.all[i]; !d.Gone && d.Held == nil && len(d.Instances) > 0 {
			all = append(all, render.NamesOf([]graph.Identity{d.Object})+": "+render.WithInstances("", d.Instances))
		}
	}
	return all
}

// unread is an error when nothing could be found out of some of them.
func (l *leftoversNow) unread() error {
	if slices.ContainsFunc(l.all, func(l uninstall.Leftover) bool { return l.Held != nil && l.Held.Why == uninstall.NotRead }) {
		return incompleteError{errors.New("whether some of this is in use is not known: not everything could be read")}
	}
	return nil
}

// remaining is an error when some of them are kept although the user has named them.
func (l *leftoversNow) remaining() error {
	if slices.ContainsFunc(l.all, func(l uninstall.Leftover) bool { return l.Named && l.Held != nil }) {
		return errRemaining
	}
	return nil
}

// lookForLeftovers reads the whole cluster.
func (o *uninstallOptions) lookForLeftovers(ctx context.Context, s *session, saved *uninstall.Saved) (*leftoversNow, error) {
	w, err := worldOf(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := w.Over(saved); err != nil {
		var not uninstall.NotOverError
		if errors.As(err, &not) {
			if not.Unread {
				err = incompleteError{err}
			}
			return nil, hintedError{fmt.Errorf("removing what %s left behind: %w", saved.Title(), err), not.Hint(shell.Command(saved.Command))}
		}
		return nil, err
	}
	named, err := o.included(s, saved)
	if err != nil {
		return nil, err
	}
	all := w.Leftovers(&uninstall.Question{
		Saved: saved,
		Named: func(id graph.Identity) bool { return named[id.UID] },
		Tolerated: func(u graph.Unlisted) bool {
			tolerance := change.Tolerance{Names: o.deletion.allowIncomplete.Names}
			return len(tolerance.Intolerable([]graph.Unlisted{u})) == 0
		},
	})
	return &leftoversNow{w.Graph, all}, ctx.Err()
}

// included returns the objects of the plan that --include names.
func (o *uninstallOptions) included(s *session, saved *uninstall.Saved) (map[types.UID]bool, error) {
	mapper, err := s.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	var ids []graph.Identity
	for i := range saved.Left {
		ids = append(ids, saved.Left[i].Object)
	}
	for i := range saved.Kept {
		ids = append(ids, saved.Kept[i].Object)
	}
	named := map[types.UID]bool{}
	for _, word := range o.leftovers.include {
		kind, name, _ := strings.Cut(word, "/")
		gvk, err := mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
		if err != nil {
			return nil, usageError{fmt.Errorf("--include=%s: %w", word, err)}
		}
		found := slices.DeleteFunc(slices.Clone(ids), func(id graph.Identity) bool {
			of := id.Resource.GroupVersionKind().GroupKind() == gvk.GroupKind() && id.UID != ""
			return !of || name != id.Name && name != path.Join(id.Namespace, id.Name)
		})
		slices.SortFunc(found, graph.Identity.Compare)
		switch found = slices.Compact(found); len(found) {
		case 0:
			return nil, usageError{fmt.Errorf("--include=%s: the plan has no such object that is kept or left", word)}
		case 1:
			named[found[0].UID] = true
		default:
			return nil, usageError{fmt.Errorf("--include=%s: the plan has %s; write TYPE/NAMESPACE/NAME", word, render.NamesOf(found))}
		}
	}
	return named, nil
}

// removal is the deletion of leftovers, each in the version that was judged. What a later look finds in use is left alone.
func (o *uninstallOptions) removal(s *session, l *leftoversNow, saved *uninstall.Saved, targets []graph.Identity) *change.Job {
	versions := map[types.UID]string{}
	for i := range l.all {
		versions[l.all[i].Object.UID] = l.all[i].Version
	}
	j := &change.Job{Cluster: s.cluster(), Graph: l.graph, Whole: l.graph, Job: preview.Job{Policy: metav1.DeletePropagationBackground, Targets: targets}}
	j.Choose = func(id graph.Identity) gc.Target {
		return gc.Target{Identity: id, Reselect: o.stillJudged(id, versions[id.UID])} // Matched is none: each is asked about
	}
	j.Again = func(ctx context.Context) (*change.Job, error) {
		s, err := o.connectToWrite(ctx, o.pageSize)
		if err != nil {
			return nil, err
		}
		now, err := o.lookForLeftovers(ctx, s, saved)
		if err != nil {
			return nil, err
		}
		var left []graph.Identity
		for i := range now.all {
			was := slices.ContainsFunc(targets, func(id graph.Identity) bool { return id.UID == now.all[i].Object.UID })
			switch {
			case was && now.all[i].Held != nil:
				o.leftovers.held[now.all[i].Object.UID] = true
			case was && !now.all[i].Gone:
				left = append(left, now.all[i].Object)
			case was:
				if err := change.ProveGone(ctx, s.reader, now.all[i].Object); err != nil {
					return nil, err
				}
			}
		}
		return o.removal(s, now, saved, left), nil
	}
	return j
}

// stillJudged returns what asks a server whether an object is as it was judged. In a preview nobody changes it.
func (o *uninstallOptions) stillJudged(id graph.Identity, version string) func(context.Context, gc.Server) (graph.Object, bool, error) {
	return func(ctx context.Context, server gc.Server) (graph.Object, bool, error) {
		now, err := server.Get(ctx, id.Resource, id.Namespace, id.Name)
		_, live := server.(selector)
		return now, err == nil && (!live || now.ResourceVersion == version && !o.leftovers.held[id.UID]), err
	}
}
