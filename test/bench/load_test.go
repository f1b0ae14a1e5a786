// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// handlerTransport answers requests without a network. The body of an answer is
// read while the handler writes it.
type handlerTransport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (t handlerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	a := &answer{response: &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: request}, out: out}
	a.begun, a.begin = context.WithCancel(request.Context())
	go func() {
		t.ServeHTTP(a, request)
		a.begin()
		_ = out.Close()
	}()
	<-a.begun.Done()
	return a.response, request.Context().Err()
}

// answer is an http.ResponseWriter. The response is the client's from the first
// byte of the body on.
type answer struct {
	response *http.Response
	out      *io.PipeWriter
	begun    context.Context
	begin    context.CancelFunc
}

func (a *answer) Header() http.Header    { return a.response.Header }
func (a *answer) WriteHeader(status int) { a.response.StatusCode = status }

func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	return a.out.Write(p)
}

// BenchmarkLoad reads, builds, classifies and checks like the graph client,
// without a network and without a process beside it. To make up the pages is in
// it.
func BenchmarkLoad(b *testing.B) {
	for _, objects := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			server := canned.New(objects)
			b.ReportAllocs()
			for b.Loop() {
				config, stats := cluster.ReadOnly(&rest.Config{Host: "http://canned", Transport: handlerTransport{server}})
				r, err := cluster.NewReader(b.Context(), config, stats, cluster.Options{PageSize: cluster.AutoPageSize})
				if err != nil {
					b.Fatal(err)
				}
				snapshot, err := r.Snapshot(b.Context(), cluster.Scope{Labels: []string{}})
				if err != nil || snapshot.Len() != server.Objects() || !snapshot.Complete() {
					b.Fatalf("%d objects, %v, not read: %v", snapshot.Len(), err, snapshot.Unlisted())
				}
				if report := check.Check(graph.New(snapshot), check.Options{}); len(report.Findings) > 0 {
					b.Fatalf("%d owner references are wrong", len(report.Findings))
				}
			}
			b.ReportMetric(float64(server.Objects())*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}
