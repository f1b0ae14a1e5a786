// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader can hold in mind: methods of a type, lines of a function, lines of a file.
const (
	mostMethods       = 60
	mostFunctionLines = 60
	mostFileLines     = 500
)

// larger is what is above the limits, with its size. It only goes down.
var larger = map[string]int{}

// TestLimits: no type, function or file of the program grows beyond what can be read in one go.
func TestLimits(t *testing.T) {
	sizes := map[string]int{}
	for _, dir := range []string{"../pkg", "../cmd", "../internal"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || slices.Contains(helpers, strings.TrimPrefix(name, "pkg/"))):
				return filepath.SkipDir
			case !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
				measure(t, path, name, sizes)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		most := mostMethods
		switch {
		case strings.Contains(name, ": "):
			most = mostFunctionLines
		case strings.HasSuffix(name, ".go"):
			most = mostFileLines
		}
		switch allowed, size := max(most, larger[name]), sizes[name]; {
		case size > allowed:
			t.Errorf("%s has %d, more than %d", name, size, allowed)
		case larger[name] > 0 && size < allowed:
			t.Errorf("%s has %d, no more %d: write that down", name, size, allowed)
		}
	}
	for name := range larger {
		if sizes[name] == 0 {
			t.Errorf("%s is no more: write that down", name)
		}
	}
}

// measure adds the lines of a file, those of its functions, and the methods of its types.
func measure(t *testing.T, path, name string, sizes map[string]int) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	sizes[name] = set.File(parsed.FileStart).LineCount()
	for _, declaration := range parsed.Decls {
		function, is := declaration.(*ast.FuncDecl)
		if !is {
			continue
		}
		lines := set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1
		sizes[name+": "+function.Name.Name] = max(sizes[name+": "+function.Name.Name], lines) // types may have methods of one name
		if function.Recv != nil {
			sizes[filepath.ToSlash(filepath.Dir(name))+"."+receiver(function.Recv.List[0].Type)]++
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // of a generic type
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
