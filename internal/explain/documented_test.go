// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
)

// TestKindsAreDocumentedAndShown: every kind of cause has a row in the documentation,
// with its meaning, and every row is of one. Each is shown by a scenario of this package or a session on
// a real control plane.
func TestKindsAreDocumentedAndShown(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain-causes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		rows[match[1]] = match[2]
	}
	shown := sessions(t)
	seen := map[string]bool{}
	for _, k := range finding.Kinds() {
		switch {
		case seen[k.ID]:
			t.Errorf("%s is declared twice", k.ID)
		case k.Meaning == "":
			t.Errorf("%s means nothing", k.ID)
		case rows[k.ID] != k.Meaning:
			t.Errorf("docs/explain-causes.md has no row for %s with its meaning, %s", k.ID, k.Meaning)
		case !regexp.MustCompile(`(^|[^a-z-])` + k.ID + `([^a-z-]|$)`).MatchString(shown):
			t.Errorf("no scenario and no session shows %s", k.ID)
		}
		seen[k.ID] = true
	}
	for id := range rows {
		if !seen[id] {
			t.Errorf("docs/explain-causes.md has a row for %s, which is no kind", id)
		}
	}
}

// sessions returns the text of the sessions of explain-stuck on real control planes,
// and the scenarios and tests of this package.
func sessions(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	add := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".txt") && !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		text.Write(data)
		return err
	}
	for _, dir := range []string{"../../test/e2e/testdata/explain", "."} {
		if err := filepath.WalkDir(dir, add); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
