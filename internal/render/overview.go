// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mostCauses is the number of causes that are shown.
const mostCauses = 30

// verdicts are the verdicts in the order in which a report counts them, with what they mean for an object that has no cause.
var verdicts = []struct {
	verdict explain.Verdict
	color   color
	meaning string
}{
	{explain.Stuck, red, ""}, {explain.Unknown, yellow, ""}, {explain.Progressing, green, ""},
	{explain.Pending, green,
		": the garbage collector, or another controller of kube-controller-manager, has to act, and nothing prevents that"},
	{explain.NotTerminating, noColor, ": not being deleted"}, {explain.NotFound, noColor, ": there is no such object"},
}

func colorOf(verdict explain.Verdict) color {
	for _, v := range verdicts {
		if v.verdict == verdict {
			return v.color
		}
	}
	return noColor
}

// overview writes the causes of several objects, or the several of one: a line each, and the next step of the first.
func (a *StuckAnswer) overview(report *explain.Report) {
	if len(report.Objects) == 1 {
		a.object(&report.Objects[0])
	} else {
		a.counts(report)
	}
	shown, folds := fold(report)
	if len(shown) > 0 {
		fmt.Fprintln(a.out)
	}
	a.rows(shown, report)
	for _, f := range folds {
		a.Style.flow(a.out, fmt.Sprintf("%d more like %d: %s", len(f.more), a.rank(shown[f.like], report), names(f.more)), 0, "   ")
	}
	if len(folds) > 0 || len(shown) > 0 && !a.Wide {
		fmt.Fprintln(a.out)
	}
	if a.Wide {
		a.others(report)
	}
	a.why(report)
	if report.Verdict() == explain.Stuck {
		a.later(true, report)
	}
	a.steps(shown, report)
	if a.Wide {
		return
	}
	if len(shown) > 0 {
		a.more("one cause: --cause N; evidence and all ways out: -o wide")
	}
	a.others(report)
}

// rows writes causes: a line each, or all of them.
func (a *StuckAnswer) rows(shown []*explain.Cause, report *explain.Report) {
	first := slices.IndexFunc(shown, func(c *explain.Cause) bool { return nextOf(c) != nil }) // of it Next says the way out
	for i, c := range shown {
		if i == mostCauses {
			left := len(shown) - i
			if !a.Wide {
				fmt.Fprintf(a.out, "%d more: -o wide names them\n", left)
				return
			}
			fmt.Fprintf(a.out, "%d more, a line each; -o json explains them:\n", left)
		}
		whole := a.Wide && i < mostCauses
		a.row(c, report, whole || len(shown) <= fewCauses, i != first && !a.Wide)
		if whole {
			a.rest(c, report)
			fmt.Fprintln(a.out)
		}
	}
}

// rank is the number of a cause.
func (a *StuckAnswer) rank(c *explain.Cause, report *explain.Report) int {
	return slices.Index(report.Causes, c) + 1
}

// steps writes the first step, and the first that the program can do if that is another.
func (a *StuckAnswer) steps(shown []*explain.Cause, report *explain.Report) {
	if report.Verdict() != explain.Stuck && a.later(false, report) {
		return
	}
	word := "Next"
	labelled := func(c *explain.Cause) string {
		if len(report.Causes) == 1 {
			return word
		}
		return fmt.Sprintf("%s (%d)", word, a.rank(c, report))
	}
	for _, c := range shown {
		offer, ways := a.offer(c, report), c.Ways()
		offered := offeredOf(c)
		if next := nextOf(c); next != nil && word == "Next" && (offer == "" || !slices.Contains(ways[offered], next)) {
			a.step(labelled(c), next, "", "")
			word = "Or"
		}
		if offer != "" {
			a.step(labelled(c), ways[offered][0], "", offer)
			return
		}
	}
}

// row is a cause in the overview, with its way out if there is room for that, and it is not said elsewhere.
func (a *StuckAnswer) row(c *explain.Cause, report *explain.Report, roomy, way bool) {
	verdict := ""
	if c.Verdict != explain.Stuck {
		verdict = strings.ToLower(spoken[c.Verdict]) + ": "
	}
	text := fmt.Sprintf("%-2d ", a.rank(c, report)) + printable(a.identified(verdict+holding(c)+": "+worded(c.Summary), c))
	if !roomy {
		fmt.Fprintln(a.out, a.Style.cut(text))
		return
	}
	a.Style.flow(a.out, text, 0, "   ")
	if next := nextOf(c); next != nil && way {
		with := ""
		if first := a.rank(c.Of, report); first > 0 {
			with = fmt.Sprintf("ends with %d; or ", first)
		}
		fmt.Fprintln(a.out, a.Style.cut("   "+with+printable(a.costed(next))))
	}
}

// counts writes how many objects have which verdict.
func (a *StuckAnswer) counts(report *explain.Report) {
	numbers := map[explain.Verdict]int{}
	for i := range report.Objects {
		numbers[report.Objects[i].Verdict]++
	}
	var parts []string
	for _, v := range verdicts {
		if n := numbers[v.verdict]; n > 0 {
			parts = append(parts, a.Style.paint(fmt.Sprintf("%s %d", a.mark(v.verdict), n), v.color))
		}
	}
	fmt.Fprintf(a.out, "%s of %s, %s%s\n", strings.Join(parts, ", "), plural(len(report.Objects), "object"),
		plural(len(report.Causes), "cause"), printable(a.where()))
}

// others names the objects without a cause.
func (a *StuckAnswer) others(report *explain.Report) {
	if len(report.Objects) < 2 {
		return
	}
	for _, v := range verdicts {
		var ids []graph.Identity
		for _, o := range report.Objects {
			if o.Verdict == v.verdict && len(o.Findings) == 0 {
				ids = append(ids, o.Object)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(a.out, "\n%s: %s\n", a.Style.paint(spoken[v.verdict], v.color), printable(names(ids)+v.meaning))
		}
	}
}
