// SPDX-License-Identifier: Apache-2.0

package foresight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt. The first line of a case says what
// is deleted; with "safe" before it the order is to be safe, and with "orphan" dependents stay; "then" between the objects is a barrier
// of another tool's order. Then comes a cluster, as
// explaintest.World reads it, and after a line with -- what is foreseen: what becomes of
// each object, and the waves.
func TestScenarios(t *testing.T) {
	scenarios.Run(t, func(t *testing.T, body string) string {
		given, _, ok := strings.Cut(body, "\n--\n")
		if !ok {
			t.Fatal("no line --")
		}
		told := foreseen(t, given, false)
		if diff := cmp.Diff(told, foreseen(t, given, true)); diff != "" {
			t.Errorf("told otherwise where the plan's objects have gone before everything is read (-before +after):\n%s", diff)
		}
		return given + "\n--\n" + told + body[len(strings.TrimRight(body, "\n")):]
	})
}

// foreseen says what is foreseen; with gone nothing of what the plan deletes is there any more when everything is read.
func foreseen(t *testing.T, given string, gone bool) string {
	order, text, _ := strings.Cut(given, "\n")
	words := strings.Fields(order)
	safe, policy := words[0] == "safe", metav1.DeletePropagationBackground
	if words[0] == "orphan" {
		policy = metav1.DeletePropagationOrphan
	}
	if words[0] != "delete" {
		words = words[1:]
	}
	w := explaintest.Parse(t, text)
	g := w.Graph()
	g.Snapshot().Facts = w.Facts()
	job := &preview.Job{Policy: policy}
	for part := range strings.SplitSeq(strings.Join(words[1:], " "), " then ") {
		var barrier []graph.Identity
		for _, name := range strings.Fields(part) {
			barrier = append(barrier, named(t, g, name))
		}
		b := preview.Barrier{Objects: barrier}
		if before := len(job.Barriers); before > 0 {
			b.After = []int{before - 1}
		}
		job.Targets, job.Barriers = append(job.Targets, barrier...), append(job.Barriers, b)
	}
	if len(job.Barriers) == 1 {
		job.Barriers = nil
	}
	world := preview.World{Graph: g, Now: explaintest.Now, ControllerManager: true, Server: w.Server}
	first, err := preview.Make(t.Context(), job, world)
	if err != nil {
		t.Fatal(err)
	}
	source := evidence.Source{Cluster: w, Graph: g, Events: w.Events, Now: explaintest.Now}
	if !foresight.Needed(first) && !foresight.Takes(t.Context(), source, first) {
		return "nothing needs to be looked at"
	}
	if gone {
		source.Graph = graph.New(g.Snapshot().Holding(func(yield func(graph.Object) bool) {
			for o := range g.Snapshot().Objects() {
				if !first.Going()[o.UID] && !yield(o) {
					return
				}
			}
		}))
	}
	forecast := foresight.Look(t.Context(), foresight.Input{Plan: first, Source: source, Server: w.Server, Safe: safe})
	if safe {
		job.Waves = forecast.Waves
	}
	world.Serves = forecast.Serves
	p, err := preview.Again(t.Context(), first, job, world)
	if err != nil {
		t.Fatal(err)
	}
	forecast.Annotate(p)
	return told(p, forecast)
}

func named(t *testing.T, g *graph.Graph, name string) graph.Identity {
	t.Helper()
	for n := range g.Nodes() {
		if n.Identity().String() == name {
			return n.Identity()
		}
	}
	t.Fatalf("there is no %s", name)
	return graph.Identity{}
}

func unsure(certain bool) string {
	if certain {
		return ""
	}
	return " (not certain)"
}

func told(p *preview.Plan, s *foresight.Forecast) string {
	var lines []string
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		line := fmt.Sprintf("%s: %s", o.Object.Identity(), o.Result)
		if p.Expected[o.Object.UID] {
			line += " (expected)"
		}
		if !o.Reason.IsZero() {
			line += ": " + o.Reason.String()
		}
		lines = append(lines, line)
	}
	for _, b := range s.Breaks {
		lines = append(lines, fmt.Sprintf("breaks: %s: %s%s", b.Object, b.Why, unsure(b.Certain)))
	}
	for _, loss := range s.Lost {
		word := "lost"
		if loss.Stays {
			word = "stays"
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s%s", word, loss.Object, loss.Why, unsure(loss.Certain)))
	}
	for _, r := range s.Returns {
		lines = append(lines, fmt.Sprintf("returns: %s: %s%s", r.Object, r.Why, unsure(r.Certain)))
	}
	for i, wave := range s.Waves {
		var names []string
		for _, id := range wave.Objects {
			names = append(names, id.String())
		}
		lines = append(lines, fmt.Sprintf("wave %d: %s: %s", i+1, strings.Join(names, ", "), wave.Why))
	}
	for _, unread := range s.Unread {
		lines = append(lines, "unread: "+unread.String())
	}
	return strings.Join(lines, "\n")
}
