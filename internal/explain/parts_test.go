// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// TestParts explains each object, and each namespace, of all scenarios from parts of the cluster:
// the report is the one that all of it gives, whatever is read first. Most questions are answered
// without all of the cluster.
func TestParts(t *testing.T) {
	all, wide, dear := 0, 0, 0
	for i, given := range clusters(t) {
		s := parse(t, given)
		whole := s.Graph()
		in := map[string][]types.UID{}
		ask := func(what string, parts graph.Parts, asked ...types.UID) {
			all++
			switch enough, requests := s.compareParts(t, what+" of\n"+given, whole, parts, asked); {
			case enough == nil:
				wide++
			case requests > 40 && len(asked) == 1 && !strings.HasPrefix(what, "Namespace/") && !strings.HasPrefix(what, "namespace "):
				dear++
			}
		}
		for n := range whole.Nodes() {
			if n.Virtual() || !n.BeingDeleted() && i%10 != 0 {
				continue
			}
			ask(n.Identity().String(), explain.PartsOf([]graph.Object{*n.Object()}), n.UID())
			if n.BeingDeleted() {
				s.compareParts(t, "from nothing "+n.Identity().String()+" of\n"+given, whole, graph.Parts{}, []types.UID{n.UID()})
				in[n.Namespace()] = append(in[n.Namespace()], n.UID())
			}
		}
		delete(in, "")
		for namespace, asked := range in {
			ask("namespace "+namespace, explain.PartsIn(namespace), asked...)
		}
	}
	t.Logf("%d of %d questions took all of the cluster", wide, all)
	if wide > all/4 || dear > 0 {
		t.Errorf("%d of %d questions took all of the cluster, and %d about one object more than 40 requests", wide, all, dear)
	}
}

// compareParts compares what is said of objects by parts of a cluster, and by all of it. It returns
// the parts with which nothing was missed, and how many requests that took.
func (s *scenario) compareParts(t *testing.T, what string, whole *graph.Graph, parts graph.Parts, asked []types.UID) (_ graph.Parts, requests int) {
	t.Helper()
	want := s.reportOn(t, whole, asked, nil)
	var earlier *evidence.Reader
	read, before := map[string]bool{}, s.Requests
	for looks := 1; ; looks++ {
		g := s.GraphOf(parts)
		for _, r := range testworld.Served() {
			for _, p := range parts.Of(&r) {
				read[fmt.Sprint(p)] = true
			}
		}
		for _, uid := range asked { // what is asked for is read by itself
			if n, ok := whole.Node(uid); ok {
				if _, listed := g.Snapshot().Object(uid); !listed {
					g.Snapshot().Add(*n.Object())
				}
			}
		}
		got := s.reportOn(t, graph.New(g.Snapshot()), asked, earlier)
		earlier = got.Read
		if len(got.Missed) > 0 {
			if parts == nil {
				t.Fatalf("%s: all was read, and missed are %v", what, got.Missed)
			}
			parts = explain.Wider(parts, got.Missed, looks)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(graph.Resource{}, explain.Remedy{}), cmpopts.IgnoreFields(explain.Cause{}, "Waits", "Covers"), cmpopts.IgnoreFields(explain.Report{}, "Read")); diff != "" {
			t.Errorf("%s: parts %v (-whole +parts):\n%s", what, parts, diff)
		}
		return parts, s.Requests - before + len(read)
	}
}

// reportOn is the report about some objects of a graph.
func (s *scenario) reportOn(t *testing.T, g *graph.Graph, asked []types.UID, earlier *evidence.Reader) (report *explain.Report) {
	t.Helper()
	outcome, err := gc.New(simulator.New(g.Snapshot(), simulator.Options{Now: now, Server: s.Server}), g, gc.Options{SeesAll: true}).Collect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	in := explain.Input{Graph: g, Outcomes: outcome.Outcomes, Cluster: s, Events: s.Events, Now: now, Server: s.Server, Earlier: earlier}
	if len(s.Answers) > 0 {
		in.Prober = s
	}
	synctest.Test(t, func(t *testing.T) { report = explain.Explain(t.Context(), in, asked) }) // answers may come late
	return report
}
