// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Result is what became of an object.
type Result string

// The results.
const (
	// Deleted: the object is gone.
	Deleted Result = "Deleted"
	// Orphaned: the object stays without the reference to its deleted owner.
	Orphaned Result = "Orphaned"
	// OwnerReferenceRemoved: the object stays, kept by another owner, without
	// references that kept nothing.
	OwnerReferenceRemoved Result = "OwnerReferenceRemoved"
	// Remaining: the object is being deleted and is still there, or what had to be
	// done to it was refused or not done.
	Remaining Result = "Remaining"
	// Untouched: nothing was done to the object.
	Untouched Result = "Untouched"
	// Unknown: what happens to the object cannot be told.
	Unknown Result = "Unknown"
)

// Outcome is what became of one object, and why.
type Outcome struct {
	Object graph.Object
	Result Result
	Reason string
	// WaitingFor are objects that must go, or change, before this one goes.
	WaitingFor []graph.Identity
	// Finalizers are those, other than the garbage collector's own, that hold a
	// Remaining object.
	Finalizers []string
	// Undecided: some of its references could not be decided. An object that nothing
	// was done to is Unknown then; of one that lost references this is known, and that
	// more might have to be done is not.
	Undecided bool
	// Undecidable: it is Undecided to a collection by what its references state, or
	// by what could not be read before. Nobody asked for its deletion, and to keep it
	// is all that can be done.
	Undecidable bool
	// GoesWith is the Namespace or CustomResourceDefinition that the object is in, when that is being deleted
	// and nobody has got to the object yet: whatever keeps it otherwise, it goes. Such an object is Remaining.
	GoesWith *graph.Identity
	// Appeared: the object is none of those that were read before the run. It was made
	// meanwhile, or could not be seen then.
	Appeared bool
}

// Report is what a Collector did and what it left.
type Report struct {
	// Steps are the writes in the order of the server's answers.
	Steps []Step
	// Outcomes are those of every object that the deletion concerned, in the
	// order of their identities.
	Outcomes []Outcome
}

// Remaining returns the outcomes of the objects that the run should have dealt
// with and has not. When there are none, it is done.
func (r *Report) Remaining() []Outcome {
	var remaining []Outcome
	for _, o := range r.Outcomes {
		if o.Result == Remaining || (o.Result == Unknown || o.Undecided) && !o.Undecidable {
			remaining = append(remaining, o)
		}
	}
	return remaining
}

// report collects what happens. It may be used by several goroutines.
type report struct {
	mu       sync.Mutex
	included graph.Table[number, bool]
	targets  map[number]bool
	steps    []Step
	fates    graph.Table[number, *fate]
	// nameless are objects without UID, each of which is itself only.
	nameless []graph.Object
}

// fate is what is known of an object beside its state: the last thing that was
// decided about it, or that happened to it.
type fate struct {
	// left is why an owner is not finished.
	left string
	// reason is why the object stays, as long as it has these owners; cleared says
	// that it lost others with that reason.
	reason  string
	owners  []metav1.OwnerReference
	cleared bool
	// undecided are the references because of which it is not known whether it
	// stays, as long as it has one of them.
	undecided []UnknownReference
	// err is why a write failed, and asked that it was the user's own delete.
	err   error
	asked bool
	// guarded is why a write was not sent.
	guarded error
	// doubt is why it is not certain which object this is.
	doubt string
	// unreached: the run ended before what had come up for the object was done.
	unreached bool
}

// forgive forgets that a write failed, after another decision or write. That the
// user's own delete failed is not forgotten until a delete is accepted.
func (f *fate) forgive(isDeleted bool) {
	f.guarded = nil
	if isDeleted || !f.asked {
		f.err, f.asked = nil, false
	}
}

func (f *fate) fail(err error, asked bool) {
	if err != nil {
		f.err, f.asked = err, asked || f.asked
	}
}

// expect includes the nodes of a deletion of the targets, and makes room for its
// steps: mostly one each.
func (r *report) expect(nodes graph.Set, targets map[number]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets = targets
	for n := range nodes.All() {
		*r.included.At(numberOf(n)) = true
		if !n.HasUID() {
			r.nameless = append(r.nameless, *n.Object())
		}
	}
	r.steps = slices.Grow(r.steps, nodes.Len())
}

func (r *report) include(n number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.included.At(n) = true
}

func (r *report) includes(n number) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.included.Get(n)
}

// fate returns what is known of an object, which may be changed.
func (r *report) fate(n number) *fate {
	f := r.fates.At(n)
	if *f == nil {
		*f = &fate{}
	}
	return *f
}

// note changes an object's fate.
func (r *report) note(n number, change func(*fate)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.fate(n))
}

// step records a write to the object.
func (r *report) step(n number, s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
	isDelete, clears := s.Action == ActionDelete, s.Action == ActionRemoveOwnerReferences
	if s.Err == nil && !clears && r.fates.Get(n) == nil { // nothing to be noted, as of most objects
		return
	}
	f := r.fate(n)
	f.forgive(isDelete && s.Err == nil)
	f.fail(s.Err, isDelete && r.targets[n])
	if s.Err == nil && clears {
		f.reason, f.owners, f.cleared = s.Reason, s.Patch.OwnerReferences(s.Object.OwnerReferences), true
	}
}

// left records why an owner whose deletion was begun is not finished.
func (r *report) left(n number, reason string) { r.note(n, func(f *fate) { f.left = reason }) }

// failed records that an object could not be read again after a write.
func (r *report) failed(n number, err error) {
	r.note(n, func(f *fate) { f.fail(err, r.targets[n]) })
}

// kept records why an object with these owners was left alone, for certain or,
// when references could not be decided, for want of knowledge.
func (r *report) kept(n number, o *graph.Object, reason string, undecided []UnknownReference) {
	r.note(n, func(f *fate) {
		f.forgive(false)
		f.undecided = undecided
		if f.cleared && undecided == nil && equalOwners(f.owners, o.OwnerReferences) {
			return // the same, said again
		}
		f.reason, f.owners, f.cleared = reason, o.OwnerReferences, false
	})
}

// guarded records that a write was not sent.
func (r *report) guarded(n number, err error) {
	r.note(n, func(f *fate) { f.guarded = err })
}

// doubted records why it is not certain which object is meant.
func (r *report) doubted(n number, doubt string) { r.note(n, func(f *fate) { f.doubt = doubt }) }

// unreached records that something for the object was not done before the run
// ended.
func (r *report) unreached(n number) { r.note(n, func(f *fate) { f.unreached = true }) }

// passed records that a target was passed over: it is not selected any more.
func (r *report) passed(n number, o *graph.Object, reason string) {
	r.note(n, func(f *fate) {
		f.err, f.asked, f.guarded, f.undecided = nil, false, nil, nil
		f.reason, f.owners, f.cleared = reason, o.OwnerReferences, false
	})
}

// conclude returns what is to be said.
func (c *Collector) conclude() *Report {
	for _, t := range c.queue.left() {
		c.report.unreached(t.object)
	}
	c.includeFollowers()
	for v := range c.containers {
		switch {
		case v.gone:
			c.vanished.add(v.object.Identity())
		case v.object.BeingDeleted():
			c.emptying.add(v.object.Identity())
		}
	}
	included := c.included()
	result := &Report{Steps: c.report.steps, Outcomes: make([]Outcome, 0, len(included))}
	for _, n := range included {
		v, ok := c.state.view(n)
		if !ok {
			continue // a missing owner
		}
		o := c.outcome(v, c.report.fates.Get(n))
		_, known := c.state.node(n)
		o.Appeared = !known
		result.Outcomes = append(result.Outcomes, o)
	}
	c.explainNamespaces(result.Outcomes)
	result.Outcomes = append(result.Outcomes, c.nameless()...)
	compare := func(a, b Outcome) int { return a.Object.Identity().Compare(b.Object.Identity()) }
	if !slices.IsSortedFunc(result.Outcomes, compare) {
		slices.SortFunc(result.Outcomes, compare)
	}
	return result
}

// NoUID is why nothing is written to an object that has none.
const NoUID = "it has no UID, so it cannot be told from another object of its name"

// nameless returns the outcomes of objects without UID. No write could say which
// object it is for, and no event of which one it tells.
func (c *Collector) nameless() []Outcome {
	objects := c.report.nameless
	if c.everything {
		for _, number := range c.included() {
			if n, ok := c.state.node(number); ok && !n.HasUID() && !n.Virtual() && !n.AllSolid() {
				objects = append(objects, *n.Object())
			}
		}
	}
	outcomes := make([]Outcome, len(objects))
	for i, o := range objects {
		outcomes[i] = Outcome{Object: o, Result: Unknown, Reason: NoUID, Undecidable: c.everything}
	}
	return outcomes
}

// includeFollowers includes what depends on objects that a collection has deleted and
// that are held: it goes with them.
func (c *Collector) includeFollowers() {
	if !c.everything {
		return // all that depends on targets is included
	}
	var held []graph.Node
	for _, number := range c.included() {
		n, known := c.state.node(number)
		if v, ok := c.state.view(number); known && ok && !n.BeingDeleted() && !v.gone && v.object.BeingDeleted() && n.HasDependents() {
			held = append(held, n)
		}
	}
	for n := range graph.Descendants(held...).All() {
		if c.within(n.Namespace()) {
			c.report.include(numberOf(n))
		}
	}
}

// included returns what the report is about: the nodes of the graph in their order, and
// then what is newer.
func (c *Collector) included() []number {
	var included []number
	for n, in := range c.report.included.All() {
		if *in {
			included = append(included, n)
		}
	}
	return included
}

// reachable is a Server that may be out of reach.
type reachable interface {
	// Away returns for how long the server could not be reached by now, 0 when it can be.
	Away() time.Duration
}

// away is for how long the server could not be reached by now, in whole seconds; 0 for a
// moment. What is known of objects is as old.
func (c *Collector) away() time.Duration {
	s, ok := c.server.(reachable)
	if !ok || s.Away() < moment {
		return 0
	}
	return s.Away().Round(time.Second)
}

// moment is how long a server may be out of reach without a word about that.
const moment = 5 * time.Second

// outcome says what became of an object: by the object as it is, where that tells,
// and otherwise by what was noted last and still holds.
func (c *Collector) outcome(v view, f *fate) Outcome {
	if f == nil {
		f = &fate{}
	}
	o := Outcome{Object: v.object}
	lost, orphaned := c.state.lostReferences(v.number)
	undecided := f.open(&v.object)
	failure, failed := c.failed(v, f)
	switch {
	case v.gone:
		o.Result = Deleted
	case f.doubt != "":
		o.Result, o.Reason, o.Undecidable = Unknown, f.doubt, c.everything
	case failed:
		o.Result, o.Reason = Remaining, failure
	case !lost && c.passesBy(v):
		o.Result, o.Reason = Untouched, c.untouched(v)+"; it was being deleted before"
	case v.object.BeingDeleted():
		o.Result = Remaining
		c.explain(&o, v, f)
	case v.lost:
		o.Result, o.Reason = Unknown, "its type is not served any more, so whether it still exists is not known"
	case v.deleteSent:
		o.Result, o.Reason = Remaining, "its deletion was accepted, and its end not seen"
	case c.emptying.has(v.object.Resource, v.object.Namespace):
		c.goesWith(&o)
	case len(undecided) > 0:
		o.Result = Unknown
		if orphaned {
			o.Result = Orphaned
		} else if lost {
			o.Result = OwnerReferenceRemoved
		}
		c.undecided(&o, undecided)
	case c.vanished.has(v.object.Resource, v.object.Namespace) && c.proofs.failure() != nil:
		o.Result, o.Reason = Unknown, "its Namespace or CustomResourceDefinition is gone, and that it is gone, too, could not be proved: "+c.proofs.failure().Error()
	case c.vanished.has(v.object.Resource, v.object.Namespace):
		o.Result, o.Reason = Remaining, "it is still there, although its Namespace or CustomResourceDefinition is gone"
	case c.abandoned(v) || f.unreached:
		o.Result, o.Reason = Remaining, c.notReached(v)
	case orphaned:
		o.Result = Orphaned
	case lost:
		o.Result, o.Reason = OwnerReferenceRemoved, f.stays(&v.object)
	case c.ownerLost(v) != "":
		o.Result, o.Reason = Unknown, fmt.Sprintf("whether its owner %s still exists is not known", c.ownerLost(v))
	default:
		o.Result, o.Reason = Untouched, cmp.Or(f.stays(&v.object), c.untouched(v))
	}
	return o
}

// failed says why it is not known to be done what had to be, if a write failed, was not sent, or could not be followed.
func (c *Collector) failed(v view, f *fate) (why string, failed bool) {
	switch {
	case answer.Missing(f.err) && !v.object.BeingDeleted():
		return fmt.Sprintf("no answer, and no effect seen: %v", f.err), true
	case f.err != nil && !answer.Missing(f.err) && c.writer.lost.has(v.number):
		return fmt.Sprintf("refused: %v; an earlier request was not answered, and may still be carried out", f.err), true
	case f.err != nil && !answer.Missing(f.err):
		return fmt.Sprintf("refused: %v", f.err), true
	case f.guarded != nil:
		return f.guarded.Error(), true
	case c.away() > 0 && (v.object.BeingDeleted() || v.deleteSent):
		return fmt.Sprintf("its end was not seen: the API server could not be reached for %s", c.away()), true
	}
	return "", false
}

// notReached says of an object that the run ended before what had to be done to it.
func (c *Collector) notReached(v view) string {
	if c.abandoned(v) {
		return "nothing keeps it, but it was not reached"
	}
	return "it was not reached"
}

// goesWith says of an object with what it goes, and who has to get to it for that.
func (c *Collector) goesWith(o *Outcome) {
	id, _ := c.emptying.of(o.Object.Resource, o.Object.Namespace)
	who := "the API server"
	if id.Resource.IsNamespace() {
		who = "the namespace controller"
	}
	o.Result, o.GoesWith, o.Reason = Remaining, &id, fmt.Sprintf("goes with %s, when %s gets to it", id, who)
}

// undecided says why it is not known what else becomes of an object: what went wrong,
// if anything did, and otherwise what is so.
func (c *Collector) undecided(o *Outcome, open []UnknownReference) {
	why := slices.IndexFunc(open, func(ref UnknownReference) bool { return c.inVain(&o.Object, &ref) })
	o.Reason, o.Undecided = unknownReason(open[max(why, 0)]), true
	o.Undecidable = c.everything && why < 0
}

// stays returns why the object stays, if that was said of it with the owners that
// it has now.
func (f *fate) stays(o *graph.Object) string {
	if len(f.open(o)) > 0 || !equalOwners(f.owners, o.OwnerReferences) {
		return ""
	}
	return f.reason
}

// open returns the references that could not be decided and that the object still
// has.
func (f *fate) open(o *graph.Object) []UnknownReference {
	var open []UnknownReference
	for _, ref := range f.undecided {
		if indexOfOwner(o.OwnerReferences, ref.OwnerReference) >= 0 {
			open = append(open, ref)
		}
	}
	return open
}

// inVain reports whether the server was asked for the owner by the run and did not
// tell, although there was no such gap in what was read before.
func (c *Collector) inVain(o *graph.Object, ref *UnknownReference) bool {
	if !ref.failed() {
		return false
	}
	n, ok := c.state.graph.Node(o.UID)
	return !ok || !slices.ContainsFunc(n.Owners(), func(before graph.Reference) bool {
		return before.Reason == graph.UnlistedOwner && before.UID == ref.UID && before.Name == ref.Name
	})
}

// abandoned reports whether all owners of an object that was not decided about
// are gone, or wait for their dependents' deletion: the run ended before. An owner
// that was in foreground deletion before, and that nothing led the run to, is not
// its business.
func (c *Collector) abandoned(v view) bool {
	for _, ref := range v.object.OwnerReferences {
		owner, ok := c.state.view(c.state.of(ref.UID))
		if mine := c.entered.has(owner.number) || c.report.targets[owner.number]; !ok || !owner.gone && !(owner.object.DeletingDependents() && mine) {
			return false
		}
	}
	return len(v.object.OwnerReferences) > 0
}

// mostNamed is the number of finalizers that a reason names.
const mostNamed = 20

// named names finalizers, and counts those that are too many.
func named(finalizers []string) string {
	if len(finalizers) <= mostNamed {
		return strings.Join(finalizers, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(finalizers[:mostNamed], ", "), len(finalizers)-mostNamed)
}

// explain says what a terminating object waits for.
func (c *Collector) explain(o *Outcome, v view, f *fate) {
	var reasons []string
	for _, finalizer := range v.object.Finalizers {
		if !graph.IsCollectorFinalizer(finalizer) {
			o.Finalizers = append(o.Finalizers, finalizer)
		}
	}
	if len(o.Finalizers) > 0 {
		reasons = append(reasons, "finalizer "+named(o.Finalizers))
	}
	if v.object.InGrace() {
		reasons = append(reasons, "its kubelet must end it")
	}
	if f.left != "" {
		reasons = append(reasons, f.left)
	}
	if v.object.OrphaningDependents() && f.left == "" {
		reasons = append(reasons, c.notOrphaned(v.number))
	}
	switch {
	case !v.object.DeletingDependents() || f.left != "":
	case !c.entered.has(v.number) && !c.report.targets[v.number]:
		reasons = append(reasons, "its foreground deletion was begun before, which only collect goes on with")
	case v.blocking == 0:
		reasons = append(reasons, "its finalizer foregroundDeletion was not taken off")
	}
	if v.object.HasFinalizer(metav1.FinalizerDeleteDependents) && v.blocking > 0 {
		for _, n := range c.state.blockingDependents(v.number) {
			if d, ok := c.state.view(n); ok {
				o.WaitingFor = append(o.WaitingFor, d.object.Identity())
			}
		}
		reasons = append(reasons, blockedBy(v.blocking)) // last: WaitingFor is named after it
	}
	o.Reason = strings.Join(reasons, "; ")
	if o.Reason == "" && !v.object.Resource.IsNamespace() {
		o.Reason = "nothing visible holds it"
	}
}

// notOrphaned says what keeps an owner from having orphaned its dependents: that
// some are not to be touched, if anything.
func (c *Collector) notOrphaned(owner number) string {
	for _, n := range c.state.dependents(owner) {
		if d, ok := c.state.view(n); ok && !c.within(d.object.Namespace) {
			return fmt.Sprintf("its dependents outside namespace %s are not orphaned", c.namespace)
		}
	}
	return "its dependents are not orphaned yet"
}

// explainNamespaces says of namespaces that remain what is left in them, also of what is no business of the run, as
// the events tell. The namespace controller keeps them until that is gone (namespace_controller.go).
func (c *Collector) explainNamespaces(outcomes []Outcome) {
	left := map[string][]graph.Identity{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Result == Remaining && o.Object.Resource.IsNamespace() && o.Object.BeingDeleted() && o.Reason == "" {
			left[o.Object.Name] = nil
		}
	}
	if len(left) == 0 {
		return
	}
	for _, o := range c.state.terminating() {
		if ids, explains := left[o.Namespace]; explains {
			left[o.Namespace] = append(ids, o.Identity())
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Result == Remaining && o.GoesWith == nil && !o.Object.BeingDeleted() { // its deletion was refused
			if ids, explains := left[o.Object.Namespace]; explains {
				left[o.Object.Namespace] = append(ids, o.Object.Identity())
			}
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if _, explains := left[o.Object.Name]; !explains || !o.Object.Resource.IsNamespace() || o.Reason != "" {
			continue
		}
		o.Reason = "the namespace controller has not ended it"
		if o.WaitingFor = left[o.Object.Name]; len(o.WaitingFor) > 0 {
			slices.SortFunc(o.WaitingFor, graph.Identity.Compare)
			o.Reason = "its contents must be deleted first" // WaitingFor is named after it
		}
	}
}

func blockedBy(n int) string {
	if n == 1 {
		return "a blocking dependent must go first"
	}
	return fmt.Sprintf("%d blocking dependents must go first", n)
}

// passesBy reports whether an object that somebody else deleted before is no business of the
// run, because that orphans what it depends on.
func (c *Collector) passesBy(v view) bool {
	n, known := c.state.node(v.number)
	if !known || !n.BeingDeleted() || c.deletion.Policy != metav1.DeletePropagationOrphan || c.report.targets[v.number] {
		return false
	}
	return slices.ContainsFunc(v.object.OwnerReferences, func(ref metav1.OwnerReference) bool {
		owner, ok := c.state.view(c.state.of(ref.UID))
		return ok && !owner.gone && !owner.object.BeingDeleted() && !owner.deleteSent
	})
}

// untouched says why an object that depends on a target was never looked at:
// an owner of it is still there.
func (c *Collector) untouched(v view) string {
	for _, ref := range v.object.OwnerReferences {
		if owner, ok := c.state.view(c.state.of(ref.UID)); ok && !owner.gone {
			return stillThere(ref.Kind, ref.Name)
		}
	}
	return ""
}

// ownerLost returns an owner of which it is not known whether it still exists, empty when there is
// none, or another owner is still there.
func (c *Collector) ownerLost(v view) string {
	lost := ""
	for _, ref := range v.object.OwnerReferences {
		switch owner, ok := c.state.view(c.state.of(ref.UID)); {
		case !ok || owner.gone:
		case !owner.lost:
			return ""
		case lost == "":
			lost = ref.Kind + "/" + ref.Name
		}
	}
	return lost
}

// stillThere says why an object was never looked at.
func stillThere(kind, name string) string {
	return fmt.Sprintf("its owner %s/%s is still there", kind, name)
}
