// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPortTaken holds the components to what Start relies on: each one ends,
// with an error that is recognized, if it cannot listen.
func TestPortTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the programs of the control plane, which go test -short does not build")
	}
	binaries, err := Build(t.Context(), "", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	creds, err := newCredentials(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := creds.writeKubeconfigs(url127(port)); err != nil {
		t.Fatal(err)
	}
	p, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	p.etcd, p.apiserver, p.controllerManager = port, port, port
	for program, args := range map[string][]string{
		"etcd":                    etcdArgs(p, creds, filepath.Join(dir, "etcd")),
		"kube-apiserver":          apiserverArgs(p, creds, auditFiles{}, nil),
		"kube-controller-manager": controllerManagerArgs(p, creds, ControllersGC, nil),
	} {
		t.Run(program, func(t *testing.T) {
			c := &process{name: program, path: binaries.Path(program), args: args,
				log: filepath.Join(t.TempDir(), "log"), check: newCheck(creds, url127(port))}
			if err := c.start(t.Context()); !errors.Is(err, errPortTaken) {
				t.Errorf("got %v, want an error that wraps %q", err, errPortTaken)
			}
		})
	}
}

func TestProcess(t *testing.T) {
	exited := make(chan error, 1)
	p := &process{
		name:   "sleeper",
		path:   "/bin/sh",
		args:   []string{"-c", "echo hello; exec sleep 60"},
		log:    filepath.Join(t.TempDir(), "log"),
		check:  func(context.Context) error { return nil },
		exited: func(_ string, err error) { exited <- err },
	}
	start := func() {
		t.Helper()
		if err := p.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if err := p.start(t.Context()); err == nil {
		t.Error("starting it twice does not fail")
	}
	if err := p.stop(); err != nil || p.pid() != 0 {
		t.Errorf("stop: error %v, then pid %d", err, p.pid())
	}
	if err := p.kill(); err == nil {
		t.Error("killing it when it does not run does not fail")
	}
	start()
	select {
	case err := <-exited:
		t.Errorf("a stop on request is reported: %v", err)
	default:
	}
	if err := syscall.Kill(p.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-exited:
	case <-time.After(5 * time.Second):
		t.Error("the end of the process is not reported")
	}
}

func TestProcessThatEndsAtOnce(t *testing.T) {
	p := &process{
		name:  "quitter",
		path:  "/bin/sh",
		args:  []string{"-c", "echo no such flag; exit 2"},
		log:   filepath.Join(t.TempDir(), "log"),
		check: func(context.Context) error { return errors.New("no answer") },
	}
	if err := os.WriteFile(p.log, []byte("an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := p.start(t.Context())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "no such flag") || strings.Contains(err.Error(), "earlier") {
		t.Errorf("got %v, want an exit error with the log of this start", err)
	}
}
