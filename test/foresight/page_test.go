// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"strings"
)

const pageHead = `# Layouts

What previews say, and what happens: operators with everything that belongs to them, in many layouts, on a control plane
on which they work. A row has what ` + "`kubectl gc delete --dry-run`" + ` says of a deletion; what is left a minute after
` + "`kubectl delete`" + ` of the same objects; and what ` + "`kubectl gc delete --order=safe`" + ` leaves of another copy, with its
exit code. ` + "`make foresight`" + ` runs them and writes this page. [The layouts](../test/foresight/layouts_test.go) are a
table, and [the operator](../test/foresight/toy) is a small program.

Unless the row says something else, one operator for all namespaces is in one of its own, and keeps a finalizer on two
objects in another. It takes a second to clean up, and stops when its pod is told to end.

| layout | what is deleted | preview | kubectl delete | --order=safe |
|---|---|---|---|---|
`

// table is the page.
func table(results []*result) string {
	var b strings.Builder
	b.WriteString(pageHead)
	wrong, alarms, held, late := 0, []string{}, []string{}, []string{}
	for _, r := range results {
		preview, usual, safe := "failed", "failed", "not run"
		if o := r.usual; o != nil {
			preview, usual = told(o.sayings), left(o.sayings, o.there)
			if !*full {
				usual = "not waited for"
			}
			j := judge(o.sayings, o.there)
			if n := len(j.wrong) + len(j.unsaid); n > 0 {
				wrong += n
				preview += " (**wrong**)"
			}
			if len(o.late) > 0 {
				late = append(late, fmt.Sprintf("%s (%s)", r.layout.name, count(o.late)))
			}
			if len(j.alarms) > 0 {
				var refs []ref
				for _, s := range j.alarms {
					refs = append(refs, s.Object)
				}
				alarms = append(alarms, fmt.Sprintf("%s (%s)", r.layout.name, count(refs)))
			}
		}
		if o := r.safe; o != nil {
			safe = fmt.Sprintf("%s, %d", left(o.sayings, o.there), o.code)
			if r.layout.possible && !strings.HasPrefix(safe, "all gone") {
				held = append(held, r.layout.name)
			}
		} else if r.safeError != nil {
			safe = "failed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.layout.name, r.layout.about, preview, usual, safe)
	}
	fmt.Fprintf(&b, "\n%d layouts. Objects that were said to go and stayed, or said to stay and went: %d.\n", len(results), wrong)
	fmt.Fprintf(&b, "Layouts with false alarms, objects that were said to get stuck and went: %s.\n", list(alarms))
	fmt.Fprintf(&b, "Layouts with objects that were said to go, and went, but took more than a minute: %s.\n", list(late))
	fmt.Fprintf(&b, "Layouts in which `--order=safe` left something although an order exists in which nothing is left: %s.\n", list(held))
	return b.String()
}

// list writes names, and their number.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}
