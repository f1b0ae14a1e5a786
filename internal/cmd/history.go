// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

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
