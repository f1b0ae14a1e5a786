// SPDX-License-Identifier: Apache-2.0

package explaintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// EachScenario runs a test with the cluster of each scenario of explanations, or of every so many in a file, from the
// directory of a package beside explain.
func EachScenario(t *testing.T, every int, test func(t *testing.T, given string)) {
	t.Helper()
	files, err := filepath.Glob("../explain/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, scenario := range strings.Split(string(text), "\n== ")[1:] {
			if i%every != 0 {
				continue
			}
			title, body, _ := strings.Cut(scenario, "\n")
			given, _, _ := strings.Cut(body, "\n--\n")
			t.Run(filepath.Base(file)+": "+title, func(t *testing.T) { test(t, given) })
		}
	}
}

// Report explains all that is being deleted in the world of a graph, with what dry runs would say or without.
func (s *World) Report(t *testing.T, g *graph.Graph, probe bool) (report *explain.Report) {
	t.Helper()
	outcome, err := gc.New(simulator.New(g.Snapshot(), simulator.Options{Now: Now, Server: s.Server}), g,
		gc.Options{SeesAll: true}).Collect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var ending []types.UID
	for n := range g.Nodes() {
		if n.BeingDeleted() {
			ending = append(ending, n.UID())
		}
	}
	in := explain.Input{
		Graph: g, Outcomes: outcome.Outcomes, Cluster: s, Events: s.Events, Now: Now, Server: s.Server, Kubectl: "kubectl", Plugin: "kubectl gc",
	}
	if probe && len(s.Answers) > 0 {
		in.Prober = s
	}
	synctest.Test(t, func(t *testing.T) { report = explain.Explain(t.Context(), in, ending) }) // answers may come late
	return report
}
