// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func (o *uninstallOptions) addLeftoversFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.saved, "remove-leftovers", "",
		"After the tool has run: print what it has left behind by this plan, which -o json or yaml printed before, as a file for '"+o.name+
			" delete -f'; - is standard input")
}

func (o *uninstallOptions) validateLeftovers() error {
	switch given := o.deletion.flags.Changed("remove-leftovers"); {
	case given && o.saved == "":
		return usageError{errors.New("--remove-leftovers needs the file of a plan")}
	case given && o.prepare:
		return usageError{errors.New("--prepare is for the time before the tool runs, and --remove-leftovers for the time after it")}
	case given && len(o.from) > 0:
		return usageError{errors.New("--remove-leftovers needs a cluster: a snapshot does not have everything that might use an object")}
	}
	return nil
}

// afterwards is how what the tool leaves behind is deleted, empty when that is nothing, or something else comes first.
func (o *uninstallOptions) afterwards(u *render.Uninstall) string {
	if u.Halt != nil || len(u.Left) == 0 || o.files != nil || len(u.First(u.Forecast)) > 0 {
		return ""
	}
	return fmt.Sprintf("save this plan now: %s > plan.json; after the tool has run, print them: %s > leftovers.yaml; then: %s",
		o.again(ofThisRun, "--output=json"), o.again(ofThisRun, "--remove-leftovers=plan.json"), o.deletes("leftovers.yaml"))
}

// deletes is the command that deletes the objects of a file.
func (o *uninstallOptions) deletes(file string) string {
	return o.name + " delete" + o.connection() + " -f " + file
}

// listsLeftovers prints what the tool has left behind.
func (o *uninstallOptions) listsLeftovers(ctx context.Context) error {
	saved, err := o.savedPlan()
	if err != nil {
		return err
	}
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return err
	}
	if err := o.isOf(saved, s.namespace); err != nil {
		return err
	}
	w, err := worldOf(ctx, s)
	if err != nil {
		return err
	}
	if err := w.Over(saved); err != nil {
		return o.notOver(saved, err)
	}
	l := &render.Leftovers{
		Saved: saved, Plan: calledFile(o.saved), Where: o.where, Cluster: w.ClusterUID(),
		Time: s.now(), Delete: o.deletes("FILE"), All: w.Leftovers(saved),
	}
	if err := cmp.Or(ctx.Err(), o.printLeftovers(w.Graph.Snapshot(), l), o.finish(s, w.Graph.Snapshot())); err != nil {
		return err
	}
	return kept(l.All)
}

// printLeftovers writes the file, or the document.
func (o *uninstallOptions) printLeftovers(s *graph.Snapshot, l *render.Leftovers) error {
	file := func(w io.Writer, _ render.Style, l *render.Leftovers) error { return l.File(w) }
	documents := output[*render.Leftovers]{
		name: o.output.name, json: o.output.json, template: o.output.template,
		document: func(l *render.Leftovers) runtime.Object { return l.Document(s) },
		formats: []format[*render.Leftovers]{{"", file}, {"wide", file}, {"name", func(w io.Writer, _ render.Style, l *render.Leftovers) error {
			return l.Names(w)
		}}},
	}
	return documents.print(o.globals, l)
}

// kept is an error when something could not be judged, or is kept although the plan has it as left behind.
func kept(all []uninstall.Leftover) error {
	if slices.ContainsFunc(all, func(l uninstall.Leftover) bool { return l.Held != nil && l.Held.Why == uninstall.NotRead }) {
		return incompleteError{errors.New("unclear whether some of this is in use: not everything could be read")}
	}
	if slices.ContainsFunc(all, func(l uninstall.Leftover) bool { return l.Held != nil && !l.Belongs.IsZero() }) {
		return errRemaining
	}
	return nil
}

// notOver says why nothing is left behind yet.
func (o *uninstallOptions) notOver(saved *uninstall.Saved, err error) error {
	var not uninstall.NotOverError
	if !errors.As(err, &not) {
		return err
	}
	if not.Unread() {
		err = incompleteError{err}
	}
	return hintedError{fmt.Errorf("listing what %s left behind: %w", saved.Title(), err), not.Hint(o.commandOf(saved.Command))}
}

// savedPlan reads the plan.
func (o *uninstallOptions) savedPlan() (*uninstall.Saved, error) {
	text, err := o.content(o.saved)
	if err != nil {
		return nil, err
	}
	saved, err := render.ReadUninstallPlan(text)
	if err != nil {
		return nil, hintedError{fmt.Errorf("reading %s: %w", calledFile(o.saved), err),
			"before the tool runs, save the plan: the same command with -o json > plan.json"}
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
		fmt.Errorf("%s is the plan of %s in namespace %s", calledFile(o.saved), saved.Title(), saved.Namespace),
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
		fmt.Errorf("%s and %s have other objects than when %s was made", calledFile(o.args[0]), calledFile(o.args[1]), calledFile(o.saved)),
		"give the manifests of which the plan was made",
	}
}
