// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// BenchmarkDelete deletes all of 100,000 objects, in a cluster of that size and
// in one ten times as large.
func BenchmarkDelete(b *testing.B) {
	const deleted = 100_000
	for _, size := range []struct {
		name string
		n    int
	}{{"of100k", deleted}, {"of1M", 10 * deleted}} {
		b.Run(size.name, func(b *testing.B) {
			s, objects := crowd(size.n)
			b.ReportAllocs()
			for b.Loop() {
				server := simulator.New(s, simulator.Options{Now: start})
				for i := range objects[:deleted] {
					if err := server.Delete(context.Background(), objects[i].Identity(), metav1.DeleteOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				if events, _ := server.Events(context.Background(), false); len(events) != deleted {
					b.Fatal(len(events))
				}
			}
		})
	}
}

// BenchmarkFirstRequest makes a server over 1,000,000 objects and asks it for
// one, which builds its index.
func BenchmarkFirstRequest(b *testing.B) {
	s, objects := crowd(1_000_000)
	last := objects[len(objects)-1]
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		server := simulator.New(s, simulator.Options{Now: start})
		if _, err := server.Get(context.Background(), *last.Resource, last.Namespace, last.Name); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(server)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(objects)), "heap-bytes/object")
}

// BenchmarkNamespace lets the namespace controller and kubelets empty a
// namespace of 100,000 objects, a tenth of them pods.
func BenchmarkNamespace(b *testing.B) {
	s, objects := crowd(90_000)
	w := newWorld()
	namespace := graph.Object{Resource: w.resource("Namespace", ""), Name: "shop", UID: "shop"}
	s.Add(namespace)
	s.Facts = graph.Facts{
		Pods: map[types.UID]graph.PodFacts{}, Nodes: map[string]bool{"n1": true}, NodesRead: true,
		Namespaces: map[types.UID]graph.NamespaceFacts{"shop": {Finalizers: []string{"kubernetes"}}},
	}
	for i := range 10_000 {
		pod := objects[i]
		pod.Resource, pod.UID = w.resource("Pod", ""), "pod-"+pod.UID
		s.Add(pod)
		s.Facts.Pods[pod.UID] = graph.PodFacts{NodeName: "n1", Phase: "Running", TerminationGracePeriodSeconds: int64(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		server := simulator.New(s, simulator.Options{Now: start, Actors: simulator.Actors{Kubelets: true, NamespaceController: true}})
		if err := server.Delete(context.Background(), namespace.Identity(), metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
		var err error
		for err == nil {
			_, err = server.Events(context.Background(), true)
		}
		if _, fate := server.Object("shop"); fate.State != simulator.Gone {
			b.Fatal(fate)
		}
	}
}
