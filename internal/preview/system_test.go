// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Of what belongs to the system, a run may write to what its preview writes to or
// sees go, and to nothing else.
func TestGuardOfTheSystem(t *testing.T) {
	configmaps := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	in := func(namespace, name string) graph.Object {
		return graph.Object{Resource: configmaps, Namespace: namespace, Name: name, UID: types.UID(name)}
	}
	terminating := in("kube-system", "terminating")
	terminating.DeletionTimestamp = &metav1.Time{}
	snapshot := &graph.Snapshot{}
	snapshot.Add(terminating)
	report := &gc.Report{
		Steps: []gc.Step{{Object: in("kube-system", "written")}},
		Outcomes: []gc.Outcome{
			{Object: in("kube-system", "goes"), Result: gc.Deleted},
			{Object: in("kube-system", "stays"), Result: gc.Untouched},
			{Object: in("kube-system", "undecided"), Result: gc.Unknown},
			{Object: terminating, Result: gc.Remaining},
		},
	}
	refuses := (&Plan{Job: &Job{}, Graph: graph.New(snapshot), Report: report}).Guard()
	for _, o := range []graph.Object{in("kube-system", "written"), in("kube-system", "goes"), in("shop", "late")} {
		if err := refuses(gc.ActionDelete, o); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	again := in("kube-system", "written")
	again.UID = "another"
	for _, o := range []graph.Object{
		in("kube-system", "late"), in("kube-system", "stays"), in("kube-system", "undecided"), terminating, again,
		{Resource: planNamespaces, Name: "default", UID: "default"},
	} {
		if refuses(gc.ActionDelete, o) == nil {
			t.Errorf("%s may be written to", o.Name)
		}
	}
}
