// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
	"github.com/kubectl-gc/kubectl-gc/test/cluster/internal/filelock"
)

const (
	// pollInterval is the pause between two looks at the state.
	pollInterval = 50 * time.Millisecond
	// downTimeout is how long down waits before it resorts to SIGKILL.
	downTimeout = 30 * time.Second
)

// runDetached is run for the process in the background: it runs until ctx ends
// and leaves its description in the state.
func runDetached(ctx context.Context, settings *settings, s streams) (err error) {
	state, err := newState(settings.state)
	if err != nil {
		return err
	}
	lock, err := filelock.Try(state.lockFile())
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := lock.WriteString(strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if err := state.removeDescription(); err != nil {
		return err
	}
	cp, err := start(ctx, settings, s.err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.removeDescription(), cp.Close()) }()
	if err := state.writeDescription(describe(cp)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// up starts a control plane in the background, unless one runs, and prints how
// to use it from the shell.
func up(ctx context.Context, args []string, s streams) error {
	flags, settings := newFlags("up")
	if err := parse(flags, args); err != nil {
		return err
	}
	state, err := newState(settings.state)
	if err != nil {
		return err
	}
	// Compile here, where the user sees the progress.
	if _, err := cluster.Build(ctx, settings.module, s.err); err != nil {
		return err
	}
	turn, err := filelock.Acquire(ctx, state.turnFile(), func() {
		fmt.Fprintln(s.err, "control plane: waiting for another up")
	})
	if err != nil {
		return err
	}
	defer turn.Release()
	running, err := state.isRunning()
	if err != nil {
		return err
	}
	if running {
		fmt.Fprintln(s.err, "control plane: already running, with the flags it was started with")
		err = state.waitReady(ctx)
	} else {
		err = state.startDetached(ctx, args)
	}
	if err != nil {
		return err
	}
	return state.printExports(s.out, settings.path)
}

// startDetached starts this program in a session of its own, where neither the
// end of up nor of the terminal reaches it, and waits until it is ready.
func (s state) startDetached(ctx context.Context, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	if err := s.removeDescription(); err != nil {
		return err
	}
	cmd := exec.Command(program, append(append([]string{"run"}, args...), "--state="+s.dir)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the process in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if _, err := s.description(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case err := <-ended:
			return s.explain(err)
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			return fmt.Errorf("starting the control plane: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// waitReady waits for the description of the process that holds the lock.
func (s state) waitReady(ctx context.Context) error {
	for {
		if _, err := s.description(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if running, err := s.isRunning(); err != nil || !running {
			return errors.Join(err, s.explain(errors.New("the process in the background has ended")))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the control plane: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// explain adds the log to the reason why the process in the background ended.
func (s state) explain(cause error) error {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("starting the control plane in the background: %w\n%s", cause, strings.TrimSpace(string(log)))
}

// printExports prints lines for eval.
func (s state) printExports(w io.Writer, path bool) error {
	d, err := s.description()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "export KUBECONFIG=%s\n", quote(d.Kubeconfig))
	if path {
		fmt.Fprintf(w, "export PATH=%s:$PATH\n", quote(d.Bin))
	}
	return nil
}

// quote quotes a word for a POSIX shell, if it needs that.
func quote(word string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+", r)
	}
	if strings.TrimFunc(word, isPlain) == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// down stops the process in the background and waits for its end.
func down(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dir := flags.String("state", "", stateUsage)
	if err := parse(flags, args); err != nil {
		return err
	}
	state, err := newState(*dir)
	if err != nil {
		return err
	}
	running, err := state.isRunning()
	if err != nil {
		return err
	}
	if !running {
		fmt.Fprintln(s.err, "control plane: not running")
		return state.removeDescription()
	}
	return state.stop(ctx)
}

// stop ends the process that holds the lock: with SIGTERM, or with SIGKILL if
// it does not obey.
func (s state) stop(ctx context.Context) error {
	text, err := os.ReadFile(s.lockFile())
	if err != nil {
		return fmt.Errorf("reading the lock file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("reading the process id in %s: %w", s.lockFile(), err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signalling process %d: %w", pid, err)
		}
		if err = s.waitEnd(ctx); err == nil {
			return s.removeDescription()
		}
		if ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("stopping process %d: it does not end", pid)
}

// waitEnd waits until nobody holds the lock, at most downTimeout.
func (s state) waitEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	lock, err := filelock.Acquire(ctx, s.lockFile(), func() {})
	if err != nil {
		return err
	}
	return lock.Release()
}
