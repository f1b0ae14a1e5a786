// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Who holds a lease, by what its holder calls itself.
func TestLeaderOf(t *testing.T) {
	pod := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "uid": "0a1b2c3d"}, "spec": map[string]any{"nodeName": "n1.example.com"}, "status": map[string]any{"podIP": "10.0.0.7"},
		}}
	}
	own := []*unstructured.Unstructured{pod("operator-7d9f6c5b4-abcde")}
	w := &Workload{name: "operator", resource: &graph.Resource{Kind: "Deployment"}}
	for holder, want := range map[string]leader{
		"operator-7d9f6c5b4-abcde_5f1e": ownPod,
		"operator-7d9f6c5b4-abcde":      ownPod,
		"":                              anybody,
		"external-10.0.0.7":             anybody, // its address
		"id-0a1b2c3d":                   anybody, // its UID
		"n1_5f1e":                       anybody, // its node, for a pod in the network of that
		"operator-66c8d9f7b-zzzzz_5f1e": formerPod,
		"operator-4_5f1e":               formerPod, // of a StatefulSet
		"operator-web_5f1e":             anybody,
		"laptop_5f1e":                   stranger,
		"laptop":                        anybody, // no form that says who
	} {
		if i, got := leaderOf(holder, w, own); got != want || (i >= 0) != (want == ownPod) {
			t.Errorf("%q: %v (%d), want %v", holder, got, i, want)
		}
	}
}

// A host's name has at most 63 characters: what a pod's was cut to is not the name of a former pod.
func TestLeaderOfLongName(t *testing.T) {
	name := strings.Repeat("x", 60)
	pod := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name + "-12b9f6c5b4-abcde"}}}
	if _, got := leaderOf(name+"-12_5f1e", &Workload{name: name, resource: &graph.Resource{Kind: "Deployment"}}, []*unstructured.Unstructured{pod}); got != anybody {
		t.Errorf("%v, want %v", got, anybody)
	}
}

// What a lease says of a workload is more than what its pods do, but for the leases of strangers, which say nothing
// against a pod that works unless they are renewed.
func TestLed(t *testing.T) {
	deployment := &Workload{resource: &graph.Resource{Kind: "Deployment"}}
	set := &Workload{resource: &graph.Resource{Kind: "StatefulSet"}}
	for _, test := range []struct {
		name  string
		held  *held
		of    *Workload
		pods  string
		want  string
		leads bool
	}{
		{"no lease", nil, deployment, Alive, Alive, false},
		{"its pod renews it", &held{by: ownPod, state: evidence.LeaseFresh, runs: true}, deployment, Unsure, Alive, true},
		{"a pod of it that has stopped held it a moment ago", &held{by: ownPod, state: evidence.LeaseFresh}, deployment, Dead, Dead, false},
		{"its ready pod does not renew it", &held{by: ownPod, state: evidence.LeaseStale}, deployment, Alive, Dead, false},
		{"nor does that of a StatefulSet, whose name is an older pod's, too", &held{by: ownPod, state: evidence.LeaseStale}, set, Alive, Unsure, false},
		{"a stranger renews it", &held{by: stranger, state: evidence.LeaseFresh}, deployment, Alive, Unsure, false},
		{"somebody renews that of a dead one", &held{by: anybody, state: evidence.LeaseFresh}, deployment, Dead, Unsure, false},
		{"somebody renews that of a living one", &held{by: anybody, state: evidence.LeaseFresh}, deployment, Alive, Alive, false},
		{"nobody renews what a stranger held", &held{by: stranger, state: evidence.LeaseStale}, deployment, Alive, Unsure, false},
		{"nor what was that of a dead one", &held{by: formerPod, state: evidence.LeaseStale}, deployment, Dead, Dead, false},
	} {
		got := test.held.led(test.of, State{Liveness: test.pods})
		if got.Liveness != test.want || got.leads != test.leads {
			t.Errorf("%s: %v, leads: %t; want %v, %t", test.name, got.Liveness, got.leads, test.want, test.leads)
		}
	}
}
