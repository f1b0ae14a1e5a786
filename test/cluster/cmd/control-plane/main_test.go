// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

// asCommand makes the test binary run main.
const asCommand = "CONTROL_PLANE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program returns this program as a command.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

func needPrograms(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	if _, err := cluster.Build(t.Context(), "", os.Stderr); err != nil {
		t.Fatal(err)
	}
}

// A session is a running control-plane run.
type session struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	description
}

func startSession(t *testing.T, args ...string) *session {
	t.Helper()
	needPrograms(t)
	s := &session{t: t, cmd: program(t, append([]string{"run"}, args...)...)}
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(stdout)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill() // in case the test has failed early
		s.cmd.Wait()
		os.RemoveAll(s.Dir)
	})
	if err := json.Unmarshal([]byte(s.read()), &s.description); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *session) read() string {
	s.t.Helper()
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		s.t.Fatalf("reading the output of run: %v", err)
	}
	return line
}

// say sends a command and returns the answer.
func (s *session) say(line string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.stdin, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	return s.read()
}

// requireEnd fails the test unless all components end soon.
func (s *session) requireEnd() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left := []string{}
		for name, pid := range s.PIDs {
			if syscall.Kill(pid, 0) == nil {
				left = append(left, name)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s outlived control-plane run", strings.Join(left, ", "))
		}
	}
}

// TestRun tests the commands on stdin, and that the end of stdin ends all.
func TestRun(t *testing.T) {
	s := startSession(t, "--user=alice=developers,testers", "--fake-nodes=1")
	if len(s.PIDs) != 2 {
		t.Errorf("the process ids are %v, want those of etcd and the API server", s.PIDs)
	}
	if _, err := os.Stat(s.Users["alice"]); err != nil {
		t.Errorf("the kubeconfig of alice: %v", err)
	}
	for _, exchange := range []struct{ line, want string }{
		{"stop kubelet", `"ok":true`},
		{"stop kubelet", `"error":"stopping the fake kubelet: it is not running"`},
		{"start kubelet", `"ok":true`},
		{"kill controller-manager", `"error":"there is no component`},
		{"restart etcd", `"error":"unknown command`},
		{"stop", `"error":"`},
	} {
		if got := s.say(exchange.line); !strings.Contains(got, exchange.want) {
			t.Errorf("%s: got %s, want %s", exchange.line, got, exchange.want)
		}
	}
	s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("at the end of stdin: %v", err)
	}
	s.requireEnd()
	if _, err := os.Stat(s.Dir); err == nil {
		t.Errorf("%s is left", s.Dir)
	}
}

// TestRunKilled tests that a sudden death leaves no process behind. It can
// hold on Linux only.
func TestRunKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("only Linux can tie the life of a child to that of its parent")
	}
	s := startSession(t, "--controllers=gc")
	if len(s.PIDs) != 3 {
		t.Errorf("the process ids are %v, want those of three components", s.PIDs)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait()
	s.requireEnd()
}

// TestRunInterrupted tests that a signal ends run in the regular way.
func TestRunInterrupted(t *testing.T) {
	s := startSession(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("at SIGTERM: %v", err)
	}
	s.requireEnd()
}

// output runs a command and returns what it prints on stdout and stderr.
func output(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := program(t, args...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if failed := cmd.Run(); failed != nil {
		t.Fatalf("control-plane %s: %v\n%s", strings.Join(args, " "), failed, &err)
	}
	return out.String(), err.String()
}

func TestUpDown(t *testing.T) {
	needPrograms(t)
	dir := t.TempDir()
	state := "--state=" + dir
	// What a process that died long ago has left.
	for name, text := range map[string]string{"up.lock": strconv.Itoa(os.Getpid()), "up.json": `{"kubeconfig":"/stale"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr := output(t, "down", state); !strings.Contains(stderr, "not running") {
		t.Errorf("down with a stale state says %q", stderr)
	}
	t.Cleanup(func() { program(t, "down", state).Run() })
	first, _ := output(t, "up", state, "--path")
	second, stderr := output(t, "up", state, "--path")
	if first != second || !strings.Contains(stderr, "already running") {
		t.Errorf("the second up prints %q and says %q; the first one prints %q", second, stderr, first)
	}
	shell := exec.Command("sh", "-ec", first+"kubectl get namespace default -o name")
	if out, err := shell.CombinedOutput(); err != nil || string(out) != "namespace/default\n" {
		t.Errorf("kubectl after %q: %v\n%s", first, err, out)
	}
	output(t, "down", state)
	if out, err := exec.Command("sh", "-ec", first+"kubectl get namespaces").CombinedOutput(); err == nil {
		t.Errorf("after down the API server answers: %s", out)
	}
}

func TestUpFails(t *testing.T) {
	needPrograms(t)
	dir := t.TempDir()
	cmd := program(t, "up", "--state="+dir, "--apiserver-arg=--no-such-flag=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "unknown flag: --no-such-flag") {
		t.Errorf("got error %v and output %q, want both to tell about the flag", err, stderr.String())
	}
	if running, err := (state{dir: dir}).isRunning(); running || err != nil {
		t.Errorf("after a failed up: running %t, error %v", running, err)
	}
}

func TestUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"frobnicate":            "unknown command",
		"run --frobnicate":      "not defined: -frobnicate",
		"run extra":             `unexpected argument "extra"`,
		"up --apiserver-arg=v1": "does not start with --",
		"down --controllers=gc": "not defined: -controllers",
	} {
		err := dispatch(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("control-plane %s: got error %v, want one that says %q", line, err, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/tmp/a-b_c.1": "/tmp/a-b_c.1",
		"/tmp/a b":     "'/tmp/a b'",
		"it's":         `'it'\''s'`,
		"":             "''",
		"a;b":          "'a;b'",
	} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
}
