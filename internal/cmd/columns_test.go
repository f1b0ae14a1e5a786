// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

// What -o names as columns, and what a path finds.
func TestColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "columns")
	if err := os.WriteFile(file, []byte("KIND   NAME\n.kind  .metadata.name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"kind": "Pod", "metadata": map[string]any{
		"name": "p", "labels": map[string]any{"app.kubernetes.io/name": "x"},
		"ownerReferences": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}},
	}}
	for _, test := range []struct {
		output, values string
		fails          bool
	}{
		{"custom-columns=A:.kind,B:metadata.name,C:{.metadata.name}", "Pod p p", false},
		{"custom-columns=A:.metadata.ownerReferences[*].name,B:.spec.x", "a,b <none>", false},
		{`custom-columns=A:.metadata.labels.app\.kubernetes\.io/name`, "x", false},
		{"custom-columns-file=" + file, "Pod p", false},
		{"custom-columns", "", true},
		{"custom-columns=", "", true},
		{"custom-columns=A", "", true},
		{"custom-columns=A:{.kind", "Pod", false},
		{"custom-columns=A:.metadata[", "", true},
		{"custom-columns-file=" + file + "x", "", true},
		{"json", "", false},
	} {
		_, columns, err := columnsOf(test.output)
		got := ""
		for _, c := range columns {
			if got != "" {
				got += " "
			}
			got += valueAt(c.value, object)
		}
		if got != test.values || (err != nil) != test.fails {
			t.Errorf("%s: got %q, error %v", test.output, got, err)
		}
	}
}

// Numbers are ordered by size, and what is missing comes first.
func TestCompareValues(t *testing.T) {
	ordered := []string{none, "2", "10", "2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", "a", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := compareValues(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("compareValues(%s, %s) = %d", a, b, got)
			}
		}
	}
}
