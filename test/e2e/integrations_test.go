// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestIntegrations runs what docs/integrations.md gives to other programs: the
// commands behind k9s' keys, the step of the GitHub Action and the job for
// GitLab, on a real API server with an object whose owner's kind is not served.
func TestIntegrations(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{})
	cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: coupon, namespace: default, ownerReferences: ["+
		"{apiVersion: coupons.example.com/v1, kind: Coupon, name: spring, uid: 22222222-2222-2222-2222-222222222222}]}}")
	cp.Kubectl(t, "create", "role", "viewer", "--verb=get,list", "--resource=configmaps")
	cp.Kubectl(t, "create", "rolebinding", "viewer", "--role=viewer", "--user=viewer")
	t.Run("k9s", func(t *testing.T) { checkK9s(t, cp) })
	t.Run("action", func(t *testing.T) { checkAction(t, cp) })
	t.Run("gitlab", func(t *testing.T) { checkGitLab(t, cp) })
}

// sh runs a command line, with more in its environment, and returns its output
// and exit code.
func sh(t *testing.T, cp *controlplane.ControlPlane, dir string, env []string, words ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(cp.Environ(), "HOME="+t.TempDir()), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A k9sPlugin is what k9s needs to know of a key. That k9s itself reads the file
// so is tested in test/integrations.
type k9sPlugin struct {
	ShortCut string   `json:"shortCut"`
	Command  string   `json:"command"`
	Args     []string `json:"args"`
}

// checkK9s runs the commands behind k9s' keys for an object with a namespace and
// one without, filled in as k9s does.
func checkK9s(t *testing.T, cp *controlplane.ControlPlane) {
	var file struct {
		Plugins map[string]k9sPlugin `json:"plugins"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "docs/examples/k9s.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	context := strings.TrimSpace(cp.Kubectl(t, "config", "current-context"))
	coupon := strings.NewReplacer("$KUBECONFIG", cp.Kubeconfig, "$CONTEXT", context, "$NAMESPACE", "default",
		"$RESOURCE_NAME", "configmaps", "$RESOURCE_GROUP", "", "$NAME", "coupon")
	// A name that a shell would take for commands. For an object without a
	// namespace k9s gives "-".
	const ugly = "a;touch hurt $(touch hurt)`touch hurt`"
	cp.Apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "`+ugly+`"}}`)
	role := strings.NewReplacer("$KUBECONFIG", cp.Kubeconfig, "$CONTEXT", context, "$NAMESPACE", "-",
		"$RESOURCE_NAME", "clusterroles", "$RESOURCE_GROUP", "rbac.authorization.k8s.io", "$NAME", ugly)
	for name, want := range map[string][2]string{
		"gc-tree":           {"ConfigMap/coupon", "ClusterRole/" + ugly},
		"gc-explain-stuck":  {"NOT BEING DELETED  configmap/coupon -n default", "NOT BEING DELETED  clusterrole/" + ugly},
		"gc-delete-preview": {"deletes       1 ConfigMap", "deletes       1 ClusterRole"},
	} {
		plugin := file.Plugins[name]
		for i, object := range []*strings.Replacer{coupon, role} {
			words := []string{plugin.Command}
			for _, arg := range plugin.Args {
				words = append(words, object.Replace(arg))
			}
			dir := t.TempDir()
			// Its output is no terminal, so that less only copies.
			output, code := sh(t, cp, dir, []string{"KUBECONFIG=" + os.DevNull}, words...)
			if code != 0 || !strings.Contains(stripColours(output), want[i]) {
				t.Errorf("%s: exit code %d, want 0 and %q in:\n%s", name, code, want[i], output)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
				t.Errorf("%s: a name was run by the shell: %v %v", name, files, err)
			}
		}
	}
	if len(file.Plugins) != 3 {
		t.Errorf("%d plugins in the file, 3 are tested", len(file.Plugins))
	}
}

func stripColours(text string) string {
	var plain strings.Builder
	for i, part := range strings.Split(text, "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		plain.WriteString(part)
	}
	return plain.String()
}

// checkAction runs the last step of action.yml as a runner does. The one before
// only builds the program.
func checkAction(t *testing.T, cp *controlplane.ControlPlane) {
	var action struct {
		Inputs map[string]struct{ Default string } `json:"inputs"`
		Runs   struct {
			Steps []struct {
				Run string            `json:"run"`
				Env map[string]string `json:"env"`
			} `json:"steps"`
		} `json:"runs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	step := action.Runs.Steps[len(action.Runs.Steps)-1]
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		inputs  map[string]string
		code    int
		outputs map[string]string
	}{
		{"findings", map[string]string{"arguments": "-n default\n--settle=0"}, 2, map[string]string{"exit-code": "2", "findings": "1"}},
		{"findings that do not fail it", map[string]string{"arguments": "-n default --settle=0", "fail": "false"}, 0, map[string]string{"exit-code": "2", "findings": "1"}},
		{"nothing found", map[string]string{"arguments": "-n kube-system --settle=0"}, 0, map[string]string{"exit-code": "0", "findings": "0"}},
		{"an error", map[string]string{"arguments": "-n nowhere --settle=0", "fail": "false"}, 1, map[string]string{"exit-code": "1"}},
		{"incomplete", map[string]string{"arguments": "-n default configmap/coupon --settle=0 --rule=owns-itself --as=viewer"}, 3, map[string]string{"exit-code": "3", "findings": "0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			temp := t.TempDir()
			outputs, summary := filepath.Join(temp, "output"), filepath.Join(temp, "summary")
			installProgram(t, cp, filepath.Join(temp, "kubectl-gc", "bin"))
			env := []string{"RUNNER_TEMP=" + temp, "GITHUB_ACTION_PATH=" + repository, "GITHUB_OUTPUT=" + outputs, "GITHUB_STEP_SUMMARY=" + summary}
			for name, expression := range step.Env {
				input := strings.TrimSuffix(strings.TrimPrefix(expression, "${{ inputs."), " }}")
				value, ok := test.inputs[input]
				if !ok {
					value = action.Inputs[input].Default
				}
				env = append(env, name+"="+value)
			}
			// How a runner starts a step with "shell: bash".
			output, code := sh(t, cp, temp, env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			if code != test.code {
				t.Errorf("exit code %d, want %d:\n%s", code, test.code, output)
			}
			got := map[string]string{}
			text, err := os.ReadFile(outputs)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Fields(string(text)) {
				name, value, _ := strings.Cut(line, "=")
				got[name] = value
			}
			for name, want := range test.outputs {
				if got[name] != want {
					t.Errorf("the output %s is %q, want %q", name, got[name], want)
				}
			}
			if test.outputs["findings"] != "" {
				checkSARIF(t, got["sarif"], test.outputs["findings"] != "0")
			}
		})
	}
}

// installProgram puts the program under test into a directory.
func installProgram(t *testing.T, cp *controlplane.ControlPlane, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, _ := sh(t, cp, dir, nil, "sh", "-c", "command -v kubectl-gc")
	if err := os.Symlink(strings.TrimSpace(program), filepath.Join(dir, "kubectl-gc")); err != nil {
		t.Fatal(err)
	}
}

// checkSARIF checks that a file is a report, with the coupon or without.
func checkSARIF(t *testing.T, file string, found bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Version string }
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report.Version != "2.1.0" || bytes.Contains(text, []byte("ConfigMap/default/coupon")) != found {
		t.Errorf("version %q, want 2.1.0, and the coupon found: %v:\n%s", report.Version, found, text)
	}
}

// checkGitLab runs the script of the job for GitLab. What comes before only
// installs the program.
func checkGitLab(t *testing.T, cp *controlplane.ControlPlane) {
	var jobs map[string]struct {
		Variables map[string]string `json:"variables"`
		Script    []string          `json:"script"`
		Artifacts struct{ Paths []string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "docs/examples/gitlab.yml")), &jobs); err != nil {
		t.Fatal(err)
	}
	job := jobs["owner-references"]
	dir := t.TempDir()
	var env []string
	for name, value := range job.Variables {
		env = append(env, name+"="+strings.ReplaceAll(value, "--settle=30s", "--settle=0"))
	}
	check := func(code int, found bool) {
		t.Helper()
		// How a runner starts a script: one shell, which ends with the first failure.
		output, got := sh(t, cp, dir, env, "bash", "-c", "set -eo pipefail\n"+strings.Join(job.Script, "\n"))
		if got != code {
			t.Errorf("exit code %d, want %d:\n%s", got, code, output)
		}
		checkSARIF(t, filepath.Join(dir, job.Artifacts.Paths[0]), found)
	}
	check(2, true)
	if output, code := sh(t, cp, dir, nil, "sh", "-c", "kubectl-gc check -A --settle=0 -o json >known.json"); code != 2 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	check(0, false)
}
