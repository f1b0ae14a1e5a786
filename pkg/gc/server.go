// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ErrAtRest is returned by Server.Events when nothing will change any more
// without an outside actor.
var ErrAtRest = errors.New("nothing will change without an outside actor")

// Server is the API server as the algorithm needs it. All methods may be called
// by several goroutines at once. Errors are those of the API server
// (apimachinery's api/errors): NotFound, Conflict, Forbidden, Invalid and so
// on.
type Server interface {
	// Get reads one object.
	Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error)

	// Delete sends a DELETE. It succeeds when the server accepted it; whether
	// the object is gone or terminating is learnt from Events.
	Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error

	// Patch changes an object that is as base says: it fails with Conflict when
	// the object's resourceVersion is another, or when it has another UID. It
	// returns the object as it is afterwards; a patch that takes the last
	// finalizer off a terminating object returns it as it was removed.
	Patch(ctx context.Context, base graph.Object, patch Patch) (graph.Object, error)

	// Events returns what changed since the last call, in order for each
	// object, and never more than once the same. With wait it blocks until there
	// is something, and fails with ErrAtRest when there will be nothing.
	Events(ctx context.Context, wait bool) ([]Event, error)

	// CatchUp asks for the proof that Events has told of everything that the server
	// had when CatchUp was called, of all that was listed. It does not block. It
	// returns true when that is so already; otherwise Events returns, after all that
	// the proof is about, one Event with the given round as its CaughtUp: without an
	// Err when it is proved, and with the reason when it cannot be. One round is under
	// way at a time.
	CatchUp(round int) bool
}

// Event is a change of an object, by whomever.
type Event struct {
	// Object is the object after the change, or as it was last seen when it was
	// removed.
	Object  graph.Object
	Removed bool
	// Lost: the object, as it was last seen, cannot be seen any more, because its
	// type is not served. Whether it still exists is not known. It is found again
	// with the next event that tells of it.
	Lost bool
	// CaughtUp is the round of CatchUp that this answers, 0 for a change of an object.
	CaughtUp int
	// Err is why the round proved nothing.
	Err error
}

// Patch is one of the three changes that the algorithm makes to objects.
// Exactly one field is set.
type Patch struct {
	// RemoveOwners drops every owner reference with one of these UIDs.
	RemoveOwners []types.UID
	// Unblock sets blockOwnerDeletion to false in every blocking owner
	// reference.
	Unblock bool
	// RemoveFinalizer drops one finalizer.
	RemoveFinalizer string
}

// OwnerReferences returns what the patch makes of the references. It does not
// change them.
func (p Patch) OwnerReferences(refs []metav1.OwnerReference) []metav1.OwnerReference {
	var result []metav1.OwnerReference
	for _, ref := range refs {
		switch {
		case slices.Contains(p.RemoveOwners, ref.UID):
			continue
		case p.Unblock && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion:
			unblocked := false
			ref.BlockOwnerDeletion = &unblocked
		}
		result = append(result, ref)
	}
	return result
}

// Finalizers returns what the patch makes of the finalizers. It does not
// change them.
func (p Patch) Finalizers(finalizers []string) []string {
	var result []string
	for _, f := range finalizers {
		if f != p.RemoveFinalizer {
			result = append(result, f)
		}
	}
	return result
}
