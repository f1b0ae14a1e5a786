// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// reader answers what the algorithm asks beside the state: from what was read before the run, and from
// the server where only that can tell. It owns what was answered, so that nothing is asked twice
// without need. It may be used by several goroutines.
type reader struct {
	server   Server
	snapshot *graph.Snapshot
	state    *state
	// apply takes a change that an answer shows into the state.
	apply func(Event)
	// seesAll is that of the Options.
	seesAll bool
	// asking holds a lock for each owner that the server is asked about, and
	// verified those that it said to be in foreground deletion.
	asking   locks
	verified verified

	mu sync.Mutex
	// blindSpots has what was not read, by namespace.
	blindSpots map[string]string
	// resolved has the resolutions by apiVersion and kind: a mapper that remembers, too, makes
	// garbage for each question.
	resolved map[[2]string]resolution
}

// blindSpot says what was not read of that which may depend on the object, empty
// for nothing.
func (r *reader) blindSpot(o *graph.Object) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	spot, known := r.blindSpots[o.Namespace]
	if !known && !r.seesAll {
		spot = r.snapshot.BlindSpot(o.Namespace)
		r.blindSpots[o.Namespace] = spot
	}
	return spot
}

// told reports whether the server's events tell what becomes of the resource's objects in
// the namespace, empty for cluster-scoped ones.
func (r *reader) told(resource *graph.Resource, namespace string) bool {
	p, ok := r.server.(partial)
	return r.snapshot.ListedIn(resource.GroupResource(), namespace) && (!ok || p.Tells(resource.GroupResource(), namespace))
}

// partial is a Server whose events do not always tell of every object.
type partial interface {
	// Tells reports whether Events tells of these objects sooner or later.
	Tells(resource schema.GroupResource, namespace string) bool
}

// resolve is the snapshot's Resolve, whose answers do not change.
func (r *reader) resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, ok := r.resolved[[2]string{apiVersion, kind}]
	if !ok {
		is.mapping, is.err = r.snapshot.Resolve(apiVersion, kind)
		r.resolved[[2]string{apiVersion, kind}] = is
	}
	return is.mapping, is.err
}

// resolution is what a stated apiVersion and kind resolve to.
type resolution struct {
	mapping *meta.RESTMapping
	err     error
}

// retries reports whether the garbage collector tries again and again to decide
// about an object with these references, because of a kind that is not served or
// a name that no object can have.
// A cluster-scoped object with a namespaced owner it gives up
// (garbagecollector.go, attemptToDeleteWorker).
func (r *reader) retries(refs []metav1.OwnerReference, namespace string) bool {
	for _, ref := range refs {
		mapping, err := r.resolve(ref.APIVersion, ref.Kind)
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

// givesUp reports whether the garbage collector gives an object with these
// references up: it is cluster-scoped and has a namespaced owner. Who takes such
// references off, and is about what depends on the others, has to look at what is
// left.
func (r *reader) givesUp(refs []metav1.OwnerReference, namespace string) bool {
	return namespace == "" && slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool {
		mapping, err := r.resolve(ref.APIVersion, ref.Kind)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
	})
}

// classify sorts an object's references by what is known, and asks the server
// about owners that are not.
func (r *reader) classify(ctx context.Context, o *graph.Object) References {
	return Classify(o.OwnerReferences, o.Namespace,
		func(ref metav1.OwnerReference) bool { return r.state.isAbsent(ref, o.Namespace) },
		func(ref metav1.OwnerReference) graph.OwnerLookup { return &ownerLookup{r: r, ctx: ctx, ref: ref} })
}

// ownerLookup answers for one reference: from the state when the owner is
// there and keeps the dependent; otherwise from the server, because "absent"
// and "waiting" lead to writes. What it said then is remembered, and serves all
// dependents of the owner: absence for the run, an error when it is not the
// first one, and "waiting" for a moment if the server's events tell when it ends.
type ownerLookup struct {
	r   *reader
	ctx context.Context
	ref metav1.OwnerReference
	// found is what Lookup found last.
	found graph.FoundOwner
}

// Resolve implements graph.OwnerLookup.
func (l *ownerLookup) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	return l.r.resolve(apiVersion, kind)
}

// Lookup implements graph.OwnerLookup. Who asks for the same owner meanwhile
// waits for the answer.
func (l *ownerLookup) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	n := l.r.state.of(l.ref.UID)
	asking := l.r.asking.of(n)
	asking.lock()
	defer asking.unlock()
	if l.r.state.isAbsent(l.ref, namespace) {
		return nil, nil
	}
	v, known := l.r.state.view(n)
	here := known && !v.gone && l.r.snapshot.IsAt(&v.object, resource.GroupResource(), namespace, name)
	if known && v.lost {
		return nil, graph.ErrUnlisted
	}
	if here && (!v.object.DeletingDependents() || l.r.verified.is(n) && l.r.told(v.object.Resource, namespace)) {
		l.found = graph.FoundOwner{UID: v.object.UID, DeletingDependents: v.object.DeletingDependents()}
		return &l.found, nil
	}
	if err := l.r.state.readError(l.ref, namespace); err != nil {
		return nil, err
	}
	asked := time.Now()
	owner, err := l.r.server.Get(l.ctx, graph.Resource{GroupVersionResource: resource, Kind: l.ref.Kind, Namespaced: namespace != ""},
		namespace, name)
	switch {
	case answer.NoSuchObject(err, resource.GroupResource(), name):
		l.r.state.rememberAbsent(l.ref, namespace)
		if here {
			l.r.apply(Event{Object: v.object, Removed: true})
		}
		return nil, nil
	case err != nil:
		if l.ctx.Err() == nil {
			l.r.state.rememberUnreadable(l.ref, namespace, err)
		}
		return nil, err
	case owner.UID != l.ref.UID:
		l.r.state.rememberAbsent(l.ref, namespace)
	case owner.DeletingDependents():
		l.r.verified.set(n, asked)
	}
	if here && owner.UID == v.object.UID { // a watch may be late with it
		l.r.apply(Event{Object: owner})
	}
	l.found = graph.FoundOwner{UID: owner.UID, DeletingDependents: owner.DeletingDependents()}
	return &l.found, nil
}
