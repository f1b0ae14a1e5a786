// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

func TestStart(t *testing.T) {
	var pids map[string]int
	t.Run("running", func(t *testing.T) {
		cp := controlplane.Start(t, controlplane.Options{
			Users:    []controlplane.User{{Name: "alice", Groups: []string{"developers", "testers"}}},
			AuditLog: true,
		})
		pids = cp.PIDs
		cp.Apply(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}`)
		if err := cp.Kill("apiserver"); err != nil {
			t.Fatal(err)
		}
		if err := cp.Start("apiserver"); err != nil {
			t.Fatal(err)
		}
		if got, want := cp.Kubectl(t, "get", "configmap", "kept", "-o", "name"), "configmap/kept\n"; got != want {
			t.Errorf("after a restart of the API server kubectl get prints %q, want %q", got, want)
		}
		if err := cp.Stop("scheduler"); err == nil || !strings.Contains(err.Error(), "apiserver") {
			t.Errorf("stopping an unknown component: got error %v, want one that lists the known ones", err)
		}
		whoami := exec.Command(filepath.Join(cp.Bin, "kubectl"), "auth", "whoami", "--kubeconfig", cp.Users["alice"])
		if out, err := whoami.CombinedOutput(); err != nil || !strings.Contains(string(out), "developers testers") {
			t.Errorf("kubectl auth whoami as alice: %v\n%s", err, out)
		}
		if log, err := os.ReadFile(cp.AuditLog); err != nil || !strings.Contains(string(log), `"verb":"create"`) {
			t.Errorf("audit log: no create request (read error: %v)", err)
		}
	})
	for name, pid := range pids {
		process, err := os.FindProcess(pid)
		if err == nil && process.Signal(syscall.Signal(0)) == nil {
			t.Errorf("%s, process %d, outlives the test", name, pid)
		}
	}
}
