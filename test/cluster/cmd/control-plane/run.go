// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

// A description is what run prints when the control plane is ready.
type description struct {
	Kubeconfig string            `json:"kubeconfig"`
	Users      map[string]string `json:"users"`
	Server     string            `json:"server"`
	Bin        string            `json:"bin"`
	Dir        string            `json:"dir"`
	AuditLog   string            `json:"auditLog,omitempty"`
	PIDs       map[string]int    `json:"pids"`
}

// An answer is what run prints for a command on stdin.
type answer struct {
	OK    bool   `json:"ok,omitempty"`
	Error string `json:"error,omitempty"`
}

// run starts a control plane and runs it until ctx or stdin ends.
func run(ctx context.Context, args []string, s streams) error {
	flags, settings := newFlags("run")
	if err := parse(flags, args); err != nil {
		return err
	}
	if settings.state != "" {
		return runDetached(ctx, settings, s)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commands := readCommands(ctx, cancel, s.in)
	cp, err := start(ctx, settings, s.err)
	if err != nil {
		return err
	}
	output := json.NewEncoder(s.out)
	if err := output.Encode(describe(cp)); err != nil {
		_ = cp.Close()
		return fmt.Errorf("describing the control plane: %w", err)
	}
	serve(ctx, cp, commands, output)
	return cp.Close()
}

// start builds the programs if need be and starts the control plane.
func start(ctx context.Context, settings *settings, log io.Writer) (*cluster.ControlPlane, error) {
	binaries, err := cluster.Build(ctx, settings.module, log)
	if err != nil {
		return nil, err
	}
	options := settings.options
	options.Binaries = binaries
	options.Log = log
	return cluster.Start(ctx, options)
}

func describe(cp *cluster.ControlPlane) description {
	return description{
		Kubeconfig: cp.Kubeconfig,
		Users:      cp.Users,
		Server:     cp.Server,
		Bin:        cp.Bin,
		Dir:        cp.Dir,
		AuditLog:   cp.AuditLog,
		PIDs:       cp.PIDs(),
	}
}

// readCommands passes the lines of in on, and calls cancel at its end: the
// process that holds the other end of the pipe has closed it or has died.
func readCommands(ctx context.Context, cancel context.CancelFunc, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer cancel()
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// serve obeys commands until ctx ends.
func serve(ctx context.Context, cp *cluster.ControlPlane, commands <-chan string, output *json.Encoder) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-commands:
			reply := answer{OK: true}
			if err := obey(ctx, cp, line); err != nil {
				reply = answer{Error: err.Error()}
			}
			if err := output.Encode(reply); err != nil {
				return // nobody listens any more
			}
		}
	}
}

// obey carries out one command.
func obey(ctx context.Context, cp *cluster.ControlPlane, line string) error {
	words := strings.Fields(line)
	if len(words) != 2 {
		return fmt.Errorf("%q is not a command: want stop, kill or start, and a name", line)
	}
	switch verb, name := words[0], words[1]; verb {
	case "stop":
		return cp.Stop(name)
	case "kill":
		return cp.Kill(name)
	case "start":
		return cp.Start(ctx, name)
	default:
		return fmt.Errorf("unknown command %q: want stop, kill or start", verb)
	}
}
