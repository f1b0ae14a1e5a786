// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// now is when the scenarios are looked at.
var now = explaintest.Now

// scenario is a cluster and what else an analysis of it is given.
type scenario struct {
	*explaintest.World
	catalogue *finalizers.Catalogue
	wait      func(time.Duration)
	// shuffle has objects explained in another order.
	shuffle *rand.Rand
	// far has them asked about before it is their turn.
	far bool
	// each has what is to be done to each of many objects for all of them.
	each bool
}

func parse(t *testing.T, text string) *scenario {
	t.Helper()
	return &scenario{World: explaintest.Parse(t, text)}
}

// explained runs the engine and the analysis, and returns what is said of each
// terminating object: its verdict, and its causes with their objects.
func (s *scenario) explained(t *testing.T) string {
	t.Helper()
	return verdicts(s.report(t)) + "\n"
}

// verdicts says of each object how it stands, and names its causes.
func verdicts(report *explain.Report) string {
	var lines []string
	for _, o := range report.Objects {
		line := fmt.Sprintf("%s: %s", o.Object, o.Verdict)
		for _, f := range o.Findings {
			line += fmt.Sprintf(" %s@%s*%d", f.Cause.ID, f.Cause.Object.Name, f.Cause.Blocks)
		}
		lines = append(lines, line)
		if !o.Why.IsZero() {
			lines = append(lines, fmt.Sprintf("%s: %s", o.Object, o.Why))
		}
	}
	return strings.Join(lines, "\n")
}

// report runs the engine and the analysis for all terminating objects.
func (s *scenario) report(t *testing.T) *explain.Report {
	t.Helper()
	g := s.Graph()
	snapshot := g.Snapshot()
	outcome, err := gc.New(simulator.New(snapshot, simulator.Options{Now: now, Server: s.Server}), g, gc.Options{SeesAll: true}).Collect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var asked []types.UID
	for n := range g.Nodes() {
		if n.BeingDeleted() {
			asked = append(asked, n.Object().UID)
		}
	}
	in := explain.Input{Graph: g, Outcomes: outcome.Outcomes, Cluster: s, Events: s.Events, Catalogue: s.catalogue, Now: now, Server: s.Server, Far: s.far, Each: s.each}
	if s.wait != nil {
		in.Wait = func(_ context.Context, d time.Duration) { s.wait(d) }
	}
	if len(s.Answers) > 0 {
		in.Prober = s.World
		asked = append(asked, s.named(g)...)
	}
	if s.shuffle != nil {
		s.shuffle.Shuffle(len(asked), func(i, k int) { asked[i], asked[k] = asked[k], asked[i] })
	}
	var report *explain.Report
	synctest.Test(t, func(t *testing.T) { report = explain.Explain(t.Context(), in, asked) }) // answers may come late
	slices.SortFunc(report.Objects, func(a, b explain.Explanation) int { return a.Object.Compare(b.Object) })
	return report
}

const (
	alive = "with kube-controller-manager\n"
	node  = "with node\n"
)
