// SPDX-License-Identifier: Apache-2.0

// Command bench measures the plugin beside other ways to do the same, on made-up
// clusters of any size and on real control planes, and writes what it measured
// as a page of the documentation:
//
//	go run ./test/bench run -out docs/benchmarks.md
//
// What is compared runs as processes of their own, in turn, so that they meet
// the same machine. Times are those of the whole process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

// commands are what the first argument names. All but run, compare, profile, offline and load
// are started by these.
var commands = map[string]func(ctx context.Context, args []string) error{
	"run":      run,
	"compare":  func(ctx context.Context, args []string) error { return compare(ctx, args, os.Stdout) },
	"profile":  profile,
	"offline":  func(ctx context.Context, args []string) error { return offline(ctx, args, os.Stdout) },
	"load":     load,
	"serve":    serve,
	"graph":    graphClient,
	"download": downloadClient,
	"metadata": metadataClient,
	"populate": populate,
	"delete":   deleteClient,
	"launch":   launch,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("usage: bench run [flags]")
	}
	return commands[args[0]](ctx, args[1:])
}
