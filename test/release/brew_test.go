// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestCask reads the cask as Homebrew does, for each system and processor that it has, and does with the archive for this machine what
// Homebrew does: it unpacks the archive and links the programs. Homebrew itself is not run.
func TestCask(t *testing.T) {
	d := openDist(t, names[0])
	text, err := os.ReadFile(filepath.Join(d.dir, "homebrew", "Casks", "kubectl-gc.rb"))
	if err != nil {
		t.Fatal(err)
	}
	cask := string(text)
	if version := `version "` + strings.TrimPrefix(d.manifest.Spec.Version, "v") + `"`; !strings.Contains(cask, version) {
		t.Errorf("the cask has no %s", version)
	}
	brewOS := map[string]string{"darwin": "on_macos", "linux": "on_linux"}
	brewCPU := map[string]string{"amd64": "on_intel", "arm64": "on_arm"}
	for _, p := range d.manifest.Spec.Platforms {
		system, processor, _ := strings.Cut(p.name(), "/")
		if brewOS[system] == "" {
			continue
		}
		block := regexp.MustCompile(`(?s)` + brewOS[system] + ` do.*?` + brewCPU[processor] + ` do\s+url "([^"]*)"\s+sha256 "([^"]*)"`).FindStringSubmatch(cask)
		if len(block) == 0 || strings.ReplaceAll(block[1], "#{version}", strings.TrimPrefix(d.manifest.Spec.Version, "v")) != p.URI || block[2] != p.SHA256 {
			t.Errorf("%s: the cask has %q, want %s with %s", p.name(), block, p.URI, p.SHA256)
		}
		if p.name() == runtime.GOOS+"/"+runtime.GOARCH {
			d.brew(t, cask, d.archive(p))
		}
	}
}

// brew links what the cask names, and runs it.
func (d *dist) brew(t *testing.T, cask, archive string) {
	t.Helper()
	staged, bin := t.TempDir(), t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", staged).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, named := range regexp.MustCompile(`(?m)^  (binary|manpage) "(.*?)"$`).FindAllStringSubmatch(cask, -1) {
		if _, err := os.Stat(filepath.Join(staged, named[2])); err != nil {
			t.Error(err)
		}
		if named[1] == "binary" {
			if err := os.Symlink(filepath.Join(staged, named[2]), filepath.Join(bin, named[2])); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := exec.Command("sh", "-c", "kubectl-gc version --client && kubectl_complete-gc tre")
	run.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Client Version: "+d.manifest.Spec.Version+"\n") || !strings.Contains(string(out), "\ntree") {
		t.Errorf("the linked programs say %v\n%s", err, out)
	}
}
