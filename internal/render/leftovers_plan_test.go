// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// TestReadUninstallPlan takes one document alone, of which nothing was added.
func TestReadUninstallPlan(t *testing.T) {
	d := render.UninstallPlan{Cluster: "c", Tool: "helm", Name: "web", Of: uninstall.Deliverers{{Kind: "Release", Name: "web"}}}
	d.APIVersion, d.Kind = render.APIVersion, "UninstallPlan"
	d.Digest = preview.Checksum(d)
	inJSON, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	j, y := string(inJSON)+"\n", string(inYAML)
	const more, field = "it has more than one document", "it has fields that an UninstallPlan does not have, or one twice"
	for text, want := range map[string]string{
		j: "", y: "", "---\n" + y: "", y + "---\n": "", "": "it is not an UninstallPlan, as -o json and -o yaml print it",
		j + j: more, j + "{}": more, y + "---\n" + y: more, y + "---\nfoo: bar\n": more, j + "---\nfoo: bar\n": more,
		strings.Replace(j, "{", `{"foo": "bar",`, 1): field,
		y + "foo: bar\n": field,
		strings.Replace(j, "{", `{"tool": "helm",`, 1): field,
		strings.Replace(j, `"c"`, `"x"`, 1):            "it was changed since it was saved, or saved by another version: its digest is not that of its content",
	} {
		_, err := render.ReadUninstallPlan([]byte(text))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
