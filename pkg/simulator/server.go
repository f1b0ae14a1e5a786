// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Options say in what world the simulation runs.
type Options struct {
	Actors Actors
	// Now is the time at which the simulation starts.
	Now time.Time
	// Server is what is known of the server that is simulated.
	Server answer.Server
}

// Server is a gc.Server in memory. It is safe for concurrent use; the snapshot
// must not change while it is in use. It owns what was written and not told yet; the
// controllers beside it see each write, and send requests of their own.
type Server struct {
	mu      sync.Mutex
	actors  *Actors
	view    *view
	clock   *clock
	groups  *memberships
	fates   *fates
	writes  int
	pending []gc.Event
	started bool // the actors have seen the snapshot

	pods        *podControllers
	namespaces  *namespaceController
	definitions *definitionController
	finalizing  *finalizerControllers
}

// api are the requests of controllers, which cannot fail: the object is there, and what is
// asked of it is allowed.
type api interface {
	// deleteAs sends a DELETE.
	deleteAs(o graph.Object, options metav1.DeleteOptions)
	// update stores the new state of an object, or removes it when nothing holds it any more.
	update(before, after graph.Object) graph.Object
	// finalizeNamespace stores what is left of the finalizers in a namespace's spec.
	finalizeNamespace(o graph.Object, spec []string)
}

var _ gc.Server = (*Server)(nil)

// FirstVersion is less than every resourceVersion that a Server gives, and greater
// than any that an API server has given: those count the writes of etcd.
const FirstVersion = "9000000000000000000000000000"

// New returns a server that holds the snapshot's objects.
func New(snapshot *graph.Snapshot, o Options) *Server {
	v := &view{
		snapshot: snapshot, version: o.Server, users: map[string]map[string][]int32{}, unread: map[string]string{},
		unserved: map[schema.GroupResource]bool{}, made: sets.Set[string]{},
	}
	actors, c := &o.Actors, &clock{now: o.Now.UTC()}
	groups := &memberships{view: v, clock: c, counted: map[group]*membership{}}
	s := &Server{actors: actors, view: v, clock: c, groups: groups}
	s.fates = &fates{view: v, groups: groups, actors: actors, began: c.now, stalled: map[string]stall{}}
	s.pods = &podControllers{view: v, clock: c, actors: actors, api: s, podsOn: map[string][]types.UID{}, tainted: sets.Set[string]{}}
	s.namespaces = &namespaceController{view: v, clock: c, groups: groups, actors: actors, api: s, emptying: map[string]types.UID{}}
	s.definitions = &definitionController{view: v, clock: c, groups: groups, api: s}
	s.finalizing = &finalizerControllers{view: v, clock: c, groups: groups, actors: actors, api: s}
	return s
}

// Anew returns a function that makes servers of the same snapshot, as it was before anything
// happened to it, in other worlds. They share what was found out about the snapshot. The
// function does not keep this one.
func (s *Server) Anew() func(Options) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot, index := s.view.snapshot, s.view.index
	return func(o Options) *Server {
		fresh := New(snapshot, o)
		fresh.view.index = index
		return fresh
	}
}

// Get implements gc.Server. An object that the snapshot neither holds nor
// proves absent is an error that is graph.ErrUnlisted.
func (s *Server) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	if err := ctx.Err(); err != nil {
		return graph.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.find(location{resource.GroupResource(), namespace, name})
}

// Delete implements gc.Server (apiserver/pkg/endpoints/handlers/delete.go,
// DeleteResource).
func (s *Server) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if errs := validate(&options); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}
		return apierrors.NewInvalid(kind, "", errs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	return s.delete(request{id.Resource, id.Namespace, id.Name, options})
}

// validate is ValidateDeleteOptions, for which it has an answer without allocating: of
// options with no more than a policy that exists.
func validate(options *metav1.DeleteOptions) field.ErrorList {
	//nolint:staticcheck // SA1019: orphanDependents is deprecated, and served
	plain := options.OrphanDependents == nil && len(options.DryRun) == 0 && options.IgnoreStoreReadErrorWithClusterBreakingPotential == nil
	if plain && options.PropagationPolicy != nil {
		switch *options.PropagationPolicy {
		case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
			return nil
		}
	}
	return validation.ValidateDeleteOptions(options)
}

// Patch implements gc.Server (apiserver/pkg/registry/generic/registry/store.go,
// Update).
func (s *Server) Patch(ctx context.Context, base graph.Object, patch gc.Patch) (graph.Object, error) {
	if err := ctx.Err(); err != nil {
		return graph.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	where := locationOf(&base)
	current, err := s.view.find(where)
	if err != nil {
		return graph.Object{}, err
	}
	if s.view.unchangeable(&base) {
		return graph.Object{}, apierrors.NewNotFound(namespaceResource, base.Namespace)
	}
	if current.UID != base.UID || current.ResourceVersion != base.ResourceVersion {
		return graph.Object{}, apierrors.NewConflict(where.resource, base.Name, errModified)
	}
	return s.update(current, patched(current, patch)), nil
}

// errModified is the API server's message (registry/generic/registry/store.go,
// OptimisticLockErrorMsg).
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// patched returns what the patch makes of the object. It leaves alone what the
// patch does not speak of, down to the difference between nil and empty.
func patched(o graph.Object, patch gc.Patch) graph.Object {
	if len(patch.RemoveOwners) > 0 || patch.Unblock {
		o.OwnerReferences = patch.OwnerReferences(o.OwnerReferences)
	}
	if patch.RemoveFinalizer != "" {
		o.Finalizers = patch.Finalizers(o.Finalizers)
	}
	return o
}

// Events implements gc.Server. When there is nothing to return and wait is set
// it moves the clock to the next thing that an actor does; it never blocks.
func (s *Server) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wait && len(s.pending) == 0 {
		s.start()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !s.clock.advance(s.perform) {
			return nil, gc.ErrAtRest
		}
	}
	events := s.pending
	s.pending = nil
	return events, nil
}

// CatchUp implements gc.Server: what Events has not told of yet comes before the proof.
func (s *Server) CatchUp(round int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return true
	}
	s.pending = append(s.pending, gc.Event{CaughtUp: round})
	return false
}

// Snapshot returns what reading everything would show now, without labels.
func (s *Server) Snapshot() *graph.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.snapshot.Holding(func(yield func(graph.Object) bool) {
		for h := range s.view.snapshot.Heads() {
			if o, gone := s.view.at(h); !gone && !yield(o) {
				return
			}
		}
	})
}

// Now returns the simulated time.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.now
}

// update stores the new state of an object, and removes the object when that
// took the last finalizer off a terminating one (registry/generic/registry/
// store.go, ShouldDeleteDuringUpdate). It returns what the client is answered:
// the object as it asked for it.
func (s *Server) update(before, after graph.Object) graph.Object {
	if s.view.endsWith(&before, &after) {
		s.remove(before)
		return after
	}
	return s.write(before, after)
}

// write stores the new state of an object when it differs from the old.
func (s *Server) write(before, after graph.Object) graph.Object {
	if sameState(&before, &after) {
		return before
	}
	return s.store(after)
}

// store stores the new state of an object under a new resourceVersion.
func (s *Server) store(o graph.Object) graph.Object {
	s.writes++
	o.ResourceVersion = versionOf(s.writes)
	s.view.change(&o)
	s.pending = append(s.pending, gc.Event{Object: o})
	s.written(&o)
	return o
}

// versionOf returns the resourceVersion of a write, of which there are less than a
// thousand million.
func versionOf(write int) string {
	version := []byte(FirstVersion)
	for i := len(version) - 1; write > 0; i-- {
		version[i] = byte('0' + write%10)
		write /= 10
	}
	return string(version)
}

// remove removes an object.
func (s *Server) remove(o graph.Object) {
	s.view.drop(o.UID)
	s.pending = append(s.pending, gc.Event{Object: o, Removed: true})
	s.removed(&s.pending[len(s.pending)-1].Object) // not &o, which would be allocated whether it goes or not
}

// sameState reports whether nothing that a request can change differs.
func sameState(a, b *graph.Object) bool {
	return a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		equalPointers(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, sameReference)
}

func sameReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		equalPointers(a.Controller, b.Controller) && equalPointers(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func equalPointers[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}
