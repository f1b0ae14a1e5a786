// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Nodes are sorted by their identities, whatever order they were in and whether they are
// objects.
func TestSortNodes(t *testing.T) {
	r := Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(r.GroupVersionKind(), meta.RESTScopeNamespace)
	s := Snapshot{Mapper: mapper}
	for i := range 20 {
		s.Add(Object{
			Resource: &r, Namespace: "shop", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: fmt.Sprint(i, "-owner"), UID: types.UID(fmt.Sprint(i%7, "-missing"))}},
		})
	}
	all := slices.Collect(New(&s).Nodes())
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfDistinct(rapid.SampledFrom(all), func(n Node) int32 { return n.index }).Draw(t, "nodes")
		if rapid.Bool().Draw(t, "by place") {
			slices.SortFunc(nodes, func(a, b Node) int { return int(a.index - b.index) })
		}
		want := slices.SortedFunc(slices.Values(nodes), Node.Compare)
		if sortNodes(nodes); !slices.Equal(nodes, want) {
			t.Fatalf("got %v, want %v", nodes, want)
		}
	})
}
