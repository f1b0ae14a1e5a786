// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"slices"
	"strings"
)

const pageHead = `# Layouts

What previews say, and what happens: operators with everything that belongs to them, in many layouts, on a control plane
on which they work. A row has what ` + "`kubectl gc delete --dry-run`" + ` says of a deletion, what is left a minute after
` + "`kubectl delete`" + ` of the same objects,%s and the layouts in which it was so. ` + "`make foresight`" + ` runs them and writes this page. [The layouts](../test/foresight/layouts_test.go) are a table, and [the operator](../test/foresight/toy) is a
small program.

Unless a layout says something else, one operator for all namespaces runs in its own namespace, and keeps a finalizer on two
objects in another. It takes a second to clean up, and stops when its pod gets a signal to end. Where it depends on who is faster,
another run may leave something else.

`

const pageSafe = ` what ` + "`kubectl gc delete --order=safe`" + `
leaves of another copy, with its exit code,`

// A summary counts, over all layouts, what the page ends with. Its lists name layouts.
type summary struct {
	wrong              int
	alarms, late, held []string
}

// table is the page.
func table(results []*result) string {
	safe := slices.ContainsFunc(results, func(r *result) bool { return r.safe != nil || r.safeError != nil })
	about, columns := "", []string{"preview", "kubectl delete"}
	if safe {
		about, columns = pageSafe, append(columns, "--order=safe")
	}
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, about)
	columns = append(columns, "layouts: what is deleted")
	fmt.Fprintf(&b, "| %s |\n%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	var sum summary
	var rows []string
	layouts := map[string][]string{}
	for _, r := range results {
		cells := r.usualCells(&sum)
		if safe {
			cells = append(cells, r.safeCell(&sum))
		}
		row := strings.Join(cells, " | ")
		if layouts[row] == nil {
			rows = append(rows, row)
		}
		layouts[row] = append(layouts[row], "`"+r.layout.name+"`: "+r.layout.about)
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", row, strings.Join(layouts[row], "<br>"))
	}
	fmt.Fprintf(&b, "\n%d layouts.\n\n", len(results))
	fmt.Fprintf(&b, "- Objects that were said to go and stayed, or said to stay and went: %d.\n", sum.wrong)
	fmt.Fprintf(&b, "- Layouts with false alarms, objects that were said to get stuck and went: %s.\n", list(sum.alarms))
	fmt.Fprintf(&b, "- Layouts with objects that were said to go, and took more than a minute: %s.\n", list(sum.late))
	if safe {
		fmt.Fprintf(&b, "- Layouts in which `--order=safe` left something although an order exists in which all goes: %s.\n", list(sum.held))
	}
	return b.String()
}

// usualCells are the preview, and what kubectl left.
func (r *result) usualCells(sum *summary) []string {
	o := r.usual
	if o == nil {
		return []string{"failed", "failed"}
	}
	preview, usual := told(o.sayings), left(o.sayings, o.there)
	if !*full {
		usual = "not waited for"
	}
	j := judge(o.sayings, o.there)
	if n := len(j.wrong) + len(j.unsaid); n > 0 {
		sum.wrong += n
		preview += " (**wrong**)"
	}
	if len(o.late) > 0 {
		sum.late = append(sum.late, fmt.Sprintf("%s (%s)", r.layout.name, count(o.late)))
	}
	if len(j.alarms) > 0 {
		var refs []ref
		for _, s := range j.alarms {
			refs = append(refs, s.Object)
		}
		sum.alarms = append(sum.alarms, fmt.Sprintf("%s (%s)", r.layout.name, count(refs)))
	}
	return []string{preview, usual}
}

// safeCell is what --order=safe left.
func (r *result) safeCell(sum *summary) string {
	o := r.safe
	if o == nil {
		return "failed"
	}
	cell := left(o.sayings, o.there)
	switch {
	case !r.layout.possible:
		cell += ", as with any order"
	case cell != allGone:
		sum.held = append(sum.held, r.layout.name)
	}
	return fmt.Sprintf("%s; %d", cell, o.code)
}

// list writes names, and their number.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}
