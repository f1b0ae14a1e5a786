// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
)

// Every word of the rules is declared once and stands for something, and nothing stands for a word that there is not.
func TestSayings(t *testing.T) {
	declared := map[finding.Word]string{}
	err := filepath.WalkDir("rules", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			if kind, is := spec.Type.(*ast.SelectorExpr); !is || kind.Sel.Name != "Word" {
				return true
			}
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			word, name := finding.Word(text), path+": "+spec.Names[0].Name
			switch s := sayings[word]; {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case declared[word] != "":
				t.Errorf("%s is the same word as %s", name, declared[word])
			case s.text == "" && s.made == nil:
				t.Errorf("%s has no words in words_*.go", name)
			}
			declared[word] = name
			return true
		})
		return nil
	})
	if err != nil || len(declared) == 0 {
		t.Fatal(len(declared), err)
	}
	for word := range sayings {
		if declared[word] == "" {
			t.Errorf("%q is no word of a rule", word)
		}
	}
}
