// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// UninstallText writes what a tool does for a person: the worst first, then what it deletes, what it keeps and what is left behind,
// and at last what to do next, and afterwards. With steps it has the tool's order, too.
func UninstallText(w io.Writer, style Style, where *answer.Where, u *Uninstall, steps bool, next, afterwards string) error {
	t := &uninstallText{rows{Style: style, out: bufio.NewWriter(w), all: steps, brief: !steps}, u}
	t.heading(fmt.Sprintf("%s (%s)", cmp.Or(strings.Join(u.Command, " "), u.Tool), u.Order), len(u.Targets()))
	style.where(t.out, margin, where)
	if u.Halt != nil {
		t.row(cross, "NO DELETES", red, openSays(u.Halt))
	}
	t.outcomes()
	t.foreseen(u.Forecast, u.Unread)
	for i := range u.Open {
		switch o := &u.Open[i]; {
		case o.Fails():
			t.row(cross, "FAILS", red, openSays(o))
		case o.Cause == uninstall.Wanted, o.Cause == uninstall.TakenOver:
			t.row(cross, "BREAKS", red, openSays(o))
		default:
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
	if afterwards != "" {
		t.row("", "Leftovers:", bold, afterwards)
	}
	return t.out.Flush()
}

type uninstallText struct {
	rows
	*Uninstall
}

// outcomes are what gets stuck, or may.
func (t *uninstallText) outcomes() {
	for _, k := range unended {
		hook := t.Hook()
		if k.label == "STUCK" && hook != nil {
			k.mark, k.label, k.color = question, "NOT KNOWN", yellow
		} else {
			hook = nil
		}
		all := of(t.Preview.Report.Outcomes, func(o *gc.Outcome) bool { return k.is(o) && !t.Asked(o) })
		t.each(k.mark, k.label, k.color, alikeOf(all, func(o *gc.Outcome) (graph.Identity, string) {
			if hook != nil {
				return o.Object.Identity(), unlessHook(hook, whyHeld(o))
			}
			return o.Object.Identity(), whyHeld(o)
		}))
	}
}

// sets are what the tool deletes, keeps and leaves, and what is gone already.
func (t *uninstallText) sets() {
	t.counted("deletes", t.Preview.Report.Outcomes, gc.Deleted)
	t.each("", "keeps", noColor, alikeOf(t.Kept, func(k *uninstall.Kept) (graph.Identity, string) {
		return k.Object, WithInstances(worded(k.Says()), k.Instances)
	}))
	t.each("", "leaves", noColor, alikeOf(t.Left, func(l *uninstall.Left) (graph.Identity, string) {
		return l.Object, WithInstances(worded(l.Says()), l.Instances)
	}))
	t.stays(t.Forecast, func(l *foresight.Loss) bool { return l.Claims() == nil }) // which are left behind
	if len(t.Absent) > 0 {
		t.each("", "gone already", noColor, alikeOf(t.Absent, func(i *uninstall.Item) (graph.Identity, string) { return i.Identity(), "" }))
	}
}

// WithInstances adds which instances go with a definition.
func WithInstances(text string, instances []graph.Identity) string {
	if len(instances) == 0 {
		return text
	}
	deletes := fmt.Sprintf("its deletion deletes %s: %s", plural(len(instances), "instance"), NamesOf(instances))
	if text == "" {
		return deletes
	}
	return text + "; " + deletes
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
		return worded(o.Says())
	}
	return objectName(o.Item.Identity()) + ": " + worded(o.Says())
}
