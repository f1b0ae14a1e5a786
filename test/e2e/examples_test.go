// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// exampleObjects are those that the examples of the commands name.
const exampleObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-5d4f8c7b9-abcde, namespace: default}
spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: default}
spec: {containers: [{name: web, image: registry.example.com/web}]}
`

// exampleTypes are those of Flux, Argo CD and the Operator Lifecycle Manager in the examples.
var exampleTypes = definitionOf("kustomize.toolkit.fluxcd.io", "v1", "kustomization", "Kustomization") + definitionOf("helm.toolkit.fluxcd.io", "v2", "helmrelease", "HelmRelease") +
	definitionOf("argoproj.io", "v1alpha1", "application", "Application") + definitionOf("operators.coreos.com", "v1alpha1", "subscription", "Subscription") +
	definitionOf("operators.coreos.com", "v1alpha1", "clusterserviceversion", "ClusterServiceVersion")

func definitionOf(group, version, singular, kind string) string {
	return strings.NewReplacer("GROUP", group, "VERSION", version, "SINGULAR", singular, "KIND", kind).Replace(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: SINGULARs.GROUP}
spec:
  group: GROUP
  names: {plural: SINGULARs, singular: SINGULAR, kind: KIND}
  scope: Namespaced
  versions:
  - {name: VERSION, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

// exampleTools are what uninstall is about in the examples.
const exampleTools = `
{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: app, namespace: flux-system}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web, namespace: shop}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: argocd}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: operators}}
---
{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: cert-manager, namespace: operators}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: shop, labels: {applyset.kubernetes.io/id: applyset-ZhFTnyMOfABWycOd1915Uf0UKi6elg7a8lTmmXNRgSQ-v1}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop, labels: {applyset.kubernetes.io/id: applyset-LfI8Vi9Cj-oN7gdQMc0pVAUtzPHQLFbNnE8ILiyJ7TY-v1}}}
`

// exampleFiles are in the directory of the examples. helm stands in for what is not installed.
var exampleFiles = map[string]string{
	"old/web.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}}", "new/web.yaml": "",
	"bin/helm": "#!/bin/sh\necho '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}'\n",
}

// TestExamples runs the examples in the help of every command, which are those
// of docs/commands. Each must do what it says: exit with 0, or 2 where it
// reports findings.
func TestExamples(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "serviceaccount-controller"})
	cp.Kubectl(t, "wait", "serviceaccount/default", "--for=create", "--timeout=60s") // pods need it
	cp.Apply(t, exampleTypes)
	cp.Established(t, "crd", "--all")
	cp.Apply(t, exampleObjects)
	cp.Apply(t, exampleTools)
	cp.Apply(t, record(t, "web", 1, exampleFiles["old/web.yaml"]))
	inPlace := true
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !unprepared.MatchString(line) {
				t.Run(strings.TrimPrefix(line, "kubectl "), func(t *testing.T) {
					if !inPlace {
						cp.Apply(t, exampleObjects)
					}
					inPlace = !writes.MatchString(line)
					runExample(t, cp, line)
				})
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(gccmd.Command("kubectl-gc"))
}

var (
	// unprepared examples need something stuck, an earlier run, or a plan: the sessions of unstick, undo, revive and uninstall have that.
	unprepared     = regexp.MustCompile(`gc (unstick (deployment/web 2|--undo)|undo|revive)|--remove-leftovers=`)
	digestArgument = regexp.MustCompile(`--confirm=sha256:\.\.\.`)
	writes         = regexp.MustCompile(`gc (delete|collect) `) // or may
)

// runExample runs a line, whose objects are in place, with what a user would
// supply: an answer, and the digest of a preview.
func runExample(t *testing.T, cp *controlplane.ControlPlane, line string) {
	if digestArgument.MatchString(line) {
		preview := digestArgument.ReplaceAllString(line, "--dry-run -o jsonpath='{.digest}'")
		line = digestArgument.ReplaceAllString(line, `--confirm="$$(`+preview+`)"`)
	} else if writes.MatchString(line) && !regexp.MustCompile(`--(yes|dry-run)`).MatchString(line) {
		line += " --yes"
	}
	if _, err := exec.LookPath("dot"); err != nil {
		line = regexp.MustCompile(`\| dot -T(svg|png)`).ReplaceAllString(line, "| cat")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = t.TempDir()
	for name, text := range exampleFiles {
		path := filepath.Join(cmd.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(cp.Environ(), "HOME="+cmd.Dir,
		"PATH="+strings.Join([]string{filepath.Join(cmd.Dir, "bin"), cp.Bin, os.Getenv("PATH")}, string(filepath.ListSeparator)))
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != exitFindings {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// exitFindings is the exit code of a command that has something to report.
const exitFindings = 2
