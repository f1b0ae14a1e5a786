// SPDX-License-Identifier: Apache-2.0

// Package pkg_test holds the packages to the directions in which they may
// import each other.
package pkg_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kubectl-gc/kubectl-gc/"

// beside are packages below internal that any other may import, or that only tests and tools do.
var beside = []string{"argv", "gctest", "gendocs", "pattern", "process", "rawjson", "say", "scenarios", "testapi", "testnet", "testworld"}

// order lists the packages of pkg and internal so that each imports only those before it. A package
// below another stands for itself where it is listed, and otherwise for that.
var order = []string{"answer", "delivery", "lease", "finalizers", "graph", "draw", "offline", "shell", "remedy", "gc", "simulator", "cluster", "explain/evidence", "explain/mention", "explain/controllers", "explain/admission", "explain/ensuing", "explain/finding", "explain/rules/workload", "explain/rules", "explain/rules/definition", "explain/rules/write", "explain/rules/pod", "explain/rules/collector", "explain/rules/namespace", "explain/rules/storage", "explain/rules/network", "explain/rules/usage", "explain/rules/untouched", "explain/rules/finalizer", "explain", "explain/explaintest", "check", "diff", "preview", "foresight", "uninstall", "restore", "change", "unstick", "render", "cmd"}

// pure packages may use apimachinery, and nothing that could reach a cluster
// or a terminal.
var pure = []string{"answer", "delivery", "lease", "finalizers", "graph", "draw", "offline", "shell", "remedy", "gc", "simulator", "explain", "check", "diff", "preview", "foresight", "uninstall", "restore"}

// bare packages may reach a cluster, and know no command line.
var bare = []string{"cluster", "change", "unstick"}

var commandLine = []string{"k8s.io/cli-runtime", "github.com/spf13/cobra", "github.com/spf13/pflag"}

// helpers are for tests, and no part of the program.
var helpers = []string{"explain/explaintest"}

var impure = []string{"k8s.io/client-go", "k8s.io/cli-runtime", "github.com/spf13/cobra", "github.com/spf13/pflag"}

func TestImportDirections(t *testing.T) {
	packages := list(t, "-f", "{{.ImportPath}}", "./...", "../internal/...")
	for _, importPath := range packages {
		name, ours := named(importPath)
		if !ours {
			continue
		}
		layer := layerOf(name)
		at := slices.Index(order, layer)
		if at < 0 {
			t.Errorf("package %s has no place in the order of packages", name)
			continue
		}
		for _, dependency := range list(t, "-deps", "-f", "{{.ImportPath}}", importPath) {
			checkDependency(t, layer, at, dependency)
			if name, ours := named(dependency); ours && strings.HasPrefix(importPath, module+"pkg/") && !strings.HasPrefix(dependency, module+"pkg/") {
				t.Errorf("%s, which others may import, needs internal/%s", importPath, name)
			}
		}
	}
}

// named returns what the order calls a package.
func named(importPath string) (string, bool) {
	path, ours := strings.CutPrefix(importPath, module)
	top, name, below := strings.Cut(path, "/")
	first, _, _ := strings.Cut(name, "/")
	return name, ours && below && (top == "pkg" || top == "internal") && !slices.Contains(beside, first)
}

func checkDependency(t *testing.T, layer string, at int, dependency string) {
	t.Helper()
	if name, ours := named(dependency); ours {
		other := layerOf(name)
		if slices.Index(order, other) > at {
			t.Errorf("%s imports %s, which comes after it", layer, other)
		}
	}
	forbidden := impure
	switch top, _, _ := strings.Cut(layer, "/"); {
	case slices.Contains(bare, top):
		forbidden = commandLine
	case !slices.Contains(pure, top), slices.Contains(helpers, layer):
		return
	}
	for _, prefix := range forbidden {
		if dependency == prefix || strings.HasPrefix(dependency, prefix+"/") {
			t.Errorf("%s depends on %s", layer, dependency)
		}
	}
}

// TestRulesAreValues: what rules find is put into commands elsewhere. That they know neither the walk nor its causes, the
// order says.
func TestRulesAreValues(t *testing.T) {
	for _, name := range order {
		if name != "explain/finding" && !strings.HasPrefix(name, "explain/rules") {
			continue
		}
		if slices.Contains(list(t, "-f", "{{range .Imports}}{{println .}}{{end}}", module+"internal/"+name), module+"pkg/shell") {
			t.Errorf("%s imports shell", name)
		}
	}
}

// layerOf returns the entry of order that a package is part of.
func layerOf(name string) string {
	if slices.Contains(order, name) || strings.HasPrefix(name, "explain/rules/") { // each of these has a place of its own
		return name
	}
	layer, _, _ := strings.Cut(name, "/")
	return layer
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}
