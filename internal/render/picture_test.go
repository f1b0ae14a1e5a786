// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// outline writes what a picture shows of nodes and edges.
func outline(p *draw.Picture) []string {
	var lines []string
	for _, n := range p.Nodes {
		under := "-"
		if n.Under >= 0 {
			under = p.Nodes[n.Under].Name
		}
		lines = append(lines, fmt.Sprintf("%s/%s %v %q under %s", n.Kind, n.Name, n.Marks, n.Note, under))
	}
	for _, e := range p.Edges {
		lines = append(lines, fmt.Sprintf("%s -> %s %s %q", p.Nodes[e.From].Name, p.Nodes[e.To].Name, e.Mark, e.Label))
	}
	return lines
}

func detail(n draw.Node, label string) string {
	for _, d := range n.Details {
		if d.Label == label {
			return d.Value
		}
	}
	return ""
}

func TestOutcomePicture(t *testing.T) {
	s := newSnapshot()
	owner := graph.Object{Resource: resources["Deployment"], Namespace: "shop", Name: "web", UID: "1"}
	dependent := graph.Object{
		Resource: resources["Pod"], Namespace: "shop", Name: "p", UID: "2", DeletionTimestamp: &metav1.Time{Time: now},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}},
	}
	s.Add(owner)
	s.Add(dependent)
	stranger := graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: "new", UID: "3"}
	p := render.OutcomePicture(graph.New(s), []gc.Outcome{
		{Object: dependent, Result: gc.Remaining, Reason: say.Plain("finalizer x"), WaitingFor: []graph.Identity{owner.Identity()}},
		{Object: owner, Result: gc.Deleted}, {Object: stranger, Result: gc.Deleted}, // the graph does not know it
	}, &foresight.Forecast{Lost: []foresight.Loss{{Object: owner.Identity(), Volume: "disk", Size: "5Gi"}}})
	want := []string{
		`Deployment/web [deleted data-loss] "would be deleted" under -`,
		`Pod/p [remaining terminating] "would get stuck" under web`,
		`p -> web solid ""`,
	}
	if diff := cmp.Diff(want, outline(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := detail(p.Nodes[1], "why") + "; " + detail(p.Nodes[1], "waits for"); got != "finalizer x; Deployment/shop/web" {
		t.Errorf("details: %s", got)
	}
	if diff := cmp.Diff([]draw.Finding{{Node: 1, Label: "STUCK", Text: "pod/p -n shop: finalizer x: deployment/web -n shop", Tone: draw.Amber}}, p.Findings); diff != "" {
		t.Errorf("findings: -want +got:\n%s", diff)
	}
	var dot bytes.Buffer
	if err := draw.DOT(&dot, p); err != nil || !strings.Contains(dot.String(), `reason="finalizer x"`) || !strings.Contains(dot.String(), `result="Remaining"`) {
		t.Errorf("%v in:\n%s", err, dot.String())
	}
	for result := range map[gc.Result]bool{gc.Deleted: true, gc.Orphaned: true, gc.OwnerReferenceRemoved: true, gc.Remaining: true, gc.Unknown: true, gc.Untouched: true} {
		if p := render.OutcomePicture(graph.New(s), []gc.Outcome{{Object: owner, Result: result}}, nil); len(p.Nodes[0].Marks) != 1 {
			t.Errorf("%s has no mark", result)
		}
	}
}

func TestStuckPicture(t *testing.T) {
	id := func(kind, name string) graph.Identity {
		return graph.Identity{Resource: graph.Resource{Kind: kind}, Namespace: "shop", Name: name}
	}
	cart, invoice, missing := id("Cart", "basket"), id("ConfigMap", "invoice"), id("Pod", "gone")
	disk := graph.Identity{Resource: graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, Kind: "PersistentVolume"}, Name: "disk"}
	cause := &explain.Cause{
		Kind: explain.Kind{ID: "fin-absent"}, Object: invoice, Verdict: explain.Stuck, Summary: say.Plain("no controller removes it"), Blocks: 2, Until: now,
		Evidence:   []explain.Evidence{evidence.At("ConfigMap/shop/invoice", "metadata.finalizers[0]", "x"), evidence.At("searched", "", "leases")},
		Controller: &explain.Controller{Name: say.Plain("deployment/x"), Liveness: "Dead"},
		Remedies:   []explain.Remedy{{Risk: explain.Dangerous, Action: explain.Action{Command: "kubectl patch", Undo: "kubectl undo"}, Effect: say.Plain("remove it"), Loss: []remedy.Loss{{Kind: remedy.Leaks, What: say.Plain("a bill")}, {Kind: remedy.LosesData, Object: disk, Size: "5Gi"}}}},
	}
	chain := []explain.Link{{Object: cart, Because: say.Plain("waits for its blocking dependent"), Symptom: "gc-fg-blocking"}, {Object: invoice}}
	report := &explain.Report{
		Now: now, Causes: []*explain.Cause{cause},
		Objects: []explain.Explanation{
			{Object: cart, Verdict: explain.Stuck, Since: now.Add(-time.Hour), Findings: []explain.Finding{{Cause: cause, Chain: chain}, {Cause: cause, Chain: chain}}},
			{Object: invoice, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: cause, Chain: chain[1:]}}},
			{Object: missing, Verdict: explain.NotFound},
		},
	}
	p := render.StuckPicture(report)
	want := []string{
		`Cart/basket [asked] "Stuck" under invoice`,
		`ConfigMap/invoice [stuck data-loss asked] "fin-absent" under -`,
		`Pod/gone [asked] "NotFound" under -`,
		`basket -> invoice waits "waits for its blocking dependent"`,
	}
	if diff := cmp.Diff(want, outline(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	findings := []draw.Finding{
		{Node: 1, Label: "STUCK", Text: "configmap/invoice -n shop blocks 2 deletions: no controller removes it", Tone: draw.Red},
		{Node: 1, Label: "DATA LOSS", Text: "5Gi on persistentvolume/disk is destroyed with its claim", Tone: draw.Red},
	}
	if diff := cmp.Diff(findings, p.Findings); diff != "" {
		t.Errorf("findings: -want +got:\n%s", diff)
	}
	if p.Subtitle != "Stuck: 2, NotFound: 1" {
		t.Errorf("subtitle: %s", p.Subtitle)
	}
	n := p.Nodes[1]
	for label, want := range map[string]string{
		"cause (Stuck): fin-absent": "no controller removes it", "evidence": "ConfigMap/shop/invoice metadata.finalizers[0]: x\nsearched: leases",
		"controller": "deployment/x (down)", "DATA LOSS": "5Gi on persistentvolume/disk is destroyed with its claim", "what to do (dangerous)": "remove it\nmight leak: a bill; DATA LOSS: 5Gi on persistentvolume/disk",
		"command": "kubectl patch", "undo": "kubectl undo", "blocks": "2 deletions", "until": "2026-01-02T03:04:05Z",
	} {
		if got := detail(n, label); got != want {
			t.Errorf("%s: got %q, want %q", label, got, want)
		}
	}
	if got := detail(p.Nodes[0], "terminating for"); got != "60m" {
		t.Errorf("terminating for %s", got)
	}
}
