// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxBinary is what a binary may have at most, in bytes.
const maxBinary = 52_000_000

// names are those under which a release offers the plugin to krew: the first in
// krew's public index, the second in indexes of one's own.
var names = []string{"ownership-gc", "gc"}

// A dist is the directory of a release, with one of its manifests.
type dist struct {
	dir      string
	manifest manifest
	file     string // of the manifest
}

// link is the name of krew's link to the program after kubectl-.
func (d *dist) link() string { return strings.ReplaceAll(d.manifest.Metadata.Name, "-", "_") }

// archive returns the file of a platform's archive.
func (d *dist) archive(p platform) string { return filepath.Join(d.dir, path.Base(p.URI)) }

// openDist returns the release to test with the manifest of the plugin's name,
// or skips the test.
func openDist(t *testing.T, name string) *dist {
	t.Helper()
	d := &dist{dir: os.Getenv("KUBECTL_GC_DIST")}
	if d.dir == "" {
		t.Skip("KUBECTL_GC_DIST names no release; make release-check builds one and tests it")
	}
	d.file = filepath.Join(d.dir, "krew", name+".yaml")
	d.manifest = readManifest(t, d.file)
	if d.manifest.Metadata.Name != name {
		t.Fatalf("%s is the manifest of %s", d.file, d.manifest.Metadata.Name)
	}
	return d
}

// forNames runs a test of a release under each of its names.
func forNames(t *testing.T, test func(t *testing.T, d *dist)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, openDist(t, name)) })
	}
}

// TestManifests checks that a release has a manifest for each name, and no other.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(openDist(t, names[0]).dir, "krew", "*"))
	if err != nil || len(files) != len(names) {
		t.Errorf("the release has the manifests %v, want those of %v (%v)", files, names, err)
	}
}

// TestReleasedManifest checks that the release's manifests are plugin.yaml but
// for names, versions and checksums.
func TestReleasedManifest(t *testing.T) {
	forNames(t, func(t *testing.T, d *dist) {
		want := withoutName(readManifest(t, filepath.Join(root, "plugin.yaml")))
		if diff := cmp.Diff(want, withoutName(d.manifest)); diff != "" {
			t.Errorf("the release's manifest differs from plugin.yaml (-plugin.yaml +release):\n%s", diff)
		}
	})
}

// withoutName returns a manifest without its name, version and checksums.
func withoutName(m manifest) manifest {
	version := strings.TrimPrefix(m.Spec.Version, "v")
	for i := range m.Spec.Platforms {
		p := &m.Spec.Platforms[i]
		p.SHA256, p.URI = "", strings.ReplaceAll(p.URI, version, "VERSION")
	}
	file := strings.ReplaceAll(m.Metadata.Name, "-", "_")
	m.Spec.Caveats = strings.NewReplacer("kubectl-"+file, "LINK", "kubectl_complete-"+file, "COMPLETER").Replace(m.Spec.Caveats)
	m.Spec.Version, m.Metadata.Name = "", ""
	return m
}

// TestArchives checks what is in the archives, and that their checksums are
// those that are published.
func TestArchives(t *testing.T) {
	d := openDist(t, names[0])
	checksums, err := os.ReadFile(filepath.Join(d.dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.manifest.Spec.Platforms {
		t.Run(p.name(), func(t *testing.T) {
			content, err := os.ReadFile(d.archive(p))
			if err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256(content))
			if sum != p.SHA256 {
				t.Errorf("the manifest's checksum is %s, the archive has %s", p.SHA256, sum)
			}
			if line := sum + "  " + filepath.Base(d.archive(p)) + "\n"; !strings.Contains(string(checksums), line) {
				t.Errorf("checksums.txt does not have %q:\n%s", line, checksums)
			}
			sizes, err := entries(d.archive(p), content)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{
				p.Bin, "LICENSE", "THIRD_PARTY_LICENSES.md", "kubectl_complete-gc",
				"man/man1/kubectl-gc.1", "man/man1/kubectl-gc-explain-stuck.1",
			} {
				if sizes[name] == 0 {
					t.Errorf("%s is absent or empty; there are %v", name, sizes)
				}
			}
			if size := sizes[p.Bin]; p.name() == "linux/amd64" && size > maxBinary {
				t.Errorf("the binary has %d bytes, want at most %d", size, maxBinary)
			}
		})
	}
}

// entries returns the sizes of the files in an archive, by its name a zip file
// or a compressed tar file.
func entries(name string, content []byte) (map[string]int64, error) {
	sizes := map[string]int64{}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			sizes[f.Name] = int64(f.UncompressedSize64)
		}
		return sizes, nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return sizes, nil
		}
		if err != nil {
			return nil, err
		}
		sizes[header.Name] = header.Size
	}
}

// TestSBOM checks that each platform has a bill of materials with the modules
// of the plugin.
func TestSBOM(t *testing.T) {
	d := openDist(t, names[0])
	for _, p := range d.manifest.Spec.Platforms {
		base := strings.TrimSuffix(strings.TrimSuffix(d.archive(p), ".zip"), ".tar.gz")
		text, err := os.ReadFile(base + ".cdx.json")
		if err != nil {
			t.Error(err)
			continue
		}
		var document struct {
			Format     string `json:"bomFormat"`
			Components []struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, c := range document.Components {
			versions[c.Name] = c.Version
		}
		if document.Format != "CycloneDX" || versions["k8s.io/client-go"] == "" || versions["std"] == "" {
			t.Errorf("%s: format %q, components %v", p.name(), document.Format, versions)
		}
	}
}
