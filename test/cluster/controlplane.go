// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Values of Options.Controllers other than a list of names.
const (
	ControllersNone = "none" // no kube-controller-manager
	ControllersGC   = "gc"   // the garbage collector alone
	ControllersAll  = "all"  // what a cluster runs by default
)

// Names of the components, for Stop, Kill and Start.
const (
	Etcd              = "etcd"
	APIServer         = "apiserver"
	ControllerManager = "controller-manager"
	Kubelet           = "kubelet" // the fake one, a part of this process
)

// startAttempts is how often Start chooses other ports when one was taken
// between its choice and its use.
const startAttempts = 3

// A User is a user of the API server.
type User struct {
	Name   string
	Groups []string
}

// Options say what Start starts. Only Binaries is required.
type Options struct {
	// Binaries are the programs, as Build returns them.
	Binaries Binaries
	// Controllers is ControllersNone (also the empty string), ControllersGC,
	// ControllersAll, or a list for kube-controller-manager --controllers.
	Controllers string
	// Users are added to the users the control plane has anyway: admin and
	// its own components. They may do what RBAC allows them: at first nothing.
	Users []User
	// APIServerArgs and ControllerManagerArgs are flags in the form
	// --name=value. They replace a default of the same name.
	APIServerArgs         []string
	ControllerManagerArgs []string
	// AuditLog makes the API server log the metadata of every request.
	AuditLog bool
	// FakeNodes is the number of nodes to fake, named node-1 and so on. With
	// at least one, a fake kubelet, which is the scheduler, too, takes pods
	// through their life as a real one would; it runs no containers. Pods of a
	// Job succeed after a second.
	FakeNodes int
	// GraceCap shortens the time a terminating pod takes on a fake node to at
	// most this. 0 means no cap: the pod takes its whole grace period.
	GraceCap time.Duration
	// Keep keeps the directory after Close.
	Keep bool
	// Log gets a line when a component ends though nobody asked. It may be nil.
	Log io.Writer
}

// A ControlPlane is a running control plane. Its methods may be called
// concurrently; its fields do not change.
type ControlPlane struct {
	// Dir has everything the control plane writes, including the logs
	// etcd.log, apiserver.log and controller-manager.log.
	Dir string
	// Bin is the directory with the programs, including kubectl.
	Bin string
	// Server is the URL of the API server.
	Server string
	// Kubeconfig is the path of the kubeconfig of admin, who may do everything.
	Kubeconfig string
	// Users maps the names in Options.Users to paths of kubeconfigs.
	Users map[string]string
	// AuditLog is the path of the audit log, or empty.
	AuditLog string

	order      []string // of starting
	components map[string]component
	keep       bool
	closing    sync.Once
	closeError error
}

// A component can be started, stopped and started again.
type component interface {
	// start returns when the component is ready.
	start(context.Context) error
	// stop ends it in the regular way, kill at once. Both return when it has
	// ended, and fail if it is not running.
	stop() error
	kill() error
	// pid is 0 if the component is not running or is part of this process.
	pid() int
}

// auditFiles are empty without an audit log.
type auditFiles struct {
	policy, log string
}

// auditPolicy logs each request once, when it has been answered, and with what is to be
// deleted or patched what for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [delete, deletecollection, patch]
- level: Metadata
`

// Start starts a control plane in a new temporary directory and returns when
// the API server, and what else was asked for, is ready. ctx bounds the start
// only. The caller must call Close.
//
// After an error nothing is left running; the error quotes the log of the
// component that failed.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	for attempt := 1; ; attempt++ {
		cp, err := startOnce(ctx, opts)
		if err == nil {
			return cp, nil
		}
		if attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("starting the control plane: %w", err)
		}
	}
}

func startOnce(ctx context.Context, opts Options) (*ControlPlane, error) {
	dir, err := os.MkdirTemp("", "kubectl-gc-control-plane-")
	if err != nil {
		return nil, fmt.Errorf("creating the directory: %w", err)
	}
	cp := &ControlPlane{Dir: dir, Bin: opts.Binaries.Dir, keep: opts.Keep, Users: map[string]string{},
		components: map[string]component{}}
	if err := cp.configure(opts); err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	for _, name := range cp.order {
		if err := cp.components[name].start(ctx); err != nil {
			return nil, errors.Join(err, cp.Close())
		}
	}
	return cp, nil
}

// configure writes the files and makes the components, but starts none.
func (cp *ControlPlane) configure(opts Options) error {
	p, err := choosePorts()
	if err != nil {
		return err
	}
	creds, err := newCredentials(cp.Dir, opts.Users)
	if err != nil {
		return err
	}
	cp.Server = url127(p.apiserver)
	cp.Kubeconfig = creds.kubeconfig(adminUser)
	for _, user := range opts.Users {
		cp.Users[user.Name] = creds.kubeconfig(user.Name)
	}
	if err := creds.writeKubeconfigs(cp.Server); err != nil {
		return err
	}
	audit, err := cp.configureAudit(opts.AuditLog)
	if err != nil {
		return err
	}
	cp.addProcess(opts, Etcd, "etcd", etcdArgs(p, creds, filepath.Join(cp.Dir, "etcd")),
		newCheck(creds, url127(p.etcd)+"/health"))
	cp.addProcess(opts, APIServer, "kube-apiserver", apiserverArgs(p, creds, audit, opts.APIServerArgs),
		// The API server is ready before it has made the first namespaces.
		newCheck(creds, cp.Server+"/readyz", cp.Server+"/api/v1/namespaces/default"))
	if opts.Controllers != "" && opts.Controllers != ControllersNone {
		cp.addProcess(opts, ControllerManager, "kube-controller-manager",
			controllerManagerArgs(p, creds, opts.Controllers, opts.ControllerManagerArgs),
			newCheck(creds, url127(p.controllerManager)+"/healthz"))
	}
	if opts.FakeNodes > 0 {
		cp.add(Kubelet, newKubelet(creds.kubeconfig(kubeletUser), opts.FakeNodes, opts.GraceCap,
			filepath.Join(cp.Dir, Kubelet+".log")))
	}
	return nil
}

func (cp *ControlPlane) configureAudit(wanted bool) (auditFiles, error) {
	if !wanted {
		return auditFiles{}, nil
	}
	cp.AuditLog = filepath.Join(cp.Dir, "audit.log")
	files := auditFiles{policy: filepath.Join(cp.Dir, "audit-policy.yaml"), log: cp.AuditLog}
	if err := os.WriteFile(files.policy, []byte(auditPolicy), 0o600); err != nil {
		return files, fmt.Errorf("writing the audit policy: %w", err)
	}
	return files, nil
}

// addProcess adds a component that is a child process.
func (cp *ControlPlane) addProcess(opts Options, name, program string, args []string, check func(context.Context) error) {
	cp.add(name, &process{
		name:  name,
		path:  opts.Binaries.Path(program),
		args:  args,
		log:   filepath.Join(cp.Dir, name+".log"),
		check: check,
		exited: func(name string, err error) {
			fmt.Fprintf(opts.Log, "control plane: %s has ended: %v\n", name, err)
		},
	})
}

func (cp *ControlPlane) add(name string, c component) {
	cp.order = append(cp.order, name)
	cp.components[name] = c
}

// Stop ends a component in the regular way, with SIGTERM, and returns when it
// has ended. It fails if the component is not running.
func (cp *ControlPlane) Stop(name string) error {
	c, err := cp.component(name)
	if err != nil {
		return err
	}
	return c.stop()
}

// Kill ends a component with SIGKILL and returns when it has ended. It fails
// if the component is not running.
func (cp *ControlPlane) Kill(name string) error {
	c, err := cp.component(name)
	if err != nil {
		return err
	}
	return c.kill()
}

// Start starts a component that was stopped, was killed or has ended, on the
// same port and with the same data, and returns when it is ready.
//
// Under ControllersAll the controller manager elects a leader. So it ends by
// itself when the API server is away for more than 10 seconds, and its
// controllers start again only when the Lease of the one before has expired,
// up to 15 seconds later. The argument --leader-elect=false avoids both.
func (cp *ControlPlane) Start(ctx context.Context, name string) error {
	c, err := cp.component(name)
	if err != nil {
		return err
	}
	return c.start(ctx)
}

func (cp *ControlPlane) component(name string) (component, error) {
	if c, ok := cp.components[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("there is no component %q; there are %s", name, strings.Join(cp.order, ", "))
}

// PIDs returns the process ids of the components that run as processes.
func (cp *ControlPlane) PIDs() map[string]int {
	pids := map[string]int{}
	for name, c := range cp.components {
		if pid := c.pid(); pid != 0 {
			pids[name] = pid
		}
	}
	return pids
}

// Close stops all components, in reverse order of starting, and removes the
// directory unless Options.Keep is set. Later calls do nothing.
func (cp *ControlPlane) Close() error {
	cp.closing.Do(func() {
		for _, name := range slices.Backward(cp.order) {
			_ = cp.components[name].stop() // fails only if it is not running
		}
		if cp.keep {
			return
		}
		if err := os.RemoveAll(cp.Dir); err != nil {
			cp.closeError = fmt.Errorf("removing the directory of the control plane: %w", err)
		}
	})
	return cp.closeError
}
