// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliabilityPage holds the commands in docs/reliability.md to what there is: targets
// of the Makefile, and tests and fuzz tests of packages.
func TestReliabilityPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`((?:make|go test) [^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(commands) < 5 {
		t.Errorf("the page has %d commands", len(commands))
	}
	for _, command := range commands {
		words := strings.Fields(strings.ReplaceAll(command[1], "'", ""))
		if words[0] == "make" {
			if !regexp.MustCompile("(?m)^" + words[1] + ":").Match(makefile) {
				t.Errorf("%s: the Makefile has no such target", command[1])
			}
			continue
		}
		pattern := ""
		for i, word := range words {
			if (word == "-run" || word == "-fuzz") && i+1 < len(words) {
				pattern, _, _ = strings.Cut(words[i+1], "/")
			}
		}
		if !hasTest(t, filepath.Join("../..", words[2]), pattern) {
			t.Errorf("%s: the package has no such test", command[1])
		}
	}
}

// hasTest reports whether a package has a test or a fuzz test that matches the pattern.
func hasTest(t *testing.T, dir, pattern string) bool {
	t.Helper()
	name, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if is && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) && name.MatchString(f.Name.Name) {
				return true
			}
		}
	}
	return false
}
