// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The owner of a ConfigMap is in no list that was read whole: its reference dangles.
func Example() {
	maps := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(maps.GroupVersionKind(), meta.RESTScopeNamespace)
	snapshot := &graph.Snapshot{Mapper: mapper, Types: []*graph.Resource{maps}}
	snapshot.MarkListed(maps.GroupResource(), "", "7")
	snapshot.Add(graph.Object{
		Resource: maps, Namespace: "shop", Name: "cart", UID: "2",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "shop", UID: "1"}},
	})
	cart, _ := graph.New(snapshot).Node("2")
	for _, ref := range cart.Owners() {
		fmt.Println(ref.State, ref.Reason)
	}
	// Output: Dangling Absent
}
