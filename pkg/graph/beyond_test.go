// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func TestBeyond(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for _, c := range []struct {
		name     string
		listed   []string
		unlisted graph.Unlisted
		want     string
	}{
		{"nowhere", nil, graph.Unlisted{GroupVersionResource: secrets}, ""},
		{"in one", []string{"shop"}, graph.Unlisted{GroupVersionResource: secrets}, "outside namespace shop"},
		{"in some", []string{"b", "a"}, graph.Unlisted{GroupVersionResource: secrets}, "outside namespaces a, b"},
		{"in many", []string{"a", "b", "c", "d"}, graph.Unlisted{GroupVersionResource: secrets}, "outside 4 namespaces"},
		{"another namespace", []string{"shop"}, graph.Unlisted{GroupVersionResource: secrets, Namespace: "den"}, ""},
		{"one object", []string{"shop"}, graph.Unlisted{GroupVersionResource: secrets, Name: "a"}, ""},
		{"another type", []string{"shop"}, graph.Unlisted{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, ""},
		{"all types of a group", []string{"shop"}, graph.Unlisted{GroupVersionResource: schema.GroupVersionResource{Version: "v1"}}, ""},
	} {
		s := &graph.Snapshot{}
		for _, namespace := range c.listed {
			s.MarkListed(secrets.GroupResource(), namespace, "1")
		}
		if got := s.Beyond(c.unlisted); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
