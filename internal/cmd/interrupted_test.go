// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// A server of ConfigMaps alone, as far as discovery goes.
const configMapsAlone = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},
"versions":[{"version":"v1","resources":[{"resource":"configmaps","responseKind":{"group":"","version":"v1","kind":"ConfigMap"},
"scope":"Namespaced","singularResource":"configmap","verbs":["delete","get","list","watch"]}]}]}]}`

// What is interrupted while the cluster is read, with discovery or with the lists, says that nothing was
// changed if it might have changed something.
func TestInterruptedReading(t *testing.T) {
	const unchanged = "Interrupted: nothing was changed.\n"
	for words, want := range map[string]string{
		"delete configmap/a --yes":                unchanged,
		"delete configmap --all --dry-run":        unchanged,
		"collect --yes":                           unchanged,
		"collect --dry-run -A --allow-incomplete": unchanged,
		"tree -A": "",
	} {
		for _, at := range []string{"/api", "/api/v1/"} {
			ctx, interrupt := context.WithCancel(t.Context())
			over := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == at || strings.HasPrefix(r.URL.Path, "/api/v1/"):
					interrupt()
					<-over
				case strings.HasPrefix(r.URL.Path, "/api"):
					w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
					_, _ = io.WriteString(w, configMapsAlone)
				default:
					http.NotFound(w, r)
				}
			}))
			var said bytes.Buffer
			code := Run(ctx, append([]string{"kubectl-gc", "--server=" + server.URL, "--kubeconfig=/dev/null"}, strings.Fields(words)...),
				genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &said})
			if code != exitInterrupted || said.String() != want {
				t.Errorf("%s, interrupted at %s: exit %d, %q, want %q", words, at, code, &said, want)
			}
			close(over)
			server.Close()
		}
	}
}

// What an interrupted run leaves behind depends on what it wrote, what is left, and who goes on.
func TestInterrupted(t *testing.T) {
	written, lost := gc.Step{}, gc.Step{Err: io.ErrUnexpectedEOF}
	refused := gc.Step{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", nil)}
	left, deleted := gc.Outcome{Result: gc.Remaining}, gc.Outcome{Result: gc.Deleted}
	const nothing, over, own, unseen = "nothing was changed", "Interrupted. Again.", "The cluster's garbage collector still deletes", "none was seen"
	for _, test := range []struct {
		steps   []gc.Step
		outcome gc.Outcome
		managed bool
		want    string
	}{
		{nil, left, true, nothing},
		{[]gc.Step{refused}, left, true, nothing},
		{[]gc.Step{refused, written}, left, true, own},
		{[]gc.Step{written}, left, false, unseen},
		{[]gc.Step{lost}, left, true, own}, // a write whose answer is lost may have been carried out
		{[]gc.Step{written}, deleted, true, over},
	} {
		report := &gc.Report{Steps: test.steps, Outcomes: []gc.Outcome{test.outcome}}
		got := interrupted(report, test.managed, "Again.")
		if !strings.Contains(got, test.want) || test.want != nothing && !strings.HasSuffix(got, "Again.") {
			t.Errorf("%d steps, %v, managed %t: %q, want %q", len(test.steps), test.outcome.Result, test.managed, got, test.want)
		}
	}
}
