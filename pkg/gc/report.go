// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
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
	Reason say.Text
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

// report is the memory of what was written and heard: the steps in the order of the answers, and
// of each object the last word. It may be used by several goroutines.
type report struct {
	scope *scope

	mu    sync.Mutex
	steps []Step
	fates graph.Table[number, *fate]
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

// expect makes room for the steps of a deletion, mostly one for each node, and notes what of
// all this has no UID.
func (r *report) expect(nodes graph.Set, targets []Target) {
	for n := range nodes.All() {
		if !n.HasUID() {
			r.nameless = append(r.nameless, *n.Object())
		}
	}
	for i := range targets {
		if targets[i].UID == "" {
			r.nameless = append(r.nameless, objectOf(targets[i].Identity))
		}
	}
	r.steps = slices.Grow(r.steps, nodes.Len())
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
	f.fail(s.Err, isDelete && r.scope.targets[n])
	if s.Err == nil && clears {
		f.reason, f.owners, f.cleared = s.Reason, s.Patch.OwnerReferences(s.Object.OwnerReferences), true
	}
}

// left records why an owner whose deletion was begun is not finished.
func (r *report) left(n number, reason string) { r.note(n, func(f *fate) { f.left = reason }) }

// failed records that an object could not be read again after a write.
func (r *report) failed(n number, err error) {
	r.note(n, func(f *fate) { f.fail(err, r.scope.targets[n]) })
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

// objectOf returns an object of which nothing but the identity is known.
func objectOf(id graph.Identity) graph.Object {
	return graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name, UID: id.UID}
}
