// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStamp checks what "make build" tells the linker, in repositories made for
// it: the version, the commit, its date and the state of the tree.
func TestStamp(t *testing.T) {
	for _, program := range []string{"git", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
	dir := t.TempDir()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, stamp(t, dir)); diff != "" {
			t.Errorf("what the linker is told (-want +got):\n%s", diff)
		}
	}
	t.Run("without git", func(t *testing.T) {
		check(t, map[string]string{"Version": "", "Commit": "", "Date": "", "Tree": ""})
	})
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "Makefile")
	git(t, dir, "commit", "--quiet", "--message=first")
	commit := git(t, dir, "rev-parse", "HEAD")
	const date = "2026-02-03T03:05:06Z"
	t.Run("without a tag", func(t *testing.T) {
		check(t, map[string]string{"Version": "v0.0.0-20260203030506-" + commit[:12], "Commit": commit, "Date": date, "Tree": "clean"})
	})
	git(t, dir, "tag", "v1.2.3")
	t.Run("with a tag", func(t *testing.T) {
		check(t, map[string]string{"Version": "v1.2.3", "Commit": commit, "Date": date, "Tree": "clean"})
	})
	if err := os.WriteFile(filepath.Join(dir, "changed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("changed", func(t *testing.T) {
		check(t, map[string]string{"Version": "v1.2.3", "Commit": commit, "Date": date, "Tree": "dirty"})
	})
}

var stamped = regexp.MustCompile(`-X github\.com/kubectl-gc/kubectl-gc/internal/cmd\.release(\w+)=([^ ']*)`)

// stamp returns what the linker would be told in the directory.
func stamp(t *testing.T, dir string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, match := range stamped.FindAllStringSubmatch(run(t, dir, "make", "--just-print", "build"), -1) {
		values[match[1]] = match[2]
	}
	return values
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(run(t, dir, "git", args...))
}

// run runs a command in the directory, with a git that knows no configuration
// but this, and commits at a time in another zone.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
		"GIT_COMMITTER_DATE=2026-02-03T04:05:06+01:00")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}
