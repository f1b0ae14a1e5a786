// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// TestExplainWatchOutlivesTheServer stops the API server under a watch, and
// starts it again: the watch says so, goes on, and ends when the object is gone.
func TestExplainWatchOutlivesTheServer(t *testing.T) {
	nightly.Only(t, "the API server is restarted")
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{})
	cp.Kubectl(t, "create", "configmap", "held", "--from-literal=a=b") // fields of an empty object have no managers
	cp.Kubectl(t, "patch", "configmap", "held", "--type=merge", `-p={"metadata":{"finalizers":["watch.invalid/hold"]}}`)
	cp.Kubectl(t, "delete", "configmap", "held", "--wait=false")
	var stdout, stderr synced
	ended := make(chan int)
	go func() {
		argv := []string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig, "configmap/held", "--watch", "-o", "wide"}
		ended <- gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
	}()
	stdout.waitFor(t, "[fin-manual]")
	if err := cp.Stop("apiserver"); err != nil {
		t.Fatal(err)
	}
	stderr.waitFor(t, "warning: could not look again: ")
	if err := cp.Start("apiserver"); err != nil {
		t.Fatal(err)
	}
	cp.Kubectl(t, "patch", "configmap", "held", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	stdout.waitFor(t, "NOT FOUND")
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// synced is a buffer for several goroutines.
type synced struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Write(p)
}

// String returns what was written so far.
func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.String()
}

// waitFor returns when the text was written.
func (s *synced) waitFor(t *testing.T, text string) {
	t.Helper()
	for range 3000 {
		if strings.Contains(s.String(), text) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%q was not written: %s", text, s.String())
}
