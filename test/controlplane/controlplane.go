// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives tests a real Kubernetes control plane: etcd,
// kube-apiserver and, if wanted, kube-controller-manager and fake nodes.
//
//	cp := controlplane.Start(t, controlplane.Options{Controllers: "gc"})
//	cp.Kubectl(t, "create", "configmap", "owner")
//
// It runs the command of module test/cluster with the go command, and so needs
// no dependency of that module. The first use on a machine compiles the control
// plane, which takes about five minutes; later a start takes 2 to 6 seconds.
// Go test shows no output of a passing package before it ends, so compile first
// where people wait:
//
//	CGO_ENABLED=0 go -C test/cluster run -trimpath ./cmd/control-plane build
//
// The control plane ends with the test, also when the test process is killed.
package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// closeTimeout is how long Close waits for a regular end.
const closeTimeout = 30 * time.Second

// A User is a user of the API server.
type User struct {
	Name   string
	Groups []string
}

// Options say what Start and Run start. The zero value means etcd and
// kube-apiserver without any controllers.
type Options struct {
	// Controllers is "none" (also ""), "gc" for the garbage collector alone,
	// "all", or a list for kube-controller-manager --controllers.
	Controllers string
	// Users are users besides the admin. They may do what RBAC allows them:
	// at first nothing.
	Users []User
	// APIServerArgs and ControllerManagerArgs are flags in the form
	// --name=value; they replace a default of the same name.
	APIServerArgs         []string
	ControllerManagerArgs []string
	// AuditLog makes the API server log the metadata of every request, of deletes and
	// patches the body as well.
	AuditLog bool
	// FakeNodes is the number of nodes, named node-1 and so on, on which a
	// fake kubelet schedules and runs pods.
	FakeNodes int
	// GraceCap is the longest time that a terminating pod takes on a fake
	// node; 0 means its whole grace period.
	GraceCap time.Duration
	// Keep keeps the directory with the logs and data after Close.
	Keep bool
}

// flags returns the options as flags of the command.
func (o Options) flags() []string {
	flags := []string{
		"--controllers=" + o.Controllers,
		fmt.Sprintf("--audit-log=%t", o.AuditLog),
		fmt.Sprintf("--fake-nodes=%d", o.FakeNodes),
		fmt.Sprintf("--grace-cap=%s", o.GraceCap),
		fmt.Sprintf("--keep=%t", o.Keep),
	}
	for _, user := range o.Users {
		value := user.Name
		if len(user.Groups) > 0 {
			value += "=" + strings.Join(user.Groups, ",")
		}
		flags = append(flags, "--user="+value)
	}
	for _, arg := range o.APIServerArgs {
		flags = append(flags, "--apiserver-arg="+arg)
	}
	for _, arg := range o.ControllerManagerArgs {
		flags = append(flags, "--controller-manager-arg="+arg)
	}
	return flags
}

// A ControlPlane is a running control plane. Its methods may be called
// concurrently; its fields do not change.
type ControlPlane struct {
	// Kubeconfig is the path of the kubeconfig of a user who may do everything.
	Kubeconfig string `json:"kubeconfig"`
	// Users maps the names in Options.Users to paths of kubeconfigs.
	Users map[string]string `json:"users"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Bin is the directory with kubectl and the programs of the control plane.
	Bin string `json:"bin"`
	// Dir has the logs and data of the control plane.
	Dir string `json:"dir"`
	// AuditLog is the path of the audit log, one JSON object a line, or empty.
	// A request may be answered shortly before its line is there: Logged waits.
	AuditLog string `json:"auditLog"`
	// PIDs are the process ids of the components at the start.
	PIDs map[string]int `json:"pids"`

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	mu      sync.Mutex // one command at a time
	closing sync.Once
	closed  error
}

// Start starts a control plane for a test, which it fails if that does not
// work, and stops it at the end of the test. With go test -short it skips the
// test. What the command reports goes to standard error.
func Start(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a control plane, which go test -short does not start")
	}
	cp, err := Run(tb.Context(), options, os.Stderr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cp.Close(); err != nil {
			tb.Error(err)
		}
	})
	return cp
}

// Run starts a control plane without a test, for TestMain. ctx bounds the
// start, which includes compiling the control plane if this machine has none
// yet. Progress of that and later reports go to stderr. The caller must call
// Close.
func Run(ctx context.Context, options Options, stderr io.Writer) (*ControlPlane, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	cp, reports := &ControlPlane{}, &bytes.Buffer{}
	if err := cp.launch(root, options, io.MultiWriter(stderr, reports)); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	// Close is what makes a pending read return: the command obeys it.
	stop := context.AfterFunc(ctx, func() { _ = cp.Close() })
	line, err := cp.stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, cp)
	} else if errors.Is(err, io.EOF) {
		err = errors.New("the command ended before it was ready")
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = cp.Close() // after it, nothing writes to reports
		return nil, fmt.Errorf("starting the control plane: %w\n%s", err, reports)
	}
	return cp, nil
}

// launch starts the command. The go command that runs it stays its parent; it
// is not in the way, because the command ends when its standard input does.
func (c *ControlPlane) launch(root string, options Options, stderr io.Writer) error {
	args := []string{"-C", filepath.Join(root, "test", "cluster"), "run", "-trimpath", "./cmd/control-plane", "run"}
	c.cmd = exec.Command("go", append(args, options.flags()...)...)
	// The module fixes the versions, and these settings share the Go build
	// cache with the build of the control plane.
	c.cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	c.cmd.Stderr = stderr
	c.cmd.WaitDelay = closeTimeout
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.stdout = bufio.NewReader(stdout)
	return c.cmd.Start()
}

// Close stops the control plane and returns when it has ended. Later calls do
// nothing.
func (c *ControlPlane) Close() error {
	c.closing.Do(func() {
		_ = c.stdin.Close() // the command ends with its input
		timer := time.AfterFunc(closeTimeout, func() { _ = c.cmd.Process.Kill() })
		defer timer.Stop()
		if err := c.cmd.Wait(); err != nil {
			c.closed = fmt.Errorf("stopping the control plane: %w", err)
		}
	})
	return c.closed
}

// Stop ends a component in the regular way, and returns when it has ended. The
// components are etcd, apiserver, controller-manager and kubelet.
func (c *ControlPlane) Stop(component string) error { return c.command("stop", component) }

// Kill ends a component with SIGKILL, and returns when it has ended.
func (c *ControlPlane) Kill(component string) error { return c.command("kill", component) }

// Start starts a component again, on the same port and with the same data, and
// returns when it is ready.
func (c *ControlPlane) Start(component string) error { return c.command("start", component) }

// command sends one command and waits for the answer.
func (c *ControlPlane) command(verb, component string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer struct {
		Error string `json:"error"`
	}
	if _, err := fmt.Fprintln(c.stdin, verb, component); err != nil {
		return fmt.Errorf("sending %s %s to the control plane: %w", verb, component, err)
	}
	line, err := c.stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil {
		return fmt.Errorf("reading the answer to %s %s from the control plane: %w", verb, component, err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// Environ returns the environment of this process with KUBECONFIG set to
// Kubeconfig, Bin first in PATH, and a discovery cache of its own: the usual
// one, which goes by host and port, could have entries of an earlier control
// plane.
func (c *ControlPlane) Environ() []string {
	return append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig,
		"KUBECACHEDIR="+filepath.Join(c.Dir, "kube-cache"),
		"PATH="+c.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// Kubectl runs kubectl as the admin and returns what it prints on standard
// output. It fails the test if kubectl fails.
func (c *ControlPlane) Kubectl(tb testing.TB, args ...string) string {
	tb.Helper()
	return c.kubectl(tb, nil, args)
}

// Established waits for CustomResourceDefinitions. kubectl wait fails for one that has no condition yet.
func (c *ControlPlane) Established(tb testing.TB, crds ...string) {
	tb.Helper()
	const poll, patience = 100 * time.Millisecond, time.Minute
	err := wait.PollUntilContextTimeout(tb.Context(), poll, patience, true, func(ctx context.Context) (bool, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, "kubectl"), append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, crds...)...)
		cmd.Env = c.Environ()
		return cmd.Run() == nil, nil
	})
	if err != nil {
		tb.Fatalf("waiting for %q to be established: %v", crds, err)
	}
}

// Logged returns when the audit log has what was answered before: it sends a request, and waits for its line.
func (c *ControlPlane) Logged(tb testing.TB) {
	tb.Helper()
	const poll, patience = 20 * time.Millisecond, time.Minute
	mark := fmt.Sprintf("/version?logged=%d", time.Now().UnixNano())
	c.Kubectl(tb, "get", "--raw", mark)
	err := wait.PollUntilContextTimeout(tb.Context(), poll, patience, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(c.AuditLog)
		return bytes.Contains(log, []byte(mark)), err
	})
	if err != nil {
		tb.Fatalf("waiting for a request in the audit log: %v", err)
	}
}

// Apply creates or changes objects as the admin. It fails the test if the API
// server refuses them. The manifest is YAML or JSON.
func (c *ControlPlane) Apply(tb testing.TB, manifest string) {
	tb.Helper()
	c.kubectl(tb, strings.NewReader(manifest), []string{"apply", "--validate=false", "-f", "-"}) // the types' OpenAPI takes seconds on a busy machine
}

func (c *ControlPlane) kubectl(tb testing.TB, stdin io.Reader, args []string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), filepath.Join(c.Bin, "kubectl"), args...)
	cmd.Env = c.Environ()
	cmd.Stdin = stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		tb.Fatalf("running kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}
