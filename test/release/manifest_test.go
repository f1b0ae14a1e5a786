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
	var have []string
	for _, p := range m.Spec.Platforms {
		have = append(have, p.name())
		if !strings.Contains(p.URI, "/download/"+m.Spec.Version+"/") {
			t.Errorf("%s: the URI is not one of %s: %s", p.name(), m.Spec.Version, p.URI)
		}
	}
	if diff := cmp.Diff(platforms, have); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Krews []struct {
			Name             string `json:"name"`
			ShortDescription string `json:"short_description"`
			Description      string `json:"description"`
			Homepage         string `json:"homepage"`
		} `json:"krews"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Krews) != len(names) {
		t.Fatalf("%d krew manifests are configured, want %v", len(config.Krews), names)
	}
	for i, want := range config.Krews {
		got := want
		got.Name, got.ShortDescription, got.Description, got.Homepage = names[i], m.Spec.ShortDescription, m.Spec.Description, m.Spec.Homepage
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("plugin.yaml differs from .goreleaser.yaml (-configured +plugin.yaml):\n%s", diff)
		}
	}
}

// TestLicences holds the list of licences to the modules in the binary.
func TestLicences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "THIRD_PARTY_LICENSES.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^\| (\S+) \| (\S+) \| (\S+) \|$`).FindAllStringSubmatch(string(text), -1)
	lists := func(path, version string) bool {
		return slices.ContainsFunc(listed, func(m []string) bool {
			// A library may be a part of a module.
			return (m[1] == path || strings.HasPrefix(m[1], path+"/")) && (version == "" || m[2] == version) && m[3] != "Unknown"
		})
	}
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
			if path != "" && !lists(path, version) {
				t.Errorf("%s: THIRD_PARTY_LICENSES.md does not have %s %s; run make licenses", goos, path, version)
			}
		}
	}
	// Who imports deletiontest gets nothing else, but this project and what comes with controller-runtime (Apache-2.0 and BSD-3-Clause).
	imported, err := os.ReadFile(filepath.Join(root, "deletiontest", "testdata", "modules.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`^(github\.com/kubectl-gc/|sigs\.k8s\.io/controller-runtime@|github\.com/evanphx/json-patch/v5@)`)
	for _, module := range strings.Fields(string(imported)) {
		if path, _, _ := strings.Cut(module, "@"); !known.MatchString(module) && !lists(path, "") {
			t.Errorf("deletiontest: the licence of %s is not known", module)
		}
	}
}

// releaser is the part of .goreleaser.yaml that other files repeat.
type releaser struct {
	Builds []struct {
		Flags   []string `json:"flags"`
		LDFlags []string `json:"ldflags"`
	} `json:"builds"`
	Archives []struct {
		Files []struct {
			Source string `json:"src"`
		} `json:"files"`
	} `json:"archives"`
}

func readReleaser(t *testing.T) releaser {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config releaser
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Builds) != 1 || len(config.Archives) != 1 {
		t.Fatalf("%d builds and %d archives are configured, want 1 and 1", len(config.Builds), len(config.Archives))
	}
	return config
}

// TestContainerfile checks that the image's context can be an unpacked archive of
// a release: the recipe copies nothing that an archive for Linux does not have.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, file := range readReleaser(t).Archives[0].Files {
		have = append(have, file.Source)
	}
	for _, p := range readManifest(t, filepath.Join(root, "plugin.yaml")).Spec.Platforms {
		if p.name() == "linux/amd64" {
			have = append(have, p.Bin)
		}
	}
	copies := regexp.MustCompile(`(?m)^(?:COPY|ADD) (.+) /$`).FindAllStringSubmatch(string(text), -1)
	if len(copies) != 1 {
		t.Fatalf("%d lines of the Containerfile copy, want 1", len(copies))
	}
	for _, name := range strings.Fields(copies[0][1]) {
		if !slices.Contains(have, name) {
			t.Errorf("the Containerfile copies %s; an archive has %v", name, have)
		}
	}
}

// TestBuildFlags checks that the Makefile builds as a release is built.
func TestBuildFlags(t *testing.T) {
	command := run(t, root, "make", "--just-print", "build")
	build := readReleaser(t).Builds[0]
	for _, flag := range slices.Concat(build.Flags, build.LDFlags) {
		flag = strings.ReplaceAll(flag, "{{ .ModulePath }}", "github.com/kubectl-gc/kubectl-gc")
		if strings.HasPrefix(flag, "-X ") {
			name, _, _ := strings.Cut(flag, "=")
			flag = name + "=" // the values are those of the release
		}
		if !strings.Contains(command, flag) {
			t.Errorf("make build does without %s, which a release has:\n%s", flag, command)
		}
	}
}
