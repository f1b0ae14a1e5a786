// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// patience is how long a step may take on a busy machine.
const patience = 2 * time.Minute

// A Node is a running node. Its methods are called by one goroutine at a time.
type Node struct {
	Name string

	t      testing.TB
	cp     *controlplane.ControlPlane
	dir    string
	cgroup string
	port   int
	// init is the first process in the node's namespaces: all others end with
	// it.
	init       *exec.Cmd
	containerd *exec.Cmd
	kubelet    *exec.Cmd
}

// tunables are what a kubelet sets for the whole machine.
var tunables = []string{"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops"}

// tuned has the tunables as they were before the first of the nodes that run, so
// that the last can restore them.
var tuned struct {
	sync.Mutex
	nodes  int
	values map[string][]byte
}

// keepTunables has the tunables restored after the last node.
func (n *Node) keepTunables() {
	tuned.Lock()
	defer tuned.Unlock()
	if tuned.nodes == 0 {
		tuned.values = map[string][]byte{}
		for _, path := range tunables {
			value, err := os.ReadFile(path)
			n.must(err)
			tuned.values[path] = value
		}
	}
	tuned.nodes++
	n.t.Cleanup(func() {
		tuned.Lock()
		defer tuned.Unlock()
		if tuned.nodes--; tuned.nodes > 0 {
			return
		}
		for path, value := range tuned.values {
			n.must(os.WriteFile(path, value, 0o600))
		}
	})
}

// Start starts a node, which joins the cluster under the name, and returns when
// it is ready. It skips the test where nodes cannot run. The node ends with the
// test and leaves nothing behind.
func Start(t testing.TB, cp *controlplane.ControlPlane, name string) *Node {
	t.Helper()
	if missing := Missing(); missing != "" {
		t.Skip(missing)
	}
	n := &Node{Name: name, t: t, cp: cp, dir: t.TempDir(), cgroup: fmt.Sprintf("kubectl-gc-%d-%s", os.Getpid(), name)}
	n.keepTunables()
	var err error
	n.port, err = freePort()
	n.must(err)
	n.must(n.writeConfig())
	image, err := writeImage(t.Context(), n.dir)
	n.must(err)
	t.Cleanup(n.removeCgroups)
	n.must(n.makeCgroups())
	n.boot()
	t.Cleanup(n.PowerOff)
	n.containerd = n.launch("containerd", "containerd", "--config", n.path("containerd.toml"))
	n.await("the container runtime", func() error {
		return n.run("ctr", "--address", n.socket(), "version")
	})
	n.Import(image)
	n.StartKubelet()
	return n
}

func (n *Node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("node %s: %v", n.Name, err)
	}
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *Node) socket() string { return n.path("containerd.sock") }

// freePort returns a port on which nobody listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// boot starts the first process in namespaces of its own. What a kubelet and a
// container runtime write to fixed places goes to memory that they alone see.
func (n *Node) boot() {
	const script = `mount --make-rprivate / &&
mount -t proc proc /proc &&
mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/kubelet &&
mount -t tmpfs tmpfs /var/log &&
mount -t tmpfs tmpfs /run &&
touch "$0" &&
while :; do sleep 1000 & wait $!; done`
	n.init = exec.Command("sh", "-c", script, n.path("booted"))
	n.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	n.must(start(n.init, n.path("init.log")))
	n.await("the namespaces", func() error {
		_, err := os.Stat(n.path("booted"))
		return err
	})
}

// start starts a command that writes to a log. The thread that does it stays:
// to the kernel its end is the parent's death.
func start(cmd *exec.Cmd, log string) error {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = file, file
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return <-started
}

// inside returns a command that runs in the node's namespaces.
func (n *Node) inside(args ...string) *exec.Cmd {
	programs, err := programs()
	n.must(err)
	cmd := exec.Command("nsenter", append([]string{
		"--target", strconv.Itoa(n.init.Process.Pid), "--mount", "--pid", "--",
	}, args...)...)
	cmd.Env = programs.Environ()
	return cmd
}

func (n *Node) run(args ...string) error {
	if out, err := n.inside(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func (n *Node) launch(name string, args ...string) *exec.Cmd {
	cmd := n.inside(args...)
	n.must(start(cmd, n.path(name+".log")))
	return cmd
}

// await tries until it works. It fails the test with the ends of the logs.
func (n *Node) await(what string, try func() error) {
	n.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	for _, name := range []string{"init", "containerd", "kubelet"} {
		if data, err := os.ReadFile(n.path(name + ".log")); err == nil {
			n.t.Logf("%s.log: %s", name, data[max(0, len(data)-4000):])
		}
	}
	n.t.Fatalf("node %s: waiting for %s: %v", n.Name, what, err)
}

// StartKubelet starts the kubelet and returns when the node is ready.
func (n *Node) StartKubelet() {
	n.t.Helper()
	n.kubelet = n.launch("kubelet", filepath.Join(n.cp.Bin, "kubelet"), "--kubeconfig="+n.cp.Kubeconfig,
		"--config="+n.path("kubelet.yaml"), "--hostname-override="+n.Name,
		"--root-dir="+n.path("kubelet"), "--cert-dir="+n.path("pki"))
	n.await("the kubelet", func() error {
		out, err := exec.Command(filepath.Join(n.cp.Bin, "kubectl"), "--kubeconfig="+n.cp.Kubeconfig, "get", "node", n.Name,
			"-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`).CombinedOutput()
		if status := string(out); err != nil || status != "True" {
			return fmt.Errorf("the node is not ready: %s", status)
		}
		return nil
	})
}

// StopKubelet kills the kubelet. The containers go on running.
func (n *Node) StopKubelet() {
	n.t.Helper()
	n.signal(n.kubelet, syscall.SIGKILL)
}

// HangRuntime freezes the container runtime, and thaws it when hung is false.
func (n *Node) HangRuntime(hung bool) {
	n.t.Helper()
	if hung {
		n.signal(n.containerd, syscall.SIGSTOP)
		return
	}
	n.signal(n.containerd, syscall.SIGCONT)
	n.must(n.containerd.Process.Signal(syscall.SIGCONT)) // nsenter stops with its child
}

// FailNetwork makes the network of the named pod impossible to take down, or
// with an empty name that of all pods possible again.
func (n *Node) FailNetwork(pod string) {
	n.t.Helper()
	n.must(os.WriteFile(n.path("cni-fails"), []byte(pod), 0o600))
}

// signal signals what nsenter has started, which is its only child.
func (n *Node) signal(cmd *exec.Cmd, signal syscall.Signal) {
	n.t.Helper()
	pid := cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	n.must(err)
	child, err := strconv.Atoi(strings.TrimSpace(string(children)))
	n.must(err)
	n.must(syscall.Kill(child, signal))
}

// Manifest puts a static pod on the node.
func (n *Node) Manifest(name, text string) {
	n.t.Helper()
	n.must(os.WriteFile(n.path("manifests/"+name), []byte(text), 0o600))
}

// BusyVolume keeps an emptyDir volume of a pod from being unmounted, until the
// function that it returns is called.
func (n *Node) BusyVolume(podUID, volume string) func() {
	n.t.Helper()
	dir := n.path(filepath.Join("kubelet/pods", podUID, "volumes/kubernetes.io~empty-dir", volume))
	user := n.inside("sh", "-c", `cd "$0" && touch "$1" && exec sleep 1000`, dir, n.path("busy-"+podUID))
	n.must(start(user, n.path("busy.log")))
	n.await("the volume", func() error {
		_, err := os.Stat(n.path("busy-" + podUID))
		return err
	})
	return func() { n.signal(user, syscall.SIGKILL) }
}

// PowerOff kills everything on the node at once.
func (n *Node) PowerOff() {
	_ = n.init.Process.Kill() // it may have been off
	if n.containerd != nil {
		_ = n.containerd.Process.Signal(syscall.SIGCONT) // or nsenter stays as it was when the runtime hung
	}
	for range 100 {
		if n.init.Process.Signal(syscall.Signal(0)) != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const cgroups = "/sys/fs/cgroup"

// hierarchies returns the roots of the machine's cgroup hierarchies: one in
// version 2, one for each controller in version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}, nil
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, e := range entries {
		if e.IsDir() {
			roots = append(roots, filepath.Join(cgroups, e.Name()))
		}
	}
	return roots, nil
}

func (n *Node) makeCgroups() error {
	roots, err := hierarchies()
	for _, root := range roots {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, n.cgroup), 0o755))
	}
	return err
}

// removeCgroups removes what the kubelet has made, the deepest first. A cgroup
// can be removed a moment after its last process is gone.
func (n *Node) removeCgroups() {
	roots, err := hierarchies()
	n.must(err)
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(root, n.cgroup), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append([]string{path}, dirs...)
			}
			return nil
		})
		for _, dir := range dirs {
			for try := 0; os.Remove(dir) != nil && try < 100; try++ {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// Freeze makes the processes of a pod's containers deaf to every signal, as a
// process is that waits for a dead disk, until the function that it returns is
// called. It needs the freezer of cgroups version 1; without it, it returns nil.
func (n *Node) Freeze(podUID string) func() {
	n.t.Helper()
	freezer := filepath.Join(cgroups, "freezer", n.cgroup)
	if _, err := os.Stat(freezer); err != nil {
		return nil
	}
	var pids []string
	_ = filepath.WalkDir(freezer, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.Contains(path, podUID) {
			return nil
		}
		data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for pid := range strings.FieldsSeq(string(data)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if strings.Contains(string(line), "ignore") {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if len(pids) == 0 {
		n.t.Fatalf("node %s: pod %s has no process", n.Name, podUID)
	}
	frozen := filepath.Join(freezer, "frozen-"+podUID)
	n.must(os.Mkdir(frozen, 0o755))
	for _, pid := range pids {
		n.must(os.WriteFile(filepath.Join(frozen, "cgroup.procs"), []byte(pid), 0o600))
	}
	n.must(os.WriteFile(filepath.Join(frozen, "freezer.state"), []byte("FROZEN"), 0o600))
	thaw := sync.OnceFunc(func() { _ = os.WriteFile(filepath.Join(frozen, "freezer.state"), []byte("THAWED"), 0o600) })
	n.t.Cleanup(thaw) // a frozen process cannot be killed
	return thaw
}
