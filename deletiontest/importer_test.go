// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/modules.txt")

// TestImporter has a module with controller-runtime of two minor versions ago get this one: it builds, nothing in it is raised
// but what testdata/modules.txt says, and that has every module from which a package is compiled.
func TestImporter(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command, which may download modules")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/kubectl-gc/kubectl-gc"
	dir := t.TempDir()
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/operator\n\ngo 1.25.0\n\nrequire sigs.k8s.io/controller-runtime v0.23.1\n")
	write("controller.go", "package operator\n\nimport _ \"sigs.k8s.io/controller-runtime\"\n")
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.Command("go", arguments...)
		command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		var problems strings.Builder
		command.Stderr = &problems
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, &problems)
		}
		return string(out)
	}
	run("mod", "edit", "-replace="+name+"="+filepath.Dir(here), "-replace="+name+"/deletiontest="+here)
	write("deletion_test.go", "package operator\n\nimport (\n\t_ \""+name+"/deletiontest\"\n\t_ \""+name+"/deletiontest/fakeclient\"\n)\n")
	run("get", name+"/deletiontest@v0.0.0")
	run("vet", ".")

	const format = "{{with .Module}}{{.Path}} {{.Version}}{{end}}"
	modules := strings.Fields(strings.ReplaceAll(run("list", "-deps", "-f", format, name+"/deletiontest/..."), " ", "@"))
	slices.Sort(modules)
	got := strings.Join(slices.Compact(modules), "\n") + "\n"
	file := filepath.Join("testdata", "modules.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("an importer gets other modules; go test -run TestImporter -update writes them:\n%s", got)
	}
	if strings.Contains(got, "k8s.io/kubernetes") {
		t.Error("k8s.io/kubernetes must not be among them")
	}
	if version := strings.TrimSpace(run("list", "-m", "sigs.k8s.io/controller-runtime", "k8s.io/client-go")); version !=
		"sigs.k8s.io/controller-runtime v0.23.1\nk8s.io/client-go v0.35.0" {
		t.Errorf("the importer has %s by now", version)
	}
}
