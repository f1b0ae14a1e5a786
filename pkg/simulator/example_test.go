// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// A pod is deleted on a node that reports, and its kubelet ends it.
func Example() {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod := graph.Object{
		Resource:  &graph.Resource{GroupVersionResource: pods, Kind: "Pod", Namespaced: true},
		Namespace: "shop", Name: "web-0", UID: "1", ResourceVersion: "7",
		Finalizers: []string{"example.com/drain"},
	}
	snapshot := &graph.Snapshot{Facts: graph.Facts{
		Pods:  map[types.UID]graph.PodFacts{"1": {NodeName: "n1", Phase: "Running", TerminationGracePeriodSeconds: 30}},
		Nodes: map[string]bool{"n1": true}, NodesRead: true,
	}}
	snapshot.Add(pod)

	ctx := context.Background()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := simulator.New(snapshot, simulator.Options{Now: began, Actors: simulator.Actors{Kubelets: true}})
	if err := server.Delete(ctx, pod.Identity(), metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
	}
	for {
		events, err := server.Events(ctx, true)
		if err != nil {
			fmt.Println(err)
			break
		}
		for _, e := range events {
			fmt.Println(server.Now().Sub(began), e.Object.Identity(), *e.Object.DeletionGracePeriodSeconds)
		}
	}
	_, fate := server.Object("1")
	fmt.Println(fate.State, fate.Unknown)
	// Output:
	// 0s Pod/shop/web-0 30
	// 32s Pod/shop/web-0 0
	// nothing will change without an outside actor
	// Terminating [unclear whether a controller removes the finalizer example.com/drain]
}
