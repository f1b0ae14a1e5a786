// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// fan returns a snapshot of an owner with that many blocking dependents.
func fan(dependents int) *graph.Snapshot {
	configMaps := graph.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true,
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configMaps.GroupVersionKind(), meta.RESTScopeNamespace)
	s := &graph.Snapshot{Mapper: mapper}
	blocks := true
	add := func(name string, owners ...metav1.OwnerReference) {
		s.Add(graph.Object{
			Resource: &configMaps, Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1", OwnerReferences: owners,
		})
	}
	add("owner")
	for i := range dependents {
		add(fmt.Sprintf("dependent-%07d", i), metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner", BlockOwnerDeletion: &blocks,
		})
	}
	s.MarkListed(configMaps.GroupResource(), "", "1")
	return s
}

// policies are those of a deletion.
var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
}

// makeOf makes the plan of deleting the owner of a fan.
func makeOf(tb testing.TB, s *graph.Snapshot, policy metav1.DeletionPropagation, dependents int) {
	owner, _ := s.Object("owner")
	job := &Job{Policy: policy, Targets: []graph.Identity{owner.Identity()}}
	p, err := Make(context.Background(), job, World{Graph: graph.New(s), Now: time.Now()})
	if err != nil || len(p.Report.Outcomes) != dependents+1 {
		tb.Fatalf("%v, %v", p, err)
	}
}

// BenchmarkPreview measures the plan of a cascade, from the snapshot on.
func BenchmarkPreview(b *testing.B) {
	for _, policy := range policies {
		for _, dependents := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", policy, dependents), func(b *testing.B) {
				s := fan(dependents)
				b.ReportAllocs()
				for b.Loop() {
					makeOf(b, s, policy, dependents)
				}
			})
		}
	}
}

// A plan takes less than eight allocations for each object that goes.
func TestAllocations(t *testing.T) {
	const dependents = 2_000
	for _, policy := range policies {
		s := fan(dependents)
		each := testing.AllocsPerRun(3, func() { makeOf(t, s, policy, dependents) }) / dependents
		if each >= 8 {
			t.Errorf("%s: %.1f allocations for each object", policy, each)
		}
	}
}
