// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a reader can hold in mind: methods of a type, lines of a function, lines of a file, words of a page of a command and of others.
const (
	mostMethods       = 60
	mostFunctionLines = 60
	mostFileLines     = 500
	mostColumns       = 140 // of a line, without texts
	mostCommandWords  = 1000
	mostPageWords     = 2500
)

// TestLimits: no type, function or file of the program, and no page of the docs, grows beyond what can be read in one go.
func TestLimits(t *testing.T) {
	sizes := map[string]int{}
	for _, dir := range []string{"../pkg", "../cmd", "../internal"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || slices.Contains(helpers, strings.TrimPrefix(name, "internal/"))):
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
	pages, _ := filepath.Glob("../docs/*.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		sizes["docs/"+filepath.Base(page)] = len(strings.Fields(string(text)))
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		most := mostMethods
		switch _, err := os.Stat("../docs/commands/kubectl_gc_" + filepath.Base(name)); {
		case strings.HasSuffix(name, ".md") && err == nil:
			most = mostCommandWords
		case strings.HasSuffix(name, ".md"):
			most = mostPageWords
		case strings.Contains(name, ": "):
			most = mostFunctionLines
		case strings.HasSuffix(name, ".go"):
			most = mostFileLines
		}
		if size := sizes[name]; size > most {
			t.Errorf("%s has %d, more than %d", name, size, most)
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
	columns(t, path, name)
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

// columns holds the lines of a file to their width. Texts do not count: a sentence is not broken.
func columns(t *testing.T, path, name string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file := set.AddFile(path, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	without := []byte(string(source))
	for pos, kind, text := s.Scan(); kind != token.EOF; pos, kind, text = s.Scan() {
		if kind == token.STRING {
			for i := range text {
				if at := file.Offset(pos) + i; without[at] != '\n' {
					without[at] = 0
				}
			}
		}
	}
	number := 0
	for line := range bytes.Lines(without) {
		number++
		if width := utf8.RuneCount(bytes.TrimRight(bytes.ReplaceAll(line, []byte{0}, nil), "\n")); width > mostColumns {
			t.Errorf("%s:%d has %d columns, more than %d", name, number, width, mostColumns)
		}
	}
}
