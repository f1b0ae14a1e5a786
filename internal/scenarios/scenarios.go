// SPDX-License-Identifier: Apache-2.0

// Package scenarios runs tests that are written as text: what is given and what
// the code is to answer, side by side, so that a reader can check both by eye.
package scenarios

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the code answers into the scenario files")

// Run runs the cases in testdata/*.txt as subtests. A case begins with a line
// "== title"; what precedes the first is for readers. answer gets what follows
// and returns it with the answers of the code in place of those that are there.
// With -update these are written into the file.
func Run(t *testing.T, answer func(t *testing.T, body string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runFile(t, file, answer) })
	}
}

func runFile(t *testing.T, file string, answer func(t *testing.T, body string) string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(data), "\n== ")
	for i, text := range cases[1:] {
		title, body, _ := strings.Cut(text, "\n")
		t.Run(title, func(t *testing.T) {
			got := answer(t, body)
			if *update {
				cases[i+1] = title + "\n" + got
			} else if diff := cmp.Diff(strings.Split(body, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
	if out := []byte(strings.Join(cases, "\n== ")); *update && !bytes.Equal(out, data) {
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Golden compares a text with a file, or with -update writes the file.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s, which -update writes (-want +got):\n%s", file, diff)
	}
}
