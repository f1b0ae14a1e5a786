// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Standing is how it stands in one of several clusters.
type Standing struct {
	Context string
	// Counts are how much there is of what is counted, the worst first, and First is the first of that in words.
	Counts []int
	First  string
	// Wrong: there is something to be done.
	Wrong bool
	// Failed says why the cluster could not be asked, empty for one that was.
	Failed string
}

// Standings writes them as one table, the worst first; those that could not be asked come after those where something is to be done. The
// columns name what is counted, and what is first, which goes below its row where it does not fit.
func Standings(w io.Writer, style Style, columns []string, all []Standing) error {
	order := func(s Standing) int {
		return slices.Index([]bool{s.Wrong, s.Failed != "", true}, true)
	}
	slices.SortStableFunc(all, func(a, b Standing) int {
		if a, b := order(a), order(b); a != b {
			return a - b
		}
		return slices.Compare(b.Counts, a.Counts)
	})
	var text bytes.Buffer
	table := printers.GetNewTabWriter(&text)
	fmt.Fprintln(table, "CONTEXT\t"+strings.Join(columns[:len(columns)-1], "\t")+"\t")
	lasts := []string{columns[len(columns)-1]}
	for _, s := range all {
		cells := []string{printable(s.Context)}
		for i := range columns[1:] {
			cell := "-"
			if i < len(s.Counts) && s.Failed == "" {
				cell = fmt.Sprint(s.Counts[i])
			}
			cells = append(cells, cell)
		}
		last := printable(s.First)
		if s.Failed != "" {
			last = "error: " + printable(s.Failed)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")+"\t")
		lasts = append(lasts, last)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var out bytes.Buffer
	for i, line := range slices.Collect(strings.Lines(text.String())) {
		line = strings.TrimSuffix(line, "\n")
		if whole := line + lasts[i]; style.Width <= 0 || i == 0 || utf8.RuneCountInString(whole) <= style.Width {
			fmt.Fprintln(&out, style.cut(strings.TrimRight(whole, " ")))
			continue
		}
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
		fmt.Fprint(&out, "  ")
		style.flow(&out, lasts[i], 2, "  ")
	}
	_, err := out.WriteTo(w)
	return err
}

// StuckColumns are those of StuckStanding.
var StuckColumns = []string{"STUCK", "UNKNOWN", "PROGRESSING", "FIRST CAUSE"}

// StuckStanding sums an explanation up.
func StuckStanding(report *explain.Report) Standing {
	s := Standing{Counts: make([]int, len(StuckColumns)-1), Wrong: report.Verdict() == explain.Stuck}
	for i := range report.Objects {
		if at := slices.Index([]explain.Verdict{explain.Stuck, explain.Unknown, explain.Progressing}, report.Objects[i].Verdict); at >= 0 {
			s.Counts[at]++
		}
	}
	if len(report.Causes) > 0 {
		s.First = holding(report.Causes[0]) + ": " + worded(report.Causes[0].Summary)
	}
	return s
}

// CheckColumns are those of CheckStanding.
var CheckColumns = []string{"ERRORS", "WARNINGS", "INFO", "FIRST PROBLEM"}

// CheckStanding sums a check up.
func CheckStanding(report *check.Report) Standing {
	var s Standing
	for _, severity := range severities {
		s.Counts = append(s.Counts, report.Count(severity.severity))
	}
	s.Wrong = s.Counts[0]+s.Counts[1] > 0
	if rows := problems(report); len(rows) > 0 {
		s.First = rows[0].object + ": " + rows[0].column
	}
	return s
}

// TreeColumns are those of TreeStanding.
var TreeColumns = []string{"NOT READY", "DANGLING", "UNKNOWN", "TERMINATING", "OBJECTS", "FIRST DANGLING"}

// TreeStanding sums a tree up: how many objects are not ready, have an owner reference that is Dangling or Unknown, or are being deleted.
func TreeStanding(sel graph.Selection, statuses map[types.UID]Status) Standing {
	s := Standing{Counts: make([]int, len(TreeColumns)-1)}
	count := func(column int, is bool) bool {
		if is {
			s.Counts[column]++
		}
		return is
	}
	for _, n := range sel.Nodes.Sorted() {
		ready, of, known := strings.Cut(statuses[n.UID()].Ready, "/")
		count(0, known && ready != of)
		has := func(state graph.State) bool {
			return slices.ContainsFunc(n.Owners(), func(r graph.Reference) bool { return r.State == state })
		}
		if count(1, has(graph.Dangling)) && s.First == "" {
			s.First = objectName(n.Identity())
		}
		count(2, has(graph.Unknown))
		count(3, n.BeingDeleted())
		count(4, !n.Virtual())
	}
	return s
}
