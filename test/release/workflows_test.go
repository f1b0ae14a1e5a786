// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWorkflows has actionlint check the workflows, the one that the
// documentation shows, and against action.yml the use of the action.
func TestWorkflows(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles actionlint")
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	files = append(files, filepath.Join(root, "docs", "examples", "github.yml"))
	for i, file := range files {
		if files[i], err = filepath.Abs(file); err != nil {
			t.Fatal(err)
		}
	}
	// It finds action.yml from the directory of a workflow upwards.
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", filepath.Join(root, "hack", "tools"), "tool", "actionlint", "-color=false"}, files...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}
