// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// resources are the types that the test cluster serves, by kind.
var resources = map[string]*graph.Resource{
	"Pod":              resource("v1", "pods", "Pod", true),
	"Secret":           resource("v1", "secrets", "Secret", true),
	"ConfigMap":        resource("v1", "configmaps", "ConfigMap", true),
	"PersistentVolume": resource("v1", "persistentvolumes", "PersistentVolume", false),
	"Deployment":       resource("apps/v1", "deployments", "Deployment", true),
	"ReplicaSet":       resource("apps/v1", "replicasets", "ReplicaSet", true),
	"ClusterRole":      resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", false),
	"Widget":           resource("example.com/v1", "widgets", "Widget", true),
}

func resource(groupVersion, plural, kind string, namespaced bool) *graph.Resource {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		panic(err)
	}
	return &graph.Resource{GroupVersionResource: gv.WithResource(plural), Kind: kind, Namespaced: namespaced}
}

// newSnapshot returns a snapshot for which everything but Widgets was listed.
func newSnapshot() *graph.Snapshot {
	mapper := meta.NewDefaultRESTMapper(nil)
	s := &graph.Snapshot{Mapper: mapper}
	for kind, r := range resources {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(r.GroupVersionKind(), r.GroupVersionResource, r.GroupVersion().WithResource(strings.ToLower(kind)), scope)
		if kind != "Widget" {
			s.MarkListed(r.GroupResource(), "", "")
		}
	}
	return s
}

func forbidWidgets(s *graph.Snapshot) {
	s.MarkUnlisted(graph.Unlisted{
		GroupVersionResource: resources["Widget"].GroupVersionResource,
		Reason:               graph.Forbidden, Message: `widgets.example.com is forbidden: User "ann" cannot list`,
	})
}

// loadCluster reads testdata/cluster.yaml, with Widgets that may not be listed.
func loadCluster(t *testing.T) *graph.Graph {
	file, err := os.Open("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s := newSnapshot()
	forbidWidgets(s)
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var item metav1.PartialObjectMetadata
		if err := decoder.Decode(&item); errors.Is(err, io.EOF) {
			return graph.New(s)
		} else if err != nil {
			t.Fatal(err)
		}
		s.Add(graph.NewObject(resources[item.Kind], &item))
	}
}

func mustNode(t *testing.T, g *graph.Graph, uid types.UID) graph.Node {
	n, ok := g.Node(uid)
	if !ok {
		t.Fatalf("no node %s", uid)
	}
	return n
}

func everything(g *graph.Graph) graph.Selection {
	sel := graph.Selection{}
	for n := range g.Nodes() {
		sel.Nodes.Add(n)
	}
	return sel
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	scenarios.Golden(t, filepath.Join("testdata", name), got)
}
