// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ahead are the targets for whose sake others are deleted ahead of them. It owns what the server said of
// these, and decides what goes with them. It may be used by several goroutines.
type ahead struct {
	server   Server
	snapshot *graph.Snapshot
	state    *state
	reader   *reader
	policy   metav1.DeletionPropagation

	targets map[number]*Target
	// containers are those of them that are Namespaces and definitions, by the name of what they
	// contain: a namespace, or a resource.
	containers map[string]*Target
	// above are the owners of targets whose turn comes later, and theirs, with one such target: the cascade of
	// these would overtake it, and its policy with it.
	above map[number]*Target

	mu sync.Mutex
	// asked has what the server said of a target.
	asked map[number]standing
}

// standing is whether a target is still one, as of some moment.
type standing struct {
	at  time.Time
	why error
}

// newAhead returns what objects may go with: the targets of this turn, which are given in now, and of later
// ones.
func newAhead(r *reader, policy metav1.DeletionPropagation, targets []Target, now map[number]bool) *ahead {
	a := &ahead{
		server: r.server, snapshot: r.snapshot, state: r.state, reader: r, policy: policy,
		targets: map[number]*Target{}, containers: map[string]*Target{}, above: map[number]*Target{}, asked: map[number]standing{},
	}
	for i := range targets {
		t := &targets[i]
		if t.UID != "" {
			a.targets[a.state.of(t.UID)] = t
			for _, owner := range a.ownersAbove(t, now) {
				a.above[owner] = t
			}
		}
		switch {
		case t.Resource.IsNamespace():
			a.containers["namespace "+t.Name] = t
		case t.Resource.IsCRD():
			a.containers["definition "+t.Name] = t
		}
	}
	return a
}

// ownersAbove returns the owners of a target and theirs, unless its turn is now.
func (a *ahead) ownersAbove(t *Target, now map[number]bool) []number {
	n := a.state.of(t.UID)
	if now[n] {
		return nil
	}
	return a.state.ownersAbove(n)
}

// decide decides about an object as if the targets had gone. What a target contains goes with
// it, whoever owns that; anything else as the garbage collector has it. The error is why it stays.
func (a *ahead) decide(ctx context.Context, v view) (Decision, error) {
	o := v.object
	if t := a.above[v.number]; t != nil {
		return Decision{}, fmt.Errorf("a target of a later wave depends on it: %s", t.Identity)
	}
	if t := a.containerOf(&o); t != nil {
		return Decision{Action: ActionDelete, Policy: policyOf(&o)}, a.stands(ctx, t)
	}
	refs, goes, err := a.classify(ctx, &o, map[number]bool{v.number: true})
	switch {
	case err != nil:
		return Decision{}, err
	case !goes:
		return Decision{}, errors.New("nothing that is to be deleted owns it")
	}
	d := Decide(&o, refs, a.state.dependentsOf(v))
	if d.Action != ActionDelete {
		err = errors.New(d.Reason)
	}
	return d, err
}

// containerOf returns the target that contains the object, nil if none does.
func (a *ahead) containerOf(o *graph.Object) *Target {
	if t := a.containers["namespace "+o.Namespace]; t != nil && o.Namespace != "" {
		return t
	}
	return a.containers["definition "+o.Resource.GroupResource().String()]
}

// classify sorts an object's references as if the targets had gone, and with them what goes with
// them. goes: one of the references leads to something of that, or to what has gone in this run. The objects that were
// seen are those that depend on it, directly or not. The error is that of asking about a target.
func (a *ahead) classify(ctx context.Context, o *graph.Object, seen map[number]bool) (refs References, goes bool, failure error) {
	absent := func(ref metav1.OwnerReference) bool {
		if a.state.isAbsent(ref, o.Namespace) {
			goes = goes || a.state.removed(a.state.of(ref.UID))
			return true
		}
		is, err := a.goes(ctx, ref, o.Namespace, seen)
		goes, failure = goes || is, errors.Join(failure, err)
		return is
	}
	refs = Classify(o.OwnerReferences, o.Namespace, absent, func(ref metav1.OwnerReference) graph.OwnerLookup {
		return &ownerLookup{r: a.reader, ctx: ctx, ref: ref}
	})
	waits := func(ref metav1.OwnerReference) bool { return !a.state.isAbsent(ref, o.Namespace) && a.waits(ref) }
	for _, ref := range refs.Dangling {
		if waits(ref) {
			refs.WaitingForDependentsDeletion = append(refs.WaitingForDependentsDeletion, ref)
		}
	}
	refs.Dangling = slices.DeleteFunc(slices.Clone(refs.Dangling), waits)
	return refs, goes, failure
}

// waits reports whether an owner that goes will wait for its dependents: all of them, if the targets are deleted in the foreground, and
// otherwise one that goes with a target by its own policy.
func (a *ahead) waits(ref metav1.OwnerReference) bool {
	if a.policy == metav1.DeletePropagationForeground {
		return true
	}
	n := a.state.of(ref.UID)
	v, known := a.state.view(n)
	return known && a.targets[n] == nil && policyOf(&v.object) == metav1.DeletePropagationForeground
}

// isForeign reports whether a finalizer is not the garbage collector's own.
func isForeign(finalizer string) bool { return !graph.IsCollectorFinalizer(finalizer) }

// dropsTheLast reports whether a delete takes the garbage collector's own
// finalizers off an object that has no others.
func dropsTheLast(o *graph.Object, options metav1.DeleteOptions) bool {
	return *options.PropagationPolicy == metav1.DeletePropagationBackground && len(o.Finalizers) > 0 &&
		!slices.ContainsFunc(o.Finalizers, isForeign)
}

// goes reports whether the owner of a reference is a target, or goes with one, and does not orphan its
// dependents.
func (a *ahead) goes(ctx context.Context, ref metav1.OwnerReference, namespace string, seen map[number]bool) (bool, error) {
	n := a.state.of(ref.UID)
	v, known := a.state.view(n)
	mapping, err := a.reader.resolve(ref.APIVersion, ref.Kind)
	if !known || v.gone || v.lost || err != nil || seen[n] {
		return false, nil
	}
	if v.object.Namespace == "" {
		namespace = ""
	}
	if !a.snapshot.IsAt(&v.object, mapping.Resource.GroupResource(), namespace, ref.Name) {
		return false, nil
	}
	if a.policy != metav1.DeletePropagationForeground && slices.ContainsFunc(v.object.Finalizers, isForeign) {
		return false, nil // until somebody has let go of it, its dependents have an owner
	}
	t := a.targets[n]
	if t == nil && a.containers["namespace "+v.object.Namespace] != nil {
		t = a.containerOf(&v.object) // whose controller deletes all in the background
	}
	switch {
	case t != nil && (t.UID != ref.UID || a.policy != metav1.DeletePropagationOrphan):
		err := a.stands(ctx, t)
		return err == nil, err
	case t != nil || policyOf(&v.object) == metav1.DeletePropagationOrphan:
		return false, nil
	}
	if t = a.containerOf(&v.object); t != nil {
		err := a.stands(ctx, t)
		return err == nil, err
	}
	seen[n] = true
	defer delete(seen, n)
	refs, goes, err := a.classify(ctx, &v.object, seen)
	return err == nil && goes && len(refs.Solid)+len(refs.Unknown) == 0, err
}

// stands asks the server whether a target is there, and is one still, and returns why not. The answer
// counts for a moment.
func (a *ahead) stands(ctx context.Context, t *Target) error {
	n := a.state.of(t.UID)
	asking := a.reader.asking.of(n)
	asking.lock()
	defer asking.unlock()
	a.mu.Lock()
	last, known := a.asked[n]
	a.mu.Unlock()
	if known && time.Since(last.at) < proofLasts {
		return last.why
	}
	last = standing{at: time.Now(), why: a.askStanding(ctx, t)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[n] = last
	return last.why
}

func (a *ahead) askStanding(ctx context.Context, t *Target) error {
	var now graph.Object
	var err error
	selected := true
	if t.Reselect != nil {
		now, selected, err = t.Reselect(ctx, a.server)
	} else {
		now, err = a.server.Get(ctx, t.Resource, t.Namespace, t.Name)
	}
	switch {
	case err != nil:
		return fmt.Errorf("asking for %s: %w", t.Identity, err)
	case !selected:
		return fmt.Errorf("this does not match the selector any more: %s", t.Identity)
	case now.UID != t.UID:
		return fmt.Errorf("%s is another object now", t.Identity)
	}
	return nil
}
