// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxLinks is the number of links of a chain that are shown; of longer ones the
// middle is left out.
const maxLinks = 12

// mostCauses is the number of causes that are shown whole; of others there is a line.
const mostCauses = 30

// verdicts are the verdicts in the order in which a report counts them.
var verdicts = []struct {
	verdict explain.Verdict
	color   color
}{
	{explain.Stuck, red}, {explain.Unknown, yellow}, {explain.Progressing, green}, {explain.Pending, green}, {explain.NotTerminating, noColor}, {explain.NotFound, noColor},
}

// StuckText writes all of an explanation for a person: the verdict first, then each
// cause with the way to it, the evidence, and what to do.
type StuckText struct {
	Style Style
	Now   time.Time
	// Cause is the number of the only cause that is explained, 0 for all.
	Cause int
	out   *bufio.Writer
}

// Write prints the report.
func (t *StuckText) Write(w io.Writer, report *explain.Report) error {
	t.out = bufio.NewWriter(w)
	if t.Cause > 0 {
		c, err := causeOf(report, t.Cause)
		if err != nil {
			return err
		}
		t.cause(fmt.Sprintf("%d. ", t.Cause), c, report)
		return t.out.Flush()
	}
	if len(report.Objects) == 1 {
		t.verdict(report.Objects[0])
	} else {
		t.counts(report)
	}
	shown, folds := fold(report)
	for i, c := range shown {
		title := ""
		if len(report.Causes) > 1 {
			title = fmt.Sprintf("%d. ", slices.Index(report.Causes, c)+1)
		}
		if i < mostCauses {
			t.cause(title, c, report)
			continue
		}
		if i == mostCauses {
			fmt.Fprintf(t.out, "\n%d more, a line each; -o json explains them:\n", len(shown)-i)
		}
		t.line("%s%s: %s [%s]: %s", title, c.Verdict, c.Object, c.ID, c.Summary)
	}
	for _, f := range folds {
		fmt.Fprintln(t.out)
		t.line("%d more like %d: %s; -o json explains each", len(f.more), slices.Index(report.Causes, shown[f.like])+1, names(f.more))
	}
	if len(report.Objects) > 1 {
		t.others(report)
	}
	return t.out.Flush()
}

// line writes a line of text that may hold names from the cluster. On a terminal it is
// broken between words, and goes on a little to the right of where it began.
func (t *StuckText) line(format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	words := strings.TrimLeft(text, " ")
	begun := text[:len(text)-len(words)]
	fmt.Fprint(t.out, begun)
	t.Style.flow(t.out, words, len(begun), begun+"  ")
}

// command writes a command, which stays in one piece so that it can be copied.
func (t *StuckText) command(format string, args ...any) {
	fmt.Fprintln(t.out, printable(fmt.Sprintf(format, args...)))
}

func colorOf(verdict explain.Verdict) color {
	for _, v := range verdicts {
		if v.verdict == verdict {
			return v.color
		}
	}
	return noColor
}

// verdict writes the answer for a single object.
func (t *StuckText) verdict(o explain.Explanation) {
	fmt.Fprintf(t.out, "%s: %s\n", t.Style.paint(string(o.Verdict), colorOf(o.Verdict)), printable(o.Object.String()+t.since(o)))
	if o.Why != "" {
		t.line("  %s", o.Why)
	}
	switch {
	case o.Verdict == explain.NotTerminating && !o.Remade():
		t.line("  it is not being deleted: no DELETE reached it, or it was refused")
	case o.Verdict == explain.NotTerminating:
		t.line("  it is not being deleted")
	case len(o.Findings) == 0:
		t.chain(o.Chain)
	}
}

func (t *StuckText) since(o explain.Explanation) string {
	if o.Since.IsZero() {
		return ""
	}
	return ", terminating for " + duration.HumanDuration(max(t.Now.Sub(o.Since), 0))
}

// counts writes how many objects have which verdict.
func (t *StuckText) counts(report *explain.Report) {
	parts := tally(report, t.Style, func(v explain.Verdict, n int) string { return fmt.Sprintf("%s: %d", v, n) })
	fmt.Fprintf(t.out, "%s of %d objects\n", strings.Join(parts, ", "), len(report.Objects))
}

// tally says of each verdict that there is how many objects have it.
func tally(report *explain.Report, style Style, say func(explain.Verdict, int) string) []string {
	numbers := map[explain.Verdict]int{}
	for i := range report.Objects {
		numbers[report.Objects[i].Verdict]++
	}
	var parts []string
	for _, v := range verdicts {
		if n := numbers[v.verdict]; n > 0 {
			parts = append(parts, style.paint(say(v.verdict, n), v.color))
		}
	}
	return parts
}

// cause writes one cause.
func (t *StuckText) cause(title string, c *explain.Cause, report *explain.Report) {
	fmt.Fprintf(t.out, "\n%s%s: %s\n", title, t.Style.paint(string(c.Verdict), colorOf(c.Verdict)), printable(c.Object.String()+" ["+c.ID+"]"))
	t.line("  %s", c.Summary)
	if !c.Until.IsZero() {
		t.line("  until %s", c.Until.UTC().Format(time.RFC3339))
	}
	if c.Blocks > 1 {
		t.line("  blocks %d deletions", c.Blocks)
	}
	t.chainTo(c, report)
	if len(c.Evidence) > 0 {
		fmt.Fprintln(t.out, "  evidence:")
		t.evidence(c.Evidence)
	}
	if c.Controller != nil {
		label, text := controllerState(c.Controller)
		t.line("  %s: %s", label, text)
		t.evidence(c.Controller.Evidence)
	}
	if len(c.Remedies) > 0 {
		fmt.Fprintln(t.out, "  what to do:")
	}
	for i, r := range c.Remedies {
		if i == 0 || !r.Reads(&c.Remedies[i-1]) { // the same for another object needs no more words
			t.remedy(r)
		}
		if r.Command != "" {
			t.command("      %s", r.Command)
		}
		if r.Undo != "" {
			t.command("      undo: %s", r.Undo)
		}
	}
}

// liveness says whether a controller works.
var liveness = map[string]string{
	controllers.Alive: "works", controllers.Dead: "does not run", controllers.Absent: "not found", controllers.Denied: "not allowed to change the object",
	controllers.Unsure: "not known whether it works",
}

// controllerState names a controller, and says whether it works: "controller", "deployment/x (works)", or for one that is known only by its
// finalizer "controller of FINALIZER", "not found".
func controllerState(c *explain.Controller) (label, text string) {
	state := cmp.Or(liveness[c.Liveness], c.Liveness)
	if at, of := c.Name.Find(controllers.ControllerOf); at == 0 {
		return "controller of " + fmt.Sprint(of...), state
	}
	return "controller", c.Name.String() + " (" + state + ")"
}

func (t *StuckText) evidence(all []explain.Evidence) {
	for _, e := range all {
		what := e.Source
		switch {
		case e.Path != "" && e.Source == explain.FromCatalogue: // its paths say what follows
			what += ": " + e.Path
		case e.Path != "":
			what += " " + e.Path
		}
		t.line("    %s: %s", what, e.Value)
	}
}

// remedy writes what a remedy does; its command follows.
func (t *StuckText) remedy(r explain.Remedy) {
	riskColors := map[explain.Risk]color{explain.Safe: green, explain.Disruptive: yellow, explain.Dangerous: red}
	fmt.Fprintf(t.out, "    %s ", t.Style.paint("["+string(r.Risk)+"]", riskColors[r.Risk]))
	t.Style.flow(t.out, printable(r.Effect.String()), len("    [] ")+len(r.Risk), "      ")
	if leaks := r.Leaks(); leaks != "" {
		t.line("      leaves behind or loses: %s", leaks)
	}
}

// chainTo shows how the first of the objects that wait for the cause comes to
// it, and names the others.
func (t *StuckText) chainTo(c *explain.Cause, report *explain.Report) {
	longest, held := chainOf(c, report)
	if len(longest) > 0 && (len(longest) > 1 || !longest[0].Because.IsZero()) {
		fmt.Fprintln(t.out, "  chain:")
		t.chain(longest)
	}
	if len(held) > 1 {
		t.line("  objects that wait for it: %s", names(held))
	}
}

func (t *StuckText) chain(links []explain.Link) {
	for i, link := range links {
		if len(links) > maxLinks && i >= maxLinks/2 && i < len(links)-maxLinks/2 {
			if i == maxLinks/2 {
				t.line("    ... %d more", len(links)-maxLinks)
			}
			continue
		}
		text := link.Object.String()
		if !link.Because.IsZero() && (i < len(links)-1 || i == 0) {
			text += ": " + link.Because.String()
		}
		if link.Symptom != "" && i < len(links)-1 {
			text += " [" + link.Symptom + "]"
		}
		lead := ""
		if i > 0 {
			lead = strings.Repeat("  ", i-1) + t.Style.drawing().last.lead
			if i > maxLinks/2 {
				lead = strings.Repeat("  ", maxLinks/2) + t.Style.drawing().last.lead
			}
		}
		fmt.Fprint(t.out, "    "+lead)
		begun := 4 + utf8.RuneCountInString(lead)
		t.Style.flow(t.out, printable(text), begun, strings.Repeat(" ", begun+2))
	}
}

// others names the objects without a cause.
func (t *StuckText) others(report *explain.Report) {
	for _, v := range verdicts {
		var ids []graph.Identity
		for _, o := range report.Objects {
			if o.Verdict == v.verdict && len(o.Findings) == 0 {
				ids = append(ids, o.Object)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(t.out, "\n%s: %s\n", t.Style.paint(string(v.verdict), v.color), printable(names(ids)+meaning[v.verdict]))
		}
	}
}

var meaning = map[explain.Verdict]string{
	explain.Pending:        ": the garbage collector, or another controller of kube-controller-manager, has to act, and nothing prevents that",
	explain.NotTerminating: ": not being deleted",
	explain.NotFound:       ": there is no such object",
}

// Unread writes what an explanation could not read besides what its snapshot
// could not list.
func Unread(w io.Writer, report *explain.Report) error {
	for _, what := range report.Unread {
		failed := "could not read "
		if isClause(what) {
			failed = "could not find out "
		}
		if _, err := fmt.Fprintln(w, "warning: "+failed+printable(what)); err != nil {
			return err
		}
	}
	return nil
}

// isClause reports whether something that is not known is said by a clause, not by the
// name of what could not be read.
func isClause(what string) bool {
	first, _, _ := strings.Cut(what, " ")
	return first == "whether" || first == "who" || first == "what"
}
