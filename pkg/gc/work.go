// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// do carries out one task.
func (c *Collector) do(ctx context.Context, t task) {
	v, ok := c.state.view(t.object)
	if !ok || v.gone {
		if t.kind == release {
			c.orphanWhenReleased(t.owner)
		}
		return
	}
	if doubt := c.doubt(v, t.target); doubt != "" {
		c.report.doubted(t.object, doubt)
		return
	}
	switch t.kind {
	case deleteTarget:
		c.deleteTarget(ctx, v, t.target)
	case attempt:
		c.attempt(ctx, v)
	case goAhead:
		c.goAhead(ctx, v)
	case release:
		c.release(ctx, v, t.owner)
	case finish:
		c.finish(ctx, v)
	}
	if ctx.Err() != nil {
		c.report.unreached(t.object) // it may be, and when it is not, its state tells
	}
}

// doubt says why nothing is written to an object: it is not certain which one that
// would change. A precondition on the UID does not help where several objects have
// it. It is empty for nearly all.
func (c *Collector) doubt(v view, t *Target) string {
	switch {
	case v.also != "":
		return v.also + " has the same UID, so a write could be meant for either"
	case t != nil && !c.snapshot.IsAt(&v.object, t.Resource.GroupResource(), t.Namespace, t.Name):
		return t.Identity.String() + " was named, which has the same UID"
	}
	return ""
}

// objectOf returns an object of which nothing but the identity is known.
func objectOf(id graph.Identity) graph.Object {
	return graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name, UID: id.UID}
}

// deleteTarget sends the user's delete, to the resource that the user named.
func (c *Collector) deleteTarget(ctx context.Context, v view, t *Target) {
	o, options := v.object, c.deletion
	if t.Resource.GroupResource() != o.Resource.GroupResource() {
		o.Resource = &t.Resource
	}
	deleteOptions := metav1.DeleteOptions{PropagationPolicy: &options.Policy, GracePeriodSeconds: options.GracePeriodSeconds}
	if options.Policy == metav1.DeletePropagationOrphan {
		c.orphans.first(v.number)
	}
	left := false
	if t.Reselect == nil {
		o = c.writer.deleteNamed(ctx, v.number, o, deleteOptions)
	} else {
		o, left = c.writer.deleteSelected(ctx, v.number, o, deleteOptions, t)
	}
	if o.BeingDeleted() && !left {
		c.takeUp(ctx, v.number, o)
	}
}

// takeUp goes on with a deletion that was begun before the user's delete, by
// somebody else or by a request whose answer was lost: there may be no event. Whether
// another policy took its place only the server knows: pods in their grace period
// and terminating namespaces do not hear it.
func (c *Collector) takeUp(ctx context.Context, n number, o graph.Object) {
	if _, ok := c.writer.read(ctx, o, nil); !ok {
		return
	}
	c.state.setDeleteSent(n, false)
	switch v, ok := c.state.view(n); {
	case !ok || v.gone:
	case v.object.OrphaningDependents():
		c.lookAtOrphaning(n)
	case v.object.DeletingDependents():
		c.lookAtForeground(n)
	}
}

// attempt decides about one object and carries the decision out
// (garbagecollector.go, attemptToDeleteItem). The object is not read again: the
// preconditions of every write prove that it is as the state has it.
func (c *Collector) attempt(ctx context.Context, v view) {
	o := v.object
	switch {
	case o.DeletingDependents():
		c.lookAtForeground(v.number)
		return
	case v.beingDeleted || v.deleteSent || len(o.OwnerReferences) == 0 || c.spare(v.number, &o):
		return
	}
	refs := c.withoutOrphaned(c.classify(ctx, &o))
	if ctx.Err() != nil || refs.empty() {
		return // what could not be asked is not unknown
	}
	d := Decide(&o, refs, c.dependentsOf(v))
	switch d.Action {
	case ActionKeep:
		c.report.kept(v.number, &o, d.Reason, refs.Unknown)
	case ActionRemoveOwnerReferences:
		if now, ok := c.patch(ctx, v.number, o, ActionRemoveOwnerReferences, Patch{RemoveOwners: d.Owners}, d.Reason); ok {
			c.report.kept(v.number, &now, d.Reason, nil)
		}
	case ActionDelete:
		c.collect(ctx, v.number, o, d, task{kind: attempt, object: v.number})
	}
}

// retries reports whether the garbage collector tries again and again to decide
// about an object with these references, because of a kind that is not served or
// a name that no object can have.
// A cluster-scoped object with a namespaced owner it gives up
// (garbagecollector.go, attemptToDeleteWorker).
func (c *Collector) retries(refs []metav1.OwnerReference, namespace string) bool {
	for _, ref := range refs {
		mapping, err := c.resolve(ref.APIVersion, ref.Kind)
		if err != nil {
			return true
		}
		if namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			return false
		}
		if !graph.ValidName(ref.Name) {
			return true
		}
	}
	return false
}

func (c *Collector) dependentsOf(v view) Dependents {
	d := Dependents{Any: v.live > 0}
	if !d.Any {
		return d
	}
	for _, n := range c.state.dependents(v.number) {
		if c.state.isDeletingDependents(n) {
			d.DeletingDependents = true
			break
		}
	}
	return d
}

// collect deletes an object that no owner keeps. again is what decides about it anew.
func (c *Collector) collect(ctx context.Context, n number, o graph.Object, d Decision, again task) {
	if !c.writer.allowed(n, &o) {
		return
	}
	if d.UnblockFirst && hasBlocking(o.OwnerReferences) {
		patched, ok := c.patch(ctx, n, o, ActionUnblockOwnerReferences, Patch{Unblock: true},
			"a dependent of it is in foreground deletion, and the two could wait for each other")
		if !ok {
			return
		}
		o = patched
	}
	c.state.setRound(n)
	anew := c.writer.deleteDecided(ctx, n, o, metav1.DeleteOptions{PropagationPolicy: policies[d.Policy]}, d.Reason, func(now graph.Object) bool {
		return equalOwners(now.OwnerReferences, o.OwnerReferences) && !now.BeingDeleted() && policyOf(&now) == policyOf(&o)
	})
	if anew {
		c.enqueue(again)
	}
}

// policies are what the options of deletes point to. They must not be changed.
var policies = map[metav1.DeletionPropagation]*metav1.DeletionPropagation{
	metav1.DeletePropagationBackground: new(metav1.DeletePropagationBackground),
	metav1.DeletePropagationForeground: new(metav1.DeletePropagationForeground),
	metav1.DeletePropagationOrphan:     new(metav1.DeletePropagationOrphan),
}

func hasBlocking(refs []metav1.OwnerReference) bool {
	for _, ref := range refs {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			return true
		}
	}
	return false
}

// patch changes an object, and has what led to it decided about anew when it is
// another by then. It returns the object as it is afterwards, and whether the patch was
// accepted.
func (c *Collector) patch(ctx context.Context, n number, o graph.Object, action Action, p Patch, reason string) (graph.Object, bool) {
	now, accepted, anew := c.writer.patch(ctx, n, o, action, p, reason)
	if anew {
		c.retry(n, action, p)
	}
	return now, accepted
}

// retry queues what led to a patch once more.
func (c *Collector) retry(n number, action Action, p Patch) {
	switch {
	case action == ActionRemoveFinalizer:
		c.enqueue(task{kind: finish, object: n})
	case action == ActionRemoveOwnerReferences && len(p.RemoveOwners) == 1 && c.isOrphaning(c.state.of(p.RemoveOwners[0])):
		c.enqueue(task{kind: release, object: n, owner: c.state.of(p.RemoveOwners[0])})
	default:
		c.enqueue(task{kind: attempt, object: n})
	}
}

func (c *Collector) isOrphaning(n number) bool {
	v, ok := c.state.view(n)
	return ok && !v.gone && v.object.OrphaningDependents()
}

// finish takes the garbage collector's own finalizer off an object, if what it
// stands for is done. Whether it is only who has read all that may depend on the
// object can tell.
func (c *Collector) finish(ctx context.Context, v view) {
	spot := c.blindSpot(&v.object)
	switch {
	case v.blocking == 0 && c.putOff(task{kind: finish, object: v.number}):
	case spot != "":
		c.report.left(v.number, "left to a collector that sees all that may depend on it: "+spot)
	case c.finishes(v.number) && c.proofs.failure() != nil:
		c.report.left(v.number, "not finished, because it could not be proved that nothing else depends on it: "+c.proofs.failure().Error())
	case v.object.OrphaningDependents():
		c.finishOrphan(ctx, v)
	case v.deletingDependents:
		c.finishForeground(ctx, v)
	}
}

// finishForeground takes the finalizer foregroundDeletion off an object that
// nothing blocks any more. What blocks it is looked at once more, since that may
// have failed (garbagecollector.go, processDeletingDependentsItem); what becomes of
// it leads back here.
func (c *Collector) finishForeground(ctx context.Context, v view) {
	o := v.object
	switch {
	case v.blocking > 0 && c.lookedAgain.first(v.number):
		for _, d := range c.state.blockingDependents(v.number) {
			if !c.state.isDeletingDependents(d) {
				c.enqueue(task{kind: attempt, object: d})
			}
		}
	case v.blocking == 0 && o.HasFinalizer(metav1.FinalizerDeleteDependents):
		c.patch(ctx, v.number, o, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerDeleteDependents}, "nothing blocks it any more")
	}
}

// finishOrphan takes the finalizer orphan off an object that has no dependents
// any more (garbagecollector.go, attemptToOrphanWorker).
func (c *Collector) finishOrphan(ctx context.Context, v view) {
	if v.live > 0 {
		c.lookAtOrphaning(v.number)
		return
	}
	c.patch(ctx, v.number, v.object, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerOrphanDependents}, "its dependents are orphaned")
}

// orphan has the references to an object that orphans removed from its dependents,
// and then its end looked at (garbagecollector.go, orphanDependents). A dependent in
// foreground deletion is entered before anything is released, so that what depends
// on both is decided about while the other owner still keeps it.
func (c *Collector) orphan(n number) {
	c.report.include(n)
	if v, ok := c.state.view(n); ok && c.blindSpot(&v.object) != "" {
		c.enqueue(task{kind: finish, object: n})
		return
	}
	c.letsGo.first(n)
	dependents := c.state.dependents(n)
	for _, dependent := range dependents {
		if c.isForeground(dependent) {
			c.enqueueForeground(dependent)
		}
	}
	for _, dependent := range dependents {
		c.enqueue(task{kind: release, object: dependent, owner: n})
	}
	c.orphanWhenReleased(n)
}

// lookAtOrphaning is orphan for a task.
func (c *Collector) lookAtOrphaning(n number) {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.orphan(n)
}

// release removes a dependent's references to an owner that orphans it.
func (c *Collector) release(ctx context.Context, v view, owner number) {
	if !c.isOrphaning(owner) && !c.spares(owner) {
		return
	}
	o, _ := c.state.view(owner)
	if references, _ := edgeOf(v.object.OwnerReferences, o.object.UID); references {
		l := c.letGo(&o)
		now, released := c.patch(ctx, v.number, v.object, ActionRemoveOwnerReferences, l.patch, l.reason)
		if released && (c.everything || c.hasLeft(&now)) && c.givesUp(v.object.OwnerReferences, v.object.Namespace) {
			c.decideAgain(v.number)
		}
	}
	c.orphanWhenReleased(owner)
}

// letting is what is done to the dependents of an owner that orphans them, and why.
type letting struct {
	patch  Patch
	reason string
}

// letGo returns what is done to the dependents of the owner, the same for all.
func (c *Collector) letGo(owner *view) letting {
	c.remembering.Lock()
	defer c.remembering.Unlock()
	l, known := c.lettings[owner.number]
	if !known {
		l = letting{
			patch:  Patch{RemoveOwners: []types.UID{owner.object.UID}},
			reason: "orphaned by " + owner.object.Resource.Kind + "/" + owner.object.Name,
		}
		c.lettings[owner.number] = l
	}
	return l
}

// hasLeft reports whether an owner of the object went in the run, or is in foreground
// deletion and the run goes on with that: what becomes of its dependents is the run's
// business.
func (c *Collector) hasLeft(o *graph.Object) bool {
	return slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool {
		n := c.state.of(ref.UID)
		return c.entered.has(n) || c.mine(n) && c.removed(n)
	})
}

// givesUp reports whether the garbage collector gives an object with these
// references up: it is cluster-scoped and has a namespaced owner. Who takes such
// references off, and is about what depends on the others, has to look at what is
// left.
func (c *Collector) givesUp(refs []metav1.OwnerReference, namespace string) bool {
	return namespace == "" && slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool {
		mapping, err := c.resolve(ref.APIVersion, ref.Kind)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
	})
}

// decideAgain has an object decided about when all that orphan it have let go of
// it.
func (c *Collector) decideAgain(n number) {
	again := task{kind: attempt, object: n}
	if !c.queue.has(again) {
		c.turns.again.first(n)
	}
	c.enqueue(again)
}

// spares reports whether the owner is gone, and was a target that the server let
// orphan its dependents. Somebody else, who does not know all of them, may have
// completed the deletion: a garbage collector does not know the instances of a
// CustomResourceDefinition for the first half minute, and would delete them
// then.
func (c *Collector) spares(owner number) bool {
	v, ok := c.state.view(owner)
	return ok && v.gone && v.orphaned && c.orphans.has(owner)
}

// spare has the references to owners that spare the object removed, and reports
// whether there are any.
func (c *Collector) spare(n number, o *graph.Object) bool {
	any := false
	for _, ref := range o.OwnerReferences {
		if owner := c.state.of(ref.UID); c.spares(owner) {
			any = true
			c.enqueue(task{kind: release, object: n, owner: owner})
		}
	}
	return any
}

// orphanWhenReleased goes on with an owner that orphans when no dependent is
// left that references it.
func (c *Collector) orphanWhenReleased(owner number) {
	if o, ok := c.state.view(owner); ok && o.live == 0 {
		c.enqueue(task{kind: finish, object: owner})
	}
}

// classify sorts an object's references by what is known, and asks the server
// about owners that are not.
func (c *Collector) classify(ctx context.Context, o *graph.Object) References {
	return Classify(o.OwnerReferences, o.Namespace,
		func(ref metav1.OwnerReference) bool { return c.state.isAbsent(ref, o.Namespace) },
		func(ref metav1.OwnerReference) graph.OwnerLookup { return &ownerLookup{c: c, ctx: ctx, ref: ref} })
}

// withoutOrphaned leaves out the dangling references that state the UID of an owner
// that orphans, and are mistaken otherwise. They are about to be removed, and until
// then say nothing: the garbage collector deletes such an object because of them or
// releases it, by who comes first.
func (c *Collector) withoutOrphaned(refs References) References {
	orphaned := func(ref metav1.OwnerReference) bool { return c.isOrphaning(c.state.of(ref.UID)) }
	if slices.ContainsFunc(refs.Dangling, orphaned) {
		refs.Dangling = slices.DeleteFunc(slices.Clone(refs.Dangling), orphaned)
	}
	return refs
}

// ownerLookup answers for one reference: from the state when the owner is
// there and keeps the dependent; otherwise from the server, because "absent"
// and "waiting" lead to writes. What it said then is remembered, and serves all
// dependents of the owner: absence for the run, an error when it is not the
// first one, and "waiting" for a moment if the server's events tell when it ends.
type ownerLookup struct {
	c   *Collector
	ctx context.Context
	ref metav1.OwnerReference
	// found is what Lookup found last.
	found graph.FoundOwner
}

// Resolve implements graph.OwnerLookup.
func (l *ownerLookup) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	return l.c.resolve(apiVersion, kind)
}

// resolve is the snapshot's Resolve, whose answers do not change.
func (c *Collector) resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	c.remembering.Lock()
	defer c.remembering.Unlock()
	r, ok := c.resolved[[2]string{apiVersion, kind}]
	if !ok {
		r.mapping, r.err = c.snapshot.Resolve(apiVersion, kind)
		c.resolved[[2]string{apiVersion, kind}] = r
	}
	return r.mapping, r.err
}

// resolution is what a stated apiVersion and kind resolve to.
type resolution struct {
	mapping *meta.RESTMapping
	err     error
}

// Lookup implements graph.OwnerLookup. Who asks for the same owner meanwhile
// waits for the answer.
func (l *ownerLookup) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	n := l.c.state.of(l.ref.UID)
	asking := l.c.asking.of(n)
	asking.lock()
	defer asking.unlock()
	if l.c.state.isAbsent(l.ref, namespace) {
		return nil, nil
	}
	v, known := l.c.state.view(n)
	here := known && !v.gone && l.c.snapshot.IsAt(&v.object, resource.GroupResource(), namespace, name)
	if known && v.lost {
		return nil, graph.ErrUnlisted
	}
	if here && (!v.object.DeletingDependents() || l.c.verified.is(n) && l.c.told(v.object.Resource, namespace)) {
		l.found = graph.FoundOwner{UID: v.object.UID, DeletingDependents: v.object.DeletingDependents()}
		return &l.found, nil
	}
	if err := l.c.state.readError(l.ref, namespace); err != nil {
		return nil, err
	}
	asked := time.Now()
	owner, err := l.c.server.Get(l.ctx, graph.Resource{GroupVersionResource: resource, Kind: l.ref.Kind, Namespaced: namespace != ""}, namespace, name)
	switch {
	case answer.NoSuchObject(err, resource.GroupResource(), name):
		l.c.state.rememberAbsent(l.ref, namespace)
		if here {
			l.c.apply(Event{Object: v.object, Removed: true})
		}
		return nil, nil
	case err != nil:
		if l.ctx.Err() == nil {
			l.c.state.rememberUnreadable(l.ref, namespace, err)
		}
		return nil, err
	case owner.UID != l.ref.UID:
		l.c.state.rememberAbsent(l.ref, namespace)
	case owner.DeletingDependents():
		l.c.verified.set(n, asked)
	}
	if here && owner.UID == v.object.UID { // a watch may be late with it
		l.c.apply(Event{Object: owner})
	}
	l.found = graph.FoundOwner{UID: owner.UID, DeletingDependents: owner.DeletingDependents()}
	return &l.found, nil
}

// partial is a Server whose events do not always tell of every object.
type partial interface {
	// Tells reports whether Events tells of these objects sooner or later.
	Tells(resource schema.GroupResource, namespace string) bool
}

// told reports whether the server's events tell what becomes of the resource's objects in
// the namespace, empty for cluster-scoped ones.
func (c *Collector) told(resource *graph.Resource, namespace string) bool {
	p, ok := c.server.(partial)
	return c.snapshot.ListedIn(resource.GroupResource(), namespace) && (!ok || p.Tells(resource.GroupResource(), namespace))
}

func equalOwners(a, b []metav1.OwnerReference) bool { return slices.EqualFunc(a, b, sameReference) }

func sameReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		equalFlags(a.Controller, b.Controller) && equalFlags(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func equalFlags(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
