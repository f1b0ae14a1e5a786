// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func marshal(t *testing.T, document *render.Graph) string {
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func TestDocument(t *testing.T) {
	g := loadCluster(t)
	golden(t, "graph.json", marshal(t, render.NewGraph(g.Snapshot(), everything(g).Forest())))
}

func TestEmptyDocument(t *testing.T) {
	want := `{
  "kind": "Graph",
  "apiVersion": "kubectl-gc/v1",
  "complete": true,
  "unlisted": [],
  "roots": [],
  "nodes": []
}
`
	if diff := cmp.Diff(want, marshal(t, render.NewGraph(newSnapshot(), graph.Forest{}))); diff != "" {
		t.Error(diff)
	}
}

// A node has no list that is null, and no owner a reason that is empty.
func TestDocumentHasNoNullLists(t *testing.T) {
	g := loadCluster(t)
	var document struct{ Nodes []map[string]any }
	if err := json.Unmarshal([]byte(marshal(t, render.NewGraph(g.Snapshot(), everything(g).Forest()))), &document); err != nil {
		t.Fatal(err)
	}
	for _, n := range document.Nodes {
		for _, list := range []string{"finalizers", "owners"} {
			if _, ok := n[list].([]any); !ok {
				t.Errorf("%s of %s is %v", list, n["uid"], n[list])
			}
		}
		for _, owner := range n["owners"].([]any) {
			reason, given := owner.(map[string]any)["reason"]
			if solid := owner.(map[string]any)["state"] == "Solid"; given == solid || reason == "" {
				t.Errorf("owner of %s: %v", n["uid"], owner)
			}
		}
	}
}

func TestDocumentTimes(t *testing.T) {
	east := time.FixedZone("east", 2*3600)
	s := newSnapshot()
	s.Add(graph.Object{
		Resource: resources["Pod"], Namespace: "shop", Name: "p", UID: "p",
		CreationTimestamp: metav1.Time{Time: now.In(east)}, DeletionTimestamp: &metav1.Time{Time: now.Add(time.Hour).In(east)},
	})
	got := marshal(t, render.NewGraph(s, everything(graph.New(s)).Forest()))
	for _, want := range []string{`"creationTimestamp": "2026-01-02T03:04:05Z"`, `"deletionTimestamp": "2026-01-02T04:04:05Z"`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in:\n%s", want, got)
		}
	}
}

// Roots, nodes and what was not listed are sorted; only what is shown is in
// the document.
func TestDocumentOrder(t *testing.T) {
	g := loadCluster(t)
	s := g.Snapshot()
	for _, gr := range []string{"secrets", "configmaps", "widgets.example.com", "deployments.apps"} {
		s.MarkUnlisted(graph.Unlisted{GroupVersionResource: schema.ParseGroupResource(gr).WithVersion("v1"), Namespace: "shop", Reason: graph.Timeout})
	}
	document := render.NewGraph(s, graph.SelectDependents(0, mustNode(t, g, "web"), mustNode(t, g, "cert"), mustNode(t, g, "stuck")).Forest())
	var unlisted, nodes []string
	for _, u := range document.Unlisted {
		unlisted = append(unlisted, u.Group+"/"+u.Resource+"/"+u.Namespace)
	}
	for _, n := range document.Nodes {
		nodes = append(nodes, n.Kind+"/"+n.Name)
	}
	if !slices.IsSorted(unlisted) || len(unlisted) != 5 || document.Complete {
		t.Errorf("complete %v, unlisted %v", document.Complete, unlisted)
	}
	if diff := cmp.Diff([]string{"ConfigMap/stuck", "Deployment/web", "Secret/cert"}, nodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]types.UID{"stuck", "web", "cert"}, document.Roots); diff != "" {
		t.Error(diff)
	}
}

// The document is a runtime.Object, and changing the copy does not change it.
func TestDocumentIsAnObject(t *testing.T) {
	document := render.NewGraph(newSnapshot(), graph.Forest{})
	gvk := document.GetObjectKind().GroupVersionKind()
	if want := (schema.GroupVersionKind{Group: "kubectl-gc", Version: "v1", Kind: "Graph"}); gvk != want {
		t.Errorf("kind %v, want %v", gvk, want)
	}
	document.DeepCopyObject().(*render.Graph).Kind = "Other"
	if document.Kind != "Graph" {
		t.Errorf("kind %s", document.Kind)
	}
}
