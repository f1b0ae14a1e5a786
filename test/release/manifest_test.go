// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// manifest is the part of a krew manifest that differs between plugins
// (sigs.k8s.io/krew/pkg/index, types.go).
type manifest struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	URI      string `json:"uri"`
	SHA256   string `json:"sha256"`
	Bin      string `json:"bin"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
}

func (p platform) name() string {
	return p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
}

var platforms = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

func readManifest(t *testing.T, file string) manifest {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	slices.SortFunc(m.Spec.Platforms, func(a, b platform) int { return strings.Compare(a.name(), b.name()) })
	return m
}

// TestManifest holds plugin.yaml to the limits of krew's index and to the
// configuration from which releases are made.
func TestManifest(t *testing.T) {
	m := readManifest(t, filepath.Join(root, "plugin.yaml"))
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 {
		t.Errorf("the short description has %d characters, want 1 to 50", n)
	}
	for _, line := range strings.Split(m.Spec.Description+m.Spec.Caveats, "\n") {
		if len(line) > 80 && !strings.HasPrefix(line, "  ") { // a command cannot be wrapped
			t.Errorf("the line has more than 80 characters: %q", line)
		}
	}
	var names []string
	for _, p := range m.Spec.Platforms {
		names = append(names, p.name())
		if !strings.Contains(p.URI, "/download/"+m.Spec.Version+"/") {
			t.Errorf("%s: the URI is not one of %s: %s", p.name(), m.Spec.Version, p.URI)
		}
	}
	if diff := cmp.Diff(platforms, names); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Krews []struct {
			ShortDescription string `json:"short_description"`
			Description      string `json:"description"`
			Homepage         string `json:"homepage"`
		} `json:"krews"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Krews) != 1 {
		t.Fatalf("%d krew manifests are configured, want 1", len(config.Krews))
	}
	want := config.Krews[0]
	got := want
	got.ShortDescription, got.Description, got.Homepage = m.Spec.ShortDescription, m.Spec.Description, m.Spec.Homepage
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plugin.yaml differs from .goreleaser.yaml (-configured +plugin.yaml):\n%s", diff)
	}
}

// TestLicences holds the list of licences to the modules in the binary.
func TestLicences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "THIRD_PARTY_LICENSES.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^\| (\S+) \| (\S+) \| (\S+) \|$`).FindAllStringSubmatch(string(text), -1)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}`, "./cmd/kubectl-gc")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		modules := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(modules)
		for _, module := range slices.Compact(modules) {
			path, version, _ := strings.Cut(strings.TrimSuffix(module, "+incompatible"), " ")
			if path != "" && !slices.ContainsFunc(listed, func(m []string) bool {
				// A library may be a part of a module.
				return (m[1] == path || strings.HasPrefix(m[1], path+"/")) && m[2] == version && m[3] != "Unknown"
			}) {
				t.Errorf("%s: THIRD_PARTY_LICENSES.md does not have %s %s; run make licenses", goos, path, version)
			}
		}
	}
}

// TestContainerfile checks that the image is built with the module's toolchain.
func TestContainerfile(t *testing.T) {
	var versions [2]string
	for i, source := range []struct{ file, pattern string }{
		{"go.mod", `(?m)^toolchain go(\S+)$`}, {"Containerfile", `(?m)^FROM docker\.io/library/golang:(\S+) `},
	} {
		text, err := os.ReadFile(filepath.Join(root, source.file))
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(source.pattern).FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s has nothing like %s", source.file, source.pattern)
		}
		versions[i] = string(match[1])
	}
	if versions[0] != versions[1] {
		t.Errorf("go.mod has toolchain go%s, the Containerfile golang:%s", versions[0], versions[1])
	}
}
