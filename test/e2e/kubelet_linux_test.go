// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
	"github.com/kubectl-gc/kubectl-gc/test/node"
)

// overdue is after how long past the grace period a kubelet counts as late, and
// overdueVolumes when all containers have ended.
const (
	overdue        = 35 * time.Second
	overdueVolumes = 65 * time.Second
)

// TestKubelet explains what a real kubelet leaves behind: on a node that works
// and cannot do what it has to, and on one that dies.
func TestKubelet(t *testing.T) {
	nightly.Only(t, "its nodes take minutes to be called dead")
	t.Parallel() // takes the longest, and hardly any work: starts at once
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	controlplane.Needs(t, "1.36", "the kubelet is of the newest version, and none works with an API server that is older")
	cp := controlplane.Start(t, controlplane.Options{
		Controllers: "all",
		// A dead node shows after ten seconds instead of fifty.
		ControllerManagerArgs: []string{"--node-monitor-period=1s", "--node-monitor-grace-period=10s"},
	})
	t.Run("a node that works", func(t *testing.T) {
		t.Parallel()
		worksButCannot(t, cp)
	})
	t.Run("a node that dies", func(t *testing.T) {
		t.Parallel()
		dies(t, cp)
	})
	t.Run("a claim that is revived", func(t *testing.T) {
		t.Parallel()
		revives(t, cp)
	})
}

// revives has a StatefulSet that writes into a volume whose claim is deleted by mistake. kube-controller-manager deletes the files of such
// a volume, below /tmp, when its claim is gone (pkg/volume/hostpath/host_path.go, Delete).
func revives(t *testing.T, cp *controlplane.ControlPlane) {
	p := newPods(t, cp, "revives")
	dir, err := os.MkdirTemp("/tmp", "kubectl-gc-revives-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cp.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: revives}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, persistentVolumeReclaimPolicy: Delete, hostPath: {path: %s}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: revives}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeName: %s
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 2
      containers: [{name: c, image: %s, imagePullPolicy: Never, args: [write], volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}]
`, dir, p.node.Name, node.Image))
	starts := func() []string {
		data, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return strings.Split(string(data), "\n")[:strings.Count(string(data), "\n")]
	}
	p.await("the first start", func() bool { return len(starts()) == 1 })
	before, claim := starts(), p.get("pvc", "data-db-0", "uid")
	cp.Kubectl(t, "-n", p.namespace, "delete", "pvc", "data-db-0", "--wait=false")
	var out, errOut bytes.Buffer
	if code := gccmd.Run(t.Context(), []string{"kubectl-gc", "revive", "--kubeconfig=" + cp.Kubeconfig, "-n", p.namespace, "pvc/data-db-0", "--yes", "--backup=" + t.TempDir()},
		genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}); code != 0 {
		t.Fatalf("reviving it: %d\n%s%s", code, &out, &errOut)
	}
	p.await("the second start", func() bool { return len(starts()) == 2 })
	if after := starts(); after[0] != before[0] || p.get("pvc", "data-db-0", "uid") == claim {
		t.Errorf("the volume has %q, and had %q", after, before)
	}
}

// pods are pods of a namespace on a node.
type pods struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	namespace string
	node      *node.Node
}

func newPods(t *testing.T, cp *controlplane.ControlPlane, namespace string) *pods {
	t.Helper()
	p := &pods{t: t, cp: cp, namespace: namespace, node: node.Start(t, cp, namespace)}
	cp.Kubectl(t, "create", "namespace", namespace)
	p.await("the service account", func() bool { return p.get("serviceaccount", "default", "name") != "" })
	return p
}

// get returns a part of the object's metadata, empty when there is none.
func (p *pods) get(kind, name, path string) string {
	return p.field(kind, name, ".metadata."+path)
}

func (p *pods) field(kind, name, path string) string {
	out, _ := exec.Command(p.cp.Bin+"/kubectl", "--kubeconfig="+p.cp.Kubeconfig, "-n", p.namespace, "get", kind, name,
		"-o", "jsonpath={"+path+"}").Output() // it may not be there
	return string(out)
}

func (p *pods) await(what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waiting for %s: %s", what, p.cp.Kubectl(p.t, "-n", p.namespace, "get", "pods", "-o", "wide"))
		}
	}
}

// run creates a pod whose container ends as the mode says, and waits until it
// runs.
func (p *pods) run(name, mode, metadata, spec string) {
	p.t.Helper()
	p.cp.Apply(p.t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, %s}
spec:
  nodeName: %s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 2
  %s
  containers:
  - {name: c, image: %s, imagePullPolicy: Never, args: [%s]%s}
`, name, p.namespace, metadata, p.node.Name, spec, node.Image, mode, mounts(spec)))
	p.await("pod "+name, func() bool {
		return p.field("pod", name, ".status.containerStatuses[0].state.running.startedAt") != ""
	})
}

func mounts(spec string) string {
	if spec == "" {
		return ""
	}
	return ", volumeMounts: [{name: data, mountPath: /data}]"
}

func (p *pods) delete(name string, flags ...string) {
	p.t.Helper()
	p.cp.Kubectl(p.t, append([]string{"-n", p.namespace, "delete", "pod", name, "--wait=false"}, flags...)...)
}

func (p *pods) gone(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.await("the end of pod "+name, func() bool { return p.get("pod", name, "name") == "" })
	}
}

// explain returns what explain-stuck says of a pod: the verdict, and of each
// cause its identifier and its object.
func (p *pods) explain(name string) string {
	p.t.Helper()
	var out, errOut bytes.Buffer
	gccmd.Run(p.t.Context(), []string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + p.cp.Kubeconfig, "-n", p.namespace, "pod/" + name, "-o", "json"},
		genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
	var report struct {
		Objects []struct {
			Verdict string
			Causes  []struct {
				ID     string
				Object struct{ Kind, Name string }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Objects) != 1 {
		p.t.Fatalf("explaining %s: %v\n%s%s", name, err, &out, &errOut)
	}
	words := []string{report.Objects[0].Verdict}
	for _, c := range report.Objects[0].Causes {
		words = append(words, c.ID, c.Object.Kind+"/"+c.Object.Name)
	}
	return strings.Join(words, " ")
}

// says checks what explain-stuck says of pods: one that is held has its cause
// at itself unless the text names another object.
func (p *pods) says(want map[string]string) {
	p.t.Helper()
	for name, text := range want {
		if got := p.explain(name); got != text {
			p.t.Errorf("pod %s: got %q, want %q\n%s", name, got, text, p.cp.Kubectl(p.t, "-n", p.namespace, "get", "pod", name, "-o", "yaml"))
		}
	}
}

// worksButCannot has pods that do not end for reasons of their own.
func worksButCannot(t *testing.T, cp *controlplane.ControlPlane) {
	p := newPods(t, cp, "works")
	const memory = "volumes: [{name: data, emptyDir: {medium: Memory}}]"
	p.run("slow", "ignore", "", "")
	p.run("frozen", "ignore", "", "")
	p.run("busy", "pause", "", memory)
	p.run("network", "pause", "", "")
	p.run("held", "pause", "finalizers: [example.com/hold]", "")
	release := p.node.BusyVolume(p.get("pod", "busy", "uid"), "data")
	thaw := p.node.Freeze(p.get("pod", "frozen", "uid"))
	p.node.FailNetwork("network")

	names := []string{"frozen", "busy", "network", "held"}
	p.delete("slow", "--grace-period=300")
	for _, name := range names {
		p.delete(name)
	}
	begin := time.Now()
	p.says(map[string]string{
		"slow":    "Progressing pod-grace Pod/slow",
		"frozen":  "Progressing pod-grace Pod/frozen",
		"busy":    "Progressing pod-grace Pod/busy",
		"network": "Progressing pod-grace Pod/network",
	})
	time.Sleep(time.Until(begin.Add(overdueVolumes)))
	want := map[string]string{
		"slow":    "Progressing pod-grace Pod/slow",
		"frozen":  "Stuck pod-kubelet-kill Pod/frozen",
		"busy":    "Stuck pod-volumes Pod/busy",
		"network": "Stuck pod-kubelet-kill Pod/network",
		"held":    "Stuck fin-manual Pod/held",
	}
	if thaw == nil {
		delete(want, "frozen")
		names = slices.DeleteFunc(names, func(name string) bool { return name == "frozen" })
	} else {
		defer thaw()
	}
	p.says(want)
	if t.Failed() {
		return
	}

	release()
	p.node.FailNetwork("")
	if thaw != nil {
		thaw()
	}
	p.cp.Kubectl(t, "-n", p.namespace, "patch", "pod", "held", "--type=json", "-p", `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	p.delete("slow", "--grace-period=0", "--force")
	p.gone(append(names, "slow")...)
}

// dies has pods on a node whose kubelet is killed, and on the way it is one
// whose container runtime does not answer.
func dies(t *testing.T, cp *controlplane.ControlPlane) {
	p := newPods(t, cp, "dies")
	for _, name := range []string{"hung", "back", "dark"} {
		p.run(name, "pause", "", "")
	}
	p.node.Manifest("static.yaml", fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: static, namespace: dies}
spec:
  containers: [{name: c, image: %s, imagePullPolicy: Never}]
`, node.Image))
	mirror := "static-" + p.node.Name
	p.await("the static pod", func() bool { return p.get("pod", mirror, "name") != "" })

	p.node.HangRuntime(true)
	p.delete("hung")
	begin := time.Now()
	time.Sleep(time.Until(begin.Add(overdue)))
	p.says(map[string]string{"hung": "Stuck pod-kubelet-kill Pod/hung"})
	p.node.HangRuntime(false)
	p.gone("hung")

	p.node.StopKubelet()
	p.delete("back")
	p.delete(mirror, "--grace-period=1")
	p.await("the node's silence", func() bool {
		return p.field("node", p.node.Name, `.status.conditions[?(@.type=="Ready")].status`) == "Unknown"
	})
	p.await("the end of the lease", func() bool {
		return strings.HasPrefix(p.explain("back"), "Stuck")
	})
	p.says(map[string]string{
		"back": "Stuck pod-node-notready Node/" + p.node.Name,
		mirror: "Stuck pod-mirror Pod/" + mirror,
	})
	p.node.StartKubelet()
	p.gone("back")

	p.node.PowerOff()
	p.delete("dark")
	p.await("the end of the lease", func() bool { return strings.HasPrefix(p.explain("dark"), "Stuck") })
	p.says(map[string]string{"dark": "Stuck pod-node-notready Node/" + p.node.Name})
	p.remedy("dark", "out-of-service")
	p.gone("dark")
}

// remedy runs the first printed remedy for the pod that contains the words.
func (p *pods) remedy(name, words string) {
	p.t.Helper()
	var out, errOut bytes.Buffer
	gccmd.Run(p.t.Context(), []string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + p.cp.Kubeconfig, "-n", p.namespace, "pod/" + name,
		"-o", `jsonpath={range .objects[*].causes[*].remedies[*]}{.command}{"\n"}{end}`}, genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
	for command := range strings.Lines(out.String()) {
		if strings.Contains(command, words) {
			shell := exec.Command("sh", "-ec", command)
			shell.Env = append(shell.Environ(), "KUBECONFIG="+p.cp.Kubeconfig, "PATH="+p.cp.Bin+":/usr/bin:/bin")
			if out, err := shell.CombinedOutput(); err != nil {
				p.t.Fatalf("%s: %v\n%s", command, err, out)
			}
			return
		}
	}
	p.t.Fatalf("no remedy for %s with %q in\n%s%s", name, words, &out, &errOut)
}
