// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// besidesStuck are the parts of the cluster that ways out of what is stuck may affect.
func besidesStuck(l *look) []graph.Part {
	return (&unstick.Look{Report: l.report, Graph: l.graph}).Parts()
}

// seen is a look with the data that is at stake.
func (o *unstickOptions) seen(ctx context.Context, l *look) *unstick.Look {
	seen := &unstick.Look{Report: l.report, Graph: l.graph, Kubectl: "kubectl" + o.connection()}
	if slices.ContainsFunc(l.report.Causes, unstick.NeedsCollection) {
		server := simulator.New(l.snapshot, simulator.Options{Now: l.report.Now, Server: l.session.reader.Server(ctx)})
		if pending, err := gc.New(server, l.graph, gc.Options{}).Collect(ctx, ""); err == nil {
			seen.Pending = pending.Steps
		}
	}
	seen.FindStakes(ctx, l.session.reader)
	return seen
}

// lookOn looks while a run goes on: also at the dependents that what was asked for has left behind.
func (o *unstickOptions) lookOn(ctx context.Context) (*unstick.Look, error) {
	l, err := o.look(ctx)
	if err != nil {
		return nil, err
	}
	seen := o.seen(ctx, l)
	o.followers.Note(seen)
	behind := o.followers.Behind(seen)
	if len(behind) == 0 {
		return seen, nil
	}
	q := &inquiry{session: l.session, workloads: controllers.NewWorkloads(ctx, l.session.reader), found: behind}
	q.workloads.Want()
	left, err := o.widening(ctx, q, explain.PartsOf(behind))
	if err != nil {
		return nil, err
	}
	o.followers.Found(seen, left.report)
	return seen, nil
}

// goingOn is the command that shows what can be done about what is still stuck, at its risk; empty where that is nothing, or the
// arguments alone do not say what for.
func (o *unstickOptions) goingOn(l *unstick.Look) string {
	var risk explain.Risk
	var left []unstick.Choice
	for _, c := range unstick.Choose(l, &unstick.Options{Allow: explain.Dangerous}).Choices {
		if len(c.Writes) > 0 {
			left = append(left, c)
			if risk == "" || c.Risk.Exceeds(risk) {
				risk = c.Risk
			}
		}
	}
	if risk == "" || o.fromFiles() || o.selector != "" || o.fieldSelector != "" {
		return ""
	}
	command := o.name + o.connection() + " unstick"
	switch namespace := o.config.Namespace; {
	case o.allNamespaces:
		command += " -A"
	case namespace != nil && *namespace != "":
		command += " -n " + shell.Quote(*namespace)
	}
	switch named := len(o.args) > 1 || len(o.args) == 1 && strings.Contains(o.args[0], "/"); {
	case named: // some may be gone
		for i := range l.Report.Objects {
			if left := &l.Report.Objects[i]; left.Verdict == explain.Stuck {
				command += " " + remedy.Ref(left.Object)
			}
		}
	case len(o.args) > 0:
		command += " " + shell.Command(o.args)
	}
	switch {
	case len(left) == 1:
		name := unstick.Names(l.Report)[left[0].Rank-1]
		name.Way = unstick.WayName(left[0].Cause.Ways()[left[0].Way-1])
		command += " --cause=" + name.String()
	case risk != explain.Safe:
		command += " --allow=" + string(risk)
	}
	return command + " --dry-run"
}

// noneChosen says that no cause is one of those that were asked for.
func (o *unstickOptions) noneChosen(p *unstick.Plan) {
	if len(o.causes) > 0 && !slices.ContainsFunc(p.Choices, func(c unstick.Choice) bool { return c.Reason != unstick.NotChosen }) {
		fmt.Fprintf(o.ErrOut, "No cause here matches --cause=%s.\n", render.Line(strings.Join(o.causes, ",")))
	}
}

// ended says what could not be read, and what was named and does not exist.
func (o *unstickOptions) ended(l *look, err error) error {
	if finish := o.finish(l.session, l.snapshot); finish != nil {
		return errors.Join(err, finish)
	}
	if unread := render.Unread(o.ErrOut, l.report, o.verbosity > 0); unread != nil {
		return errors.Join(err, unread)
	}
	switch {
	case l.failed != nil && errors.Is(err, errRemaining):
		printError(o.ErrOut, l.failed, o.name+" unstick")
		return err
	case o.strict && err == nil && len(l.report.Unread)+len(l.unresolved) > 0:
		return errIncomplete
	}
	return errors.Join(l.failed, err)
}

// explained adds what to try to the errors of a run.
func (o *unstickOptions) explained(err error) error {
	var digest *change.DigestError
	if errors.As(err, &digest) {
		return hintedError{err, "look at them with --dry-run, and approve them with --confirm=" + answer.Short(digest.Now)}
	}
	return err
}

// collecting does the garbage collector's work on the cluster as far as that is allowed, with everything read again that it rests on.
func (o *unstickOptions) collecting(journal *change.Journal) func(context.Context,
	func(gc.Action, graph.Object) bool, func(gc.Step)) error {
	return func(ctx context.Context, allowed func(gc.Action, graph.Object) bool, told func(gc.Step)) error {
		s, err := o.connectToWrite(ctx, o.pageSize)
		if err != nil {
			return err
		}
		snapshot, err := s.reader.Snapshot(ctx, cluster.Scope{})
		if err != nil {
			return err
		}
		j := &change.Job{Cluster: s.cluster(), Graph: graph.New(snapshot)}
		return j.CollectOnly(ctx, journal, allowed, told)
	}
}
