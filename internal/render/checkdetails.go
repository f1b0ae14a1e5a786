// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// severities are the severities in the order in which text has them.
var severities = []struct {
	severity check.Severity
	color    color
}{{check.Error, red}, {check.Warning, yellow}, {check.Info, noColor}}

// CheckDetails writes all that is known of the findings for a person: the gravest first,
// and those that are the same for objects of one kind as one.
func CheckDetails(w io.Writer, style Style, where *answer.Where, report *check.Report) error {
	out := bufio.NewWriter(w)
	style.where(out, 0, where)
	groups := groupFindings(report.Findings)
	for _, s := range severities {
		for _, g := range groups {
			if g[0].Severity == s.severity {
				writeGroup(out, style.paint(s.severity.String(), s.color), g)
			}
		}
	}
	fmt.Fprintln(out, checkSummary(report)+"."+unchecked(report))
	return out.Flush()
}

// groupFindings puts findings together that differ in the names of their
// objects alone. Groups, and what is in them, are in the order of the findings.
func groupFindings(findings []check.Finding) [][]*check.Finding {
	type key struct {
		rule             string
		severity         check.Severity
		group            schema.GroupKind
		namespace, owner string
		message          string
	}
	var groups [][]*check.Finding
	index := map[key]int{}
	for i := range findings {
		f := &findings[i]
		k := key{f.Rule, f.Severity, f.Object.Resource.GroupVersionKind().GroupKind(), f.Object.Namespace, string(f.Reference.UID), f.Message()}
		at, known := index[k]
		if !known {
			at = len(groups)
			index[k], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// maxGrouped is the number of objects that a group names.
const maxGrouped = 5

// writeGroup writes findings that are the same.
func writeGroup(w io.Writer, severity string, group []*check.Finding) {
	first := group[0]
	fmt.Fprintf(w, "%s: %s [%s]\n", severity, printable(groupTitle(group)), first.Rule)
	for _, sentence := range first.Sentences {
		fmt.Fprintln(w, "  "+printable(sentence))
	}
	ref := first.Reference
	where := fmt.Sprintf("metadata.ownerReferences[%d]", first.Index)
	if len(group) > 1 {
		where = "owner"
	}
	fmt.Fprintln(w, "  "+printable(fmt.Sprintf("%s: %s %s/%s, UID %s", where, ref.APIVersion, ref.Kind, ref.Name, ref.UID)))
	if r := first.Remedy; r != nil {
		what := "what to do"
		if len(group) > 1 {
			what = "what to do, for the first (-o json has a command for each)"
		}
		fmt.Fprintf(w, "  %s: %s\n", what, printable(r.Effect))
		fmt.Fprintln(w, "      "+printable(r.Command))
	}
	fmt.Fprintln(w)
}

// groupTitle names the objects of a group.
func groupTitle(group []*check.Finding) string {
	id := group[0].Object
	if len(group) == 1 {
		return id.String()
	}
	title := fmt.Sprintf("%d %s", len(group), id.Resource.Kind)
	if id.Namespace != "" {
		title += " in namespace " + id.Namespace
	}
	var names []string
	for _, f := range group[:min(len(group), maxGrouped)] {
		names = append(names, f.Object.Name)
	}
	if more := len(group) - maxGrouped; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return title + ": " + strings.Join(names, ", ")
}
