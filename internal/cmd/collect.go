// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// collectOptions are what the command line of collect says.
type collectOptions struct {
	deletionOptions
	allNamespaces bool
	pageSize      int64
}

const collectLong = `Do what a healthy garbage collector would do now to the namespace, or with -A
to the whole cluster: delete the objects that have only missing owners, remove
references that keep nothing from objects that another owner keeps, and finish
foreground and orphan deletions that were begun.

What will happen is shown first, as by delete.

` + deletionExitCodes

const collectExample = `  # What garbage is there
  NAME collect --dry-run=client -A

  # Collect it in one namespace
  NAME collect -n shop`

func newCollect(g *globals) *cobra.Command {
	o := &collectOptions{deletionOptions: deletionOptions{globals: g, journaling: journaling{g: g}}}
	cmd := &cobra.Command{
		Use:               "collect",
		Short:             "Make one garbage collection pass, after showing what it will do",
		Long:              collectLong,
		Example:           g.example(collectExample),
		Args:              func(_ *cobra.Command, args []string) error { return noArguments(args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(o, nil),
	}
	o.addDeletionFlags(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Collect in the whole cluster")
	addPageSize(cmd.Flags(), &o.pageSize)
	return cmd
}

func (o *collectOptions) validate() error {
	if o.allNamespaces && o.scope == "namespace" {
		return usageError{errors.New("--scope=namespace reads one namespace, and -A means all of them")}
	}
	return cmp.Or(validatePageSize(o.pageSize), o.validateDeletion())
}

func (o *collectOptions) run(ctx context.Context) error {
	return o.unlessInterrupted(ctx, o.collect(ctx))
}

func (o *collectOptions) collect(ctx context.Context) error {
	s, j, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := o.emptyHanded(ctx, s, j.Graph.Snapshot(), j.Namespace); err != nil {
		return err
	}
	where := "namespace " + s.namespace
	if o.allNamespaces {
		where = "the cluster"
	}
	t := &telling{deletionOptions: &o.deletionOptions, session: s, what: "collect garbage in " + where}
	return t.execute(ctx, j)
}

// look finds out what there is to collect now.
func (o *collectOptions) look(ctx context.Context) (*session, *change.Job, error) {
	s, err := o.connectToWrite(ctx, o.pageSize)
	if err != nil {
		return nil, nil, err
	}
	namespace := s.namespace
	if o.allNamespaces {
		namespace = ""
	}
	scope, workloads := o.reads(namespace), controllers.NewWorkloads(ctx, s.reader)
	alongside(&scope, workloads, func(*graph.Object) bool { return true })
	snapshot, err := s.reader.Snapshot(ctx, scope)
	if err != nil {
		return nil, nil, err
	}
	g := graph.New(snapshot)
	j := &change.Job{Cluster: s.cluster(), Graph: g, Whole: wholeOf(scope, g), Workloads: workloads, Job: preview.Job{Namespace: namespace}}
	j.Again = func(ctx context.Context) (*change.Job, error) {
		_, now, err := o.look(ctx)
		return now, err
	}
	return s, j, nil
}

// reads is what must be read to collect in a namespace, or everywhere when it is
// empty: what blocks an owner there, or is to be orphaned by one, may by mistake be
// anywhere, and what depends on an owner without a namespace may be so by right.
func (o *collectOptions) reads(namespace string) cluster.Scope {
	switch o.scope {
	case "cluster":
		return cluster.Scope{}
	case "namespace":
		return cluster.Scope{Namespace: namespace, Labels: simulator.Labels()}
	}
	return cluster.Scope{Namespace: namespace, Widened: true}
}
