// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// tabled holds the table of causes in docs/unstick-reference.md to a plan and what came of it, for those causes that the session ends by
// its lines "# cause: ID". It fails with the row that should be there.
func tabled(ts *testscript.TestScript, named string, target []string, plan *render.UnstickPlan, report *render.UnstickReport) {
	session := ts.Getenv("NS")
	doc, err := os.ReadFile("../../docs/unstick-reference.md")
	ts.Check(err)
	found := false
	for i := range plan.Causes {
		c := &plan.Causes[i]
		row := regexp.MustCompile("(?m)^\\| `" + c.ID + "` \\|.*\\[([a-z]+/" + session + `)\]\(.*\) \|$`).FindSubmatch(doc)
		if row == nil || len(c.Writes) == 0 {
			continue
		}
		found = found || c.ID == named
		if want := rowOf(c, target, report, string(row[1])); string(row[0]) != want {
			ts.Fatalf("docs/unstick-reference.md has\n%s\nand should have\n%s", row[0], want)
		}
	}
	if own := regexp.MustCompile("(?m)^\\| `" + named + "` \\|.*/" + session + `\]`); own.Match(doc) && !found {
		ts.Fatalf("docs/unstick-reference.md has a row for %s, of which the plan has no change", named)
	}
}

// rowOf is the row of a cause: what has to be allowed, the changes, what went.
func rowOf(c *render.UnstickCause, target []string, report *render.UnstickReport, session string) string {
	risk := c.Risk
	if regexp.MustCompile(`^[0-9.]+$`).MatchString(target[len(target)-1]) {
		risk += fmt.Sprintf(", picked as way out %d", c.Way)
	}
	var changes, then, freed []string
	for i := range c.Writes {
		w := &c.Writes[i]
		changes = append(changes, changeOf(w.Operation, w.Temporary))
		for _, op := range w.Then {
			then = append(then, changeOf(op, false))
		}
	}
	for i := range report.Freed {
		freed = append(freed, report.Freed[i].Kind)
	}
	all := strings.Join(compacted(changes), "; ")
	if len(then) > 0 {
		all += "; then " + strings.Join(compacted(then), "; ")
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | [%s](../test/e2e/testdata/unstick/%[5]s.txt) |", c.ID, risk, all, strings.Join(compacted(freed), ", "), session)
}

func compacted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// changeOf is an operation without names.
func changeOf(op *render.StuckOperation, temporary bool) string {
	text := op.Verb + " " + op.Object.Resource
	switch {
	case op.Options != nil && op.Options.PropagationPolicy != nil:
		text += " (" + string(*op.Options.PropagationPolicy) + ")"
	case op.Options != nil && op.Options.GracePeriodSeconds != nil:
		text += fmt.Sprintf(" (grace period %d)", *op.Options.GracePeriodSeconds)
	case op.Replicas != nil:
		text += fmt.Sprintf(" from %d to %d", op.Replicas.Current, op.Replicas.Wanted)
	case len(op.Patch) > 0:
		steps := slices.DeleteFunc(slices.Clone(op.Patch), func(s remedy.Step) bool { return s.Op == "test" })
		for i := range steps {
			text += fmt.Sprintf("%s %s `%s`", map[bool]string{true: ":", false: ","}[i == 0], steps[i].Op, steps[i].Path)
		}
	}
	if temporary {
		text += ", until the end of the run"
	}
	return text
}
