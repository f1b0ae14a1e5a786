// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Report writes what a run has done, what that has come to, and what is left.
func (t *UnstickText) Report(w io.Writer, r *unstick.Report, outcome *unstick.Outcome) error {
	t.begin(w, r.Last.Report)
	for i := range r.Records {
		rec := &r.Records[i]
		switch rec.Result {
		case unstick.Refused, unstick.Reverted, unstick.Unanswered, unstick.NotTakenBack:
			t.flow("", resultText(rec))
			if apierrors.IsForbidden(rec.Err) && rec.Result != unstick.NotTakenBack {
				t.answer.command(rec.Write.Remedy.Command, 5)
			}
		}
	}
	if len(outcome.Freed) > 0 {
		t.verdict("FREED", green, NamesOf(outcome.Freed))
	}
	for i := range outcome.Bare {
		t.verdict("FREED", yellow, bareText(&outcome.Bare[i]))
	}
	left := map[explain.Verdict][]graph.Identity{}
	for _, o := range outcome.Left {
		left[o.Verdict] = append(left[o.Verdict], o.Object)
	}
	for i := range r.Last.Report.Objects {
		if o := &r.Last.Report.Objects[i]; o.Verdict == explain.NotTerminating {
			left[o.Verdict] = append(left[o.Verdict], o.Object)
		}
	}
	for _, v := range []explain.Verdict{explain.Stuck, explain.Unknown, explain.Progressing, explain.Pending, explain.NotTerminating} {
		if len(left[v]) > 0 {
			t.verdict(spoken[v], colorOf(v), NamesOf(left[v]))
		}
		if v == explain.Unknown {
			t.unknown(r.Last.Report)
		}
	}
	for i := range r.Plan.Choices {
		if c := &r.Plan.Choices[i]; c.Cause.Verdict == explain.Stuck || c.Cause.Verdict == explain.Unknown {
			t.choice(c, r.Last.Report)
		}
	}
	return t.out.Flush()
}

// bareText says of an object that is gone what it has left behind, and why that hangs.
func bareText(b *unstick.Bare) string {
	var ids []graph.Identity
	why, hang := "", "are still being deleted"
	for _, o := range b.Hanging {
		ids = append(ids, o.Object)
		if o.Verdict == explain.Stuck || o.Verdict == explain.Unknown {
			hang = "still hang"
		}
		if len(o.Findings) > 0 && why == "" {
			why = fmt.Sprintf(" (%s: %s)", objectName(o.Findings[0].Cause.Object), o.Findings[0].Cause.Summary)
		}
	}
	if len(ids) == 1 {
		hang = strings.NewReplacer("hang", "hangs", "are ", "is ").Replace(hang)
	}
	return fmt.Sprintf("%s; its %s %s%s", objectName(b.Object), NamesOf(ids), hang, why)
}

// unknown says of objects about which nothing is certain why, where no cause says that.
func (t *UnstickText) unknown(report *explain.Report) {
	var said []string
	for i := range report.Objects {
		o := &report.Objects[i]
		if o.Verdict != explain.Unknown || len(o.Findings) > 0 {
			continue
		}
		why := "not enough could be read"
		if len(o.Chain) > 0 && !o.Chain[0].Because.IsZero() {
			why = worded(o.Chain[0].Because)
		}
		if !slices.Contains(said, why) {
			said = append(said, why)
			t.answer.part("", noColor, why+after("; ", askAgain(report)))
		}
	}
}

// verdict writes what became of objects; the first says where.
func (t *UnstickText) verdict(word string, c color, text string) {
	t.answer.part(word, c, text)
	t.Style.where(t.out, margin, t.Where)
	t.Where = nil
}
