// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ahead are the targets for whose sake others are deleted ahead of them.
type ahead struct {
	targets map[number]*Target
	// containers are those of them that are Namespaces and definitions, by the name of what they
	// contain: a namespace, or a resource.
	containers map[string]*Target
	// above are the owners of targets whose turn comes later, and theirs, with one such target: the cascade of
	// these would overtake it, and its policy with it.
	above map[number]*Target
	// asked has what the server said of a target.
	asked map[number]standing
}

// standing is whether a target is still one, as of some moment.
type standing struct {
	at  time.Time
	why error
}

// ownersAbove returns the owners of a target and theirs, unless its turn is now.
func (c *Collector) ownersAbove(t *Target, now map[number]bool) []number {
	n := c.state.of(t.UID)
	if now[n] {
		return nil
	}
	return c.state.ownersAbove(n)
}

// prepareAhead notes what objects may go with: the targets of this turn, which are given in now, and of later
// ones.
func (c *Collector) prepareAhead(targets []Target, now map[number]bool) {
	c.ahead = ahead{targets: map[number]*Target{}, containers: map[string]*Target{}, above: map[number]*Target{}, asked: map[number]standing{}}
	for i := range targets {
		t := &targets[i]
		if t.UID != "" {
			c.ahead.targets[c.state.of(t.UID)] = t
			for _, owner := range c.ownersAbove(t, now) {
				c.ahead.above[owner] = t
			}
		}
		switch {
		case t.Resource.IsNamespace():
			c.ahead.containers["namespace "+t.Name] = t
		case t.Resource.IsCRD():
			c.ahead.containers["definition "+t.Name] = t
		}
	}
}

// goAhead deletes an object that goes with targets before these go, as long as it does.
func (c *Collector) goAhead(ctx context.Context, v view) {
	o := v.object
	if v.deleteSent {
		return
	}
	d, why := c.decideAhead(ctx, v)
	switch {
	case ctx.Err() != nil:
		return
	case v.beingDeleted && why == nil:
		c.takeUp(ctx, v.number, o)
		return
	case v.beingDeleted: // its end is waited for, and brought about by others
		return
	case why != nil:
		c.report.guarded(v.number, fmt.Errorf("not deleted ahead of what it goes with: %w", why))
		return
	}
	d.Reason = goesEarly
	c.collect(ctx, v.number, o, d, task{kind: goAhead, object: v.number})
}

// decideAhead decides about an object as if the targets had gone. What a target contains goes with
// it, whoever owns that; anything else as the garbage collector has it. The error is why it stays.
func (c *Collector) decideAhead(ctx context.Context, v view) (Decision, error) {
	o := v.object
	if t := c.ahead.above[v.number]; t != nil {
		return Decision{}, fmt.Errorf("this depends on it, and has its turn later: %s", t.Identity)
	}
	if t := c.containerOf(&o); t != nil {
		return Decision{Action: ActionDelete, Policy: policyOf(&o)}, c.stands(ctx, t)
	}
	refs, goes, err := c.classifyAhead(ctx, &o, map[number]bool{v.number: true})
	switch {
	case err != nil:
		return Decision{}, err
	case !goes:
		return Decision{}, errors.New("nothing that is to go owns it")
	}
	d := Decide(&o, refs, c.dependentsOf(v))
	if d.Action != ActionDelete {
		err = errors.New(d.Reason)
	}
	return d, err
}

// containerOf returns the target that contains the object, nil if none does.
func (c *Collector) containerOf(o *graph.Object) *Target {
	if t := c.ahead.containers["namespace "+o.Namespace]; t != nil && o.Namespace != "" {
		return t
	}
	return c.ahead.containers["definition "+o.Resource.GroupResource().String()]
}

// classifyAhead sorts an object's references as if the targets had gone, and with them what goes with
// them. goes: one of the references leads to something of that, or to what has gone in this run. The objects that were
// seen are those that depend on it, directly or not. The error is that of asking about a target.
func (c *Collector) classifyAhead(ctx context.Context, o *graph.Object, seen map[number]bool) (refs References, goes bool, failure error) {
	absent := func(ref metav1.OwnerReference) bool {
		if c.state.isAbsent(ref, o.Namespace) {
			goes = goes || c.removed(c.state.of(ref.UID))
			return true
		}
		is, err := c.goesAhead(ctx, ref, o.Namespace, seen)
		goes, failure = goes || is, errors.Join(failure, err)
		return is
	}
	refs = Classify(o.OwnerReferences, o.Namespace, absent, func(ref metav1.OwnerReference) graph.OwnerLookup {
		return &ownerLookup{c: c, ctx: ctx, ref: ref}
	})
	if c.deletion.Policy == metav1.DeletePropagationForeground { // they will wait for their dependents
		there := func(ref metav1.OwnerReference) bool { return !c.state.isAbsent(ref, o.Namespace) }
		for _, ref := range refs.Dangling {
			if there(ref) {
				refs.WaitingForDependentsDeletion = append(refs.WaitingForDependentsDeletion, ref)
			}
		}
		refs.Dangling = slices.DeleteFunc(slices.Clone(refs.Dangling), there)
	}
	return refs, goes, failure
}

// isForeign reports whether a finalizer is not the garbage collector's own.
func isForeign(finalizer string) bool { return !graph.IsCollectorFinalizer(finalizer) }

// goesAhead reports whether the owner of a reference is a target, or goes with one, and does not orphan its
// dependents.
func (c *Collector) goesAhead(ctx context.Context, ref metav1.OwnerReference, namespace string, seen map[number]bool) (bool, error) {
	n := c.state.of(ref.UID)
	v, known := c.state.view(n)
	mapping, err := c.resolve(ref.APIVersion, ref.Kind)
	if !known || v.gone || v.lost || err != nil || seen[n] {
		return false, nil
	}
	if v.object.Namespace == "" {
		namespace = ""
	}
	if !c.snapshot.IsAt(&v.object, mapping.Resource.GroupResource(), namespace, ref.Name) {
		return false, nil
	}
	if c.deletion.Policy != metav1.DeletePropagationForeground && slices.ContainsFunc(v.object.Finalizers, isForeign) {
		return false, nil // until somebody has let go of it, its dependents have an owner
	}
	t := c.ahead.targets[n]
	if t == nil && c.ahead.containers["namespace "+v.object.Namespace] != nil {
		t = c.containerOf(&v.object) // whose controller deletes all in the background
	}
	switch {
	case t != nil && (t.UID != ref.UID || c.deletion.Policy != metav1.DeletePropagationOrphan):
		err := c.stands(ctx, t)
		return err == nil, err
	case t != nil || policyOf(&v.object) == metav1.DeletePropagationOrphan:
		return false, nil
	}
	if t = c.containerOf(&v.object); t != nil {
		err := c.stands(ctx, t)
		return err == nil, err
	}
	seen[n] = true
	defer delete(seen, n)
	refs, goes, err := c.classifyAhead(ctx, &v.object, seen)
	return err == nil && goes && len(refs.Solid)+len(refs.Unknown) == 0, err
}

// stands asks the server whether a target is there, and is one still, and returns why not. The answer
// counts for a moment.
func (c *Collector) stands(ctx context.Context, t *Target) error {
	n := c.state.of(t.UID)
	asking := c.asking.of(n)
	asking.lock()
	defer asking.unlock()
	c.remembering.Lock()
	last, known := c.ahead.asked[n]
	c.remembering.Unlock()
	if known && time.Since(last.at) < proofLasts {
		return last.why
	}
	last = standing{at: time.Now(), why: c.askStanding(ctx, t)}
	c.remembering.Lock()
	defer c.remembering.Unlock()
	c.ahead.asked[n] = last
	return last.why
}

func (c *Collector) askStanding(ctx context.Context, t *Target) error {
	var now graph.Object
	var err error
	selected := true
	if t.Reselect != nil {
		now, selected, err = t.Reselect(ctx, c.server)
	} else {
		now, err = c.server.Get(ctx, t.Resource, t.Namespace, t.Name)
	}
	switch {
	case err != nil:
		return fmt.Errorf("asking for %s: %w", t.Identity, err)
	case !selected:
		return fmt.Errorf("this does not match the selector any more: %s", t.Identity)
	case now.UID != t.UID:
		return fmt.Errorf("%s is another by now", t.Identity)
	}
	return nil
}
