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

func resourceOf(group, plural, kind string, namespaced bool) *graph.Resource {
	return &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}, Kind: kind, Namespaced: namespaced}
}

var (
	planNamespaces = resourceOf("", "namespaces", "Namespace", false)
	planCRDs       = resourceOf("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false)
	planConfigMaps = resourceOf("", "configmaps", "ConfigMap", true)
	planWidgets    = resourceOf("example.com", "widgets", "Widget", true)
)

// digestOf is the digest of a plan whose outcomes are as given, over a snapshot of
// these and other objects.
func digestOf(outcomes []gc.Outcome, others ...graph.Object) string {
	s := &graph.Snapshot{}
	for i := range outcomes {
		s.Add(outcomes[i].Object)
	}
	for _, o := range others {
		s.Add(o)
	}
	return (&Plan{Job: &Job{}, Graph: graph.New(s), Report: &gc.Report{Outcomes: outcomes}}).digest()
}

// A digest stands for the objects that a plan speaks for, by UID. What is added to
// them, or to what goes with them, makes another one; what comes elsewhere does not.
func TestDigestCovers(t *testing.T) {
	object := func(r *graph.Resource, namespace, uid, version string) graph.Object {
		return graph.Object{Resource: r, Namespace: namespace, Name: uid, UID: types.UID(uid), ResourceVersion: version}
	}
	being := func(o graph.Object) graph.Object {
		o.DeletionTimestamp = &metav1.Time{}
		return o
	}
	namespace, crd := object(planNamespaces, "", "shop", "1"), object(planCRDs, "", "widgets.example.com", "1")
	inShop, elsewhere := object(planConfigMaps, "shop", "c", "1"), object(planConfigMaps, "other", "d", "1")
	widget := object(planWidgets, "other", "w", "1")
	for _, test := range []struct {
		name    string
		outcome gc.Outcome
		added   graph.Object
		covered bool
	}{
		{"in a namespace that goes", gc.Outcome{Object: namespace, Result: gc.Deleted}, inShop, true},
		{"in one that would remain", gc.Outcome{Object: being(namespace), Result: gc.Remaining}, inShop, true},
		{"in one that may remain", gc.Outcome{Object: being(namespace), Result: gc.Unknown}, inShop, true},
		{"in one that stays", gc.Outcome{Object: namespace, Result: gc.OwnerReferenceRemoved}, inShop, false},
		{"in one that nobody can decide about", gc.Outcome{Object: namespace, Result: gc.Unknown}, inShop, false},
		{"in another", gc.Outcome{Object: namespace, Result: gc.Deleted}, elsewhere, false},
		{"an instance of a type that goes", gc.Outcome{Object: crd, Result: gc.Deleted}, widget, true},
		{"of another", gc.Outcome{Object: crd, Result: gc.Deleted}, elsewhere, false},
	} {
		outcomes := []gc.Outcome{test.outcome}
		if changed := digestOf(outcomes) != digestOf(outcomes, test.added); changed != test.covered {
			t.Errorf("%s: the digest changes: %t", test.name, changed)
		}
		later := test.added
		later.ResourceVersion = "2"
		if digestOf(outcomes, test.added) != digestOf(outcomes, later) {
			t.Errorf("%s: the digest is of a version", test.name)
		}
	}
	for _, result := range []gc.Result{gc.Deleted, gc.Orphaned, gc.OwnerReferenceRemoved, gc.Remaining, gc.Unknown, gc.Untouched} {
		changed := digestOf(nil) != digestOf([]gc.Outcome{{Object: elsewhere, Result: result}})
		if changed == (result == gc.Untouched) {
			t.Errorf("%s: the digest changes: %t", result, changed)
		}
	}
	if digestOf([]gc.Outcome{{Object: inShop, Result: gc.Deleted}, {Object: elsewhere, Result: gc.Deleted}}) !=
		digestOf([]gc.Outcome{{Object: elsewhere, Result: gc.Unknown}, {Object: inShop, Result: gc.Deleted}}) {
		t.Error("the digest depends on more than which objects there are")
	}
}

// Writes that differ in anything differ in what a digest has of them, whatever is in their names.
func TestDigestTellsWritesApart(t *testing.T) {
	ugly := `a""b`
	grace, policy := int64(30), metav1.DeletePropagationForeground
	seen := map[string]int{}
	for i, change := range []func(*gc.Step){
		func(*gc.Step) {},
		func(s *gc.Step) { s.Object.Resource = planConfigMaps },
		func(s *gc.Step) { s.Object.Namespace = "other" },
		func(s *gc.Step) { s.Object.Name, s.Object.UID = `a"`, `"b` },
		func(s *gc.Step) { s.Object.UID = types.UID(ugly + ugly) },
		func(s *gc.Step) { s.Object.ResourceVersion = ugly },
		func(s *gc.Step) { s.Action = gc.ActionDelete },
		func(s *gc.Step) { s.Options.PropagationPolicy = &policy },
		func(s *gc.Step) { s.Options.GracePeriodSeconds = &grace },
		func(s *gc.Step) { s.Options.GracePeriodSeconds = new(int64(0)) },
		func(s *gc.Step) { s.Patch.Unblock = true },
		func(s *gc.Step) { s.Patch.RemoveFinalizer = "a" },
		func(s *gc.Step) { s.Patch.RemoveOwners = []types.UID{"a"} },
		func(s *gc.Step) { s.Patch.RemoveOwners = []types.UID{"a", "b"} },
		func(s *gc.Step) { s.Patch.RemoveOwners = []types.UID{`a""b`} },
	} {
		step := gc.Step{Action: gc.ActionRemoveOwnerReferences, Object: graph.Object{Resource: planWidgets, Namespace: ugly, Name: ugly, UID: types.UID(ugly), ResourceVersion: "1"}}
		change(&step)
		s := &graph.Snapshot{}
		s.Add(step.Object)
		p := &Plan{Job: &Job{}, Graph: graph.New(s)}
		line := string(p.appendStep(nil, &step))
		if before, known := seen[line]; known {
			t.Errorf("writes %d and %d are both %s", before, i, line)
		}
		seen[line] = i
	}
}

// TestLose: what is lost with a plan is part of what its digest stands for.
func TestLose(t *testing.T) {
	lose := func(uids ...types.UID) string {
		p, ids := Plan{Digest: "sha256:1"}, []graph.Identity(nil)
		for _, uid := range uids {
			ids = append(ids, graph.Identity{UID: uid})
		}
		p.Lose(ids, nil)
		return p.Digest
	}
	none, one, other, both := lose(), lose("a"), lose("b"), lose("a", "b")
	if none != "sha256:1" || one == none || other == one || both == one || one != lose("a") {
		t.Errorf("digests: %s, %s, %s, %s", none, one, other, both)
	}
}
