// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// levelWidth is that of the column LEVEL, with the gap after it.
	levelWidth = len("warning") + 2
	// apart is the number of namespaces up to which alike findings have a row each.
	apart = 3
)

// CheckText writes the findings for a person who has one screen: a row each, alike ones as one, the gravest first; what
// becomes of the objects; and how to see the rest, which CheckDetails writes.
func CheckText(w io.Writer, style Style, where *answer.Where, report *check.Report) error {
	out := bufio.NewWriter(w)
	style.where(out, 0, where)
	if rows := problems(report); len(rows) > 0 {
		writeProblems(out, style, rows)
	}
	style.flow(out, checkSummary(report)+becomes(report)+unchecked(report), 0, "")
	if len(report.Findings) > 0 {
		fmt.Fprintln(out, "Rules, references and patches: -o wide")
	}
	return out.Flush()
}

// problem is a row: findings that differ in nothing but their objects.
type problem struct {
	severity       check.Severity
	object, column string
}

// problems returns the rows, the gravest first, otherwise in the order of the findings.
func problems(report *check.Report) []problem {
	groups := alikeFindings(report.Findings)
	var rows []problem
	for _, s := range severities {
		for _, group := range groups {
			if group[0].Severity == s.severity {
				rows = append(rows, problem{s.severity, printable(groupName(group)), printable(group[0].Problem)})
			}
		}
	}
	return rows
}

// alikeFindings puts findings together about objects of one kind with the same problem: those of a namespace, and those
// of all where they would need too many rows.
func alikeFindings(findings []check.Finding) [][]*check.Finding {
	type key struct {
		severity      check.Severity
		rule, problem string
		resource      string
		namespace     string
	}
	keyOf := func(f *check.Finding) key {
		return key{f.Severity, f.Rule, f.Problem, f.Object.Resource.GroupResource().String(), ""}
	}
	namespaces := map[key]map[string]bool{}
	for i := range findings {
		k := keyOf(&findings[i])
		if namespaces[k] == nil {
			namespaces[k] = map[string]bool{}
		}
		namespaces[k][findings[i].Object.Namespace] = true
	}
	var groups [][]*check.Finding
	index := map[key]int{}
	for i := range findings {
		f := &findings[i]
		k := keyOf(f)
		if len(namespaces[k]) <= apart {
			k.namespace = f.Object.Namespace
		}
		at, known := index[k]
		if !known {
			at = len(groups)
			index[k], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// groupName names the first object of a group, and how many others there are.
func groupName(group []*check.Finding) string {
	objects, namespaces := map[graph.Identity]bool{}, map[string]bool{}
	for _, f := range group {
		objects[f.Object], namespaces[f.Object.Namespace] = true, true
	}
	id, more := group[0].Object, ""
	if n := len(objects) - 1; n > 0 {
		more = fmt.Sprintf(" +%d", n)
	}
	switch {
	case len(namespaces) > 1:
		more += fmt.Sprintf(" in %d namespaces", len(namespaces))
	case id.Namespace != "":
		more += " -n " + id.Namespace
	}
	id.Namespace = ""
	return objectName(id) + more
}

// writeProblems writes the table. An object whose name is too long for its column has its problem in the next line.
func writeProblems(out *bufio.Writer, style Style, rows []problem) {
	width := len("OBJECT")
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.object); n > width && (style.Width <= 0 || n <= style.Width/2) {
			width = n
		}
	}
	begun := levelWidth + width + 2
	fmt.Fprintf(out, "%-*s%-*s%s\n", levelWidth, "LEVEL", width+2, "OBJECT", "PROBLEM")
	indent := strings.Repeat(" ", begun)
	for _, r := range rows {
		name := r.severity.String()
		fmt.Fprint(out, style.paint(name, severityColor(r.severity)), strings.Repeat(" ", levelWidth-len(name)))
		if n := utf8.RuneCountInString(r.object); n <= width {
			fmt.Fprint(out, r.object, strings.Repeat(" ", begun-levelWidth-n))
		} else {
			style.flow(out, r.object, levelWidth, strings.Repeat(" ", levelWidth+2))
			fmt.Fprint(out, indent)
		}
		style.flow(out, r.column, begun, indent)
	}
}

func severityColor(severity check.Severity) color {
	for _, s := range severities {
		if s.severity == severity {
			return s.color
		}
	}
	return noColor
}

// checkSummary counts the findings, those severities that there are.
func checkSummary(report *check.Report) string {
	var counts []string
	for _, s := range severities {
		if n := report.Count(s.severity); n > 0 {
			counts = append(counts, plural(n, s.severity.String()))
		}
	}
	if len(counts) == 0 {
		counts = []string{"No wrong owner references"}
	}
	return strings.Join(counts, ", ") + " in " + plural(report.Objects, "object")
}

// becomes says what becomes of how many objects, as far as that is sure, and ends the sentence.
func becomes(report *check.Report) string {
	of := map[graph.Identity]check.Outcome{}
	for i := range report.Findings {
		f := &report.Findings[i]
		for _, id := range append(f.Members[:len(f.Members):len(f.Members)], f.Object) {
			of[id] = max(of[id], f.Outcome)
		}
	}
	count := map[check.Outcome]int{}
	for _, outcome := range of {
		count[outcome]++
	}
	var parts []string
	add := func(outcome check.Outcome, one, many string) {
		n := count[outcome]
		switch {
		case n == 0:
			return
		case n > 1:
			one = many
		}
		text := fmt.Sprint(n)
		if len(parts) == 0 {
			text = plural(n, "object")
		}
		parts = append(parts, text+" "+one)
	}
	add(check.Deleted, "will be garbage-collected", "will be garbage-collected")
	if len(parts) > 0 {
		add(check.Never, "never", "never")
	} else {
		add(check.Never, "is never garbage-collected", "are never garbage-collected")
	}
	add(check.Orphaned, "loses its owner", "lose their owners")
	if len(parts) == 0 {
		return "."
	}
	return "; " + strings.Join(parts, ", ") + "."
}

// unchecked says how many references are not checked, as a sentence after another.
func unchecked(report *check.Report) string {
	if report.Unchecked == 0 {
		return ""
	}
	return " " + plural(report.Unchecked, "owner reference") + " could not be checked, because the owner could not be read."
}
