// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// What client-go logs of an answer that breaks off is in the error, and nowhere else.
func TestLogsAreNotShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"kind":`)
	}))
	defer server.Close()
	logged, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = logged
	var said bytes.Buffer
	code := Run(t.Context(), []string{"kubectl-gc", "tree", "-A", "--server=" + server.URL, "--kubeconfig=/dev/null", "--request-timeout=5s"},
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &said})
	klog.ErrorS(errors.New("an error"), "in a log")
	klog.Flush()
	os.Stderr = stderr
	text, err := os.ReadFile(logged.Name())
	if err != nil || len(text) > 0 {
		t.Errorf("logged: %q, %v", text, err)
	}
	if code != exitError || !strings.HasPrefix(said.String(), "error: ") {
		t.Errorf("exit %d\n%s", code, &said)
	}
}
