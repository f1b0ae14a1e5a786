// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mark is a sign of how bad a row is, where the terminal has such.
type mark string

const (
	cross    mark = "✗"
	warning  mark = "!"
	question mark = "?"
)

// labelWidth is the width of the first column.
const labelWidth = 14

// maxRows is the number of rows of one label; more are counted, unless all are wanted.
const maxRows = 10

// rows writes the preview of a deletion for a person: rows under labels, the worst first.
type rows struct {
	Style
	out *bufio.Writer
	// all: every row. brief: none of what is lost that is neither certain nor data.
	all, brief bool
}

// heading is the first line: what is previewed, which is printable, and about how many objects.
func (r *rows) heading(what string, objects int) {
	r.flow(r.out, fmt.Sprintf("%s  %s, %s", r.paint("PREVIEW", bold), what, plural(objects, "object")), 0, "         ")
}

// row writes a row under a label.
func (r *rows) row(m mark, label string, c color, text string) {
	if m != "" && r.Unicode {
		label = string(m) + " " + label
	}
	fmt.Fprint(r.out, r.paint(label, c), strings.Repeat(" ", max(labelWidth-len([]rune(label)), 1)))
	r.flow(r.out, printable(text), labelWidth, strings.Repeat(" ", labelWidth))
}

// command writes a command under a label, so that it can be pasted.
func (r *rows) command(label, command string) {
	fmt.Fprint(r.out, r.paint(label, bold), strings.Repeat(" ", labelWidth-len(label)))
	for i, line := range breakCommand(printable(command), r.Width-labelWidth) {
		if i > 0 {
			line = strings.Repeat(" ", labelWidth) + line
		}
		fmt.Fprintln(r.out, line)
	}
}

// sharing are objects of which the same is said.
type sharing struct {
	text string
	ids  []graph.Identity
}

// alikeOf joins objects of which the same is said, in their order.
func alikeOf[T any](all []T, of func(*T) (graph.Identity, string)) []sharing {
	var joined []sharing
	at := map[string]int{}
	for i := range all {
		id, text := of(&all[i])
		k, known := at[text]
		if !known {
			k, joined = len(joined), append(joined, sharing{text: text})
			at[text] = k
		}
		joined[k].ids = append(joined[k].ids, id)
	}
	return joined
}

// each writes a row for each of them.
func (r *rows) each(m mark, label string, c color, all []sharing) {
	shown := len(all)
	if !r.all && shown > maxRows {
		shown = maxRows
	}
	for _, s := range all[:shown] {
		text := NamesOf(s.ids)
		if s.text != "" {
			text += ": " + s.text
		}
		r.row(m, label, c, text)
	}
	left := 0
	for _, s := range all[shown:] {
		left += len(s.ids)
	}
	if left > 0 {
		r.row(m, label, c, plural(left, "more object")+": -o wide shows them")
	}
}

// unended are the outcomes that are no end, the worst first.
var unended = []struct {
	is    func(*gc.Outcome) bool
	mark  mark
	label string
	color color
}{
	{func(o *gc.Outcome) bool { return o.Result == gc.Remaining }, cross, "STUCK", red},
	{func(o *gc.Outcome) bool { return o.Result == gc.Unknown && !o.Undecided }, warning, "MIGHT STICK", yellow},
	{func(o *gc.Outcome) bool { return o.Result == gc.Unknown && o.Undecided }, question, "NOT KNOWN", yellow},
}

// whyHeld says what holds an object, without what the label says.
func whyHeld(o *gc.Outcome) string {
	why := worded(foresight.Bare(o.Reason))
	if at, _ := o.Reason.Find(gc.OfFinalizers); at == 0 && o.Object.Resource.IsCRD() && o.Finalizers[0] == definition.Cleanup {
		why = "its instances must be deleted first"
	}
	switch {
	case len(o.WaitingFor) == 0:
	case len(o.Finalizers) > 0: // of which the reason is
		why += "; waits for " + NamesOf(o.WaitingFor)
	default:
		why += ": " + NamesOf(o.WaitingFor)
	}
	return why
}

// derived is 1 for what waits for other objects, which come first.
func derived(o *gc.Outcome) int {
	if o.Object.Resource.IsCRD() || o.Object.Resource.IsNamespace() {
		return 1
	}
	return 0
}

// only returns those of which something holds, in their order.
func only[T any](all []T, is func(*T) bool) []T {
	var some []T // there may be a hundred thousand others
	for i := range all {
		if is(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// of returns the outcomes of a kind, those first that wait for no others.
func of(all []gc.Outcome, is func(*gc.Outcome) bool) []gc.Outcome {
	some := only(all, is)
	slices.SortStableFunc(some, func(a, b gc.Outcome) int { return cmp.Compare(derived(&a), derived(&b)) })
	return some
}

// foreseen is what breaks, hangs later, is lost or comes back, and what could not be read for that. s may be nil.
func (r *rows) foreseen(s *foresight.Forecast, unread []evidence.Gap) {
	if s == nil {
		return
	}
	uncertain := func(text string, certain bool) string {
		if certain {
			return text
		}
		return text + " (not certain)"
	}
	said := func(b *foresight.Break) (graph.Identity, string) {
		return b.Object, uncertain(worded(b.Why), b.Certain)
	}
	r.each(cross, "BREAKS", red, alikeOf(only(s.Breaks, func(b *foresight.Break) bool { return b.Strands() == nil }), said))
	r.each(cross, "HANGS LATER", red, alikeOf(only(s.Breaks, func(b *foresight.Break) bool { return b.Strands() != nil }), said))
	for _, kind := range lossKinds {
		lost := only(s.Lost, func(l *foresight.Loss) bool { return kind.is(l) && (!r.brief || l.Certain || kind.color == red) })
		sign, label := warning, kind.label
		if count, text := Destroyed(lost); count > 1 {
			r.row(sign, label, kind.color, text)
			sign, label = "", ""
		}
		r.each(sign, label, kind.color,
			alikeOf(lost, func(l *foresight.Loss) (graph.Identity, string) { return l.Object, uncertain(worded(l.Why), l.Certain) }))
	}
	r.each(warning, "RETURNS", yellow, alikeOf(s.Returns, func(r *foresight.Return) (graph.Identity, string) {
		return r.Object, uncertain(worded(r.Why), r.Certain)
	}))
	all := evidence.JoinGaps(s.Unread, unread)
	if count := len(only(all, func(g *evidence.Gap) bool { return g.Forbidden })); count > 1 && !r.all {
		all = slices.DeleteFunc(all, func(g evidence.Gap) bool { return g.Forbidden })
		r.row(question, "NOT READ", yellow, fmt.Sprintf("%d reads were forbidden: -o wide lists them", count))
	}
	for _, what := range all {
		r.row(question, "NOT READ", yellow, what.String())
	}
}

// lossKinds are what is lost with what is deleted, the gravest first.
var lossKinds = []struct {
	label string
	color color
	is    func(*foresight.Loss) bool
}{
	{"DATA LOST", red, func(l *foresight.Loss) bool { return l.Volume != "" }},
	{"LOST", yellow, func(l *foresight.Loss) bool { return l.Volume == "" && !l.Stays }},
}

// Destroyed counts volumes and snapshots, and says that with their sizes: "at least" where one is not known.
func Destroyed(lost []foresight.Loss) (count int, text string) {
	var sum resource.Quantity
	least, what := "", "volumes"
	for i := range lost {
		if lost[i].Volume == "" {
			continue
		}
		if count++; lost[i].Copy {
			what = "volumes and snapshots"
		}
		if q, err := resource.ParseQuantity(lost[i].Size); err == nil {
			sum.Add(q)
		} else {
			least = "at least "
		}
	}
	return count, fmt.Sprintf("%s%s in %d %s", least, sum.String(), count, what)
}

// stays is what is kept with its data, or for another reason, although its object is deleted. s may be nil.
func (r *rows) stays(s *foresight.Forecast, is func(*foresight.Loss) bool) {
	if s == nil {
		return
	}
	said := func(l *foresight.Loss) (graph.Identity, string) { return l.Object, worded(l.Why) }
	kept := only(s.Lost, func(l *foresight.Loss) bool { return l.Stays && is(l) })
	r.each("", "data kept", noColor, alikeOf(only(kept, func(l *foresight.Loss) bool { return l.Certain }), said))
	r.each(question, "NOT KNOWN", yellow, alikeOf(only(kept, func(l *foresight.Loss) bool { return !l.Certain }), said))
}

// counted counts the outcomes of a result, by kind.
func (r *rows) counted(label string, all []gc.Outcome, result gc.Result) {
	if some := withResult(all, result); len(some) > 0 {
		r.row("", label, noColor, counts(some))
	}
}

// NamesOf names the first few objects as users of kubectl do, with the namespace once where it is the same.
func NamesOf(ids []graph.Identity) string {
	text := allNames(ids[:min(len(ids), maxNamed)])
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// allNames has what is in no namespace come last: a -n is that of all names before it back to the one before.
func allNames(ids []graph.Identity) string {
	var names []string
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b graph.Identity) int { return cmp.Compare(inNone(&a), inNone(&b)) })
	for i, id := range ids {
		if i+1 < len(ids) && ids[i+1].Namespace == id.Namespace {
			id.Namespace = ""
		}
		names = append(names, objectName(id))
	}
	return strings.Join(names, ", ")
}

// inNone is 1 for what is in no namespace.
func inNone(id *graph.Identity) int {
	if id.Namespace == "" {
		return 1
	}
	return 0
}
