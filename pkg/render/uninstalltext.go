// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

// UninstallText writes what a tool does for a person: the worst first, then what it deletes, what it keeps and what is left behind,
// and at last what to do next. With steps it has the tool's order, too.
func UninstallText(w io.Writer, style Style, u *Uninstall, steps bool, next string) error {
	t := &uninstallText{Style: style, Uninstall: u, out: bufio.NewWriter(w)}
	going, _ := u.Targets()
	t.flow(t.out, fmt.Sprintf("%s  %s (%s), %s", t.paint("PREVIEW", bold), cmp.Or(strings.Join(u.Command, " "), u.Tool), u.Order, plural(len(going), "object")), 0, "         ")
	if u.Halt != nil {
		t.row(cross, "NO DELETES", red, openSays(u.Halt))
	}
	t.outcomes()
	t.foresight(steps)
	for i := range u.Open {
		if o := &u.Open[i]; o.Cause == uninstall.Refused {
			t.row(cross, "FAILS", red, openSays(o))
		} else {
			t.row(question, "NOT KNOWN", yellow, openSays(o))
		}
	}
	t.sets()
	if steps {
		t.order()
	}
	if next != "" {
		t.row("", "Next:", bold, next)
	}
	return t.out.Flush()
}

// mark is a sign of how bad a row is, where the terminal has such.
type mark string

const (
	cross    mark = "✗"
	warning  mark = "!"
	question mark = "?"
)

// labelWidth is the width of the first column.
const labelWidth = 14

type uninstallText struct {
	Style
	*Uninstall
	out *bufio.Writer
}

// row writes a row under a label.
func (t *uninstallText) row(m mark, label string, c color, text string) {
	if m != "" && t.Unicode {
		label = string(m) + " " + label
	}
	fmt.Fprint(t.out, t.paint(label, c), strings.Repeat(" ", max(labelWidth-len([]rune(label)), 1)))
	t.flow(t.out, printable(text), labelWidth, strings.Repeat(" ", labelWidth))
}

// sharing are objects of which the same is said.
type sharing struct {
	text string
	ids  []graph.Identity
}

// alikeOf joins objects of which the same is said, in their order.
func alikeOf[T any](all []T, of func(*T) (graph.Identity, string)) []sharing {
	var rows []sharing
	for i := range all {
		id, text := of(&all[i])
		at := slices.IndexFunc(rows, func(r sharing) bool { return r.text == text })
		if at < 0 {
			at, rows = len(rows), append(rows, sharing{text: text})
		}
		rows[at].ids = append(rows[at].ids, id)
	}
	return rows
}

// rows writes a row for each of them.
func (t *uninstallText) rows(m mark, label string, c color, all []sharing) {
	for _, r := range all {
		text := objectNames(r.ids)
		if r.text != "" {
			text += ": " + r.text
		}
		t.row(m, label, c, text)
	}
}

// outcomes are what gets stuck, or may.
func (t *uninstallText) outcomes() {
	for _, k := range []struct {
		result gc.Result
		mark   mark
		label  string
		color  color
	}{{gc.Remaining, cross, "STUCK", red}, {gc.Unknown, warning, "MIGHT STICK", yellow}} {
		var all []gc.Outcome
		for _, o := range t.Preview.Report.Outcomes {
			if o.Result == k.result && !t.asked(&o) {
				all = append(all, o)
			}
		}
		slices.SortStableFunc(all, func(a, b gc.Outcome) int { return cmp.Compare(derived(&a), derived(&b)) })
		hook := t.hook()
		if k.result == gc.Remaining && hook != "" {
			k.mark, k.label, k.color = question, "NOT KNOWN", yellow
		} else {
			hook = ""
		}
		t.rows(k.mark, k.label, k.color, alikeOf(all, func(o *gc.Outcome) (graph.Identity, string) {
			why := o.Reason
			for _, prefix := range []string{"stuck: ", "might get stuck: ", "might get stuck "} { // which the label says
				why = strings.TrimPrefix(why, prefix)
			}
			if o.Object.Resource.IsCRD() && strings.HasPrefix(why, "finalizer customresourcecleanup.apiextensions.k8s.io") {
				why = "its instances must be deleted first"
			}
			if hook != "" {
				why = unlessHook(hook, why)
			}
			return o.Object.Identity(), why
		}))
	}
}

// asked reports whether what is said of an outcome is said as not known, too.
func (t *uninstallText) asked(o *gc.Outcome) bool {
	return slices.ContainsFunc(t.Open, func(open uninstall.Open) bool { return open.Item.Name == o.Object.Name && open.Says() == o.Reason })
}

// derived is 1 for what waits for other objects, which come first.
func derived(o *gc.Outcome) int {
	if o.Object.Resource.IsCRD() || o.Object.Resource.IsNamespace() {
		return 1
	}
	return 0
}

// foresight is what breaks, hangs later, is lost or comes back; all of it, or without what is not certain and no data.
func (t *uninstallText) foresight(all bool) {
	if t.Sight == nil {
		return
	}
	uncertain := func(text string, certain bool) string {
		if certain {
			return text
		}
		return text + " (not certain)"
	}
	hangs := func(b foresight.Break) bool { return b.Strands() != nil }
	breaks := slices.DeleteFunc(slices.Clone(t.Sight.Breaks), hangs)
	t.rows(cross, "BREAKS", red, alikeOf(breaks, func(b *foresight.Break) (graph.Identity, string) { return b.Object, uncertain(b.Says(), b.Certain) }))
	later := slices.DeleteFunc(slices.Clone(t.Sight.Breaks), func(b foresight.Break) bool { return !hangs(b) })
	t.rows(cross, "HANGS LATER", red, alikeOf(later, func(b *foresight.Break) (graph.Identity, string) { return b.Object, uncertain(b.Says(), b.Certain) }))
	for _, kind := range lossKinds {
		if kind.color == noColor {
			continue // what stays is in the sets
		}
		lost := slices.DeleteFunc(slices.Clone(t.Sight.Lost), func(l foresight.Loss) bool { return !kind.is(&l) || !all && !l.Certain && kind.color != red })
		label := "LOST"
		if kind.color == red {
			label = "DATA LOST"
		}
		t.rows(warning, label, kind.color, alikeOf(lost, func(l *foresight.Loss) (graph.Identity, string) { return l.Object, uncertain(l.Says(), l.Certain) }))
	}
	t.rows(warning, "RETURNS", yellow, alikeOf(t.Sight.Returns, func(r *foresight.Return) (graph.Identity, string) { return r.Object, uncertain(r.Says(), r.Certain) }))
	for _, unread := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Sight.Unread, t.Unread)))) {
		t.row(question, "NOT READ", yellow, unread)
	}
}

// sets are what the tool deletes, keeps and leaves, and what is gone already.
func (t *uninstallText) sets() {
	var deleted []*gc.Outcome
	for i := range t.Preview.Report.Outcomes {
		if o := &t.Preview.Report.Outcomes[i]; o.Result == gc.Deleted {
			deleted = append(deleted, o)
		}
	}
	if len(deleted) > 0 {
		t.row("", "deletes", noColor, counts(deleted))
	}
	t.rows("", "keeps", noColor, alikeOf(t.Kept, func(k *uninstall.Kept) (graph.Identity, string) {
		return k.Object, withInstances(k.Says(), k.Instances)
	}))
	t.rows("", "leaves", noColor, alikeOf(t.Left, func(l *uninstall.Left) (graph.Identity, string) {
		return l.Object, withInstances(l.Says(), l.Instances)
	}))
	if t.Sight != nil {
		stays := slices.DeleteFunc(slices.Clone(t.Sight.Lost), func(l foresight.Loss) bool { return !l.Stays || l.Claims() != nil })
		t.rows("", "keeps", noColor, alikeOf(stays, func(l *foresight.Loss) (graph.Identity, string) { return l.Object, l.Says() }))
	}
	if len(t.Absent) > 0 {
		t.rows("", "gone already", noColor, alikeOf(t.Absent, func(i *uninstall.Item) (graph.Identity, string) { return i.Identity(), "" }))
	}
}

func withInstances(text string, n int) string {
	if n == 0 {
		return text
	}
	return text + "; it has " + plural(n, "instance")
}

// order is that of the tool.
func (t *uninstallText) order() {
	for i, b := range t.Barriers {
		step := fmt.Sprintf("step %d", i+1)
		if b.Kind == "" && b.By.Name == "" {
			step = "at once"
		}
		names := allNames(b.Objects)
		if b.By.Name != "" {
			names += fmt.Sprintf(" (by the controller of %s)", objectName(b.By))
		}
		t.row("", step, noColor, names)
	}
}

func openSays(o *uninstall.Open) string {
	if o.Item.Kind == "" {
		return o.Says()
	}
	return objectName(o.Item.Identity()) + ": " + o.Says()
}

// objectNames names the first few objects as users of kubectl do, with the namespace once where it is the same.
func objectNames(ids []graph.Identity) string {
	text := allNames(ids[:min(len(ids), maxNamed)])
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func allNames(ids []graph.Identity) string {
	var names []string
	for i, id := range ids {
		if i+1 < len(ids) && ids[i+1].Namespace == id.Namespace {
			id.Namespace = ""
		}
		names = append(names, objectName(id))
	}
	return strings.Join(names, ", ")
}
