// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// few is the size of the cluster whose snapshot shows what the program takes in any case.
const few = 10

// offline measures the writing of a snapshot of a made-up cluster, and the same check of
// the cluster and of the file. It writes what docs/snapshot-format.md has.
func offline(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("offline", flag.ContinueOnError)
	objects := flags.Int("objects", 200_000, "the size of the cluster")
	rounds := flags.Int("rounds", 5, "how often each thing is measured")
	plugin := flags.String("plugin", "bin/kubectl-gc", "the program, as make build has it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{plugin: *plugin}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	for _, n := range []int{few, *objects} {
		if err := b.offlineOf(ctx, n, *rounds, out); err != nil {
			return err
		}
	}
	return nil
}

// offlineOf measures one size.
func (b *bench) offlineOf(ctx context.Context, n, rounds int, out io.Writer) error {
	kubeconfig, stop, err := b.serve(ctx, n)
	if err != nil {
		return err
	}
	defer stop()
	file := filepath.Join(b.dir, strconv.Itoa(n)+".snapshot")
	// The file is written first, and read in the same round.
	contenders := []contender{
		{name: "snapshot -o FILE", args: []string{b.plugin, "snapshot", "--overwrite", "-o", file, "--kubeconfig", kubeconfig}, silent: true},
		{name: "check -A", args: []string{b.plugin, "check", "-A", "--settle=0", "--kubeconfig", kubeconfig}, silent: true, finds: true},
		{name: "check -A --from FILE", args: []string{b.plugin, "check", "-A", "--from", file}, silent: true, finds: true},
	}
	results, err := measure(ctx, rounds, contenders...)
	if err != nil {
		return err
	}
	table := fmt.Sprintf("\n%d objects\n\n| | s | CPU s | MB |\n|---|---|---|---|\n", n)
	for _, c := range contenders {
		s := results[c.name]
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", c.name, s.wall(), s.cpu(), s.rss())
	}
	_, err = io.WriteString(out, table)
	return err
}
