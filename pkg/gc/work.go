// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxConflicts is the number of conflicts after which a target that somebody
// keeps changing is deleted by UID alone, and any other object has to wait for
// its next turn.
const maxConflicts = 3

// do carries out one task.
func (c *Collector) do(ctx context.Context, t task) {
	v, ok := c.state.view(t.uid)
	if !ok || v.gone {
		if t.kind == release {
			c.orphanWhenReleased(t.owner)
		}
		return
	}
	switch t.kind {
	case deleteTarget:
		c.deleteTarget(ctx, v, t.options)
	case attempt:
		c.attempt(ctx, v)
	case orphan:
		c.orphan(ctx, v)
	case release:
		c.release(ctx, v, t.owner)
	}
}

// deleteTarget sends the user's delete.
func (c *Collector) deleteTarget(ctx context.Context, v view, options DeleteOptions) {
	o := v.object
	deleteOptions := metav1.DeleteOptions{PropagationPolicy: &options.Policy, GracePeriodSeconds: options.GracePeriodSeconds}
	if options.Policy == metav1.DeletePropagationOrphan {
		c.orphans.first(o.UID)
	}
	c.deleteObject(ctx, o, deleteOptions, "named by the user", nil)
	if o.DeletingDependents() || orphaning(&o) {
		c.takeUp(ctx, o, options.Policy)
	}
}

// takeUp goes on with a foreground or orphan deletion that was begun before the
// user's delete, for which there will be no event. Whether another policy took
// its place only the server knows: pods in their grace period and terminating
// namespaces do not hear it.
func (c *Collector) takeUp(ctx context.Context, o graph.Object, policy metav1.DeletionPropagation) {
	if policy != policyOf(&o) {
		if _, ok := c.read(ctx, o, nil); !ok {
			return
		}
	}
	switch v, ok := c.state.view(o.UID); {
	case !ok || v.gone:
	case orphaning(&v.object):
		c.enqueue(task{kind: orphan, uid: o.UID})
	case v.object.DeletingDependents():
		c.enqueueDependents(o.UID)
		c.enqueue(task{kind: attempt, uid: o.UID})
	}
}

// attempt decides about one object and carries the decision out
// (garbagecollector.go, attemptToDeleteItem). The object is not read again: the
// preconditions of every write prove that it is as the state has it.
func (c *Collector) attempt(ctx context.Context, v view) {
	o := v.object
	switch {
	case v.deletingDependents:
		c.finishForeground(ctx, v)
		return
	case v.beingDeleted || v.deleteSent || len(o.OwnerReferences) == 0 || c.spare(&o):
		return
	}
	refs := c.classify(ctx, &o)
	if ctx.Err() != nil {
		return // what could not be asked is not unknown
	}
	d := Decide(&o, refs, c.dependentsOf(v))
	switch d.Action {
	case ActionKeep:
		c.report.kept(o.UID, d.Reason, len(refs.Unknown) > 0)
	case ActionRemoveOwnerReferences:
		c.patch(ctx, o, ActionRemoveOwnerReferences, Patch{RemoveOwners: d.Owners}, d.Reason)
	case ActionDelete:
		c.collect(ctx, o, d)
	}
}

// retries reports whether the garbage collector tries again and again to decide
// about an object with these references, because of a kind that is not served.
// A cluster-scoped object with a namespaced owner it gives up
// (garbagecollector.go, attemptToDeleteWorker).
func (c *Collector) retries(refs []metav1.OwnerReference, namespace string) bool {
	for _, ref := range refs {
		mapping, err := c.snapshot.Resolve(ref.APIVersion, ref.Kind)
		if err != nil {
			return true
		}
		if namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			return false
		}
	}
	return false
}

func (c *Collector) dependentsOf(v view) Dependents {
	d := Dependents{Any: v.live > 0}
	if !d.Any {
		return d
	}
	for _, uid := range c.state.dependents(v.object.UID) {
		if c.state.isDeletingDependents(uid) {
			d.DeletingDependents = true
			break
		}
	}
	return d
}

// collect deletes an object that no owner keeps.
func (c *Collector) collect(ctx context.Context, o graph.Object, d Decision) {
	if d.UnblockFirst && hasBlocking(o.OwnerReferences) {
		patched, ok := c.patch(ctx, o, ActionUnblockOwnerReferences, Patch{Unblock: true},
			"a dependent of it is in foreground deletion, and the two could wait for each other")
		if !ok {
			return
		}
		o = patched
	}
	c.deleteObject(ctx, o, metav1.DeleteOptions{PropagationPolicy: &d.Policy}, d.Reason, func(now graph.Object) bool {
		return equalOwners(now.OwnerReferences, o.OwnerReferences) && !now.BeingDeleted() && policyOf(&now) == policyOf(&o)
	})
}

func hasBlocking(refs []metav1.OwnerReference) bool {
	for _, ref := range refs {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			return true
		}
	}
	return false
}

// deleteObject sends a delete that holds for the object as it is known. After
// a conflict the object is read again: if it changed in a way that leaves the
// decision, which same tells, the delete is sent again; otherwise the object is
// decided about anew (garbagecollector/operations.go, deleteObject). The user's
// target is deleted whatever became of it: then same is nil. The garbage
// collector goes by UID alone after the first conflict, and may so delete what
// has got another owner by then.
func (c *Collector) deleteObject(ctx context.Context, o graph.Object, options metav1.DeleteOptions, reason string, same func(graph.Object) bool) {
	for conflicts := 0; ; conflicts++ {
		uid, version := o.UID, o.ResourceVersion
		options.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
		if conflicts >= maxConflicts {
			options.Preconditions.ResourceVersion = nil
		}
		c.state.setDeleteSent(o.UID, true)
		c.open.set(o.UID, true)
		err := c.server.Delete(ctx, o.Identity(), options)
		if !apierrors.IsConflict(err) {
			c.deleted(ctx, Step{Action: ActionDelete, Object: o, Reason: reason, Options: options, Err: err})
			return
		}
		now, ok := c.read(ctx, o, err)
		if !ok {
			c.state.setDeleteSent(o.UID, false)
			c.open.set(o.UID, false)
			return
		}
		tooBusy := conflicts == maxConflicts-1 && moved(o, now)
		if same != nil && (tooBusy || !same(now)) {
			c.open.set(o.UID, now.BeingDeleted())
			c.enqueue(task{kind: attempt, uid: o.UID})
			return
		}
		if conflicts >= maxConflicts {
			c.deleted(ctx, Step{Action: ActionDelete, Object: o, Reason: reason, Options: options, Err: err})
			return
		}
		if !moved(o, now) {
			// The API server's own change of the finalizers met the precondition.
			conflicts = maxConflicts - 1
		}
		o = now
	}
}

// moved reports whether an object is another version than it was. If it is not,
// a conflict was not about what anybody else did, and to try again in the same
// way would be to try for ever.
func moved(o, now graph.Object) bool { return now.ResourceVersion != o.ResourceVersion }

// deleted takes the server's answer to a delete.
func (c *Collector) deleted(ctx context.Context, s Step) {
	uid := s.Object.UID
	if isGone(s.Err, &s.Object) {
		c.apply(Event{Object: s.Object, Removed: true})
		return
	}
	if s.Err != nil {
		c.state.setDeleteSent(uid, false)
		c.open.set(uid, false)
	}
	if !unsent(ctx, s.Err) {
		c.write(s)
	}
}

// unsent reports whether a request was not sent because the context has ended.
func unsent(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// isGone reports whether the error says that this object does not exist. That
// its namespace or its type does not is another matter.
func isGone(err error, o *graph.Object) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == o.Name && (details.Kind != "namespaces" || o.Resource.Resource == "namespaces")
}

// read reads an object, after a conflict unless that is nil, and takes what it
// finds into the state. It returns false when the object is gone or cannot be
// read.
func (c *Collector) read(ctx context.Context, o graph.Object, conflict error) (graph.Object, bool) {
	now, err := c.server.Get(ctx, *o.Resource, o.Namespace, o.Name)
	switch {
	case isGone(err, &o), err == nil && now.UID != o.UID:
		c.apply(Event{Object: o, Removed: true})
		return graph.Object{}, false
	case unsent(ctx, err):
		return graph.Object{}, false
	case err != nil:
		if conflict != nil {
			err = fmt.Errorf("%w, and reading it again: %w", conflict, err)
		}
		c.report.failed(o.UID, err)
		return graph.Object{}, false
	}
	c.apply(Event{Object: now})
	return now, true
}

// patch changes an object. After a conflict it is read again and decided about
// anew. It returns the object as it is afterwards, and whether the patch was
// accepted.
func (c *Collector) patch(ctx context.Context, o graph.Object, action Action, p Patch, reason string) (graph.Object, bool) {
	patched, err := c.server.Patch(ctx, o, p)
	switch {
	case unsent(ctx, err):
		return graph.Object{}, false
	case isGone(err, &o):
		c.apply(Event{Object: o, Removed: true})
		return graph.Object{}, false
	case apierrors.IsConflict(err):
		now, ok := c.read(ctx, o, err)
		if ok && moved(o, now) {
			c.retry(o.UID, action, p)
		}
		if !ok || moved(o, now) {
			return graph.Object{}, false
		}
	}
	c.write(Step{Action: action, Object: o, Reason: reason, Patch: p, Err: err})
	if err != nil {
		return graph.Object{}, false
	}
	// An object that a patch removes comes back with the version that it had.
	if moved(o, patched) || p.RemoveFinalizer != "" {
		c.applyOwn(patched)
	}
	return patched, true
}

// applyOwn takes the result of a write into the state without waiting for its
// event. An object whose last finalizer the patch took off is gone.
func (c *Collector) applyOwn(o graph.Object) {
	removed := o.BeingDeleted() && len(o.Finalizers) == 0 &&
		(o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0) && o.Resource.Resource != "namespaces"
	c.apply(Event{Object: o, Removed: removed})
}

// retry queues what led to a patch once more.
func (c *Collector) retry(uid types.UID, action Action, p Patch) {
	switch {
	case action == ActionRemoveFinalizer && p.RemoveFinalizer == metav1.FinalizerOrphanDependents:
		c.enqueue(task{kind: orphan, uid: uid})
	case action == ActionRemoveOwnerReferences && len(p.RemoveOwners) == 1 && c.isOrphaning(p.RemoveOwners[0]):
		c.enqueue(task{kind: release, uid: uid, owner: p.RemoveOwners[0]})
	default:
		c.enqueue(task{kind: attempt, uid: uid})
	}
}

func (c *Collector) isOrphaning(uid types.UID) bool {
	v, ok := c.state.view(uid)
	return ok && !v.gone && orphaning(&v.object)
}

// finishForeground takes the finalizer foregroundDeletion off an object that
// nothing blocks any more, and otherwise looks at what blocks it
// (garbagecollector.go, processDeletingDependentsItem).
func (c *Collector) finishForeground(ctx context.Context, v view) {
	o := v.object
	if v.blocking > 0 {
		if !c.entered.first(o.UID) {
			return // its blocking dependents were queued; their events lead back here
		}
		for _, uid := range c.state.blockingDependents(o.UID) {
			if !c.state.isDeletingDependents(uid) {
				c.enqueue(task{kind: attempt, uid: uid})
			}
		}
		return
	}
	if o.HasFinalizer(metav1.FinalizerDeleteDependents) {
		c.patch(ctx, o, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerDeleteDependents}, "nothing blocks it any more")
	}
}

// orphan has the references to an object removed from its dependents, and when
// none is left takes its finalizer off (garbagecollector.go, orphanDependents
// and attemptToOrphanWorker).
func (c *Collector) orphan(ctx context.Context, v view) {
	o := v.object
	if !orphaning(&o) {
		return
	}
	dependents := c.state.dependents(o.UID) // now: some of those in v may be gone since
	if len(dependents) == 0 {
		c.patch(ctx, o, ActionRemoveFinalizer, Patch{RemoveFinalizer: metav1.FinalizerOrphanDependents}, "its dependents are orphaned")
		return
	}
	for _, uid := range dependents {
		c.enqueue(task{kind: release, uid: uid, owner: o.UID})
	}
}

// release removes a dependent's references to an owner that orphans it.
func (c *Collector) release(ctx context.Context, v view, owner types.UID) {
	if !c.isOrphaning(owner) && !c.spares(owner) {
		return
	}
	if references, _ := edgeOf(v.object.OwnerReferences, owner); references {
		o, _ := c.state.view(owner)
		c.patch(ctx, v.object, ActionRemoveOwnerReferences, Patch{RemoveOwners: []types.UID{owner}},
			"orphaned by "+o.object.Resource.Kind+"/"+o.object.Name)
	}
	c.orphanWhenReleased(owner)
}

// spares reports whether the owner is gone, and was a target that the server let
// orphan its dependents. Somebody else, who does not know all of them, may have
// completed the deletion: a garbage collector does not know the instances of a
// CustomResourceDefinition for the first half minute, and would delete them
// then.
func (c *Collector) spares(owner types.UID) bool {
	v, ok := c.state.view(owner)
	return ok && v.gone && v.orphaned && c.orphans.has(owner)
}

// spare has the references to owners that spare the object removed, and reports
// whether there are any.
func (c *Collector) spare(o *graph.Object) bool {
	any := false
	for _, ref := range o.OwnerReferences {
		if c.spares(ref.UID) {
			any = true
			c.enqueue(task{kind: release, uid: o.UID, owner: ref.UID})
		}
	}
	return any
}

// orphanWhenReleased goes on with an owner that orphans when no dependent is
// left that references it.
func (c *Collector) orphanWhenReleased(owner types.UID) {
	if o, ok := c.state.view(owner); ok && o.live == 0 {
		c.enqueue(task{kind: orphan, uid: owner})
	}
}

// classify sorts an object's references by what is known, and asks the server
// about owners that are not.
func (c *Collector) classify(ctx context.Context, o *graph.Object) References {
	return Classify(o.OwnerReferences, o.Namespace,
		func(ref metav1.OwnerReference) bool { return c.state.isAbsent(ref, o.Namespace) },
		func(ref metav1.OwnerReference) graph.OwnerLookup { return &ownerLookup{c, ctx, ref} })
}

// ownerLookup answers for one reference: from the state when the owner is
// there and keeps the dependent; otherwise from the server, because "absent"
// and "waiting" lead to writes. What it said then is remembered, and serves all
// dependents of the owner.
type ownerLookup struct {
	c   *Collector
	ctx context.Context
	ref metav1.OwnerReference
}

// Resolve implements graph.OwnerLookup.
func (l *ownerLookup) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	return l.c.snapshot.Resolve(apiVersion, kind)
}

// Lookup implements graph.OwnerLookup. Who asks for the same owner meanwhile
// waits for the answer.
func (l *ownerLookup) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	asking := l.c.asking.of(l.ref.UID)
	asking.Lock()
	defer asking.Unlock()
	if l.c.state.isAbsent(l.ref, namespace) {
		return nil, nil
	}
	v, known := l.c.state.view(l.ref.UID)
	here := known && !v.gone && l.c.snapshot.IsAt(&v.object, resource.GroupResource(), namespace, name)
	if here && (!v.object.DeletingDependents() || l.c.verified.has(l.ref.UID)) {
		return &graph.FoundOwner{UID: v.object.UID, DeletingDependents: v.object.DeletingDependents()}, nil
	}
	owner, err := l.c.server.Get(l.ctx, graph.Resource{GroupVersionResource: resource, Kind: l.ref.Kind, Namespaced: namespace != ""}, namespace, name)
	switch {
	case isGone(err, &graph.Object{Resource: &graph.Resource{GroupVersionResource: resource}, Name: name}):
		l.c.state.rememberAbsent(l.ref, namespace)
		if here {
			l.c.apply(Event{Object: v.object, Removed: true})
		}
		return nil, nil
	case err != nil:
		return nil, err
	case owner.UID != l.ref.UID:
		l.c.state.rememberAbsent(l.ref, namespace)
	case owner.DeletingDependents():
		l.c.verified.first(l.ref.UID)
	}
	return &graph.FoundOwner{UID: owner.UID, DeletingDependents: owner.DeletingDependents()}, nil
}

func equalOwners(a, b []metav1.OwnerReference) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}
