// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
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

// What goes into a digest is the JSON of the writes, one a line, whatever is in them, and
// a list of the covered UIDs: a digest that was noted yesterday must hold today.
func TestDigestIsOfJSON(t *testing.T) {
	ugly := "a\"b\\c<d>&e\u2028\x01é\xff/%"
	grace, policy := int64(30), metav1.DeletePropagationForeground
	for _, step := range []gc.Step{
		{Action: gc.ActionDelete, Object: graph.Object{Resource: planConfigMaps, Namespace: "shop", Name: "a", UID: "u", ResourceVersion: "1"}},
		{Action: gc.ActionDelete, Object: graph.Object{Resource: planWidgets, Namespace: ugly, Name: ugly, UID: types.UID(ugly), ResourceVersion: ugly},
			Options: metav1.DeleteOptions{PropagationPolicy: &policy, GracePeriodSeconds: &grace}},
		{Action: gc.ActionRemoveOwnerReferences, Object: graph.Object{Resource: planNamespaces, Name: "x & y", UID: "v", ResourceVersion: "2"},
			Patch: gc.Patch{RemoveOwners: []types.UID{"o", types.UID(ugly)}, Unblock: true, RemoveFinalizer: ugly}},
		{Action: gc.ActionRemoveOwnerReferences, Object: graph.Object{Resource: planNamespaces, Name: "y", UID: "w"}, Patch: gc.Patch{RemoveOwners: []types.UID{}}},
	} {
		s := &graph.Snapshot{}
		s.Add(step.Object)
		p := &Plan{Job: &Job{}, Graph: graph.New(s), Report: &gc.Report{Steps: []gc.Step{step}}}
		id := step.Object.Identity()
		want, err := json.Marshal([]any{
			step.Action, id.URLPath(), id.UID, step.Object.ResourceVersion, step.Options.PropagationPolicy, step.Options.GracePeriodSeconds,
			step.Patch.RemoveOwners, step.Patch.Unblock, step.Patch.RemoveFinalizer,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.appendStep(nil, &step)); got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestLose: what is lost with a plan is part of what its digest stands for.
func TestLose(t *testing.T) {
	lose := func(uids ...types.UID) string {
		p := Plan{Digest: "sha256:1"}
		p.Lose(uids)
		return p.Digest
	}
	none, one, other, both := lose(), lose("a"), lose("b"), lose("a", "b")
	if none != "sha256:1" || one == none || other == one || both == one || one != lose("a") {
		t.Errorf("digests: %s, %s, %s, %s", none, one, other, both)
	}
}
