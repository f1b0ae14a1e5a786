// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// encryption is the configuration of an API server that encrypts widgets with
// a key.
func encryption(key string) string {
	return `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [widgets.example.com]
  providers: [{aescbc: {keys: [{name: k, secret: ` + key + `}]}}]
`
}

const sealed = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// TestExplainUnreadable loses the key with which objects were encrypted: they
// cannot be read, and nothing above them can be deleted.
func TestExplainUnreadable(t *testing.T) {
	nightly.Only(t, "a second API server with another key")
	parallel(t)
	cp := unreadable(t)
	deleteSealed(t, cp)
	cp.Kubectl(t, "delete", "crd", "widgets.example.com", "--wait=false")
	for _, object := range []string{"namespace/sealed", "crd/widgets.example.com", "-n sealed widgets.example.com/w"} {
		explained(t, cp, object, "val-unreadable", "Stuck")
	}
	var stdout bytes.Buffer
	gccmd.Run(t.Context(), []string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig, "namespace/sealed", "-o", "wide"},
		genericiooptions.IOStreams{Out: &stdout, ErrOut: io.Discard})
	if !strings.Contains(stdout.String(), "Widget [val-unreadable]") {
		t.Errorf("the type that cannot be read is not named:\n%s", &stdout)
	}
}

// TestDeleteUnreadable carries out what is shown for an object that cannot be read, on an
// API server that deletes such.
func TestDeleteUnreadable(t *testing.T) {
	nightly.Only(t, "a second API server with another key")
	controlplane.Needs(t, "1.32", "older servers have no way to delete what they cannot read")
	parallel(t)
	cp := unreadable(t, "--feature-gates=AllowUnsafeMalformedObjectDeletion=true")
	deleteSealed(t, cp)
	explained(t, cp, "namespace/sealed", "val-unreadable", "Stuck")
	var stdout bytes.Buffer
	gccmd.Run(t.Context(), []string{
		"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig, "namespace/sealed",
		"-o", `jsonpath={range .objects[0].causes[0].remedies[*]}{.command}{"\n"}{end}`,
	}, genericiooptions.IOStreams{Out: &stdout, ErrOut: io.Discard})
	var command string
	for line := range strings.Lines(stdout.String()) {
		if strings.Contains(line, "namespaces/sealed/widgets/w") {
			command = line
		}
	}
	if command == "" {
		t.Fatalf("the object that cannot be read is not named:\n%s", &stdout)
	}
	shell := exec.Command("sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig, "PATH="+cp.Bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	cp.Kubectl(t, "wait", "namespace/sealed", "--for=delete", "--timeout=300s")
}

// deleteSealed deletes the namespace, and waits until its controller, which was started a moment
// ago, has failed at it.
func deleteSealed(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	cp.Kubectl(t, "delete", "namespace", "sealed", "--wait=false")
	cp.Kubectl(t, "wait", "namespace/sealed", "--for=condition=NamespaceDeletionContentFailure", "--timeout=180s")
}

// unreadable starts a control plane on which the one Widget, in namespace sealed, cannot
// be read.
func unreadable(t *testing.T, args ...string) *controlplane.ControlPlane {
	t.Helper()
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	write := func(key string) {
		if err := os.WriteFile(config, []byte(encryption(key)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("MDEyMzQ1Njc4OWFiY2RlZg==")
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", APIServerArgs: append(args, "--encryption-provider-config="+config)})
	cp.Apply(t, sealed)
	cp.Established(t, "crd/widgets.example.com")
	cp.Kubectl(t, "create", "namespace", "sealed")
	cp.Kubectl(t, "create", "namespace", "other")
	cp.Apply(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: sealed}\n")
	write("ZmVkY2JhOTg3NjU0MzIxMA==")
	// A controller manager that is without an API server for ten seconds ends by itself.
	for _, step := range []struct {
		do   func(string) error
		what string
	}{{cp.Stop, "controller-manager"}, {cp.Stop, "apiserver"}, {cp.Start, "apiserver"}, {cp.Start, "controller-manager"}} {
		if err := step.do(step.what); err != nil {
			t.Fatal(err)
		}
	}
	return cp
}

// explained waits until what is said of an object names a cause with a verdict.
func explained(t *testing.T, cp *controlplane.ControlPlane, object, id, verdict string) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Second) {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig}, strings.Fields(object)...)
		argv = append(argv, "-o", `jsonpath={range .objects[0].causes[*]}{.verdict} {.id}{"\n"}{end}`)
		gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
		if text = stdout.String(); strings.Contains(text, verdict+" "+id+"\n") {
			if strings.Contains(text, "val-conversion-dead") || strings.Contains(text, "gc-absent") {
				t.Errorf("%s: %s", object, text)
			}
			return
		}
		text += stderr.String()
	}
	t.Errorf("%s: no %s %s in\n%s", object, verdict, id, text)
}
