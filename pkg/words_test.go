// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sentences is the number of sentences that a package may have outside its words files, words.go and words_*.go: none
// where the words are in one place already, and elsewhere what there was when they were counted last. It only goes down.
var sentences = map[string]int{
	"foresight": 0, "preview": 0, "check": 0, "uninstall": 0, "explain": 0,
	"explain/evidence": 0, "explain/finding": 0,
	"explain/rules": 0, "explain/rules/workload": 0, "explain/rules/definition": 0, "explain/rules/write": 0, "explain/rules/collector": 0, "explain/rules/namespace": 0, "explain/rules/pod": 0, "explain/rules/storage": 0, "explain/rules/network": 0, "explain/rules/usage": 0, "explain/rules/finalizer": 0, "explain/rules/untouched": 0,
	"explain/admission": 1, "explain/controllers": 1, // each is a pattern of what the API server says
}

// TestWordsInOnePlace: what people read is edited together, and nothing decides anything by a sentence.
func TestWordsInOnePlace(t *testing.T) {
	rules, _ := filepath.Glob("../internal/explain/rules/*/words.go")
	for _, file := range rules {
		if name := strings.TrimPrefix(filepath.Dir(file), "../internal/"); !slices.Contains(slices.Collect(maps.Keys(sentences)), name) {
			t.Errorf("%s is not among those of which the sentences are counted", name)
		}
	}
	for name, most := range sentences {
		files, err := filepath.Glob("../internal/" + name + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(name, err)
		}
		var found []string
		for _, file := range files {
			if base := filepath.Base(file); !strings.HasSuffix(base, "_test.go") && base != "words.go" && !strings.HasPrefix(base, "words_") {
				found = append(found, sentencesIn(t, file)...)
			}
		}
		switch {
		case len(found) > most:
			t.Errorf("%s has %d sentences outside its words files, not %d:\n%s", name, len(found), most, strings.Join(found, "\n"))
		case len(found) < most:
			t.Errorf("%s has %d sentences outside its words files, no more %d: write that down", name, len(found), most)
		}
	}
}

// command is how commands of kubectl and patterns begin, which are no sentences.
var command = regexp.MustCompile(`^(%s (get|auth|logs|-n) |\^)`)

// sentencesIn returns the strings of five words and more of a file, with their places.
func sentencesIn(t *testing.T, file string) []string {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, is := n.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		words := 0
		for _, word := range strings.Fields(text) {
			if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,.:;'-%()") == "" && strings.ContainsAny(word, "abcdefghijklmnopqrstuvwxyz") {
				words++
			}
		}
		if err == nil && words >= 5 && !command.MatchString(text) {
			found = append(found, set.Position(literal.Pos()).String()+": "+text)
		}
		return true
	})
	return found
}
