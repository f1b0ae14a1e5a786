// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const incomplete = "warning: the answer is incomplete; what depends on the above is shown as Unknown, and objects may be missing\n"

func TestWarnings(t *testing.T) {
	type gvr = schema.GroupVersionResource
	for _, test := range []struct {
		name     string
		unlisted []graph.Unlisted
		want     string
	}{
		{"complete", nil, ""},
		{
			"what is forbidden is one line for each namespace, sorted",
			[]graph.Unlisted{
				{GroupVersionResource: gvr{Version: "v1", Resource: "secrets"}, Namespace: "shop", Reason: graph.Forbidden, Message: "no"},
				{GroupVersionResource: gvr{Group: "example.com", Version: "v1", Resource: "widgets"}, Reason: graph.Forbidden, Message: "no"},
				{GroupVersionResource: gvr{Version: "v1", Resource: "nodes"}, Name: "n1", Reason: graph.Forbidden, Message: "no"},
				{GroupVersionResource: gvr{Version: "v1", Resource: "configmaps"}, Namespace: "shop", Name: "c", Reason: graph.Forbidden, Message: "no"},
			},
			"warning: not allowed to read: nodes/n1, widgets.example.com\nwarning: not allowed to read in namespace shop: configmaps/c, secrets\n" + incomplete,
		},
		{
			"other failures have a line each, in the server's words",
			[]graph.Unlisted{
				{GroupVersionResource: gvr{Version: "v1", Resource: "secrets"}, Reason: graph.Timeout, Message: "context deadline exceeded"},
				{GroupVersionResource: gvr{Group: "metrics.k8s.io", Version: "v1beta1"}, Reason: graph.DiscoveryFailed, Message: "the server is currently unable to handle the request"},
				{GroupVersionResource: gvr{Group: "example.com", Version: "v1", Resource: "widgets"}, Reason: graph.ServerError, Message: "conversion webhook failed"},
			},
			"warning: could not read secrets: Timeout: context deadline exceeded\n" +
				"warning: could not read widgets.example.com: ServerError: conversion webhook failed\n" +
				"warning: could not read the types of metrics.k8s.io/v1beta1: DiscoveryFailed: the server is currently unable to handle the request\n" +
				incomplete,
		},
		{
			"namespaces with the same have one line",
			inNamespaces("a", "b", "c", "d", "e", "f", "g"),
			"warning: could not read pods in 7 namespaces (a, b, c, d, e, and 2 more): Timeout: late\n" +
				"warning: could not read pods in namespace d: ServerError: broken\n" +
				"warning: not allowed to read in 7 namespaces (a, b, c, d, e, and 2 more): configmaps, secrets\n" + incomplete,
		},
		{
			"both",
			[]graph.Unlisted{
				{GroupVersionResource: gvr{Version: "v1", Resource: "configmaps"}, Reason: graph.Forbidden, Message: "no"},
				{GroupVersionResource: gvr{Version: "v1", Resource: "secrets"}, Reason: graph.Timeout, Message: "late"},
			},
			"warning: could not read secrets: Timeout: late\nwarning: not allowed to read: configmaps\n" + incomplete,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := warnings(t, test.unlisted...); got != test.want {
				t.Errorf("got:\n%swant:\n%s", got, test.want)
			}
		})
	}
}

// inNamespaces is what cannot be read in namespaces, and a failure more in d.
func inNamespaces(names ...string) []graph.Unlisted {
	kind := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	all := []graph.Unlisted{{GroupVersionResource: kind("pods"), Namespace: "d", Name: "", Reason: graph.ServerError, Message: "broken"}}
	for _, name := range names {
		all = append(all,
			graph.Unlisted{GroupVersionResource: kind("secrets"), Namespace: name, Reason: graph.Forbidden, Message: "no"},
			graph.Unlisted{GroupVersionResource: kind("configmaps"), Namespace: name, Reason: graph.Forbidden, Message: "no"},
			graph.Unlisted{GroupVersionResource: kind("pods"), Namespace: name, Reason: graph.Timeout, Message: "late"},
		)
	}
	return all
}

func warnings(t *testing.T, unlisted ...graph.Unlisted) string {
	s := newSnapshot()
	for _, u := range unlisted {
		s.MarkUnlisted(u)
	}
	var out bytes.Buffer
	if err := render.Warnings(&out, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What could be read in a namespace is not said to be unknown there.
func TestWarningsSpareWhatWasRead(t *testing.T) {
	s := &graph.Snapshot{}
	for _, kind := range []string{"Secret", "ConfigMap", "ClusterRole"} {
		s.MarkUnlisted(graph.Unlisted{GroupVersionResource: resources[kind].GroupVersionResource, Reason: graph.Forbidden})
	}
	s.MarkListed(resources["Secret"].GroupResource(), "shop", "1")
	s.MarkListed(resources["ConfigMap"].GroupResource(), "shop", "1")
	var out bytes.Buffer
	if err := render.Warnings(&out, s); err != nil {
		t.Fatal(err)
	}
	const want = "warning: not allowed to read: clusterroles.rbac.authorization.k8s.io\nwarning: not allowed to read outside namespace shop: configmaps, secrets\n" + incomplete
	if got := out.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// The server's words stay on their line and do nothing to the terminal.
func TestWarningsWriteNoControlCharacters(t *testing.T) {
	secrets := resources["Secret"].GroupVersionResource
	checkText(t, warnings(t, graph.Unlisted{GroupVersionResource: secrets, Reason: graph.ServerError, Message: "first\nsecond \x1b[31mthird"}), 2)
	checkText(t, warnings(t, graph.Unlisted{GroupVersionResource: secrets, Name: "a\nb\x1b[2J", Reason: graph.Forbidden}), 2)
}

// TestLimited counts the types that a user may not read, where they are many.
func TestLimited(t *testing.T) {
	var types []*graph.Resource
	var refused []graph.Unlisted
	for i := range 12 {
		r := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%d", i)}, Namespaced: i < 10}
		types = append(types, r)
		refused = append(refused, graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Namespace: "team", Reason: graph.Forbidden})
	}
	node := graph.Unlisted{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Name: "n", Reason: graph.Forbidden}
	single := refused[0]
	single.Name = "x"
	elsewhere := refused[0]
	elsewhere.Namespace = "other"
	for _, test := range []struct {
		name     string
		unlisted []graph.Unlisted
		want     string
	}{
		{"a few are named", refused[:2], "warning: not allowed to read in namespace team: things0.example.com, things1.example.com\n" + incomplete},
		{"many are counted", refused[:6], "warning: the answer is incomplete, a limited view: 4 of 10 types readable in namespace team; -v=1 lists the others\n"},
		{
			"single objects of other types are named besides", append(slices.Clone(refused[:6]), node, single),
			"warning: not allowed to read: nodes/n\nwarning: the answer is incomplete, a limited view: 4 of 10 types readable in namespace team; -v=1 lists the others\n",
		},
		{
			"several places are not named", append(slices.Clone(refused[:6]), elsewhere),
			"warning: the answer is incomplete, a limited view: 4 of 10 types readable; -v=1 lists the others\n",
		},
		{"nothing is missing", nil, ""},
	} {
		s := newSnapshot()
		for _, u := range test.unlisted {
			s.MarkUnlisted(u)
		}
		var out bytes.Buffer
		if err := render.Limited(&out, s, types); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != test.want {
			t.Errorf("%s: got\n%swant\n%s", test.name, got, test.want)
		}
	}
}
