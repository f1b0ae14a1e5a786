// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// states are those of a scenario's objects.
type states map[gctest.Path]gctest.State

// refute returns what is wrong with a plan: it writes to an object that it says
// nothing happens to, or its run wrote something else, or an object was not left as
// it says. Nobody but the run changed anything.
func refute(stage *gctest.Stage, plan, run *gc.Report, before, after states) string {
	var wrong []string
	for _, o := range stage.Scenario.Objects {
		written, refused := stepsFor(stage, plan, o.Path)
		result := resultFor(stage, plan, o.Path)
		switch {
		case len(written) > 0 && (result == gc.Untouched || result == gc.Unknown):
			wrong = append(wrong, fmt.Sprintf("the plan says %s of %s, and writes: %s", result, o.Path, strings.Join(written, ", ")))
		case !fulfils(result, refused, before[o.Path], after[o.Path]):
			wrong = append(wrong, fmt.Sprintf("the plan says %s of %s, which was %s and is %s", result, o.Path, before[o.Path], after[o.Path]))
		}
		if ran, _ := stepsFor(stage, run, o.Path); !slices.Equal(written, ran) {
			wrong = append(wrong, fmt.Sprintf("the plan of %s is [%s], and the run was [%s]", o.Path, strings.Join(written, ", "), strings.Join(ran, ", ")))
		}
	}
	return strings.Join(wrong, "\n")
}

// fulfils reports whether what is left of an object is what a plan said.
func fulfils(said gc.Result, refused bool, before, after gctest.State) bool {
	switch said {
	case gc.Deleted:
		return after.Fate == gctest.Gone
	case gc.Orphaned, gc.OwnerReferenceRemoved:
		return after.Fate == gctest.Intact && len(after.Owners) < len(before.Owners)
	case gc.Remaining:
		return refused || after.Fate == gctest.Terminating
	}
	return after.String() == before.String()
}

// stepsFor returns what a report says was written to an object, in order, and
// whether some of it was refused.
func stepsFor(stage *gctest.Stage, report *gc.Report, p gctest.Path) (steps []string, refused bool) {
	var of gc.Report
	for _, step := range report.Steps {
		if step.Object.UID == stage.UIDs[p] {
			of.Steps = append(of.Steps, step)
			refused = refused || step.Err != nil
		}
	}
	return (&gctest.Result{Reports: []*gc.Report{&of}}).Steps(stage), refused
}

// resultFor returns what a report says of an object. What it does not speak of is
// untouched.
func resultFor(stage *gctest.Stage, report *gc.Report, p gctest.Path) gc.Result {
	for _, o := range report.Outcomes {
		if o.Object.UID == stage.UIDs[p] {
			return o.Result
		}
	}
	return gc.Untouched
}
