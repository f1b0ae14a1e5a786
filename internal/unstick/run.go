// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// inFlight is the number of requests that are sent at once.
	inFlight = 16
	// batch is the number of changes that one look proves.
	batch = 128
	// quiet is how long nothing may change before a run gives up waiting.
	quiet = 30 * time.Second
	// retrying is the same while a namespace is left: its controller tries again after up to a minute
	// (pkg/controller/namespace/namespace_controller.go, nsControllerRateLimiter).
	retrying = 75 * time.Second
	// collectorRetrying is how long the garbage collector waits at most until it tries again what was refused to it: each time twice as long
	// as before (k8s.io/client-go/util/workqueue, DefaultTypedControllerRateLimiter).
	collectorRetrying = 1000 * time.Second
	// working is how long what goes on counts as changing because somebody writes it.
	working = 15 * time.Minute
	// showing is how long the causes that are left are looked at again, although nothing was done about them.
	showing = 5 * time.Second
	// applying is how long the API server may take to go by a changed webhook configuration or policy.
	applying = 15 * time.Second
	// mostSkips is how often the same change may meet an object that was changed meanwhile.
	mostSkips = 5
	// settling is how long a change gets to show, before the next look.
	settling = 300 * time.Millisecond
)

// Edges are what a run reaches the cluster and people by. All but Log must be set.
type Edges struct {
	// Writer makes the changes.
	change.Writer
	// Look explains what was asked for, as it is now.
	Look func(context.Context) (*Look, error)
	// Collect does the garbage collector's work as far as that is allowed, and tells each write (change.Job.CollectOnly).
	Collect func(ctx context.Context, allowed func(gc.Action, graph.Object) bool, told func(gc.Step)) error
	// Asker is asked for consent.
	Asker Asker
	// Log is told what happens, by one goroutine; nil is for nobody.
	Log func(Event)
}

// Result is what became of a change.
type Result = change.Status

// The results; see change.Status.
const (
	Done         = change.Done
	Skipped      = change.Skipped
	Refused      = change.Refused
	Reverted     = change.Reverted
	Unanswered   = change.Unanswered
	TakenBack    = change.TakenBack
	NotTakenBack = change.NotTakenBack
)

// Event is something that happens on the way; one field is set.
type Event struct {
	// Wrote is a change with what became of it.
	Wrote *Record
	// Changed: the changes go beyond what was agreed to. Asker is shown them next.
	Changed bool
	// Waiting are objects that are waited for longer than usual, once for each set of them, and Until the time at which the run
	// gives them up if nothing changes; it is zero where Options.Patient says how long.
	Waiting []graph.Identity
	Until   time.Time
}

// Record is a change with what became of it.
type Record struct {
	Time   time.Time
	Write  Write
	Result Result
	// Back is what took the change back, or should have; nil for nothing.
	Back *remedy.Op
	Err  error
	// before is the object before the change.
	before *unstructured.Unstructured
}

// Report is what a run has done.
type Report struct {
	Records []Record
	// Freed are the objects that were asked for and are gone: the API server says so.
	Freed []graph.Identity
	// Last is the last look, Plan what would be left to do about it.
	Last *Look
	Plan *Plan
}

// run is one run. Its methods are called by one goroutine.
type run struct {
	*Edges
	options *Options
	consent change.Beforehand
	report  Report
	done    sets.Set[string] // the changes that are not made again, by their keys
	refused sets.Set[string] // those of them that the server has refused
	agreed  sets.Set[string]
	skips   map[string]int
	open    []Record                     // temporary changes that are not taken back yet
	objects map[types.UID]graph.Identity // those that were being deleted
	gone    sets.Set[types.UID]          // those of them that do not exist any more
	unseen  error                        // why it is not known of others whether they exist
	changed time.Time                    // when something last did
	seen    string                       // what the last look saw
	moved   time.Time                    // when that last changed
	written string                       // versions of what goes on, then
	waiting string                       // the objects of the last Event about waiting
	shown   bool
}

// Run carries out plan after plan until nothing is stuck that the options allow to free, or nothing changes any more. first is a look that
// was made a moment ago, nil for none. Temporary changes are taken back before it returns, also when the context has ended. The report is
// never nil; the error says why it ended early.
func (e *Edges) Run(ctx context.Context, first *Look, o *Options, c change.Beforehand) (*Report, error) {
	r := &run{Edges: e, options: o, consent: c, done: sets.Set[string]{}, refused: sets.Set[string]{}, agreed: sets.Set[string]{},
		skips: map[string]int{}, objects: map[types.UID]graph.Identity{}, gone: sets.Set[types.UID]{}, changed: e.Now()}
	err := r.rounds(ctx, first)
	if back := r.takeBack(ctx, func(*Write) bool { return true }); err == nil {
		err = back
	}
	if err != nil && ctx.Err() == nil && len(r.report.Records) > 0 { // what the report shows is from before the last changes
		if l, failed := r.Look(ctx); failed == nil {
			r.take(ctx, l)
		}
	}
	return &r.report, err
}

func (r *run) rounds(ctx context.Context, l *Look) error {
	for round := 0; ; round++ {
		if l == nil {
			var err error
			if l, err = r.Look(ctx); err != nil {
				return err
			}
		}
		p := r.take(ctx, l)
		if err := r.takeBack(ctx, func(w *Write) bool { return r.freed(w) }); err != nil {
			return err
		}
		writes := p.due()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(writes) == 0 && r.over(l):
			return r.unseen
		case len(writes) == 0:
			r.tellWaiting(l)
			r.Wait(ctx, r.pause(round))
		default:
			asked, err := r.agree(ctx, p, l)
			if err != nil {
				return err
			}
			if !asked {
				if err := r.carryOut(ctx, writes); err != nil {
					return err
				}
				r.Wait(ctx, settling)
			}
		}
		l = nil
	}
}

// take takes a look into the report, and returns what is to be done about it.
func (r *run) take(ctx context.Context, l *Look) *Plan {
	p := choose(l, r.options, r.tried())
	r.report.Last, r.report.Plan = l, p
	left, namespaces, within := sets.New[types.UID](), sets.New[string](), 0
	var seen, written strings.Builder
	for i := range l.Report.Objects {
		o := &l.Report.Objects[i]
		if n, known := l.Graph.Node(o.Object.UID); known && o.Verdict == explain.Progressing {
			written.WriteString(n.Object().ResourceVersion + " ")
		}
		if o.BeingDeleted() {
			left.Insert(o.Object.UID)
			r.objects[o.Object.UID] = o.Object
			if o.Object.Resource.IsNamespace() {
				namespaces.Insert(o.Object.Name)
			}
		}
		fmt.Fprint(&seen, o.Object.UID, o.Verdict)
		for _, f := range o.Findings { // what is said has ages, and what others say when they try again
			fmt.Fprint(&seen, f.Cause.ID, f.Cause.Object, f.Cause.Verdict, f.Cause.Blocks)
			for _, link := range f.Chain {
				fmt.Fprint(&seen, link.Object.UID, link.Symptom, link.Finalizer)
			}
		}
	}
	for n := range l.Graph.Nodes() {
		if namespaces.Has(n.Namespace()) {
			within++
		}
	}
	switch seen, written := seen.String()+fmt.Sprint(within), written.String(); {
	case seen != r.seen:
		r.seen, r.written, r.changed, r.moved = seen, written, r.Now(), r.Now()
	case written != r.written && r.Now().Sub(r.moved) < working:
		r.written, r.changed = written, r.Now()
	}
	r.freedBy(ctx, l, left)
	return p
}

// tried is what this run has tried. A change of what refuses others takes a moment to show, also one of which no answer came.
func (r *run) tried() tried {
	t := tried{done: r.done, refused: r.refused, settling: sets.Set[types.UID]{}}
	for i := range r.report.Records {
		rec := &r.report.Records[i]
		if (rec.Result == Done || rec.Result == Unanswered) && rec.Write.Cause.Class == finding.Refusal && r.Now().Sub(rec.Time) < applying {
			t.settling.Insert(rec.Write.Op.Object.UID)
		}
	}
	return t
}

// over reports whether there is nothing to wait for: nothing is left, nothing was changed, nothing of what is left is affected by it, or
// nothing has happened for a while.
func (r *run) over(l *Look) bool {
	still, patience := r.Now().Sub(r.changed), r.patience(l)
	return len(l.left()) == 0 && r.unseen == nil || !slices.ContainsFunc(r.report.Records, acted) || still > patience && !r.options.Patient ||
		still > showing && !r.hopeful(l)
}

// patience is how long nothing may change before the run gives up what is left: longer than who has to try again may take.
func (r *run) patience(l *Look) time.Duration {
	patience := quiet
	passed := slices.ContainsFunc(r.report.Records, func(rec Record) bool { return acted(rec) && rec.Write.Cause.Class == finding.Refusal }) &&
		!slices.ContainsFunc(l.Report.Causes, func(c *explain.Cause) bool { return c.Class == finding.Refusal && c.Verdict == explain.Stuck })
	for i := range l.Report.Objects {
		o := &l.Report.Objects[i]
		n, known := l.Graph.Node(o.Object.UID)
		switch {
		case !o.BeingDeleted():
		case o.Object.Resource.IsNamespace():
			patience = max(patience, retrying)
		case passed && known && n.BeingDeleted() && slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer):
			// What had lasted a time when it could be done at last is tried again before it has lasted twice that.
			patience = max(patience, quiet+min(l.Report.Now.Sub(n.Object().DeletionTimestamp.Time)/2, collectorRetrying))
		}
	}
	return patience
}

// tellWaiting says what is waited for once the usual time is over.
func (r *run) tellWaiting(l *Look) {
	if r.Now().Sub(r.changed) <= quiet {
		return
	}
	left := l.left()
	if len(left) == 0 || r.waiting == fmt.Sprint(left) {
		return
	}
	r.waiting = fmt.Sprint(left)
	e := Event{Waiting: left}
	if !r.options.Patient {
		e.Until = r.changed.Add(r.patience(l))
	}
	r.tell(e)
}

// pause is how long the next look waits: the longer, the longer nothing has changed.
func (r *run) pause(round int) time.Duration {
	return max(min(time.Duration(1+round)*500*time.Millisecond, 3*time.Second), min(r.Now().Sub(r.changed)/10, 10*time.Second))
}

// acted reports whether a change was made, or may have been.
func acted(rec Record) bool {
	return rec.Result == Done || rec.Result == Unanswered || rec.Result == TakenBack || rec.Result == NotTakenBack
}

// hopeful reports whether something that is left may go because of what was done: it is not stuck, or something was done about its cause.
func (r *run) hopeful(l *Look) bool {
	return slices.ContainsFunc(l.Report.Causes, func(c *explain.Cause) bool {
		return c.Verdict != explain.Stuck || slices.ContainsFunc(r.report.Records, func(rec Record) bool {
			return acted(rec) && rec.Write.Cause.ID == c.ID && rec.Write.Cause.Object == c.Object
		})
	}) || slices.ContainsFunc(l.Report.Objects, func(o explain.Explanation) bool {
		return o.Verdict == explain.Progressing || o.Verdict == explain.Pending
	})
}

// carryOut makes changes that were agreed to, in batches: what a batch changes is read, a look proves that each change is still the one to
// make, and then it is sent for exactly the version that was read. The garbage collector's work is done by that's own rules.
func (r *run) carryOut(ctx context.Context, writes []Write) error {
	collected := func(w Write) bool { return w.Collected }
	work := slices.DeleteFunc(slices.Clone(writes), func(w Write) bool { return !w.Collected })
	for part := range slices.Chunk(oncePerObject(slices.DeleteFunc(slices.Clone(writes), collected)), batch) {
		before := r.read(ctx, part)
		proved, err := r.prove(ctx)
		if err != nil {
			return err
		}
		records := make([]Record, len(part))
		parallel(len(part), func(i int) {
			records[i] = r.write(ctx, &part[i], &before[i], proved)
		})
		for i := range records {
			r.record(records[i])
		}
		if err := journalError(records); err != nil {
			return err
		}
	}
	if len(work) > 0 {
		if err := r.collect(ctx, work); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// prove looks again, and returns what is still to be done by then.
func (r *run) prove(ctx context.Context) (map[string]Write, error) {
	l, err := r.Look(ctx)
	if err != nil {
		return nil, err
	}
	proved := map[string]Write{}
	for _, w := range r.take(ctx, l).due() {
		proved[w.consents()[0]] = w // the same change at a greater risk is another
	}
	return proved, nil
}

// version is an object as it was read before it is changed.
type version struct {
	object *unstructured.Unstructured
	err    error
}

func (r *run) read(ctx context.Context, writes []Write) []version {
	before := make([]version, len(writes))
	parallel(len(writes), func(i int) {
		if writes[i].Op.Creates() {
			return
		}
		before[i].object, before[i].err = r.Read(ctx, writes[i].Op.Object)
	})
	return before
}

// write makes one change, if it is proved and its object is what it was.
func (r *run) write(ctx context.Context, w *Write, before *version, proved map[string]Write) Record {
	record := Record{Time: r.Now(), Write: *w}
	fresh, still := proved[w.consents()[0]]
	switch {
	case before.err != nil:
		record.Result, record.Err = Skipped, before.err
		return record
	case !still:
		record.Result, record.Err = Skipped, errMoot
		return record
	case !r.agreed.HasAll(fresh.consents()...):
		record.Result, record.Err = Skipped, errMore
		return record
	}
	if before.object != nil && r.skips[fresh.Op.Key()] > 0 {
		before = r.beating(ctx, &fresh.Op, before)
	}
	made := r.Make(ctx, fresh.change(), before.object)
	fresh.Op = made.Change.Op // with what tells what was made
	return Record{Time: made.Time, Write: fresh, Result: made.Status, Err: made.Err, before: made.Before}
}

// beating reads an object again for which a change was refused before because it had another version. Where a look takes long, and somebody
// writes the time into the object every few seconds, no version that was read before the look is ever the one that is there. A later
// version that differs in times alone, of which the same have written to it since its deletion, was proved by the look as well; any other
// is proved by the next.
func (r *run) beating(ctx context.Context, op *remedy.Op, before *version) *version {
	now, err := r.Read(ctx, op.Object)
	if err != nil || !remedy.Same(timeless(before.object), timeless(now)) {
		return before
	}
	return &version{object: now}
}

// timeless is an object without its version, and without times in its status and annotations, with who has written to it since its
// deletion: that tells who is alive.
func timeless(object *unstructured.Unstructured) any {
	copied := object.DeepCopy()
	copied.SetResourceVersion("")
	since, asked := sets.New[string](), evidence.RequestedBy(object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds())
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(asked) {
			since.Insert(entry.Manager)
		}
	}
	copied.SetManagedFields(nil)
	withoutTimes(copied.Object["status"])
	withoutTimes(copied.Object["metadata"].(map[string]any)["annotations"])
	return []any{copied.Object, strings.Join(sets.List(since), "\n")}
}

func withoutTimes(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutTimes(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "time"
		}
	}
	return value
}

// errMoot says that a change is none of those to make any more.
var errMoot = errors.New("it is no longer the way out")

// errMore says that a change frees more by now than what was agreed to.
var errMore = errors.New("more goes with it by now than was agreed to")

// record takes a change into the report. Changes that were made or refused are not made again.
func (r *run) record(rec Record) {
	key := rec.Write.Op.Key()
	switch rec.Result {
	case Done:
		r.done.Insert(key)
	case Refused, Reverted:
		r.done.Insert(key)
		r.refused.Insert(key)
	case Unanswered, Skipped:
		if r.skips[key]++; r.skips[key] >= mostSkips {
			r.done.Insert(key)
		}
	}
	// A change of which no answer came may have been made: taking it back does nothing otherwise.
	if (rec.Result == Done || rec.Result == Unanswered) && rec.Write.Temporary() {
		r.keepOpen(&rec)
	}
	r.changed = r.Now()
	r.report.Records = append(r.report.Records, rec)
	r.tell(Event{Wrote: &rec})
}

func (r *run) tell(e Event) {
	if r.Log != nil {
		r.Log(e)
	}
}

// parallel calls do with the numbers below n, a few at once.
func parallel(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // there are no errors
}

// journalError returns an error when a change could not be kept: nothing more is changed then.
func journalError(records []Record) error {
	for i := range records {
		if err := new(change.JournalError); errors.As(records[i].Err, &err) {
			return err
		}
	}
	return nil
}
