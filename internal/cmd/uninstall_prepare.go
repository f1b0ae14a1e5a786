// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func (o *uninstallOptions) addPrepareFlags(cmd *cobra.Command) {
	flags, d := cmd.Flags(), &o.deletion
	*d = deletionOptions{globals: o.globals, journaling: journaling{g: o.globals}, consenting: consenting{dryRun: "none", flags: flags},
		wait: true, concurrency: 16, order: orderSafe}
	d.output = newOutput(
		(*deletionAnswer).document,
		format[*deletionAnswer]{"", func(w io.Writer, style render.Style, a *deletionAnswer) error {
			return writeDeletion(w, style, a, d.dryRun != "none")
		}},
	)
	flags.BoolVar(&o.prepare, "prepare", false,
		"Delete first what would get stuck, after a preview and with your consent, and wait for it. The tool is not run")
	flags.BoolVarP(&d.yes, "yes", "y", false, "With --prepare: do not ask")
	flags.BoolVarP(&d.interactive, "interactive", "i", false, "With --prepare: ask even when standard input is not a terminal")
	flags.StringVar(&d.confirm, "confirm", "",
		"With --prepare: go ahead only if the writes are those with this digest, which the preview printed")
	flags.DurationVar(&d.timeout, "timeout", 0,
		"With --prepare: how long to wait for what is on its way out; 0 gives up when nothing has changed for a while")
	d.journaling.addFlags(flags, "With --prepare: keep each object that is deleted or changed, whole, in a new directory below this one")
	flags.Var(&d.allowIncomplete, "allow-incomplete",
		"With --prepare: go ahead although something that could not be read might change the outcome; with API groups or types as its value, when nothing else is missing")
	flags.Lookup("allow-incomplete").NoOptDefVal = "true"
	d.addDryRun(`With --prepare: "client" shows what would happen, "server" also asks the server about the writes, "none" does it`)
	o.completeValues(cmd, map[string][]string{"dry-run": dryRuns})
}

func (o *uninstallOptions) validatePrepare() error {
	d := &o.deletion
	switch {
	case o.prepare && len(o.from) > 0:
		return usageError{errors.New("--prepare needs a cluster: a file cannot be changed")}
	case o.prepare && (o.output.name == "wide" || o.output.name == "name"):
		return usageError{fmt.Errorf("-o %s goes without --prepare", o.output.name)}
	case o.prepare:
		d.output.name, d.output.json, d.output.template = o.output.name, o.output.json, o.output.template
		return cmp.Or(d.validateConsent(o.globals), d.validateInteractive())
	case d.yes || d.interactive || d.flags.Changed("confirm") || d.dryRun != "none":
		return usageError{errors.New("--yes, --interactive, --confirm and --dry-run need --prepare: nothing else is changed")}
	}
	return nil
}

// prepares deletes what had better go before the tool begins, and says then what the tool does.
func (o *uninstallOptions) prepares(ctx context.Context) error {
	s, err := o.connectToWrite(ctx, o.pageSize)
	if err != nil {
		return err
	}
	u, err := o.foretell(ctx, s)
	if err != nil {
		return err
	}
	first := u.First(u.Forecast)
	if u.Halt != nil || len(first) == 0 {
		why := "Nothing can be prepared."
		if u.Halt == nil && u.Sticks() {
			why = "Nothing can be prepared: " + u.NoneFirst() + "."
		}
		fmt.Fprintln(o.ErrOut, why)
		if o.output.isText() {
			return o.answer(s, u)
		}
		return cmp.Or(o.deletion.printNothing(u.Preview.Graph), failed(u))
	}
	t := &telling{deletionOptions: &o.deletion, session: s, what: "delete first: " + render.NamesOf(first)}
	if err := t.execute(ctx, o.job(s, u.Preview.Graph, first)); err != nil || o.deletion.dryRun != "none" {
		return err
	}
	if o.output.isText() {
		fmt.Fprintln(o.ErrOut, "Prepared. What the tool does now:")
		return o.show(ctx)
	}
	// The document is of what was deleted; what the tool does now the same command says without --prepare, and the exit code here, too.
	if s, err = o.connect(ctx, o.pageSize); err != nil {
		return err
	}
	if u, err = o.foretell(ctx, s); err != nil {
		return err
	}
	return failed(u)
}

// job is the deletion of what goes first: what would still get stuck when it is looked at again, and what is being deleted by then.
func (o *uninstallOptions) job(s *session, g *graph.Graph, first []graph.Identity) *change.Job {
	j := &change.Job{Cluster: s.cluster(), Graph: g, Whole: g, Job: preview.Job{Policy: metav1.DeletePropagationBackground, Targets: first,
		Why: uninstall.GoesFirst, Choose: o.stillFirst(g, first)}}
	j.Again = func(ctx context.Context) (*change.Job, error) {
		s, err := o.connectToWrite(ctx, o.pageSize)
		if err != nil {
			return nil, err
		}
		u, err := o.foretell(ctx, s)
		if err != nil {
			return nil, err
		}
		g, still := u.Preview.Graph, uids(u.First(u.Forecast))
		var left []graph.Identity
		for _, id := range j.Targets {
			n, known := g.Node(id.UID)
			switch known = known && !n.Virtual(); {
			case !known:
				if err := change.ProveGone(ctx, s.reader, id); err != nil {
					return nil, err
				}
			case n.BeingDeleted() || slices.Contains(still, id.UID):
				left = append(left, id)
			}
		}
		return o.job(s, g, left), nil
	}
	return j
}

// stillFirst returns what makes a target of one of the objects that go first, in the version of the graph. When another version is there
// at its turn, somebody may have taken it over: everything is asked anew, and what would not go first any more stays.
func (o *uninstallOptions) stillFirst(g *graph.Graph, first []graph.Identity) func(graph.Identity) gc.Target {
	var mu sync.Mutex
	latest, still := g, uids(first)
	return func(id graph.Identity) gc.Target {
		t := gc.Target{Identity: id, Unselected: string(uninstall.FirstNoMore)}
		if n, known := g.Node(id.UID); known {
			t.Matched = n.Object().ResourceVersion
		}
		t.Reselect = func(ctx context.Context, server gc.Server) (graph.Object, bool, error) {
			now, err := server.Get(ctx, id.Resource, id.Namespace, id.Name)
			if err != nil || now.UID != id.UID {
				return now, false, err
			}
			mu.Lock()
			defer mu.Unlock()
			if n, known := latest.Node(id.UID); !known || n.Object().ResourceVersion != now.ResourceVersion {
				s, err := o.connectToWrite(ctx, o.pageSize)
				if err != nil {
					return now, false, err
				}
				u, err := o.foretell(ctx, s)
				if err != nil {
					return now, false, err
				}
				latest, still = u.Preview.Graph, uids(u.First(u.Forecast))
			}
			n, known := latest.Node(id.UID)
			if !known || n.Virtual() {
				return now, false, nil
			}
			return *n.Object(), n.BeingDeleted() || slices.Contains(still, id.UID), nil
		}
		return t
	}
}
