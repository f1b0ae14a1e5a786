// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// StuckDOT draws the chains of a report: an edge leads from an object to what
// it waits for.
func StuckDOT(w io.Writer, report *explain.Report) error {
	type edge struct {
		from, to graph.Identity
		because  string
	}
	nodes, edges := map[graph.Identity]string{}, map[edge]bool{}
	for _, o := range report.Objects {
		if _, known := nodes[o.Object]; !known {
			nodes[o.Object] = "black"
		}
		for _, f := range o.Findings {
			for i, link := range f.Chain {
				if _, known := nodes[link.Object]; !known {
					nodes[link.Object] = "black"
				}
				if i+1 < len(f.Chain) {
					edges[edge{link.Object, f.Chain[i+1].Object, link.Because}] = true
				}
			}
		}
	}
	for _, c := range report.Causes {
		nodes[c.Object] = stuckColors[c.Verdict]
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "digraph stuck {")
	for _, id := range slices.SortedFunc(maps.Keys(nodes), graph.Identity.Compare) {
		fmt.Fprintf(out, "\t%s [label=%s, color=%s, shape=box];\n", stuckVertex(id), quote(id.String()), nodes[id])
	}
	sorted := slices.SortedFunc(maps.Keys(edges), func(a, b edge) int {
		return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to), cmp.Compare(a.because, b.because))
	})
	for _, e := range sorted {
		fmt.Fprintf(out, "\t%s -> %s [label=%s];\n", stuckVertex(e.from), stuckVertex(e.to), quote(e.because))
	}
	fmt.Fprintln(out, "}")
	return out.Flush()
}

var stuckColors = map[explain.Verdict]string{
	explain.Stuck: "red", explain.Unknown: "gold", explain.Progressing: "green", explain.Pending: "green",
}

// stuckVertex names a vertex: what is not an object in the cluster has no UID.
func stuckVertex(id graph.Identity) string {
	if id.UID != "" {
		return quote(string(id.UID))
	}
	return quote(id.String())
}
