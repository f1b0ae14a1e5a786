// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// outline writes the nodes of a picture, each below the one that it is under.
func outline(p *draw.Picture) string {
	var b strings.Builder
	var write func(under int, indent string)
	write = func(under int, indent string) {
		for i, n := range p.Nodes {
			if n.Under != under {
				continue
			}
			name := n.Name
			if n.Count > 1 {
				name = fmt.Sprintf("x%d", n.Count)
			}
			fmt.Fprintf(&b, "%s%s %s%s\n", indent, n.Kind, name, strings.TrimSuffix(" "+n.Note, " "))
			write(i, indent+"  ")
		}
	}
	write(-1, "")
	return b.String()
}

func TestSummary(t *testing.T) {
	w := newWorld()
	set := w.add("ReplicaSet", "shop", "web", nil)
	for i := range 120 {
		w.add("Pod", "shop", fmt.Sprintf("web-%03d", i), nil, set)
	}
	w.add("Pod", "shop", "web-dying", terminating(), set)
	watched := w.add("Pod", "shop", "web-watched", nil, set)
	w.add("Secret", "shop", "token", nil, watched)
	shared := w.add("Pod", "shop", "web-shared", nil, set) // a second owner leads there
	w.add("Secret", "shop", "other", nil, watched, shared)
	nightly := w.add("CronJob", "shop", "nightly", nil)
	for i := range 5 {
		job := w.add("Job", "shop", fmt.Sprintf("nightly-%d", i), nil, nightly)
		for k := range 2 {
			w.add("Pod", "shop", fmt.Sprintf("nightly-%d-%d", i, k), nil, job)
		}
	}
	for i := range 3 { // equal, but with owners of their own
		w.add("Pod", "shop", fmt.Sprintf("p%d", i), nil, w.add("ReplicaSet", "shop", fmt.Sprintf("s%d", i), nil))
	}
	p := w.picture()
	got := p.Summary()
	want := `CronJob nightly
  Job x5
    Pod x10
ReplicaSet s0
  Pod p0
ReplicaSet s1
  Pod p1
ReplicaSet s2
  Pod p2
ReplicaSet web
  Pod x120
  Pod web-dying terminating
  Pod web-shared
  Pod web-watched
    Secret other
    Secret token
`
	if diff := cmp.Diff(want, outline(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	objects := 0
	for _, n := range got.Nodes {
		objects += n.Count
		if n.Count > 1 && (len(n.Members) != n.Count || slices.ContainsFunc(n.Details, func(d draw.Detail) bool { return d.Label == "uid" })) {
			t.Errorf("%s x%d has %d members, or details of one of them: %v", n.Kind, n.Count, len(n.Members), n.Details)
		}
	}
	if objects != len(p.Nodes) {
		t.Errorf("%d objects, want %d", objects, len(p.Nodes))
	}
}

// A summary leads to the same owners as what it summarises, and no node of it
// stands for what was asked for by name.
func TestSummaryKeeps(t *testing.T) {
	w := newWorld()
	a, b := w.add("ReplicaSet", "shop", "a", nil), w.add("ReplicaSet", "shop", "b", nil)
	for i := range 6 {
		owners := []metav1.OwnerReference{a}
		if i%2 == 1 {
			b.Controller = nil
			owners = append(owners, b)
		}
		w.add("Pod", "shop", fmt.Sprintf("p%d", i), nil, owners...)
	}
	sel := w.selection()
	for n := range sel.Nodes.All() {
		if n.Name() == "p2" {
			sel.Named = append(sel.Named, n)
		}
	}
	got := draw.Ownership(sel).Summary()
	if diff := cmp.Diff("ReplicaSet a\n  Pod p0\n  Pod x3\n  Pod p2\n  Pod p4\nReplicaSet b\n", outline(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var edges []string
	for _, e := range got.Edges {
		edges = append(edges, got.Nodes[e.From].Name+" "+got.Nodes[e.To].Name)
	}
	if diff := cmp.Diff([]string{"p0 a", "p1 a", "p1 b", "p2 a", "p4 a"}, edges); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

// Objects that neither own nor are owned are equal when they are of one kind.
func TestSummaryOfIsolated(t *testing.T) {
	w := newWorld()
	for i := range 9 {
		w.add("ConfigMap", []string{"a", "b"}[i/6], fmt.Sprint(i), nil)
	}
	sel := graph.Selection{}
	for n := range graph.New(w.snapshot).Nodes() {
		sel.Nodes.Add(n)
	}
	if diff := cmp.Diff("ConfigMap x6\nConfigMap x3\n", outline(draw.Ownership(sel).Summary())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
