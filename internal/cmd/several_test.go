// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
)

// TestSeveral: several clusters are answered about in one table, the worst first, and one that cannot be asked is a line of it.
func TestSeveral(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "examples", "shop.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := offline.Open(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	shop := offline.NewServer(snapshot)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := shop.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() { _ = response.Body.Close() }()
		for name, values := range response.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}))
	defer up.Close()
	down := httptest.NewServer(nil)
	down.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "idle",
		"clusters": [{"name": "up", "cluster": {"server": %q}}, {"name": "down", "cluster": {"server": %q}}],
		"contexts": [{"name": "idle", "context": {"cluster": "up", "namespace": "kube-public"}}, {"name": "lost", "context": {"cluster": "down"}}, {"name": "shop", "context": {"cluster": "up", "namespace": "shop"}}]}`, up.URL, down.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args string) (code int, out string) {
		var stdout, stderr bytes.Buffer
		code = Run(t.Context(), append([]string{"kubectl-gc"}, strings.Fields(args+" --kubeconfig="+kubeconfig)...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
		return code, stdout.String() + stderr.String()
	}
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"explain-stuck --all-contexts --probe=false", 2, `^CONTEXT +STUCK +UNKNOWN +PROGRESSING +FIRST CAUSE\nshop +[1-9].* no controller .*\nlost +- +- +- +error: .* connection refused\nidle +0 +0 +0\n`},
		{"explain-stuck --contexts=lost,idle --probe=false", 1, `^CONTEXT.*\nlost .*\nidle +0 +0 +0\n(.*\n)*error: 1 of 2 contexts could not be asked\n`},
		{"check --contexts=idle,shop --settle=0", 2, `^CONTEXT +ERRORS +WARNINGS +INFO +FIRST PROBLEM\nshop +1 +0 +1 +configmap/coupon -n shop: no kind Coupon .*\nidle +0 +0 +0\n`},
		{"tree --all-contexts --status=never", 1, `^CONTEXT +NOT READY +DANGLING .*\nlost .*\nshop .*\nidle +0 +0 +0 +0 +[0-9]+\n`},
		{"tree --contexts=shpo", 1, `no context "shpo"(.*\n)*hint: did you mean shop`},
		{"tree --contexts=shop -o name", 1, `goes neither with -o nor with --watch`},
		{"check --contexts=shop --context=idle", 1, `does not go together with --context`},
	} {
		if code, out := run(test.args); code != test.code || !regexp.MustCompile(test.want).MatchString(out) {
			t.Errorf("%s: exit code %d, want %d:\n%s", test.args, code, test.code, out)
		}
	}
}
