// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// References are the owner references of an object by what they mean. They may be those of
// the object, and must not be changed.
type References struct {
	Solid                        []metav1.OwnerReference
	Dangling                     []metav1.OwnerReference
	WaitingForDependentsDeletion []metav1.OwnerReference
	Unknown                      []UnknownReference
}

func (r References) empty() bool {
	return len(r.Solid)+len(r.Dangling)+len(r.WaitingForDependentsDeletion)+len(r.Unknown) == 0
}

// UnknownReference is a reference that could not be classified, and why.
type UnknownReference struct {
	metav1.OwnerReference
	Reason graph.Reason
	// Err is why the owner could not be looked for, if it was asked for.
	Err error
}

// failed reports whether the server was asked for the owner and did not tell. The
// other references are Unknown by what was read before, or by what they state.
func (r *UnknownReference) failed() bool { return r.Err != nil && !errors.Is(r.Err, graph.ErrUnlisted) }

// remembering is an OwnerLookup that keeps the error of the last Lookup.
type remembering struct {
	graph.OwnerLookup
	err error
}

// Lookup implements graph.OwnerLookup.
func (l *remembering) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	owner, err := l.OwnerLookup.Lookup(resource, namespace, name)
	l.err = err
	return owner, err
}

// Classify sorts the references of an object in the namespace (empty for a
// cluster-scoped object). isAbsent may know already that an owner does not
// exist; it is asked before anything else, as the garbage collector asks its
// absent-owner cache, and so finds dependents of custom resources whose
// definition is gone (garbagecollector.go, isDangling and classifyReferences).
// An owner that is named twice is asked about once, for it may go in between.
func Classify(refs []metav1.OwnerReference, namespace string, isAbsent func(metav1.OwnerReference) bool,
	lookup func(metav1.OwnerReference) graph.OwnerLookup,
) References {
	var r References
	put := func(list *[]metav1.OwnerReference, i int) {
		if *list == nil { // mostly there is one
			*list = refs[i : i+1 : i+1]
		} else {
			*list = append(*list, refs[i])
		}
	}
	states := make([]graph.State, len(refs))
	for i, ref := range refs {
		reason, err := graph.NoReason, error(nil)
		switch same := indexOfOwner(refs[:i], ref); {
		case same >= 0 && states[same] != graph.Unknown && resolves(lookup(ref), ref):
			states[i] = states[same]
		case isAbsent(ref):
			states[i] = graph.Dangling
		default:
			asked := &remembering{OwnerLookup: lookup(ref)}
			states[i], reason = graph.Classify(ref, namespace, asked)
			err = asked.err
		}
		switch states[i] {
		case graph.Solid:
			put(&r.Solid, i)
		case graph.Dangling:
			put(&r.Dangling, i)
		case graph.WaitingForDependentsDeletion:
			put(&r.WaitingForDependentsDeletion, i)
		case graph.Unknown:
			r.Unknown = append(r.Unknown, UnknownReference{ref, reason, err})
		}
	}
	return r
}

// indexOfOwner returns the first reference that states the same owner, in
// whatever version and spelling that is served, or -1.
func indexOfOwner(refs []metav1.OwnerReference, ref metav1.OwnerReference) int {
	return slices.IndexFunc(refs, func(other metav1.OwnerReference) bool {
		return other.UID == ref.UID && other.Name == ref.Name && strings.EqualFold(other.Kind, ref.Kind) &&
			group(other) == group(ref)
	})
}

func group(ref metav1.OwnerReference) string {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
}

func resolves(lookup graph.OwnerLookup, ref metav1.OwnerReference) bool {
	_, err := lookup.Resolve(ref.APIVersion, ref.Kind)
	return err == nil
}

// Action is what is done to an object.
type Action string

// The actions. The first three are also steps of a plan.
const (
	ActionDelete                 Action = "Delete"
	ActionRemoveOwnerReferences  Action = "RemoveOwnerReferences"
	ActionUnblockOwnerReferences Action = "UnblockOwnerReferences"
	ActionRemoveFinalizer        Action = "RemoveFinalizer"
	// ActionKeep leaves the object as it is.
	ActionKeep Action = "Keep"
)

// Decision is what to do with an object, and why. The reason is for people;
// nothing depends on it.
type Decision struct {
	Action Action
	Reason string
	// Policy is that of a Delete.
	Policy metav1.DeletionPropagation
	// UnblockFirst: before the Delete, the object's blocking references are made
	// non-blocking, because a dependent of it is in foreground deletion already
	// and the two could wait for each other.
	UnblockFirst bool
	// Owners are the UIDs whose references are removed.
	Owners []types.UID
}

// Dependents is what a decision about an object needs to know of those that
// depend on it.
type Dependents struct {
	// Any: there is at least one, whatever its reference states.
	Any bool
	// DeletingDependents: one of them is in foreground deletion.
	DeletingDependents bool
}

// Decide says what the garbage collector does with an object that is not in
// foreground deletion and that has owner references (garbagecollector.go,
// attemptToDeleteItem).
func Decide(o *graph.Object, refs References, dependents Dependents) Decision {
	switch {
	case len(refs.Unknown) > 0:
		return Decision{Action: ActionKeep, Reason: unknownReason(refs.Unknown[0])}
	case len(refs.Solid) > 0 && len(refs.Dangling)+len(refs.WaitingForDependentsDeletion) == 0:
		return Decision{Action: ActionKeep, Reason: "owned by " + ownerName(refs.Solid[0])}
	case len(refs.Solid) > 0:
		return removeOwners(refs)
	case len(refs.WaitingForDependentsDeletion) > 0 && dependents.Any:
		return Decision{
			Action: ActionDelete, Policy: metav1.DeletePropagationForeground,
			Reason:       "its owner " + ownerName(refs.WaitingForDependentsDeletion[0]) + " waits for its dependents' deletion",
			UnblockFirst: dependents.DeletingDependents,
		}
	case len(refs.WaitingForDependentsDeletion) > 0:
		return Decision{
			Action: ActionDelete, Policy: policyOf(o),
			Reason: "its owner " + ownerName(refs.WaitingForDependentsDeletion[0]) + " waits for its dependents' deletion",
		}
	}
	return Decision{Action: ActionDelete, Policy: policyOf(o), Reason: "its owner " + ownerName(refs.Dangling[0]) + " does not exist"}
}

// removeOwners drops what does not keep an object that a solid owner keeps. It
// goes by UID: when a solid reference has the UID of a dangling one, both go.
func removeOwners(refs References) Decision {
	d := Decision{Action: ActionRemoveOwnerReferences}
	for _, ref := range refs.Dangling {
		d.Owners = append(d.Owners, ref.UID)
	}
	for _, ref := range refs.WaitingForDependentsDeletion {
		d.Owners = append(d.Owners, ref.UID)
	}
	d.Reason = fmt.Sprintf("kept by %s, whose reference is removed, too: another states the same UID", ownerName(refs.Solid[0]))
	if i := slices.IndexFunc(refs.Solid, func(ref metav1.OwnerReference) bool { return !slices.Contains(d.Owners, ref.UID) }); i >= 0 {
		d.Reason = "kept by " + ownerName(refs.Solid[i])
	}
	return d
}

// policyOf returns the policy of a delete that leaves the decision to the
// object's finalizers.
func policyOf(o *graph.Object) metav1.DeletionPropagation {
	switch {
	case o.HasFinalizer(metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case o.HasFinalizer(metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func ownerName(ref metav1.OwnerReference) string { return ref.Kind + "/" + ref.Name }

func unknownReason(ref UnknownReference) string {
	name := ownerName(ref.OwnerReference)
	switch ref.Reason {
	case graph.Unresolvable:
		return fmt.Sprintf("its owner %s has a kind that the server does not serve (%s)", name, ref.APIVersion)
	case graph.ClusterScopedDependent:
		return fmt.Sprintf("its owner %s is namespaced and it is not", name)
	case graph.InvalidName:
		return fmt.Sprintf("its owner %s has a name that no object can have", name)
	}
	text := fmt.Sprintf("its owner %s could not be read", name)
	if ref.failed() {
		text += ": " + ref.Err.Error()
	}
	return text
}
