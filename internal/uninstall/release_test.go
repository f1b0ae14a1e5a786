// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

const record = `{"name": "web", "namespace": "shop", "apply_method": "ssa", "info": {"status": "uninstalled"},
	"config": {"password": "hunter2"}, "manifest": "# Source: a\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\n# nothing\n",
	"hooks": [{"manifest": "{kind: Job, apiVersion: batch/v1, metadata: {name: h}}", "events": ["pre-delete"]}],
	"chart": {"files": [{"name": "crds/c.yml", "data": "e2tpbmQ6IEN1c3RvbVJlc291cmNlRGVmaW5pdGlvbiwgYXBpVmVyc2lvbjogeC92MX0="}, {"name": "crds/README.md", "data": "aHVudGVyMg=="}]}}`

// TestDecodeRelease reads records as Helm writes them, and as it did before it compressed them.
func TestDecodeRelease(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(record)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"compressed": packed.Bytes(), "plain": []byte(record)} {
		r, err := uninstall.DecodeRelease([]byte(base64.StdEncoding.EncodeToString(text) + "\n"))
		if err != nil {
			t.Fatal(name, err)
		}
		if len(r.Items) != 1 || r.Items[0].Name != "a" || len(r.Hooks) != 1 || r.Hooks[0].Events[0] != "pre-delete" || len(r.CRDs) != 1 || !r.Uninstalled || r.Version != uninstall.Helm4 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestDecodeReleaseErrors: what is wrong is said without a word of the record.
func TestDecodeReleaseErrors(t *testing.T) {
	for _, text := range []string{"", "hunter2", "{\"config\": hunter2}", "\x1f\x8b\x08hunter2", `{"manifest": "hunter2: [", "name": "web"}`, `{"manifest": "kind: hunter2"}`} {
		_, err := uninstall.DecodeRelease([]byte(base64.StdEncoding.EncodeToString([]byte(text))))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := uninstall.DecodeRelease([]byte("*")); err == nil {
		t.Error("no base64")
	}
}
