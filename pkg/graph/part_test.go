// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Parts that are in others are not read besides, and of many namespaces all are.
func TestParts(t *testing.T) {
	pods, nodes := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "nodes"}
	shop := graph.Part{Namespace: "shop"}
	parts := graph.Parts{}.With(shop, graph.Part{Resource: pods, Namespace: "shop"}, graph.Part{Resource: nodes}, graph.Part{Resource: nodes})
	if diff := cmp.Diff(graph.Parts{shop, {Resource: nodes}}, parts); diff != "" {
		t.Error(diff)
	}
	for part, want := range map[graph.Part]bool{
		{Resource: pods, Namespace: "shop"}: true, {Resource: pods, Namespace: "shop", Labels: "a"}: true, shop: true, {Resource: nodes}: true,
		{Resource: pods}: false, {Resource: pods, Labels: "a"}: false, {Namespace: "bar"}: false, {}: false,
	} {
		if parts.Contain(part) != want {
			t.Errorf("%v contain %v: %v", parts, part, !want)
		}
		if !graph.Parts(nil).Contain(part) || graph.Parts([]graph.Part{}).Contain(part) {
			t.Errorf("%v: all contains it, and nothing does not", part)
		}
	}
	of := parts.Of(&graph.Resource{GroupVersionResource: pods.WithVersion("v1"), Namespaced: true})
	if diff := cmp.Diff(graph.Parts{{Resource: pods, Namespace: "shop"}}, of); diff != "" {
		t.Error(diff)
	}
	if of := parts.Of(&graph.Resource{GroupVersionResource: schema.GroupVersionResource{Resource: "volumes"}}); len(of) > 0 {
		t.Errorf("without a namespace: %v", of)
	}
	for i := range 9 {
		parts = parts.With(graph.Part{Resource: pods, Namespace: fmt.Sprint("team", i)})
	}
	if diff := cmp.Diff(graph.Parts{shop, {Resource: nodes}, {Resource: pods}}, parts); diff != "" {
		t.Error(diff)
	}
	if parts = parts.With(graph.Part{}); parts != nil {
		t.Errorf("with the cluster: %v", parts)
	}
}
