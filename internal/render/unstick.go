// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// UnstickText writes what unstick would do or has done for a person.
type UnstickText struct {
	Style Style
	// Where it is done, nil for a file.
	Where *answer.Where
	// Wide: the commands, and all changes. Secrets: their data is backed up.
	Wide, Secrets bool
	// Server is what the API server says to the changes in a dry run, by their keys.
	Server map[string]error
	answer *StuckAnswer   // which explain-stuck gives
	names  []unstick.Name // those of the causes, by rank
	out    *bufio.Writer
}

// begin has everything written to w until that is flushed.
func (t *UnstickText) begin(w io.Writer, report *explain.Report) {
	t.out, t.names = bufio.NewWriter(w), unstick.Names(report)
	t.answer = &StuckAnswer{Style: t.Style, Now: report.Now, out: t.out}
}

// Plan writes a plan: the causes that something is done about first, then the others.
func (t *UnstickText) Plan(w io.Writer, l *unstick.Look, p *unstick.Plan) error {
	t.begin(w, l.Report)
	if len(l.Report.Objects) == 1 {
		t.answer.object(&l.Report.Objects[0])
	} else {
		t.answer.counts(l.Report)
		t.unknown(l.Report)
	}
	t.Style.where(t.out, margin, t.Where)
	for _, done := range []bool{true, false} {
		for i := range p.Choices {
			if c := &p.Choices[i]; len(c.Writes) > 0 == done && (c.Reason != unstick.NotChosen || c.Cause.Verdict == explain.Stuck) {
				t.choice(c, l.Report)
			}
		}
	}
	return t.out.Flush()
}

func (t *UnstickText) choice(c *unstick.Choice, report *explain.Report) {
	t.flow(fmt.Sprintf("%-2d ", c.Rank), holding(c.Cause)+": "+worded(c.Cause.Summary))
	if len(t.names) > 1 {
		fmt.Fprintln(t.out, "   --cause="+t.names[c.Rank-1].String())
	}
	if len(c.Writes) == 0 {
		t.flow("   ", notDone(c, report))
		if c.Unsure {
			t.flow("   ", dataUnread)
		}
		if c.Advice != nil {
			t.answer.command(c.Advice.Command, 5)
		}
		return
	}
	if c.Unsure {
		t.flow("   ", dataUnread)
	}
	if c.After > 0 {
		t.flow("   ", fmt.Sprintf("after %d:", c.After))
	}
	groups := changesAlike(c.Writes)
	for i, alike := range groups {
		write := alike[0]
		if len(write.Then) > 0 && write.Remedy.Keeps {
			t.flow("   ", t.same(alike)+" ("+keeping(write)+")")
			for _, then := range changesAlike(write.Follow()) {
				if i == len(groups)-1 { // when all data is kept
					t.flow("   ", "and then: "+t.change(c.Risk, then))
				}
			}
		} else {
			t.flow("   ", t.change(c.Risk, alike))
		}
		if len(write.Then) > 0 && !write.Remedy.Keeps {
			t.flow("   ", "and then, as the garbage collector would: "+thenText(write.Then))
		}
		t.refused(alike)
		if !t.Wide {
			continue
		}
		for _, write := range alike {
			fmt.Fprintln(t.out, "     "+printable(write.Remedy.Command))
		}
	}
	if lets := c.Writes[0].Lets; len(lets) > 0 {
		names := allNames // they are agreed to
		if !t.Wide && len(lets) > mostNamed {
			names = NamesOf
		}
		text := "also lets go: " + names(lets)
		if !t.Secrets && change.Secrets(lets) > 0 {
			text += "; the data of Secrets is not backed up (--backup-secrets)"
		}
		t.flow("   ", text)
	}
}

// mostNamed is how many objects that nobody asked for are named without -o wide.
const mostNamed = 50

// keeping says what a change keeps.
func keeping(w *unstick.Write) string {
	if w.Leaves {
		return "safe: keeps the storage; the PersistentVolume object is deleted: keep its manifest"
	}
	return "safe: keeps the data"
}

// change says what changes that are alike do, what for, and what that costs.
func (t *UnstickText) change(risk explain.Risk, alike []*unstick.Write) string {
	return t.same(alike) + temporary(alike[0]) + " (" + price(risk, alike[0].Remedy) + ")" + purpose(alike[0])
}

func (t *UnstickText) same(alike []*unstick.Write) string {
	text := changeText(&alike[0].Op)
	if more := len(alike) - 1; more > 0 && !t.Wide {
		text += fmt.Sprintf(", and the same of %d more: %s", more, NamesOf(objectsOf(alike[1:])))
	}
	return text
}

// refused says what the API server said to changes that it would refuse, each answer once.
func (t *UnstickText) refused(writes []*unstick.Write) {
	var said []string
	for _, w := range writes {
		if err := t.Server[w.Op.Key()]; err != nil {
			said = append(said, message(err))
		}
	}
	for _, text := range slices.Compact(said) {
		t.flow("   ", "the server would refuse it: "+text)
	}
}

// thenText names the first of the changes that follow.
func thenText(then []*explain.Remedy) string {
	var parts []string
	for _, r := range then[:min(len(then), maxNamed)] {
		parts = append(parts, changeText(r.Operation))
	}
	if more := len(then) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// changesAlike groups changes that read the same but for the names of their objects.
func changesAlike(writes []unstick.Write) [][]*unstick.Write {
	var groups [][]*unstick.Write
	at := map[string]int{}
	for i := range writes {
		anonymous := writes[i].Op
		anonymous.Object.Name, anonymous.Object.Namespace = "", ""
		text := changeText(&anonymous) + fmt.Sprint(writes[i].Leaves)
		if _, known := at[text]; !known {
			at[text], groups = len(groups), append(groups, nil)
		}
		groups[at[text]] = append(groups[at[text]], &writes[i])
	}
	return groups
}

func objectsOf(writes []*unstick.Write) []graph.Identity {
	var ids []graph.Identity
	for _, w := range writes {
		ids = append(ids, w.Op.Object)
	}
	return ids
}

// flow writes text behind a lead, wrapped.
func (t *UnstickText) flow(lead, text string) {
	fmt.Fprint(t.out, lead)
	t.Style.flow(t.out, printable(text), len(lead), "   ")
}

// Change says what a change does.
func Change(op *remedy.Op) string { return printable(changeText(op)) }

// Command is the command of kubectl that makes a change.
func Command(op *remedy.Op, kubectl string) string {
	return printable(op.Command(remedy.Programs{Kubectl: kubectl}))
}

func changeText(op *remedy.Op) string {
	name := objectName(op.Object)
	switch op.Verb {
	case remedy.Delete:
		if op.Options != nil && op.Options.GracePeriodSeconds != nil && *op.Options.GracePeriodSeconds == 0 {
			return "delete " + name + " at once"
		}
		if op.Options != nil && op.Options.PropagationPolicy != nil {
			return "delete " + name + " (" + strings.ToLower(string(*op.Options.PropagationPolicy)) + ")"
		}
		return "delete " + name
	case remedy.Scale:
		return fmt.Sprintf("scale %s from %d to %d", name, op.Replicas.Current, op.Replicas.Wanted)
	case remedy.Restart:
		return "restart " + name
	case remedy.Resume:
		return "resume the rollout of " + name
	case remedy.Create, remedy.Restore:
		return "create " + name
	case remedy.Finalize:
		return "remove " + op.Value + " from spec.finalizers of " + name
	case remedy.Taint:
		return "taint " + name + " with " + op.Value
	case remedy.Untaint:
		return "remove the taint " + op.Value + " from " + name
	case remedy.Annotate:
		return "annotate " + name + " with " + op.Value
	case remedy.Patch:
		return patchText(op, name)
	case remedy.Collect:
		return "collect " + name
	}
	return ""
}

// patchText names what a patch changes: a finalizer or an owner reference by name, and other fields by their paths.
func patchText(op *remedy.Op, name string) string {
	tested := map[string]any{}
	var parts []string
	for _, step := range op.Patch {
		switch {
		case step.Op == "test":
			tested[step.Path] = step.Value
		case step.Op == "remove" && strings.HasPrefix(step.Path, "/metadata/finalizers/"):
			parts = append(parts, fmt.Sprintf("remove the finalizer %v from %s", tested[step.Path], name))
		case step.Op == "remove" && strings.HasPrefix(step.Path, "/metadata/ownerReferences/"):
			owner := tested[step.Path+"/uid"]
			if entry, whole := tested[step.Path].(map[string]any); whole {
				owner = fmt.Sprintf("%v/%v", entry["kind"], entry["name"])
			}
			parts = append(parts, fmt.Sprintf("remove the owner reference %v from %s", owner, name))
		case step.Op == "replace" || step.Op == "add":
			if text := fmt.Sprint(step.Value); len(text) < 40 && !strings.ContainsAny(text, "[{") {
				parts = append(parts, fmt.Sprintf("set %s of %s to %v", field(step.Path), name, step.Value))
				continue
			}
			fallthrough
		default:
			parts = append(parts, "change "+field(step.Path)+" of "+name)
		}
	}
	return strings.Join(slices.Compact(parts), ", ")
}

// field writes a JSON pointer as people write fields.
func field(pointer string) string {
	pointer = strings.TrimSuffix(strings.TrimPrefix(pointer, "/"), "/-")
	var text strings.Builder
	for i, part := range strings.Split(pointer, "/") {
		switch _, err := strconv.Atoi(part); {
		case err == nil:
			part = "[" + part + "]"
		case i > 0:
			part = "." + part
		}
		text.WriteString(part)
	}
	return remedy.Unescape.Replace(text.String())
}

// purpose says what a change is for that its operation does not show: a deletion, an exemption, and one of owner references.
func purpose(w *unstick.Write) string {
	owners := slices.ContainsFunc(w.Op.Patch, func(s remedy.Step) bool { return strings.HasPrefix(s.Path, "/metadata/ownerReferences") })
	if w.Op.Verb != remedy.Delete && !owners && len(w.Remedy.In) == 0 {
		return ""
	}
	return ": " + worded(w.Remedy.Effect)
}

func temporary(w *unstick.Write) string {
	if w.Temporary() {
		return ", until the end of the run"
	}
	return ""
}

// price says what a way out costs.
func price(risk explain.Risk, r *explain.Remedy) string {
	priced := *r
	if priced.Risk = risk; r.Kept != "" { // the data is kept first
		priced.Loss = slices.DeleteFunc(slices.Clone(r.Loss), func(l remedy.Loss) bool { return l.Kind == remedy.LosesData })
	}
	text := (&StuckAnswer{}).cost(&priced)
	return cmp.Or(text, "safe")
}

const dataUnread = "DATA might be lost, or other objects be freed as well: claims, their owners, volumes, or what else waits for this could not be read"

// notDone says why nothing is done about a cause.
func notDone(c *unstick.Choice, report *explain.Report) string {
	advice := ""
	if c.Advice != nil {
		advice = worded(c.Advice.Effect)
	}
	switch c.Reason {
	case unstick.NotStuck:
		text := unneeded[c.Cause.Verdict] + after("; first: ", advice)
		return text + after("; ", askAgain(report))
	case unstick.NotChosen:
		return "not chosen"
	case unstick.Follows:
		return fmt.Sprintf("ends with %d", c.After)
	case unstick.NotAllowed:
		return joined("needs --allow="+string(c.Needs), advice)
	case unstick.NotEnough:
		return joined("what is allowed was tried, and was not enough", advice)
	case unstick.Denied:
		return joined("the server refused it", advice)
	case unstick.NoBackup:
		return joined("a temporary change needs a journal that knows the cluster (get namespace kube-system), to be taken back after whatever happens", advice)
	case unstick.HasContent:
		return joined("the namespace has content, or might have: never finalized", advice)
	case unstick.Person:
		return "only a person can do this" + after(": ", advice)
	}
	return ""
}

// unneeded says why nothing is done about a cause that does not block for certain.
var unneeded = map[explain.Verdict]string{
	explain.Progressing: "nothing to do: it makes progress", explain.Pending: "nothing to do: it is about to end",
	explain.NotTerminating: "nothing to do: it is not being deleted", explain.Unknown: "nothing is done, because the cause is not certain",
}

func joined(text, advice string) string { return text + after("; or: ", advice) }

// after is a text that follows another, with what comes between; empty if the text is.
func after(between, text string) string {
	if text == "" {
		return ""
	}
	return between + text
}

// resultText says what became of a change.
func resultText(r *unstick.Record) string {
	text := changeText(&r.Write.Op)
	switch r.Result {
	case unstick.TakenBack, unstick.NotTakenBack:
		return takenBack(r.Write.Op, r.Result, r.Back, r.Err, "kubectl")
	case unstick.Reverted:
		return "NOT changed: " + text + ": " + message(r.Err)
	case unstick.Skipped:
		return "skipped: " + text + ": " + message(r.Err)
	case unstick.Unanswered:
		return "no answer: " + text + ": " + message(r.Err)
	case unstick.Refused:
		return "refused: " + text + ": " + message(r.Err)
	}
	return text
}

// UnstickRecord says what became of a change.
func UnstickRecord(r *unstick.Record) string { return printable(resultText(r)) }

// UnstickWaiting says what a run waits for, and how much longer.
func UnstickWaiting(e *unstick.Event, now time.Time) string {
	limit := ""
	if !e.Until.IsZero() {
		limit = " up to " + duration.HumanDuration(max(e.Until.Sub(now), 0)) + " more"
	}
	return printable(fmt.Sprintf("Waiting%s for %s, until the deletion is retried; Ctrl-C ends the wait", limit, NamesOf(e.Waiting)))
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return Line(err.Error())
}

// UnstickQuestion puts a question about a cluster into words.
func UnstickQuestion(q *unstick.Question, where *answer.Where) string {
	if q.Choice == nil {
		impact := ""
		if slices.ContainsFunc(q.Writes, func(w unstick.Write) bool { return w.Risk.Exceeds(explain.Safe) }) {
			impact = ", which interrupt something"
			if len(q.Writes) == 1 {
				impact = ", which interrupts something"
			}
		}
		return printable(fmt.Sprintf("Make %s%s%s%s? (y/N): ", plural(len(q.Writes), "change"), where.In(), impact, alsoLets(q.Writes)))
	}
	w := &q.Writes[0]
	what, remedy := changeText(&w.Op), w.Remedy
	if len(w.Then) > 0 {
		remedy = w.Then[0]
		what += ", and then " + changeText(remedy.Operation)
	}
	if more := len(q.Writes) - 1; more > 0 {
		what += fmt.Sprintf(", and %d more of the same", more)
	}
	return printable(fmt.Sprintf("%s%s: %s%s. Type %q to continue: ", what, where.In(), price(q.Choice.Risk, remedy),
		alsoLets(q.Writes), q.Name))
}

// alsoLets names the objects that nobody asked for and that changes might free.
func alsoLets(writes []unstick.Write) string {
	var ids []graph.Identity
	for i := range writes {
		for _, id := range writes[i].Lets {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ", and let go of " + NamesOf(ids)
}

// ObjectNames prints objects as kubectl's -o name does.
func ObjectNames(w io.Writer, ids iter.Seq[graph.Identity]) error {
	for id := range ids {
		if _, err := fmt.Fprintln(w, kubectlName(id)); err != nil {
			return err
		}
	}
	return nil
}

// ChangedNames prints the objects that a plan changes, each once.
func ChangedNames(w io.Writer, p *unstick.Plan) error {
	var ids []graph.Identity
	for _, write := range p.Writes() {
		if !slices.Contains(ids, write.Op.Object) {
			ids = append(ids, write.Op.Object)
		}
	}
	return ObjectNames(w, slices.Values(ids))
}
