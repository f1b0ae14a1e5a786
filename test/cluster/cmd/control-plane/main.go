// SPDX-License-Identifier: Apache-2.0

// Control-plane builds and runs a Kubernetes control plane for tests. Run it
// without arguments for its manual.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

const manual = `Control-plane builds and runs a real Kubernetes control plane (etcd, kube-apiserver
and, if wanted, kube-controller-manager and fake nodes) on 127.0.0.1, for tests.

Usage:

  control-plane build [--module DIR]
        Compile the programs, unless that is done, and print the directory they
        are in. The first time takes about five minutes.

  control-plane run [flags]
        Start a control plane, print one line of JSON that describes it on
        stdout, and run until stdin ends or a signal (SIGINT, SIGTERM) comes;
        then stop everything and remove its files.

        Each line on stdin is a command: "stop NAME" (SIGTERM), "kill NAME"
        (SIGKILL) or "start NAME" (again, on the same port, with the same data).
        The answer is one line of JSON, {"ok":true} or {"error":"..."}, when the
        component has ended, or is ready. NAME is etcd, apiserver,
        controller-manager or kubelet.

  control-plane exec [flags] -- COMMAND [ARGUMENT...]
        Start a control plane, run the command with KUBECONFIG and PATH set for
        it, and stop the control plane when the command has ended.

  control-plane up [flags]
        Start a control plane in the background and print a line for the shell:
        eval "$(control-plane up)". If one is running, print its line.

  control-plane down [--state DIR]
        Stop the control plane that up started.

Compiled programs are kept in kubectl-gc/control-plane in the user's cache
directory, or in $` + cluster.CacheEnv + `. Build, run, exec and up need the source:
call them inside the module test/cluster, or say where it is with --module.

Flags of run, exec and up (with one dash or two):

`

// A command is a subcommand. Its context ends with SIGINT or SIGTERM.
type command func(ctx context.Context, args []string, streams streams) error

// streams are the standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	// When the reader of stdout is gone, a write shall fail and not end the
	// process: there is a control plane to stop.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := dispatch(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	switch {
	case errors.Is(err, flag.ErrHelp):
		printManual(os.Stdout)
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// dispatch runs the subcommand that the first argument names. It returns
// flag.ErrHelp when the user asked for help.
func dispatch(ctx context.Context, args []string, s streams) error {
	if len(args) == 0 {
		return flag.ErrHelp
	}
	commands := map[string]command{"build": build, "run": run, "exec": execute, "up": up, "down": down}
	name := args[0]
	if c, ok := commands[name]; ok {
		return c(ctx, args[1:], s)
	}
	switch name {
	case "help", "-h", "-help", "--help":
		return flag.ErrHelp
	}
	return fmt.Errorf("unknown command %q (control-plane --help lists them)", name)
}

func printManual(w io.Writer) {
	fmt.Fprint(w, manual)
	flags, _ := newFlags("run")
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// build compiles the programs and prints where they are.
func build(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	module := flags.String("module", "", moduleUsage)
	if err := parse(flags, args); err != nil {
		return err
	}
	binaries, err := cluster.Build(ctx, *module, s.err)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, binaries.Dir)
	return nil
}
