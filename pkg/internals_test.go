// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The words of docs/design.md, of a page of docs/internals, and of all of these pages: more is not read.
const (
	mostDesign    = 1500
	mostInternal  = 1200
	mostInternals = 8000
)

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	identifier = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)*$`)
	goWord     = regexp.MustCompile(`\w+`)
)

// TestInternals: the pages for those who change the code are short, and each file, and each name of the code, is there.
func TestInternals(t *testing.T) {
	words, files := source(t)
	pages, err := filepath.Glob("../docs/internals/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	all := 0
	for _, page := range append(pages, "../docs/design.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		size, most := len(strings.Fields(string(text))), mostDesign
		switch filepath.Base(page) {
		case "design.md":
		case "first-screens.md": // a table that a test writes
			most = size
		default:
			all, most = all+size, mostInternal
		}
		if size > most {
			t.Errorf("%s has %d words, more than %d", page, size, most)
		}
		for _, span := range codeSpan.FindAllStringSubmatch(string(text), -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(span[1], "/*"), "/")
			switch {
			case strings.Contains(name, "/") || strings.HasSuffix(name, ".go"):
				if !files[name] && !upstream(name) {
					t.Errorf("%s: no file or directory ends with %s", page, name)
				}
			case identifier.MatchString(name):
				for part := range strings.SplitSeq(name, ".") {
					if !words[part] {
						t.Errorf("%s: %s: nothing in the code is called %s", page, name, part)
					}
				}
			}
		}
	}
	if all > mostInternals {
		t.Errorf("docs/internals has %d words, more than %d", all, mostInternals)
	}
}

// upstream reports whether a path is one of Kubernetes.
func upstream(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return strings.Contains(top, ".") || regexp.MustCompile(`^(garbagecollector|clusterroleaggregation|apiserver|api|tools)$`).MatchString(top)
}

// source returns the names and the words of strings in the code, and the ends of the paths of its files and directories.
func source(t *testing.T) (words, ends map[string]bool) {
	t.Helper()
	words, ends = map[string]bool{}, map[string]bool{}
	for _, top := range []string{"../pkg", "../internal", "../cmd", "../test"} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			for end := strings.TrimPrefix(filepath.ToSlash(path), "../"); end != ""; _, end, _ = strings.Cut(end, "/") {
				ends[end] = true
			}
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			text, err := os.ReadFile(path)
			var s scanner.Scanner // without comments
			s.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, 0)
			for _, kind, literal := s.Scan(); kind != token.EOF; _, kind, literal = s.Scan() {
				for _, word := range goWord.FindAllString(literal, -1) {
					words[word] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return words, ends
}
