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

// house draws what the packages of a module's directory import of each other, those below one as that one, and of two ways to a package the
// longer one.
func house(root string) (string, error) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./pkg/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("listing the packages: %w", err)
	}
	imports := map[string]sets.Set[string]{}
	for line := range strings.Lines(string(out)) {
		var names []string
		for _, path := range strings.Fields(line) {
			if path, ours := strings.CutPrefix(path, module+"pkg/"); ours {
				name, _, _ := strings.Cut(path, "/")
				names = append(names, name)
			}
		}
		if len(names) == 0 { // pkg has tests alone
			continue
		}
		if imports[names[0]] == nil {
			imports[names[0]] = sets.New[string]()
		}
		imports[names[0]].Insert(names[1:]...).Delete(names[0])
	}
	var page strings.Builder
	page.WriteString("# The packages\n\nAn arrow is an import; where there is a way through another package, only that is drawn. [What each is for](design.md#packages). `make docs` draws it.\n\n```mermaid\nflowchart TD\n")
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		for _, other := range sets.List(imports[name]) {
			if !slices.ContainsFunc(imports[name].UnsortedList(), func(between string) bool { return between != other && reaches(imports, between, other) }) {
				fmt.Fprintf(&page, "  %s --> %s\n", name, other)
			}
		}
	}
	page.WriteString("```\n")
	return page.String(), nil
}

// reaches reports whether a package imports another, or one that does.
func reaches(imports map[string]sets.Set[string], name, other string) bool {
	return name == other || slices.ContainsFunc(imports[name].UnsortedList(), func(next string) bool { return reaches(imports, next, other) })
}
