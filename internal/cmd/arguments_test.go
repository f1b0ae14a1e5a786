// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// snapshotOfShop is what the fuzz tests read, so that none asks a server.
var snapshotOfShop = filepath.Join("..", "..", "examples", "shop.snapshot")

// fuzzed runs a command and returns what is wrong with the way in which it ends.
func fuzzed(t *testing.T, words []string) {
	var out, errOut bytes.Buffer
	argv := append([]string{"kubectl-gc"}, words...)
	code := Run(t.Context(), argv, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	switch {
	case code < 0 || code > 3:
		t.Errorf("%q: exit code %d", words, code)
	case code != 0 && out.Len()+errOut.Len() == 0:
		t.Errorf("%q: exit code %d, and not a word", words, code)
	case code == 1 && !strings.Contains(errOut.String(), "error: "):
		t.Errorf("%q: exit code 1 without an error:\n%s", words, &errOut)
	case strings.ContainsAny(errOut.String(), "\x1b\x00\u202e\u009b") || !utf8.Valid(errOut.Bytes()):
		t.Errorf("%q: what drives a terminal in %q", words, &errOut)
	}
}

// Whatever the arguments are, a command ends as commands do.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"tree", "tree deployment/web", "tree -A --depth=2 --types=pods", "tree pod -l app=web,tier!=x", "check --strict", "check -o sarif",
		"explain-stuck -A", "explain-stuck cart/basket -o yaml", "graph --scope=cluster", "graph -o mermaid", "delete deployment/web --cascade=orphan",
		"delete configmaps --all --order=safe", "collect -A", "tre", "tree deploymint/web", "tree --depth=-7", "tree a/b/c", "delete -o", "tree --owners --dependents",
	} {
		f.Add(line)
	}
	allowed := []string{"tree", "check", "explain-stuck", "graph", "delete", "collect"}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) == 0 || !slices.Contains(allowed, words[0]) || slices.ContainsFunc(words, leadsOutside) {
			return
		}
		if words[0] == "delete" || words[0] == "collect" {
			words = append(words, "--dry-run=client")
		}
		fuzzed(t, append(words, "--from="+snapshotOfShop))
	})
}

// leadsOutside reports whether an argument may read or write a file, ask a server, or wait.
func leadsOutside(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	switch {
	case !strings.HasPrefix(word, "-"):
		return false
	case strings.Contains(word, "file"):
		return true
	case !strings.HasPrefix(word, "--"):
		return name == "" || !strings.Contains("AlLno", name[:1]) || name[:1] == "A" && len(name) > 1 // -Af is -A -f
	}
	return slices.ContainsFunc([]string{
		"kustomize", "kubeconfig", "from", "cache-dir", "certificate-authority", "client-certificate", "client-key", "finalizers",
		"watch", "settle", "vmodule", "server",
	}, func(flag string) bool { return strings.HasPrefix(flag, name) || strings.HasPrefix(name, flag) })
}

// Whatever a selector, a column or a path is, a list is written or the mistake is named.
func FuzzSelectors(f *testing.F) {
	for _, words := range [][3]string{
		{"app=web", "NAME:.metadata.name", ".metadata.creationTimestamp"}, {"a in (b,c),!d", "A:.kind,B:{.metadata.labels}", "{.metadata.name}"},
		{"a=", "A", ".items[*]"}, {"(", ":", "{"}, {"a==b==c", "A:.a[", "..name"}, {"\xff", "\x1b:.kind", "{range .items}"},
	} {
		f.Add(words[0], words[1], words[2])
	}
	f.Fuzz(func(t *testing.T, selector, columns, path string) {
		fuzzed(t, []string{"tree", "-A", "-l", selector, "-o", "custom-columns=" + columns, "--sort-by=" + path, "--from=" + snapshotOfShop})
	})
}
