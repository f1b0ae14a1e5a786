// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// RunTitle says which run this is.
func RunTitle(r *change.Recorded) string {
	return printable(fmt.Sprintf("RUN      %s of %s, %s", strings.Join(r.Asked, " "), r.Started.Format(time.RFC3339), &r.Where))
}

// Reversal says what takes a recorded change back, or why nothing does.
func Reversal(w io.Writer, v *change.Reversal) error {
	text := "keep:  " + changeText(v.Entry.Op) + ": " + change.Words(v.Obstacle)
	if v.Err != nil {
		text += ": " + message(v.Err)
	}
	switch {
	case v.Later:
		text = "undo:  " + changeText(v.Entry.Op) + ", once its claim is bound again"
	case v.Op != nil:
		text = "undo:  " + changeText(v.Entry.Op) + " -> " + changeText(v.Op)
	}
	_, err := fmt.Fprintln(w, printable(text))
	return err
}

// Restoration says how deleted objects are made again, in the order in which that is done, and which are not.
func Restoration(w io.Writer, p *restore.Plan) error {
	for _, part := range []struct {
		do    restore.Do
		label string
		says  func(i *restore.Item) string
	}{
		{restore.Make, "create: ", func(i *restore.Item) string { return objectName(i.Object) + released(i) }},
		{restore.Await, "await:  ", func(i *restore.Item) string {
			return objectName(i.Object) + ": " + objectName(i.By) + " recreates it; undo does if that does not"
		}},
		{restore.Bind, "bind:   ", func(i *restore.Item) string { return objectName(i.Object) + " to " + objectName(i.Then.Object) }},
		{restore.Link, "link:   ", func(i *restore.Item) string { return objectName(i.Object) + " to its recreated owners" }},
		{restore.Leave, "leave:  ", refused},
		{restore.Nothing, "keep:   ", refused},
		{restore.Refuse, "NOT:    ", refused},
	} {
		n := 0
		for _, i := range p.Items {
			if i.Do != part.do || i.Reason == restore.NotAsked || i.Late || i.Do == restore.Nothing && i.Reason == "" {
				continue
			}
			if n++; n <= mostRestored {
				if _, err := fmt.Fprintln(w, printable(part.label+part.says(i))); err != nil {
					return err
				}
			}
		}
		if n > mostRestored {
			if _, err := fmt.Fprintf(w, "%sand %d more\n", part.label, n-mostRestored); err != nil {
				return err
			}
		}
	}
	return nil
}

// Revival says how objects are kept; secure: that the data of claims and volumes is.
func Revival(w io.Writer, where *answer.Where, r *change.Revival, secure bool) error {
	var lines []string
	for _, id := range r.Objects {
		lines = append(lines, "REVIVE   "+objectName(id)+where.In())
	}
	for i := range r.Changes {
		label := "then:    "
		if i < r.Secured {
			label = "secure:  "
		}
		lines = append(lines, label+changeText(&r.Changes[i].Op))
	}
	if !secure {
		for _, id := range r.Objects {
			lines = append(lines, "then:    recreate "+objectName(id)+" as soon as it is gone")
		}
		lines = append(lines, revivedLast(r)...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// revivedLast says what is done last, and what is not.
func revivedLast(r *change.Revival) (lines []string) {
	if len(r.Orphans) > 0 {
		var ids []graph.Identity
		for i := range r.Orphans {
			ids = append(ids, r.Orphans[i].Identity())
		}
		lines = append(lines, "finally: link "+names(ids)+" to it again")
	}
	if slices.ContainsFunc(r.Changes, func(c change.Change) bool { return c.Op.Verb == remedy.Scale }) {
		lines = append(lines, "finally: scale workloads as they are now")
	}
	if r.Secured > 0 {
		lines = append(lines, "finally: set reclaim policies as they are now; that of a volume that is recreated stays Retain")
	}
	for _, dir := range r.Interrupted {
		lines = append(lines, "finally: complete the interrupted run "+filepath.Base(dir))
	}
	if len(r.Going) > 0 {
		lines = append(lines, "NOT:     "+names(r.Going)+": being deleted, too: name it, or it loses its owner")
	}
	return lines
}

// Bound says that a claim has its volume.
func Bound(claim graph.Identity, volume string) string {
	return printable("bound: " + objectName(claim) + " to " + objectName(evidence.Identity(evidence.Volumes, "", volume)))
}

// Unbound says that a claim has not its volume.
func Unbound(claim graph.Identity, volume string, err error) string {
	text := "NOT bound: " + objectName(claim) + " to " + objectName(evidence.Identity(evidence.Volumes, "", volume))
	if err != nil {
		text += ": " + message(err)
	}
	return printable(text)
}

// mostRestored is how many objects of a restoration are named each way.
const mostRestored = 50

// refused says why an object is not made again.
func refused(i *restore.Item) string {
	text := objectName(i.Object) + ": " + string(i.Reason)
	if i.By.Name != "" {
		text += " (" + objectName(i.By) + ")"
	}
	if i.Err != nil {
		text += ": " + message(i.Err)
	}
	return text
}

// released names the volume that a claim gets again.
func released(i *restore.Item) string {
	if i.Then == nil {
		return ""
	}
	return ", bound to " + objectName(i.Then.Object) + " again"
}

// Undone says what became of a change that takes another one back.
func Undone(r *change.Record) string {
	text := changeText(&r.Change.Op)
	if r.Status != change.Done {
		return printable("NOT done: " + text + ": " + message(r.Err))
	}
	return printable("done: " + text)
}

// Kept says why a change that was to be taken back is not.
func Kept(v *change.Reversal) string {
	return printable("NOT done: " + changeText(v.Entry.Op) + ": " + change.Words(v.Obstacle))
}

// TakenBack says what became of a temporary change that was to be taken back. kubectl begins the command that does it by hand.
func TakenBack(r *change.Record, kubectl string) string {
	return printable(takenBack(r.Change.Op, r.Status, r.Back, r.Err, kubectl))
}

func takenBack(op remedy.Op, status change.Status, back *remedy.Op, err error, kubectl string) string {
	text := changeText(&op)
	switch {
	case status == change.NotTakenBack && back != nil:
		return "NOT taken back: " + text + ": " + message(err) + ". Do it by hand: " + Command(back, kubectl)
	case status == change.NotTakenBack:
		return "NOT taken back: " + text + ": " + message(err)
	case back == nil && err != nil:
		return "nothing to take back: " + text + ": " + message(err)
	case back == nil:
		return "nothing to take back: it is as it was before: " + text
	case err != nil:
		return "taken back: " + changeText(back) + ": " + message(err)
	}
	return "taken back: " + changeText(back)
}

// Run is a run that changed something.
type Run struct {
	Started metav1.Time  `json:"started"`
	Cluster answer.Where `json:"cluster"`
	Asked   []string     `json:"asked"`
	// Directory has the journal.
	Directory string `json:"directory"`
	// Changes is how many were sent, Standing how many of them were made, or may have been, and not taken back; Open are the temporary ones
	// among these.
	Changes  int `json:"changes"`
	Standing int `json:"standing"`
	Open     int `json:"open"`
}

// Runs is the document of history.
type Runs struct {
	metav1.TypeMeta `json:",inline"`
	Runs            []Run `json:"runs"`
}

// DeepCopyObject implements runtime.Object; the copy is shallow, as documents are never changed.
func (r *Runs) DeepCopyObject() runtime.Object { return new(*r) }

// NewHistory returns the document of runs.
func NewHistory(all []*change.Recorded) runtime.Object {
	document := &Runs{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "History"}, Runs: []Run{}}
	for _, r := range all {
		document.Runs = append(document.Runs, Run{
			Started: metav1.NewTime(r.Started.UTC()), Cluster: r.Where, Asked: append([]string{}, r.Asked...),
			Directory: r.Dir, Changes: len(r.Changes), Standing: r.Standing(), Open: len(r.Open()),
		})
	}
	return document
}

// History lists runs for a person, the oldest first.
func History(w io.Writer, all []*change.Recorded) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No run has changed anything.")
		return err
	}
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "RUN\tWHERE\tCHANGES\tSTANDING\tASKED")
	for _, r := range all {
		standing := fmt.Sprint(r.Standing())
		if r.Back() { // undo goes past it
			standing = "-"
		}
		if open := len(r.Open()); open > 0 {
			standing += fmt.Sprintf(" (%d temporary)", open)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", filepath.Base(r.Dir), printable(cmp.Or(r.Where.Context, r.Where.Server)), len(r.Changes),
			standing, printable(strings.Join(r.Asked, " ")))
	}
	return table.Flush()
}

// RunNames prints the directories of runs.
func RunNames(w io.Writer, all []*change.Recorded) error {
	for _, r := range all {
		if _, err := fmt.Fprintln(w, r.Dir); err != nil {
			return err
		}
	}
	return nil
}
