// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// handlerTransport answers requests without a network.
type handlerTransport struct {
	http.Handler
	buffers sync.Pool
}

// RoundTrip implements http.RoundTripper.
func (t *handlerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	a := &answer{transport: t, header: http.Header{}, status: http.StatusOK}
	if a.body, _ = t.buffers.Get().(*bytes.Buffer); a.body == nil {
		a.body = &bytes.Buffer{}
	}
	t.ServeHTTP(a, request)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: a, Request: request}, nil
}

// answer is an http.ResponseWriter, and then the body of the response. Its memory
// is used again when that is closed.
type answer struct {
	transport *handlerTransport
	header    http.Header
	status    int
	body      *bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) Read(p []byte) (int, error)  { return a.body.Read(p) }

func (a *answer) Close() error {
	a.body.Reset()
	a.transport.buffers.Put(a.body)
	a.body = &bytes.Buffer{}
	return nil
}

// BenchmarkLoad reads, builds, classifies and checks like the graph client,
// without a network and without a process beside it. To make up the pages is in
// it.
func BenchmarkLoad(b *testing.B) {
	for _, objects := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			server := canned.New(objects)
			transport := &handlerTransport{Handler: server}
			b.ReportAllocs()
			for b.Loop() {
				config, stats := cluster.ReadOnly(&rest.Config{Host: "http://canned", Transport: transport})
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
