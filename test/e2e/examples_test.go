// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	gccmd "github.com/kubectl-gc/kubectl-gc/pkg/cmd"
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

// TestExamples runs the examples in the help of every command, which are those
// of docs/commands. Each must do what it says: exit with 0, or 2 where it
// reports findings.
func TestExamples(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "serviceaccount-controller"})
	cp.Kubectl(t, "wait", "serviceaccount/default", "--for=create", "--timeout=60s") // pods need it
	inPlace := false
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
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
	cmd.Env = append(cp.Environ(), "HOME="+cmd.Dir,
		"PATH="+strings.Join([]string{cp.Bin, os.Getenv("PATH")}, string(filepath.ListSeparator)))
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != exitFindings {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// exitFindings is the exit code of a command that has something to report.
const exitFindings = 2
