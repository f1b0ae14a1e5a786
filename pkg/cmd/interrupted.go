// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// interrupted says what an interrupted run leaves behind. Deletes that were
// accepted stand, and what depends on their objects does not wait for this
// program: where a garbage collector works it goes on. managed says that one is
// known to.
func interrupted(report *gc.Report, managed bool) string {
	changed := slices.ContainsFunc(report.Steps, func(s gc.Step) bool { return s.Err == nil || answer.Missing(s.Err) })
	again := "The same command again goes on."
	switch {
	case !changed:
		return "Interrupted: nothing was changed."
	case len(report.Remaining()) == 0:
		return "Interrupted. " + again
	case managed:
		return "Interrupted, from here: the cluster's own garbage collector goes on with what depends on what was deleted. " + again
	}
	return "Interrupted. A garbage collector that works in the cluster goes on with what depends on what was deleted; none was seen. " + again
}
