// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file has its name when it is complete. Until then what was there before stays, and nothing else is left.
func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.snapshot")
	write := func(text string) *newFile {
		t.Helper()
		file, err := createFile(path, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil || file.written != int64(len(text)) {
			t.Fatal(file.written, err)
		}
		return file
	}
	holds := func(want string) {
		t.Helper()
		text, err := os.ReadFile(path)
		entries, _ := os.ReadDir(filepath.Dir(path))
		if string(text) != want || len(entries) != 1 {
			t.Errorf("%q, want %q; %v beside it; %v", text, want, entries, err)
		}
	}
	first := write("first")
	if _, err := os.Stat(path); err == nil {
		t.Error("a file that is not complete has its name")
	}
	if err := first.keep(); err != nil {
		t.Fatal(err)
	}
	first.discard()
	holds("first")
	write("second").discard()
	holds("first")
	third := write("third")
	if err := third.keep(); err != nil {
		t.Fatal(err)
	}
	holds("third")
}

func TestNewFileElsewhere(t *testing.T) {
	var stdout bytes.Buffer
	file, err := createFile("-", &stdout, false)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write([]byte("text"))
	if err := file.keep(); err != nil || stdout.String() != "text" {
		t.Errorf("standard output has %q; %v", stdout.String(), err)
	}
	dir := t.TempDir()
	if _, err := createFile(dir, nil, false); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	missing := filepath.Join(dir, "missing", "file")
	if _, err := createFile(missing, nil, false); err == nil || !strings.Contains(err.Error(), missing+": no such file") {
		t.Errorf("a directory that is not there: %v", err) // no word of a temporary file
	}
}
