// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Ranges have each number under its type and its namespace, in order, whether or not the
// order puts together what belongs together.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := []*graph.Resource{{Kind: "A"}, {Kind: "B"}, {Kind: "C"}}
		for i, resource := range []string{"as", "bs", "bs"} { // of which two are kinds of one type
			types[i].GroupVersionResource = schema.GroupVersionResource{Version: "v1", Resource: resource}
		}
		type place struct {
			resource  *graph.Resource
			namespace string
		}
		order := rapid.SliceOf(rapid.Custom(func(t *rapid.T) place {
			return place{rapid.SampledFrom(types).Draw(t, "type"), rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "namespace")}
		})).Draw(t, "order")
		ranges := graph.RangesOf(func(yield func(*graph.Resource, string) bool) {
			for _, p := range order {
				if !yield(p.resource, p.namespace) {
					return
				}
			}
		})
		ofType, in := map[schema.GroupResource][]int32{}, map[string][]int32{}
		for i, p := range order {
			ofType[p.resource.GroupResource()] = append(ofType[p.resource.GroupResource()], int32(i))
			if p.namespace != "" {
				in[p.namespace] = append(in[p.namespace], int32(i))
			}
		}
		for _, resource := range []string{"as", "bs", "none"} {
			r := schema.GroupResource{Resource: resource}
			if got := slices.Collect(ranges.OfType(r)); !slices.Equal(got, ofType[r]) {
				t.Fatalf("%s: %v, want %v", resource, got, ofType[r])
			}
		}
		for _, namespace := range []string{"", "x", "y", "none"} {
			if got := slices.Collect(ranges.InNamespace(namespace)); !slices.Equal(got, in[namespace]) {
				t.Fatalf("in %q: %v, want %v", namespace, got, in[namespace])
			}
		}
		seen := map[schema.GroupResource]bool{}
		for r := range ranges.Types() {
			if seen[r.GroupResource()] || ofType[r.GroupResource()] == nil {
				t.Fatalf("%s is there twice, or not at all", r.GroupResource())
			}
			seen[r.GroupResource()] = true
		}
		if len(seen) != len(ofType) {
			t.Fatalf("%d types, want %d", len(seen), len(ofType))
		}
	})
}
