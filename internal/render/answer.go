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

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// margin is where the text of an answer begins: its first words stand before it.
	margin = 9
	// mostWays is the number of ways out that an answer names besides the next step.
	mostWays = 3
	// fewCauses is the number of causes up to which each has a line with its way out.
	fewCauses = 6
)

// StuckAnswer writes an explanation for a person: the verdict, the cause and the next step first.
type StuckAnswer struct {
	Style Style
	Now   time.Time
	// Wide: evidence, all ways out with their commands, and the identifiers of causes are in it, and it ends on the next step, too. Otherwise
	// one screen has to do.
	Wide bool
	// Cause is the number of the only cause that is explained, 0 for all.
	Cause int
	// Plugin begins the commands of this program, and Of is what was asked for, as its arguments; without them unstick is not offered.
	Plugin, Of string
	// Where is the cluster, whose context the first line names; nil for a file.
	Where *answer.Where
	out   *bufio.Writer
	// wrapped is how many lines the verdict takes beyond the first.
	wrapped int
}

// Write prints the report. The error says that there is no such cause.
func (a *StuckAnswer) Write(w io.Writer, report *explain.Report) error {
	a.out = bufio.NewWriter(w)
	switch causes := report.Causes; {
	case a.Cause > 0:
		c, err := causeOf(report, a.Cause)
		if err != nil {
			return err
		}
		a.lead(c.Verdict, fmt.Sprintf("cause %d of %d: %s", a.Cause, len(causes), holding(c)))
		a.one(c, report)
	case len(report.Objects) == 1 && len(causes) <= 1:
		a.object(&report.Objects[0])
		if len(causes) == 0 {
			a.why(report)
			a.later(false, report)
		}
		for _, c := range causes {
			a.one(c, report)
		}
	default:
		a.overview(report)
	}
	return a.out.Flush()
}

// causeOf returns a cause by its number.
func causeOf(report *explain.Report, number int) (*explain.Cause, error) {
	if n := len(report.Causes); number > n {
		switch n {
		case 0:
			return nil, fmt.Errorf("--cause=%d: there are no causes", number)
		case 1:
			return nil, fmt.Errorf("--cause=%d: there is only 1 cause", number)
		}
		return nil, fmt.Errorf("--cause=%d: there are only %d causes", number, n)
	}
	return report.Causes[number-1], nil
}

// marks stand before verdicts where the terminal has them.
var marks = map[explain.Verdict]string{explain.Stuck: "✗ ", explain.Unknown: "? "}

// spoken are the verdicts as an answer writes them.
var spoken = map[explain.Verdict]string{
	explain.Stuck: "STUCK", explain.Unknown: "UNKNOWN", explain.Progressing: "PROGRESSING", explain.Pending: "PENDING",
	explain.NotTerminating: "NOT BEING DELETED", explain.NotFound: "NOT FOUND",
}

func (a *StuckAnswer) mark(v explain.Verdict) string {
	text := spoken[v]
	if a.Style.Unicode {
		text = marks[v] + text
	}
	return text
}

// lead writes the first line.
func (a *StuckAnswer) lead(v explain.Verdict, text string) {
	text += a.where()
	mark := a.mark(v)
	fmt.Fprint(a.out, a.Style.paint(mark, colorOf(v)))
	begun := utf8.RuneCountInString(mark)
	pad := max(margin-begun, 2)
	fmt.Fprint(a.out, strings.Repeat(" ", pad))
	indent := strings.Repeat(" ", margin)
	a.Style.flow(a.out, printable(text), begun+pad, indent)
	if a.Style.Width > 0 {
		a.wrapped = len(wrap(printable(text), a.Style.Width, begun+pad, indent)) - 1
	}
}

// where ends the first line.
func (a *StuckAnswer) where() string {
	if a.Where == nil || a.Where.Context == "" {
		return ""
	}
	return ", context " + a.Where.Context
}

// part writes a line that begins with a word in the margin.
func (a *StuckAnswer) part(word string, c color, text string) {
	fmt.Fprint(a.out, a.Style.paint(word, c), strings.Repeat(" ", max(margin-utf8.RuneCountInString(word), 1)))
	a.Style.flow(a.out, printable(text), max(margin, utf8.RuneCountInString(word)+1), strings.Repeat(" ", margin))
}

// object writes the verdict about one object.
func (a *StuckAnswer) object(o *explain.Explanation) {
	text := objectName(o.Object)
	if !o.Since.IsZero() {
		text += ", deleting for " + duration.HumanDuration(max(a.Now.Sub(o.Since), 0))
	}
	a.lead(o.Verdict, text)
	switch {
	case o.Verdict == explain.NotTerminating && !o.Remade():
		a.part("", noColor, "no DELETE reached it, or it was refused")
	case len(o.Findings) == 0 && len(o.Chain) > 0 && !o.Chain[0].Because.IsZero():
		a.part("", noColor, worded(o.Chain[0].Because))
		a.path(o.Chain)
	}
}

// why says why objects go that nobody seems to have deleted.
func (a *StuckAnswer) why(report *explain.Report) {
	var gone []graph.Identity
	var text string
	for _, o := range slices.Backward(report.Objects) {
		if !o.Why.IsZero() {
			gone, text = append(gone, o.Object), worded(o.Why)
		}
	}
	if len(gone) == 0 {
		return
	}
	if len(report.Objects) > 1 {
		text = names(gone) + ": " + text
	}
	a.part("Why", bold, text)
}

// holding names the object of a cause, and how many wait for it.
func holding(c *explain.Cause) string {
	if c.Blocks > 1 {
		return fmt.Sprintf("%s blocks %d deletions", objectName(c.Object), c.Blocks)
	}
	return objectName(c.Object)
}

// one writes one cause whole: what it is, the next step, and the other ways.
func (a *StuckAnswer) one(c *explain.Cause, report *explain.Report) {
	chain, _ := chainOf(c, report)
	summary := worded(c.Summary)
	if len(chain) > 1 && a.Cause == 0 {
		summary = objectName(c.Object) + ": " + summary
	}
	before := a.wrapped + len(endangered(c)) // lines before the next step
	a.reason(a.identified(summary, c), worded(c.Decides), max(nextStep-1-before, 2))
	a.rest(c, report)
	a.why(report)
	if c.Verdict == explain.Stuck {
		a.later(true, report)
	}
	if a.Wide {
		a.steps([]*explain.Cause{c}, report)
	} else {
		a.more("Evidence, and all ways out with their commands: -o wide")
	}
}

// askAgain says when to ask again, empty where that may lead to nothing new.
func askAgain(report *explain.Report) string {
	left := report.Again()
	if left == 0 {
		return ""
	}
	return "ask again in " + duration.HumanDuration(left)
}

// later writes when to ask again, and reports whether that is the next step: where nothing is stuck.
func (a *StuckAnswer) later(stuck bool, report *explain.Report) bool {
	text := askAgain(report)
	switch {
	case text == "":
	case stuck:
		a.part("Later", bold, text)
	default:
		a.part("Next", bold, text)
		return true
	}
	return false
}

// identified adds the identifier of a cause.
func (a *StuckAnswer) identified(text string, c *explain.Cause) string {
	if a.Wide {
		text += " [" + c.ID + "]"
	}
	return text
}

// rest is what follows on what a cause is.
func (a *StuckAnswer) rest(c *explain.Cause, report *explain.Report) {
	chain, held := chainOf(c, report)
	if a.Wide {
		a.facts(c)
	}
	for _, l := range endangered(c) {
		a.part("! DATA", red, destroyedWith(&l))
	}
	a.ways(c, report)
	if !c.Until.IsZero() {
		a.part("Until", bold, c.Until.UTC().Format(time.RFC3339))
	}
	a.path(chain)
	if len(held) > 1 {
		a.part("Blocks", bold, names(held))
	}
}

// nextStep is how many lines an answer has at most before its next step. What a longer reason says in full, -o wide has.
const nextStep = 5

// reason writes what a cause is, in so many lines at most where a terminal is known. Then it has what decides, and leaves out
// what is before that and after.
func (a *StuckAnswer) reason(text, decides string, most int) {
	indent := strings.Repeat(" ", margin)
	text, decides = printable(text), strings.TrimLeft(printable(decides), "; ")
	lines := []string{text}
	if a.Style.Width > 0 {
		lines = wrap(text, a.Style.Width, margin, indent)
	}
	before, after := text, ""
	if decides != "" {
		before, after, _ = strings.Cut(text, decides)
	}
	without := func(text string) string { return text[:max(strings.LastIndex(strings.TrimRight(text, " "), " "), 0)] }
	for middle, end := "", ""; len(lines) > most && !a.Wide && before+decides+after != ""; {
		switch {
		case after != "":
			after, end = without(after), " ..."
		case before != "":
			before, middle = without(before), " ... "
		default:
			decides, end = without(decides), " ..."
		}
		lines = wrap(strings.TrimSpace(before+middle+decides+after+end), a.Style.Width, margin, indent)
	}
	fmt.Fprintln(a.out, indent+strings.Join(lines, "\n"))
}

func destroyedWith(l *remedy.Loss) string {
	return fmt.Sprintf("%s on %s is destroyed with its claim", cmp.Or(l.Size, "all"), objectName(l.Object))
}

// step writes a way out, with the command that carries it out: that of this program where there is one. Patches are for -o wide.
func (a *StuckAnswer) step(word string, r *explain.Remedy, number, offer string) {
	a.part(word, bold, number+a.costed(r))
	if !raw(r) && (offer == "" || strings.HasPrefix(word, "Next")) {
		a.command(r.Command, margin+2)
	}
	switch {
	case offer == "":
	case strings.HasPrefix(word, "Next"):
		lines := breakCommand(printable(offer), a.Style.Width-margin)
		fmt.Fprintln(a.out, a.Style.paint("Do it", bold)+"    "+strings.Join(lines, "\n"+strings.Repeat(" ", margin)))
	default:
		a.command(offer, margin+2)
	}
}

// command writes a command, if there is one, behind so many spaces.
func (a *StuckAnswer) command(text string, indent int) {
	if text == "" {
		return
	}
	for _, line := range breakCommand(printable(text), a.Style.Width-indent) {
		fmt.Fprintln(a.out, strings.Repeat(" ", indent)+line)
	}
}

// costed says what a way out does, and what it costs.
func (a *StuckAnswer) costed(r *explain.Remedy) string {
	effect, cost := worded(r.Effect), a.cost(r)
	switch before, bracketed := strings.CutSuffix(effect, ")"); {
	case cost == "":
		return effect
	case bracketed:
		return before + "; " + cost + ")"
	}
	return effect + " (" + cost + ")"
}

// cost says what a way out costs, empty for nothing.
func (a *StuckAnswer) cost(r *explain.Remedy) string {
	var parts []string
	switch {
	case r.Risk == explain.Disruptive && len(r.Loss) == 0:
		parts = append(parts, "service impact")
	case r.Risk == explain.Dangerous &&
		!slices.ContainsFunc(r.Loss, func(l remedy.Loss) bool { return l.Destroys() || l.What.Has(write.Protects) }):
		parts = append(parts, "DANGEROUS")
	}
	for i := range r.Loss {
		parts = append(parts, lossText(&r.Loss[i]))
	}
	return strings.Join(parts, "; ")
}

// lossText says what is lost in a few words, the gravest in capitals.
func lossText(l *remedy.Loss) string {
	switch {
	case l.Destroys():
		return fmt.Sprintf("DATA LOSS: %s on %s", cmp.Or(l.Size, "all"), objectName(l.Object))
	case l.What.Has(write.Protects):
		return "DATA LOSS: " + worded(l.What)
	case l.Kind == remedy.LosesData:
		return "might lose " + worded(l.What)
	case l.Kind == remedy.CorruptsData:
		return "DATA AT RISK: " + worded(l.What)
	case l.Kind == remedy.LosesObject:
		return "loses " + worded(l.What)
	case l.Kind == remedy.Leaks:
		return "might leak: " + worded(l.What)
	}
	return worded(l.What)
}

// endangered is the data that every way to end a deletion destroys, as long as its volume is not kept.
func endangered(c *explain.Cause) []remedy.Loss {
	var all []remedy.Loss
	for i := range c.Remedies {
		for _, l := range c.Remedies[i].Loss {
			if l.Destroys() && !slices.ContainsFunc(all, l.Equal) {
				all = append(all, l)
			}
		}
	}
	return all
}

// path names the objects from the one that was asked about to the cause.
func (a *StuckAnswer) path(chain []explain.Link) {
	if a.Wide {
		a.chain(chain)
		return
	}
	if len(chain) < 2 {
		return
	}
	var steps []string
	namespace := chain[0].Object.Namespace
	for i, link := range chain {
		switch {
		case len(chain) > maxLinks && i == maxLinks/2:
			steps = append(steps, fmt.Sprintf("%d more", len(chain)-maxLinks))
			continue
		case len(chain) > maxLinks && i > maxLinks/2 && i < len(chain)-maxLinks/2:
			continue
		}
		id := link.Object
		if id.Namespace == namespace && i > 0 {
			id.Namespace = ""
		}
		steps = append(steps, objectName(id))
	}
	a.part("Path", bold, strings.Join(steps, " > "))
}

func (a *StuckAnswer) more(text string) { a.part("More", bold, text) }

// chainOf returns the longest chain to a cause, and the objects that wait for it.
func chainOf(c *explain.Cause, report *explain.Report) (longest []explain.Link, held []graph.Identity) {
	for _, o := range report.Objects {
		for _, f := range o.Findings {
			if f.Cause != c {
				continue
			}
			held = append(held, o.Object)
			if len(f.Chain) > len(longest) {
				longest = f.Chain
			}
		}
	}
	return longest, held
}

// StuckNames prints the objects that are stuck as kubectl's -o name does.
func StuckNames(w io.Writer, report *explain.Report) error {
	return ObjectNames(w, func(yield func(graph.Identity) bool) {
		for i := range report.Objects {
			if o := &report.Objects[i]; o.Verdict == explain.Stuck && !yield(o.Object) {
				return
			}
		}
	})
}

// worded returns a text with objects named as users of kubectl do.
func worded(t say.Text) string {
	return t.With(func(arg any) any {
		if id, is := arg.(graph.Identity); is {
			return objectName(id)
		}
		return arg
	})
}

// objectName names an object as users of kubectl do.
func objectName(id graph.Identity) string {
	kind := id.Resource.Kind
	if kind == "" {
		kind = id.Resource.Resource
	}
	text := strings.ToLower(kind)
	if id.Name != "" {
		text += "/" + id.Name
	}
	if id.Namespace != "" {
		text += " -n " + id.Namespace
	}
	return text
}

// breakCommand breaks a command for a shell between words, so that it can still be pasted. What is quoted stays in one
// piece, however long.
func breakCommand(command string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(command) <= width || strings.Contains(command, "\n") {
		return []string{command}
	}
	var lines []string
	line, quoted := "", false
	for word := range strings.SplitSeq(command, " ") {
		open := quoted
		if strings.Count(strings.ReplaceAll(word, `'\''`, ""), "'")%2 == 1 {
			quoted = !quoted
		}
		switch {
		case line == "":
			line = word
		case !open && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word)+2 > width:
			lines = append(lines, line+` \`)
			line = "  " + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
