// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestReadFinalizers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	text := "finalizers:\n- {finalizer: acme.example/x, product: Acme, leaks: the disk}\n- {finalizer: foregroundDeletion, product: Ours}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	streams, in, _, _ := genericiooptions.NewTestIOStreams()
	in.WriteString(text)
	for _, name := range []string{file, "-"} {
		o := &explainOptions{globals: &globals{IOStreams: streams}, finalizers: name}
		if err := o.readFinalizers(); err != nil {
			t.Fatal(err)
		}
		for finalizer, product := range map[string]string{"acme.example/x": "Acme", "foregroundDeletion": "Ours", "kubernetes.io/pvc-protection": "Kubernetes"} {
			matches := o.catalogue.Find(finalizer, schema.GroupKind{Kind: "PersistentVolumeClaim"})
			if len(matches) == 0 || matches[0].Product != product {
				t.Errorf("%s: %s is of %v, want %s", name, finalizer, matches, product)
			}
		}
	}
}

func TestReadFinalizersErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	for _, c := range []struct{ name, text, want string }{
		{"absent", "", "error: reading --finalizers: open "},
		{"no YAML", "a: [", "error: reading finalizers from FILE: parsing finalizers: "},
		{"another document", "kind: Pod\n", `error: reading finalizers from FILE: want a mapping with a list "finalizers"`},
		{"two mistakes", "finalizers:\n- {finalizer: a/b, product: P, knid: x}\n- {product: Q}\n",
			"error: reading finalizers from FILE: finalizers[0] (a/b): knid: no such field; there are |error: reading finalizers from FILE: finalizers[1]: finalizer: Required value: |hint: docs/finalizers.md describes the file"},
		{"empty", "\n", `error: reading finalizers from FILE: want a mapping with a list "finalizers"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "absent" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := &explainOptions{globals: &globals{}, finalizers: file}
			var out bytes.Buffer
			err := o.readFinalizers()
			if err == nil {
				t.Fatal("no error")
			}
			printError(&out, err, "x")
			for want := range strings.SplitSeq(strings.ReplaceAll(c.want, "FILE", file), "|") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in:\n%s", want, out.String())
				}
			}
		})
	}
}
