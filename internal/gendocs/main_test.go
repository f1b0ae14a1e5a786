// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreCurrent holds docs/commands to the commands.
func TestPagesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	if err := generate("markdown", dir, "kubectl-gc"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readAll(t, "../../docs/commands"), readAll(t, dir)); diff != "" {
		t.Errorf("docs/commands differs from the commands; run make docs (-page +command):\n%s", diff)
	}
}

// TestHouseIsCurrent holds docs/house.md to the imports.
func TestHouseIsCurrent(t *testing.T) {
	page, err := house("../..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readAll(t, "../../docs")["house.md"], page); diff != "" {
		t.Errorf("docs/house.md differs from the imports; run make docs (-page +imports):\n%s", diff)
	}
}

// TestManPages checks that every command has a man page, dated as told.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	dir := t.TempDir()
	if err := generate("man", dir, "kubectl-gc"); err != nil {
		t.Fatal(err)
	}
	pages := readAll(t, dir)
	for _, name := range []string{"kubectl-gc.1", "kubectl-gc-tree.1", "kubectl-gc-explain-stuck.1", "kubectl-gc-completion-bash.1"} {
		if text := pages[name]; !strings.Contains(text, `"Jan 1970"`) || !strings.Contains(text, ".SH OPTIONS") {
			t.Errorf("%s is absent, has another date or no options:\n%.400s", name, text)
		}
	}
}

// readAll returns the files of a directory by name.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}
