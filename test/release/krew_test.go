// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// krew is the real krew, with a root directory of its own.
type krew struct {
	tools string // the directory of its programs
	root  string
	env   []string
}

// newKrew builds krew and its validator from hack/tools.
func newKrew(t *testing.T, env []string) *krew {
	t.Helper()
	k := &krew{tools: t.TempDir(), root: t.TempDir()}
	build := exec.Command("go", "-C", filepath.Join(root, "hack", "tools"), "build", "-trimpath", "-o", k.tools,
		"sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building krew: %v\n%s", err, out)
	}
	if err := os.Symlink("krew", filepath.Join(k.tools, "kubectl-krew")); err != nil {
		t.Fatal(err)
	}
	path := ""
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			path = value
		}
	}
	k.env = append(env, "KREW_ROOT="+k.root, "KREW_NO_UPGRADE_CHECK=1", "HOME="+t.TempDir(),
		"PATH="+strings.Join([]string{filepath.Join(k.root, "bin"), k.tools, path}, string(os.PathListSeparator)))
	return k
}

// run runs a command line in krew's environment, and returns what it prints on
// standard output. It fails the test if the command fails.
func (k *krew) run(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "env", words...) // finds the program in the new PATH
	cmd.Env = k.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	t.Logf("$ %s\n%s%s", strings.Join(words, " "), &stdout, &stderr)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return stdout.String()
}

// documented runs the command of docs/install.md that starts with the prefix,
// for the plugin under its name in the release. replacements are pairs of what
// stands in the page and what is meant in the test.
func (k *krew) documented(t *testing.T, d *dist, prefix string, replacements ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := d.manifest.Metadata.Name
	pairs := append(slices.Clone(replacements), "kubectl-gc", "kubectl-"+d.link(), "kubectl_complete-gc", "kubectl_complete-"+d.link(),
		"own/gc", "own/"+name, "uninstall gc", "uninstall "+name)
	for _, line := range strings.Split(string(page), "\n") {
		if strings.HasPrefix(line, prefix) {
			k.run(t, "sh", "-c", strings.NewReplacer(pairs...).Replace(line))
			return
		}
	}
	t.Fatalf("docs/install.md has no line that starts with %q", prefix)
}

// serve serves the archives on the loopback interface and returns a copy of the
// manifest that has them there, in a file named after the plugin as krew's
// index wants it.
func (d *dist) serve(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(d.dir)))
	t.Cleanup(server.Close)
	text, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.manifest.Spec.Platforms {
		text = bytes.ReplaceAll(text, []byte(p.URI), []byte(server.URL+"/"+filepath.Base(d.archive(p))))
	}
	file := filepath.Join(dir, filepath.Base(d.file))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestValidate has krew's validator install every platform of the manifests.
func TestValidate(t *testing.T) {
	forNames(t, func(t *testing.T, d *dist) {
		cp := controlplane.Start(t, controlplane.Options{}) // for its kubectl
		k := newKrew(t, cp.Environ())
		k.run(t, "validate-krew-manifest", "-manifest", d.serve(t, t.TempDir()))
	})
}

// TestPullRequest checks what "make krew-pr" has rendered: the manifest under the
// name of its file in krew's index, which krew's validator accepts as it is, and
// installs on every platform when the archives are where it says.
func TestPullRequest(t *testing.T) {
	d := openDist(t, names[0])
	dir := filepath.Join(d.dir, "krew-pr")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("make krew-pr renders a pull request and tests it")
	}
	d.file = filepath.Join(dir, "plugins", names[0]+".yaml")
	d.manifest = readManifest(t, d.file)
	cp := controlplane.Start(t, controlplane.Options{}) // for its kubectl
	k := newKrew(t, cp.Environ())
	k.run(t, "validate-krew-manifest", "-skip-install", "-manifest", d.file)
	k.run(t, "validate-krew-manifest", "-manifest", d.serve(t, t.TempDir()))
}

// TestValidatePlugin has krew's validator check the form of plugin.yaml.
func TestValidatePlugin(t *testing.T) {
	openDist(t, names[0])
	text, err := os.ReadFile(filepath.Join(root, "plugin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "gc.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	newKrew(t, os.Environ()).run(t, "validate-krew-manifest", "-skip-install", "-manifest", file)
}

// TestInstall installs the plugin with krew and runs it under kubectl.
func TestInstall(t *testing.T) {
	forNames(t, func(t *testing.T, d *dist) {
		cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 1})
		cp.Kubectl(t, "create", "deployment", "web", "--image=registry.example.com/web")
		cp.Kubectl(t, "rollout", "status", "deployment/web", "--timeout=120s")
		k := newKrew(t, cp.Environ())
		here := d.manifest.Spec.Platforms[slices.IndexFunc(d.manifest.Spec.Platforms, func(p platform) bool {
			return p.name() == runtime.GOOS+"/"+runtime.GOARCH
		})]
		k.documented(t, d, "kubectl krew install --manifest=", "dist/krew/gc.yaml", d.file,
			"dist/kubectl-gc_v0.0.1-snapshot_linux_amd64.tar.gz", d.archive(here))
		d.checkInstalled(t, k)
		k.documented(t, d, "ln -s ")
		if out := k.run(t, "kubectl", "__complete", d.manifest.Metadata.Name, "tree", "deployment", ""); !strings.HasPrefix(out, "web\n") {
			t.Errorf("the Deployment is not completed:\n%s", out)
		}
	})
}

// TestCustomIndex installs the plugin from an index of its own: a repository
// with plugins/NAME.yaml.
func TestCustomIndex(t *testing.T) {
	forNames(t, func(t *testing.T, d *dist) {
		cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 1})
		cp.Kubectl(t, "create", "deployment", "web", "--image=registry.example.com/web")
		cp.Kubectl(t, "rollout", "status", "deployment/web", "--timeout=120s")
		k := newKrew(t, cp.Environ())
		index := t.TempDir()
		d.serve(t, filepath.Join(index, "plugins"))
		for _, words := range [][]string{
			{"init", "--quiet"}, {"add", "."},
			{"-c", "user.name=index", "-c", "user.email=index@example.com", "commit", "--quiet", "-m", "Add the plugin"},
		} {
			k.run(t, append([]string{"git", "-C", index}, words...)...)
		}
		k.documented(t, d, "kubectl krew index add ", "https://git.example.com/kubectl-plugins.git", index)
		k.documented(t, d, "kubectl krew install own/")
		d.checkInstalled(t, k)
		k.documented(t, d, "kubectl krew uninstall ")
		left, err := filepath.Glob(filepath.Join(k.root, "*", "*gc*"))
		if err != nil || len(left) > 0 {
			t.Errorf("uninstalling left %v (%v)", left, err)
		}
	})
}

// checkInstalled checks that kubectl finds the plugin, that it works, and that
// its texts follow its name.
func (d *dist) checkInstalled(t *testing.T, k *krew) {
	t.Helper()
	name := d.manifest.Metadata.Name
	tree := k.run(t, "kubectl", name, "tree", "deployment/web")
	for _, want := range []string{"Deployment/web", "ReplicaSet/web-", "Pod/web-", "Solid"} {
		if !strings.Contains(tree, want) {
			t.Errorf("the tree does not have %q", want)
		}
	}
	if out := k.run(t, "kubectl", name, "version"); !strings.Contains(out, "Client Version: "+d.manifest.Spec.Version+"\nCommit: ") {
		t.Errorf("the version is not %s with its commit", d.manifest.Spec.Version)
	}
	if out := k.run(t, "kubectl", name, "tree", "--help"); !strings.Contains(out, "kubectl "+name+" tree deployment/web") {
		t.Errorf("the usage does not have the plugin's name")
	}
}
