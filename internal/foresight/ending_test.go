// SPDX-License-Identifier: Apache-2.0

package foresight_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// No preview says of what is being deleted already that it goes, and no explanation that it
// is stuck: in all clusters that the scenarios of explanations have.
func TestPreviewsAgreeWithExplanations(t *testing.T) {
	compared := 0
	explaintest.EachScenario(t, 1, func(t *testing.T, given string) { compared += agree(t, given) })
	if compared < 50 {
		t.Errorf("only %d objects are stuck", compared)
	}
}

// agree compares, and returns how many objects the explanation calls stuck.
func agree(t *testing.T, given string) int {
	t.Helper()
	w := explaintest.Parse(t, given)
	g := w.Graph()
	g.Snapshot().Facts = w.Facts()
	report := w.Report(t, g, false)
	stuck := 0
	for _, e := range report.Objects {
		if e.Verdict != explain.Stuck || released(g, &e) {
			continue
		}
		stuck++
		for _, o := range previewOf(t, w, g, e.Object).Report.Outcomes {
			if o.Object.UID == e.Object.UID && o.Result == gc.Deleted {
				t.Errorf("%s: Stuck %s, and would be deleted: %s", e.Object, fmt.Sprint(e.Findings[0].Cause.ID, ": ", e.Findings[0].Cause.Summary), o.Reason)
			}
		}
	}
	return stuck
}

// released reports whether another delete helps an object: by the work of the garbage
// collector, which the plugin does, by its ways out of a foreground deletion, and where nothing
// holds it. Of pods the simulation says what their kubelets do.
func released(g *graph.Graph, e *explain.Explanation) bool {
	n, _ := g.Node(e.Object.UID)
	c := e.Findings[0].Cause
	return c.Class == finding.Collector || c.ID == "half-deleted" || slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer) ||
		n.Resource().IsPod() && len(n.Finalizers()) == 0 || c.Object.Resource.IsPod() && c.ID == "pod-kubelet-kill"
}

// previewOf is the preview of the deletion of one object, in the background.
func previewOf(t *testing.T, w *explaintest.World, g *graph.Graph, id graph.Identity) *preview.Plan {
	t.Helper()
	job := &preview.Job{Policy: metav1.DeletePropagationBackground, Targets: []graph.Identity{id}}
	world := preview.World{Graph: g, Now: explaintest.Now, ControllerManager: true, Server: w.Server}
	first, err := preview.Make(t.Context(), job, world)
	if err != nil {
		t.Fatal(err)
	}
	if !foresight.Needed(first) {
		return first
	}
	source := evidence.Source{Cluster: w, Graph: g, Events: w.Events, Now: explaintest.Now}
	forecast := foresight.Look(t.Context(), foresight.Input{Plan: first, Source: source, Server: w.Server})
	world.Serves = forecast.Serves
	p, err := preview.Again(t.Context(), first, job, world)
	if err != nil {
		t.Fatal(err)
	}
	forecast.Annotate(p)
	return p
}
