// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// signals are what ends a command from outside, and what it ends with then: an exit code,
// or -1 for the signal itself.
var signals = []struct {
	syscall.Signal
	code int
}{
	{syscall.SIGKILL, -1}, {syscall.SIGTERM, 130}, {syscall.SIGINT, 130}, {syscall.SIGHUP, 130},
}

var writes = regexp.MustCompile(`^(DELETE|PATCH) `)

// TestKilled ends delete and collect by a signal right before one of their writes is
// passed on, right after it was carried out, or while they read. What was done until then
// must be part of what is done without that, and the same command again must finish it.
func TestKilled(t *testing.T) {
	t.Parallel()
	cp, world := connect(t)
	var interrupted atomic.Int64
	seeds(t, 12, 6, func(seed uint64) {
		c := &writeCase{seed: seed, world: world, kubeconfig: cp.Kubeconfig, dir: t.TempDir()}
		c.strike = func(ctx context.Context, proxy *Proxy, play *live.Play, kubeconfig string) (*result, error) {
			r, hit, err := c.killed(ctx, proxy, play, kubeconfig)
			if hit {
				interrupted.Add(1)
			}
			return r, err
		}
		judge(t, seed, c.run(t.Context()), c)
	})
	if interrupted.Load() == 0 {
		t.Error("no command was ended before it was done")
	}
}

// killed runs the command and ends it by the signal of the seed, and reports whether it
// was still at work.
func (c *writeCase) killed(ctx context.Context, proxy *Proxy, play *live.Play, kubeconfig string) (*result, bool, error) {
	r := rand.New(rand.NewPCG(c.seed, 2))
	signal := signals[r.IntN(len(signals))]
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	args := c.words(play)
	cmd, err := command(ctx, kubeconfig, args...)
	if err != nil {
		return nil, false, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	strike := func() { _ = cmd.Process.Signal(signal.Signal) }
	at := regexp.MustCompile(`^GET `)
	if r.IntN(5) > 0 {
		at = writes
	}
	rule := Rule{URI: at, After: r.IntN(6), Times: 1, Fault: Meanwhile(signal.String(), r.IntN(2) == 0, strike)}
	c.rules = []Rule{rule}
	proxy.SetRules(rule)
	began := time.Now()
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, false, err
	}
	end := &result{strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
	c.said = append(c.said, end)
	switch {
	case ctx.Err() != nil:
		return nil, false, errors.New("it does not end")
	case crashed.MatchString(end.stdout + end.stderr):
		return nil, false, errors.New("it crashed")
	case len(proxy.Log()) == 0: // it was done before
		return end, false, end.manners()
	case end.code == 0 || end.code == 2: // it was as good as done
		return end, false, nil
	case end.code != signal.code:
		return nil, true, fmt.Errorf("exit code %d after %s", end.code, signal)
	case end.code == 130 && !strings.Contains(end.stderr, "Interrupted"):
		return nil, true, fmt.Errorf("not a word of what became of it after %s", signal)
	}
	return nil, true, nil
}

// TestClosedOutput runs delete with a standard output that nobody reads. It may end at any
// write of a line, and the same command again must finish it.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	cp, world := connect(t)
	seeds(t, 2, 2, func(seed uint64) {
		c := &writeCase{seed: seed, world: world, kubeconfig: cp.Kubeconfig, dir: t.TempDir()}
		c.strike = func(ctx context.Context, _ *Proxy, play *live.Play, kubeconfig string) (*result, error) {
			read, write, err := os.Pipe()
			if err != nil {
				return nil, err
			}
			cmd, err := command(ctx, kubeconfig, c.words(play)...)
			if err != nil {
				return nil, err
			}
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = write, &stderr
			if err := errors.Join(read.Close(), cmd.Start(), write.Close()); err != nil {
				return nil, err
			}
			_ = cmd.Wait()
			if crashed.MatchString(stderr.String()) {
				return nil, fmt.Errorf("it crashed:\n%s", &stderr)
			}
			return nil, nil
		}
		if err := c.run(t.Context()); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, c)
		}
	})
}

// TestServerKilled kills the API server, or etcd, in the middle of a deletion and starts
// it again.
func TestServerKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	cp := controlplane.Start(t, controlplane.Options{})
	world, err := live.Connect(t.Context(), cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	seeds(t, 2, 1, func(seed uint64) {
		component := []string{"apiserver", "etcd"}[seed%2]
		c := &writeCase{seed: seed, world: world, kubeconfig: cp.Kubeconfig, dir: t.TempDir()}
		c.strike = func(ctx context.Context, proxy *Proxy, play *live.Play, kubeconfig string) (*result, error) {
			var once sync.Once
			started := make(chan error, 1)
			rule := Rule{URI: writes, After: int(seed/2) % 4, Times: 1, Fault: Meanwhile("kill "+component, seed/8%2 == 0, func() {
				once.Do(func() {
					err := cp.Kill(component)
					go func() { started <- errors.Join(err, cp.Start(component)) }()
				})
			})}
			c.rules = []Rule{rule}
			proxy.SetRules(rule)
			r, err := c.command(ctx, play, kubeconfig)
			if len(proxy.Log()) > 0 {
				err = errors.Join(err, <-started)
			}
			return r, err
		}
		judge(t, seed, c.run(t.Context()), c)
	})
}

// TestFullDisk writes snapshots where there is no room: that is an error, and what was
// there before stays.
func TestFullDisk(t *testing.T) {
	t.Parallel() // a snapshot looks a second time at what is being deleted
	cp, _ := connect(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	file := filepath.Join(dir, "cluster.snapshot")
	before := []byte("what was there before")
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{file, "/dev/full"} {
		r, err := run(t.Context(), cp.Kubeconfig, "snapshot", "--overwrite", "-o", to)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.manners(); err != nil || r.code != 1 || !strings.Contains(r.stderr, "no space left on device") {
			t.Errorf("%v\n%s", err, r)
		}
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file that was there is %q, %v", after, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestFullOutput prints every answer into a full disk: that is an error.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	cp, _ := connect(t)
	for _, args := range [][]string{
		{"tree", "-A", "--isolated"}, {"tree", "-A", "-ojson"}, {"check", "-A", "-ojson", "--settle=0s"}, {"graph", "-A", "-odot"}, {"graph", "-A", "-osvg"},
		{"graph", "-A", "-ohtml"}, {"explain-stuck", "-A", "-oyaml"}, {"snapshot", "-n", "default", "-o", "-"}, {"collect", "--dry-run=client", "-ojson"}, {"version"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		cmd, err := command(t.Context(), cp.Kubeconfig, args...)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		err = cmd.Run()
		_ = full.Close()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
	}
}
