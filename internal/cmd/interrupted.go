// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// interrupted says what an interrupted run leaves behind. Deletes that were
// accepted stand, and what depends on their objects does not wait for this
// program: where a garbage collector works it goes on. managed says that one is
// known to; again is how to go on.
func interrupted(report *gc.Report, managed bool, again string) string {
	changed := slices.ContainsFunc(report.Steps, func(s gc.Step) bool { return s.Err == nil || s.Unanswered || answer.Indeterminate(s.Err) })
	switch {
	case !changed:
		return "Interrupted: nothing was changed."
	case len(report.Remaining()) == 0:
		return "Interrupted. " + again
	case managed:
		return "Interrupted. The cluster's garbage collector still deletes the dependents of what was deleted. " + again
	}
	return "Interrupted. A garbage collector in the cluster, if there is one, still deletes the dependents of what was deleted; none was seen. " + again
}

// again says how to go on with what a run has left. What the same command need not find
// again is shown by collect: nothing leads to it from what is named or matches. A collection
// names nothing, and finds all of it.
func (t *telling) again(j *change.Job, report *gc.Report) string {
	lost := j.OutOfReach(report)
	if len(lost) == 0 {
		if t.demanding && len(j.Targets) > 1 {
			return "Run the same command again to resume, with --ignore-not-found if something that it names is gone by then."
		}
		return "Run the same command again to resume."
	}
	namespace := lost[0].Object.Namespace
	if slices.ContainsFunc(lost, func(o gc.Outcome) bool { return o.Object.Namespace != namespace }) {
		namespace = ""
	}
	if len(lost) == len(report.Remaining()) {
		return fmt.Sprintf("The remaining objects (%d) have lost their owners: '%s --dry-run=client' shows how they are deleted.",
			len(lost), t.collectIn(namespace))
	}
	return fmt.Sprintf("Run the same command again to resume with what it finds then; the others (%d) have lost their owners already: '%s --dry-run=client' shows them.",
		len(lost), t.collectIn(namespace))
}

// collectIn is the command that collects in a namespace, or with an empty one in the
// cluster.
func (g *globals) collectIn(namespace string) string {
	if namespace == "" {
		return g.name + " collect -A"
	}
	return shell.In(g.name+" collect", namespace)
}
