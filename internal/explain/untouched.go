// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/untouched"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Objects of which no deletion was requested.

// notTerminating is what is said of an object that is not being deleted.
func (w *walker) notTerminating(n graph.Node) []Finding {
	var findings []Finding
	for _, c := range untouched.About(w.rules, n) {
		findings = append(findings, Finding{w.caused(c), []Link{{Object: n.Identity()}}})
	}
	return findings
}

// unasked adds the causes of objects that are not being deleted, which block
// nothing.
func unasked(report *Report) {
	for _, o := range report.Objects {
		for _, f := range o.Findings {
			if !slices.Contains(report.Causes, f.Cause) {
				report.Causes = append(report.Causes, f.Cause)
			}
		}
	}
}

// waysOut adds to the blockers of an owner in foreground deletion the way to delete
// the owner without it: only the first owner that was asked for is helped,
// since the cause may block hundreds.
func (w *walker) waysOut(e Explanation) {
	for _, f := range e.Findings {
		if len(f.Chain) < 2 || f.Chain[0].Symptom != finding.GcFgBlocking.ID || f.Cause.Class == finding.Collector ||
			f.Cause.Verdict == Progressing {
			continue
		}
		owner, known := w.Graph.Node(f.Chain[0].Object.UID)
		dependent, there := w.Graph.Node(f.Chain[1].Object.UID)
		owns := func(ref graph.Reference) bool { return ref.UID == owner.UID() }
		if !known || !there || !slices.ContainsFunc(dependent.Owners(), owns) {
			continue
		}
		if !w.help(f.Cause) {
			continue
		}
		for _, r := range w.remedies([]finding.Way{collector.FreeOwner(owner, dependent)}) {
			w.offer(f.Cause, r) // which remains
		}
	}
}
