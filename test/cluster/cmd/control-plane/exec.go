// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

// execute starts a control plane, runs a command with KUBECONFIG and PATH set
// for it, and stops the control plane when the command has ended.
func execute(ctx context.Context, args []string, s streams) (err error) {
	own, argv := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		own, argv = args[:i], args[i+1:]
	}
	if len(argv) == 0 {
		return errors.New("exec needs a command after --")
	}
	flags, settings := newFlags("exec")
	if err := parse(flags, own); err != nil {
		return err
	}
	cp, err := start(ctx, settings, s.err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	cmd.Env = append(os.Environ(), environment(cp)...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w", argv[0], err)
	}
	return nil
}

// environment returns the variables with which kubectl finds the control plane
// and nothing that it remembers of another one.
func environment(cp *cluster.ControlPlane) []string {
	return []string{
		"KUBECONFIG=" + cp.Kubeconfig,
		"KUBECACHEDIR=" + cp.Dir + "/kubectl-cache",
		"PATH=" + cp.Bin + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
}
