// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

const module = "github.com/kubectl-gc/kubectl-gc/"

// beside are packages that any other may import.
var beside = sets.New("argv", "pattern", "process", "rawjson", "say")

// house draws what the packages of the program in a module's directory import of each other, those below one as that one, and of two ways
// to a package the longer one.
func house(root string) (string, error) {
	list := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./cmd/kubectl-gc")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("listing the packages: %w", err)
	}
	imports := map[string]sets.Set[string]{}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		name := named(paths[0])
		if name == "" {
			continue
		}
		if imports[name] == nil {
			imports[name] = sets.New[string]()
		}
		for _, path := range paths[1:] {
			imports[name].Insert(named(path))
		}
		imports[name].Delete(name, "")
	}
	var page strings.Builder
	page.WriteString("# The packages\n\nAn arrow is an import; where there is a way through another package, only that is drawn. [What each is for](design.md#packages). `make docs` draws it.\n\n```mermaid\nflowchart TD\n")
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		for _, other := range sets.List(imports[name]) {
			if !slices.ContainsFunc(imports[name].UnsortedList(),
				func(between string) bool { return between != other && reaches(imports, between, other) }) {
				fmt.Fprintf(&page, "  %s --> %s\n", name, other)
			}
		}
	}
	page.WriteString("```\n")
	return page.String(), nil
}

// named returns what the picture calls a package, empty for one that is not in it.
func named(importPath string) string {
	path, ours := strings.CutPrefix(importPath, module)
	dir := strings.Split(path, "/")
	if !ours || len(dir) < 2 || dir[0] == "cmd" || beside.Has(dir[1]) {
		return ""
	}
	return dir[1]
}

// reaches reports whether a package imports another, or one that does.
func reaches(imports map[string]sets.Set[string], name, other string) bool {
	return name == other || slices.ContainsFunc(imports[name].UnsortedList(), func(next string) bool { return reaches(imports, next, other) })
}
