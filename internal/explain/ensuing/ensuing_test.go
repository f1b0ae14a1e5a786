// SPDX-License-Identifier: Apache-2.0

package ensuing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt. The first line of a case names what goes. Then comes a cluster, as explaintest.World reads it, and
// after a line with -- what goes because of that, and the guards that deny nothing without it.
func TestScenarios(t *testing.T) {
	scenarios.Run(t, func(t *testing.T, body string) string {
		given, _, _ := strings.Cut(body, "\n--\n")
		first, text, _ := strings.Cut(given, "\n")
		w := explaintest.Parse(t, text)
		g := w.Graph()
		var going []graph.Node
		for n := range g.Nodes() {
			if slices.Contains(strings.Fields(first)[1:], n.Identity().String()) {
				going = append(going, n)
			}
		}
		source := evidence.Source{Cluster: w, Graph: g, Now: explaintest.Now}
		reader := evidence.New(t.Context(), source)
		f := ensuing.New(t.Context(), source, reader, admission.New(t.Context(), nil, reader, nil))
		var lines []string
		effects, unread := f.After(going, graph.NewSet(going...))
		for _, e := range effects {
			lines = append(lines, fmt.Sprint("after ", e.Of.Identity(), ": ", names(e.Nodes), map[bool]string{true: ", for certain"}[e.Certain]))
		}
		for _, n := range unread {
			lines = append(lines, fmt.Sprint("unread: ", n.Identity()))
		}
		for _, g := range f.Guards(graph.NewSet(going...)) {
			lines = append(lines, fmt.Sprint("without ", names(g.Without.Sorted()), " passes ", g.ID, ": ", names(f.Waiting(g))))
		}
		if lines == nil {
			lines = []string{"nothing"}
		}
		return given + "\n--\n" + strings.Join(lines, "\n") + body[len(strings.TrimRight(body, "\n")):]
	})
}

func names(nodes []graph.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Identity().String())
	}
	return strings.Join(all, ", ")
}
