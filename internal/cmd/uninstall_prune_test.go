// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestManifestsIn follows a link to a directory, and never takes one for empty of which it reads nothing.
func TestManifestsIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"v2/a.yaml", "v2/b.json", "v2/c.txt", "v2/more/d.yml", "deep/more/d.yml", "other/x.YAML", "flat/a.yaml", "flat/more/c.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("v2", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../v2/more", filepath.Join(dir, "flat/linked")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		directory string
		recursive bool
		want      []string
		below     []string
	}{
		{"v2", false, []string{"v2/a.yaml", "v2/b.json"}, []string{"v2/more/d.yml"}},
		{"current", false, []string{"v2/a.yaml", "v2/b.json"}, []string{"v2/more/d.yml"}},
		{"flat", false, []string{"flat/a.yaml"}, []string{"flat/linked/d.yml"}},
		{"flat", true, []string{"flat/a.yaml"}, []string{"flat/linked/d.yml"}},
		{"current", true, []string{"v2/a.yaml", "v2/b.json", "v2/more/d.yml"}, nil},
		{"deep", false, nil, nil},
		{"other", false, nil, nil},
	} {
		files, below, err := manifestsIn(filepath.Join(dir, c.directory), c.recursive)
		for _, all := range [][]string{files, below} {
			for i := range all {
				all[i], _ = filepath.Rel(dir, all[i])
			}
		}
		if diff := cmp.Diff(c.want, files) + cmp.Diff(c.below, below, cmpopts.EquateEmpty()); diff != "" || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v\n%s", c.directory, err, diff)
		}
	}
}

// What a directory has below it that is not read is an error if it may be a manifest.
func TestNoneIn(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, c := range []struct {
		name, text string
		none       bool
	}{
		{"a.yaml", object, false},
		{"a.yaml", object + "---\nreplicas: 2\n", false},
		{"a.yaml", object + "data: {{ .Values.data }}\n", false},
		{"kustomization.yaml", "resources: [a.yaml]\n", false},
		{"empty.yaml", "# nothing\n", true},
		{"workflow.yml", "on: push\njobs: {}\n", true},
		{"dashboard.json", `{"title":"a"}`, true},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (&globals{}).noneIn("dir", []string{file}); (err == nil) != c.none {
			t.Errorf("%s with %q: %v", c.name, c.text, err)
		}
	}
}
