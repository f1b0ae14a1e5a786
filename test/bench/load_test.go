// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// handlerTransport answers requests without a network.
type handlerTransport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (t handlerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	t.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// BenchmarkLoad reads, builds, classifies and searches for cycles like the
// graph client, without a network and without a process beside it. To make up
// the pages is in it.
func BenchmarkLoad(b *testing.B) {
	for _, objects := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			server := canned.New(objects)
			b.ReportAllocs()
			for b.Loop() {
				config, stats := cluster.ReadOnly(&rest.Config{Host: "http://canned", Transport: handlerTransport{server}})
				r, err := cluster.NewReader(b.Context(), config, stats, cluster.Options{PageSize: cluster.DefaultPageSize})
				if err != nil {
					b.Fatal(err)
				}
				snapshot, err := r.Snapshot(b.Context(), cluster.Scope{Labels: []string{}})
				if err != nil || snapshot.Len() != server.Objects() || !snapshot.Complete() {
					b.Fatalf("%d objects, %v, not read: %v", snapshot.Len(), err, snapshot.Unlisted())
				}
				if cycles := graph.New(snapshot).Cycles(); len(cycles) > 0 {
					b.Fatalf("%d cycles", len(cycles))
				}
			}
			b.ReportMetric(float64(server.Objects())*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}
