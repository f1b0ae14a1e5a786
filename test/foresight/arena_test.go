// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/foresight/toy"
)

const (
	// readiness is how long the making of a copy may take, and each of its steps.
	readiness = 2 * time.Minute
	// lastWord is how long something must have stayed before it is said to stay.
	lastWord = 60 * time.Second
	// pause is the time between two looks at a cluster.
	pause = time.Second
)

// An arena is a control plane on which operators work.
type arena struct {
	cp      *controlplane.ControlPlane
	nodes   *toy.Nodes
	objects dynamic.Interface
	log     func(string)
	close   func()
}

// newArena starts a control plane. The caller must call close.
func newArena(ctx context.Context, log func(string)) (*arena, error) {
	network, err := toy.NewNetwork()
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Run(ctx, controlplane.Options{
		Controllers: "all", FakeNodes: 2, GraceCap: 2 * time.Second,
		// Pods need their account, as anywhere.
		APIServerArgs: append(network.APIServerArgs(), "--disable-admission-plugins="),
	}, os.Stderr)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	a := &arena{cp: cp, log: log}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err == nil {
		config.QPS = -1
		a.objects, err = dynamic.NewForConfig(config)
	}
	if err == nil {
		a.nodes, err = toy.NewNodes(config, network, log)
	}
	if err != nil {
		return nil, errors.Join(err, cp.Close(), network.Close())
	}
	running, end := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { a.nodes.Run(running) })
	a.close = func() {
		end()
		wait.Wait()
		if err := errors.Join(cp.Close(), network.Close()); err != nil {
			log(err.Error())
		}
	}
	return a, nil
}

// kubectl runs kubectl as the admin.
func (a *arena) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	stdout, stderr, err := a.command(ctx, filepath.Join(a.cp.Bin, "kubectl"), stdin, args)
	if err != nil {
		return stdout, fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), err, stderr)
	}
	return stdout, nil
}

// plugin runs kubectl-gc as the admin. Its exit code is no error.
func (a *arena) plugin(ctx context.Context, args ...string) (stdout, stderr string, code int, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", "", 0, err
	}
	stdout, stderr, err = a.command(ctx, program, "", args)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return stdout, stderr, exit.ExitCode(), nil
	}
	return stdout, stderr, 0, err
}

func (a *arena) command(ctx context.Context, program, stdin string, args []string) (string, string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(a.cp.Environ(), asPlugin+"=1")
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return stdout.String(), stderr.String(), err
}

// until looks until something is so, for as long as readiness says. What it waits for
// may have failed; then the error says so.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readiness)
	defer cancel()
	for {
		done, err := so()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %s: %w", what, ctx.Err()), err)
		case <-time.After(pause):
		}
	}
}

// helpHas reports whether a command of the plugin has a flag.
func helpHas(tb testing.TB, flag string) bool {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), program, "delete", "--help")
	cmd.Env = append(os.Environ(), asPlugin+"=1")
	out, err := cmd.Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Contains(string(out), flag)
}
