// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// volumes is a cluster whose only volume is that of a claim.
type volumes struct {
	evidence.Cluster
	err error
}

func (v volumes) List(context.Context, schema.GroupVersionResource, string) ([]unstructured.Unstructured, error) {
	o := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"persistentVolumeReclaimPolicy": "Delete", "claimRef": map[string]any{"uid": "uid-claim"},
	}}}
	o.SetName("volume")
	return []unstructured.Unstructured{o}, v.err
}

// kinds of the objects of these tests, by their words.
var kinds = map[string]*graph.Resource{
	"claim": {GroupVersionResource: evidence.Claims, Kind: "PersistentVolumeClaim", Namespaced: true},
	"cm":    {GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
	"set":   {GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet", Namespaced: true},
	"cr":    {GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true},
	"root":  {GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "roots"}, Kind: "Root"},
}

// owned reads a world: each word is an object "KIND", "KIND!" that is being deleted, with ">OWNER" for each owner. The first is stuck. Of
// types in unlisted nothing was read.
func owned(text string, unlisted ...string) *unstick.Look {
	mapper := meta.NewDefaultRESTMapper(nil)
	snapshot := &graph.Snapshot{Mapper: mapper}
	for word, kind := range kinds {
		scope := meta.RESTScopeRoot
		if kind.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(kind.GroupVersion().WithKind(kind.Kind), kind.GroupVersionResource, kind.GroupVersionResource, scope)
		snapshot.Types = append(snapshot.Types, kind)
		if !strings.Contains(strings.Join(unlisted, " "), word) {
			snapshot.MarkListed(kind.GroupResource(), "", "1")
		}
	}
	var stuck graph.Identity
	for i, word := range strings.Fields(text) {
		parts := strings.Split(word, ">")
		name, deleted := strings.CutSuffix(parts[0], "!")
		o := graph.Object{Resource: kinds[strings.TrimRight(name, "2")], Name: name, UID: types.UID("uid-" + name)}
		if o.Resource.Namespaced {
			o.Namespace = "s"
		}
		if deleted {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"x.io/hold"}
		}
		for _, owner := range parts[1:] {
			kind := kinds[strings.TrimRight(owner, "2")]
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner, UID: types.UID("uid-" + owner)})
		}
		snapshot.Add(o)
		if i == 0 {
			stuck = o.Identity()
		}
	}
	op := remedy.PatchOf(stuck, remedy.Test("/metadata/finalizers/0", "x.io/hold"), remedy.Remove("/metadata/finalizers/0"))
	c := &explain.Cause{Object: stuck, Verdict: explain.Stuck, Remedies: []explain.Remedy{{Risk: explain.Safe, Effect: "end it", Action: explain.Action{Operation: &op}}}}
	report := &explain.Report{Causes: []*explain.Cause{c}, Objects: []explain.Explanation{{Object: stuck, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c}}}}}
	namespaces := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	snapshot.Add(graph.Object{Resource: namespaces, Name: "s", UID: "uid-s"})
	return &unstick.Look{Report: report, Graph: graph.New(snapshot)}
}

// What the garbage collector deletes after what is freed is at stake: its data is kept first, and where that cannot be found out, the way out
// is dangerous.
func TestOwnedData(t *testing.T) {
	const kept, free, unsure = "1: volume safe, then end it", "1: ", "NotAllowed needs dangerous"
	for name, test := range map[string]struct {
		world    string
		unlisted []string
		err      error
		want     string
	}{
		"owned":                                     {world: "cr! claim>cr", want: kept},
		"owned from outside of namespaces":          {world: "root! claim>root", want: kept},
		"owned by a StatefulSet":                    {world: "set! claim>set", want: kept},
		"through another":                           {world: "cr! set>cr claim>set", want: kept},
		"through one outside":                       {world: "root! cr>root claim>cr", want: kept},
		"not owned":                                 {world: "cr! claim", want: free},
		"owned by another":                          {world: "cr! cr2 claim>cr2", want: free},
		"also owned by one that stays":              {world: "cr! cm claim>cr>cm", want: free},
		"through one that another owner keeps":      {world: "cr! cm set>cr>cm claim>set", want: free},
		"also owned by one that goes":               {world: "cr! cm! claim>cr>cm", want: kept},
		"also owned by one that goes with it":       {world: "cr! set>cr claim>cr>set", want: kept},
		"also owned by one that is gone":            {world: "cr! claim>cr>cm", want: kept},
		"being deleted itself":                      {world: "cr! claim!", want: kept},
		"the claims were not read":                  {world: "cr!", unlisted: []string{"claim"}, want: unsure},
		"its owner was not read":                    {world: "cr! claim>set", unlisted: []string{"set"}, want: unsure},
		"one of its owners was not read":            {world: "cr! claim>cr>set", unlisted: []string{"set"}, want: kept},
		"its owner was not read, but another stays": {world: "cr! cm claim>cm>set", unlisted: []string{"set"}, want: free},
		"the volumes could not be read":             {world: "cr! claim>cr", err: errors.New("no"), want: unsure},
		"volumes of others could not be read":       {world: "cr! claim", err: errors.New("no"), want: free},
	} {
		l := owned(test.world, test.unlisted...)
		l.FindStakes(t.Context(), volumes{err: test.err})
		want := test.want
		if want == free {
			want += l.Report.Objects[0].Object.Name + " safe"
		}
		if got := describe(&unstick.Choose(l, &unstick.Options{Allow: explain.Disruptive}).Choices[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
