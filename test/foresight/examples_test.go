// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples makes what the documentation's stories begin with, and holds it to
// what they say of it.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	a, err := newArena(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	apply := func(name string) {
		t.Helper()
		if _, err := a.kubectl(t.Context(), "", "apply", "-f", filepath.Join("../../docs/examples", name)); err != nil {
			t.Fatal(err)
		}
	}
	eventually := func(t *testing.T, what, want string, args ...string) {
		t.Helper()
		var out string
		if err := until(t.Context(), what, func() (bool, error) {
			var err error
			out, err = a.kubectl(t.Context(), "", args...)
			return strings.TrimSpace(out) == want, err
		}); err != nil {
			t.Errorf("%v: got %q, want %q", err, out, want)
		}
	}
	for _, name := range []string{"toy-operator.yaml", "gate.yaml", "store.yaml"} {
		apply(name)
	}
	if err := until(t.Context(), "the type is established", func() (bool, error) {
		_, err := a.kubectl(t.Context(), "", "wait", "--for=condition=Established", "--timeout=60s", "crd/toys.foresight.test")
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	apply("toys.yaml")
	t.Run("operator", func(t *testing.T) {
		eventually(t, "the finalizers are set", "foresight.test/cleanup foresight.test/cleanup", "-n", "toy-system", "get", "toys", "-o", "jsonpath={.items[*].metadata.finalizers[*]}")
		eventually(t, "the operator is named", "kubectl-client-side-apply toy-operator kubectl-client-side-apply toy-operator", "-n", "toy-system", "get", "toys", "--show-managed-fields",
			"-o", `jsonpath={.items[*].metadata.managedFields[?(@.operation=="Update")].manager}`)
		eventually(t, "it has its lease", "toy-operator", "-n", "toy-system", "get", "leases", "-o", "jsonpath={.items[*].metadata.name}")
		if _, err := a.kubectl(t.Context(), "", "-n", "toy-system", "delete", "toys", "--all", "--timeout=60s"); err != nil {
			t.Error("the operator does not clean up:", err)
		}
	})
	t.Run("webhook", func(t *testing.T) {
		if _, err := a.kubectl(t.Context(), "{apiVersion: v1, kind: Namespace, metadata: {name: gated, labels: {gated: 'true'}}}", "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the backend is ready", "1", "-n", "gate-system", "get", "deployment", "gate", "-o", "jsonpath={.status.readyReplicas}")
		if _, err := a.kubectl(t.Context(), "", "delete", "namespace", "gate-system", "--timeout=120s"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.kubectl(t.Context(), "", "-n", "gated", "create", "configmap", "price"); err == nil || !strings.Contains(err.Error(), `service "gate" not found`) {
			t.Errorf("a change is not refused for the missing backend: %v", err)
		}
	})
	t.Run("claims", func(t *testing.T) {
		eventually(t, "the claims are bound", "store-attic-data store-cellar-archive store-cellar-data", "-n", "store", "get", "pvc",
			"--sort-by=.spec.volumeName", "-o", "jsonpath={.items[?(@.status.phase=='Bound')].spec.volumeName}")
		eventually(t, "a StatefulSet owns the claims that go with it", "archive-cellar-0 data-cellar-0", "-n", "store", "get", "pvc",
			"--sort-by=.metadata.name", "-o", "jsonpath={.items[?(@.metadata.ownerReferences)].metadata.name}")
	})
}
