// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Preview is what a deletion would do, for a person.
type Preview struct {
	// What is done, as a command says it.
	What string
	// Where it would be done, nil for a file.
	Where  *answer.Where
	Report *gc.Report
	// Forecast is what is foreseen, nil when there is nothing to foresee.
	Forecast *foresight.Forecast
	// Safe: the waves of Forecast are those in which it would be done.
	Safe bool
	// Instead is a command with which nothing gets stuck that would not have to, empty for none.
	Instead string
	// Plan has the writes, nil where they are not to be shown. Asking: a question follows, so that no digest has to approve them.
	Plan   *DeletionPlan
	Asking bool
}

// Text writes it: the worst first, then what is deleted and what is kept, then what to do next. Steps are the writes in
// their order, and why what is deleted is.
func (p *Preview) Text(w io.Writer, style Style, steps bool) error {
	t := &rows{Style: style, out: bufio.NewWriter(w), all: steps}
	t.heading(printable(p.What), len(p.Report.Outcomes)-p.kept())
	style.where(t.out, margin, p.Where)
	for _, k := range unended {
		t.each(k.mark, k.label, k.color, alikeOf(of(p.Report.Outcomes, k.is), func(o *gc.Outcome) (graph.Identity, string) {
			return o.Object.Identity(), whyHeld(o)
		}))
	}
	t.foreseen(p.Forecast, nil)
	p.sets(t)
	if p.Safe && p.Forecast != nil {
		for i, wave := range p.Forecast.Waves {
			t.row("", fmt.Sprintf("wave %d", i+1), noColor, NamesOf(wave.Objects)+": "+wave.Why)
		}
	}
	if p.Instead != "" {
		t.command("Instead:", p.Instead)
	}
	if p.Plan == nil {
		return t.out.Flush()
	}
	if len(p.Plan.Steps) == 0 {
		fmt.Fprintln(t.out, NoSteps(p.Report))
		return t.out.Flush()
	}
	return p.writes(t, steps)
}

// kept counts the objects that are not to be deleted.
func (p *Preview) kept() int {
	return len(only(p.Report.Outcomes, func(o *gc.Outcome) bool {
		return o.Result == gc.Orphaned || o.Result == gc.OwnerReferenceRemoved || o.Result == gc.Untouched
	}))
}

// sets are what is deleted and what is kept.
func (p *Preview) sets(t *rows) {
	all := p.Report.Outcomes
	said := func(o *gc.Outcome) (graph.Identity, string) { return o.Object.Identity(), worded(o.Reason) }
	reasons := func(label string, result gc.Result) {
		t.each("", label, noColor, alikeOf(of(all, func(o *gc.Outcome) bool { return o.Result == result && (label != "" || !o.Reason.IsZero()) }),
			said))
	}
	t.counted("deletes", all, gc.Deleted)
	if t.all {
		reasons("", gc.Deleted)
	}
	t.counted("orphans", all, gc.Orphaned)
	reasons("", gc.Orphaned)
	t.each("", "keeps", noColor, alikeOf(of(all, func(o *gc.Outcome) bool { return o.Result == gc.OwnerReferenceRemoved }),
		func(o *gc.Outcome) (graph.Identity, string) {
			return o.Object.Identity(), worded(o.Reason) + "; loses its other owner references"
		}))
	reasons("keeps", gc.Untouched)
	t.stays(p.Forecast, func(*foresight.Loss) bool { return true })
}

// writes are the steps in order or their number, what the server said to the deletions that follow, and the digest that
// confirms all of it.
func (p *Preview) writes(t *rows, steps bool) error {
	gap := ""
	if steps {
		gap = "\n"
		fmt.Fprintln(t.out)
		if err := p.Plan.writeSteps(t.out, t.Style); err != nil {
			return err
		}
	}
	p.Plan.Afterwards.write(t.out, t.Style) // an error shows below
	fmt.Fprint(t.out, gap)
	if !steps {
		t.row("", "Writes:", bold, fmt.Sprintf("%d; --steps shows them", len(p.Plan.Steps)))
	}
	if !p.Asking {
		fmt.Fprintf(t.out, "Approve exactly this: --confirm=%s\n", answer.Short(p.Plan.Digest))
	}
	return t.out.Flush()
}

// Lines are what the preview says before its writes, each without colour, for a picture.
func (p *Preview) Lines() []string {
	var text strings.Builder // which cannot fail
	t := &rows{out: bufio.NewWriter(&text), all: true}
	t.foreseen(p.Forecast, nil)
	t.stays(p.Forecast, func(*foresight.Loss) bool { return true })
	_ = t.out.Flush()
	return strings.FieldsFunc(text.String(), func(r rune) bool { return r == '\n' })
}
