// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/unicode"

	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// TestReadManifest reads all documents of a text, whatever stands between them, or none.
func TestReadManifest(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"JSON documents", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}} {"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}`, "a b c"},
		{"YAML that looks like JSON", "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b}}", "a b"},
		{"JSON, and then YAML", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}` + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n", "a b"},
		{"comments, and nothing", "# a\n---\n\n---\napiVersion: v1\r\nkind: Secret\r\nmetadata:\r\n  name: a\r\n---\n# b\n", "a"},
		{"a byte-order mark", "\ufeff" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}`, "a b"},
		{"UTF-16", utf16("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"), "a b"},
		{"no text", "", ""},
		{"a list with a name, and one of another kind", `{"apiVersion":"v1","kind":"List","metadata":{"name":"l"},"items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]}` +
			`{"apiVersion":"v1","kind":"Things","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}]}`, "a b"},
		{"a list in a list", `{"apiVersion":"v1","kind":"List","items":[{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}]}`, "a"},
		{"an object whose kind ends as that of a list", `{"apiVersion":"example.com/v1","kind":"AllowList","metadata":{"name":"a"}}`, "a"},
		{"a list of what is no object", `{"apiVersion":"v1","kind":"List","items":["a"]}`, "error"},
		{"an empty object", "{}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}", "a"},
		{"values", "replicas: 3\nimage: web\n", "error"},
		{"a kustomization", "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [a.yaml]}", "error"},
		{"a kustomization that does not say so", "resources: [a.yaml]", "error"},
		{"what is no document", "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\nplain", "error"},
		{"what is no JSON after some", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}} {"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}} x`, "error"},
	} {
		items, err := uninstall.ReadManifest([]byte(c.text))
		var names []string
		for i := range items {
			names = append(names, items[i].Name)
		}
		if err != nil {
			names = []string{"error"}
		}
		if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
}

// utf16 is a text as some shells write it.
func utf16(text string) string {
	encoded, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		panic(err)
	}
	return encoded
}
