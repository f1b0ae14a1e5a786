// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// State is what an owner reference means to the garbage collector.
type State uint8

// The states of an owner reference.
const (
	// Unknown: the garbage collector cannot decide, or what was read is not
	// enough to decide. The dependent is kept.
	Unknown State = iota
	// Solid: the owner exists and keeps the dependent.
	Solid
	// Dangling: there is no such owner.
	Dangling
	// WaitingForDependentsDeletion: the owner is in foreground deletion and
	// does not keep the dependent.
	WaitingForDependentsDeletion
)

var stateNames = [...]string{"Unknown", "Solid", "Dangling", "WaitingForDependentsDeletion"}

// String returns the state's name as it stands in documents.
func (s State) String() string { return stateNames[s] }

// Reason says why a reference is not solid.
type Reason uint8

// The reasons for states other than Solid.
const (
	NoReason Reason = iota
	// Absent (Dangling): nothing is at the stated coordinates.
	Absent
	// UIDMismatch (Dangling): another object has the stated coordinates, as
	// when the owner was deleted and created again.
	UIDMismatch
	// WrongNamespace (Dangling): the owner lives in another namespace than the
	// dependent.
	WrongNamespace
	// CoordinatesMismatch (Dangling): an object with the stated UID exists, but
	// its kind, group or name is another.
	CoordinatesMismatch
	// Unresolvable (Unknown): the server does not serve the stated apiVersion
	// and kind. The garbage collector retries for ever and deletes nothing.
	Unresolvable
	// ClusterScopedDependent (Unknown): a cluster-scoped object cannot have a
	// namespaced owner. The garbage collector gives the dependent up.
	ClusterScopedDependent
	// UnlistedOwner (Unknown): the owner could not be looked for.
	UnlistedOwner
	// Waiting (WaitingForDependentsDeletion): the owner is in foreground
	// deletion.
	Waiting
)

var reasonNames = [...]string{
	"", "Absent", "UIDMismatch", "WrongNamespace", "CoordinatesMismatch",
	"Unresolvable", "ClusterScopedDependent", "Unlisted", "Waiting",
}

// String returns the reason's name as it stands in documents, empty for none.
func (r Reason) String() string { return reasonNames[r] }

// ErrUnlisted is returned by an OwnerLookup that could not look.
var ErrUnlisted = errors.New("could not be read")

// FoundOwner is what Classify needs to know of an owner.
type FoundOwner struct {
	UID types.UID
	// DeletingDependents: the owner is in foreground deletion.
	DeletingDependents bool
}

// OwnerLookup answers what Classify asks. The snapshot answers from what was
// listed, the engine by asking the server.
type OwnerLookup interface {
	// Resolve finds the resource for a stated apiVersion and kind. An error
	// that is ErrUnlisted means that the answer is not known; any other means
	// that the server does not serve the kind.
	Resolve(apiVersion, kind string) (*meta.RESTMapping, error)
	// Lookup returns the object at the coordinates, or nil when it is provably
	// absent. namespace is empty for a cluster-scoped resource. Any error means
	// that the answer is not known.
	Lookup(resource schema.GroupVersionResource, namespace, name string) (*FoundOwner, error)
}

// Classify says what an owner reference of an object in the namespace (empty
// for a cluster-scoped object) means to the garbage collector. It is steps 3
// to 9 of garbagecollector.go, isDangling and classifyReferences: the owner is
// looked for by the stated kind and name in the dependent's own namespace, and
// only then are UIDs compared.
func Classify(ref metav1.OwnerReference, namespace string, lookup OwnerLookup) (State, Reason) {
	mapping, err := lookup.Resolve(ref.APIVersion, ref.Kind)
	if errors.Is(err, ErrUnlisted) {
		return Unknown, UnlistedOwner
	}
	if err != nil {
		return Unknown, Unresolvable
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	} else if namespace == "" {
		return Unknown, ClusterScopedDependent
	}
	owner, err := lookup.Lookup(mapping.Resource, namespace, ref.Name)
	switch {
	case err != nil:
		return Unknown, UnlistedOwner
	case owner == nil:
		return Dangling, Absent
	case owner.UID != ref.UID:
		return Dangling, UIDMismatch
	case owner.DeletingDependents:
		return WaitingForDependentsDeletion, Waiting
	}
	return Solid, NoReason
}

// ResourceOf returns the resource of a mapping.
func ResourceOf(mapping *meta.RESTMapping) Resource {
	return Resource{
		GroupVersionResource: mapping.Resource,
		Kind:                 mapping.GroupVersionKind.Kind,
		Namespaced:           mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
}

// Resolve maps a stated apiVersion and kind as the garbage collector does
// (garbagecollector/operations.go, apiResource).
func (s *Snapshot) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := s.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && s.discoveryFailed(gvk.GroupVersion()) {
		return nil, fmt.Errorf("resolving %s: %w", gvk, ErrUnlisted)
	}
	return mapping, err
}

// snapshotLookup is the OwnerLookup over a snapshot. It indexes only the
// locations that references name, so that its size follows the owners, not the
// objects.
type snapshotLookup struct {
	snapshot *Snapshot
	mappings map[schema.GroupVersionKind]resolution
	at       map[location]int32
}

type resolution struct {
	mapping *meta.RESTMapping
	err     error
}

func newSnapshotLookup(s *Snapshot) *snapshotLookup {
	l := &snapshotLookup{
		snapshot: s,
		mappings: map[schema.GroupVersionKind]resolution{},
		at:       map[location]int32{},
	}
	for i := range s.objects {
		for _, ref := range s.objects[i].OwnerReferences {
			l.index(ref, s.objects[i].Namespace)
		}
	}
	if len(l.at) > 0 {
		l.locate()
	}
	return l
}

// index notes where the reference's owner should be, with its index when the
// UID already leads there and -1 otherwise.
func (l *snapshotLookup) index(ref metav1.OwnerReference, namespace string) {
	mapping, err := l.Resolve(ref.APIVersion, ref.Kind)
	if err != nil {
		return
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	where := location{mapping.Resource.GroupResource(), namespace, ref.Name}
	if i, ok := l.snapshot.byUID[ref.UID]; ok && l.snapshot.isAt(&l.snapshot.objects[i], where) {
		l.at[where] = i
		return
	}
	if _, ok := l.at[where]; !ok {
		l.at[where] = -1
	}
}

// locate fills in the locations that no UID led to.
func (l *snapshotLookup) locate() {
	for i := range l.snapshot.objects {
		o := &l.snapshot.objects[i]
		own := o.Resource.GroupResource()
		l.found(location{own, o.Namespace, o.Name}, i)
		for _, alias := range l.snapshot.aliases[own] {
			l.found(location{alias, o.Namespace, o.Name}, i)
		}
	}
}

func (l *snapshotLookup) found(where location, i int) {
	if at, wanted := l.at[where]; wanted && at < 0 {
		l.at[where] = int32(i)
	}
}

// isAt reports whether a GET of the location would answer with the object. It
// also holds for a second group that serves the same objects.
func (s *Snapshot) isAt(o *Object, where location) bool {
	if o.Namespace != where.namespace || o.Name != where.name {
		return false
	}
	own := o.Resource.GroupResource()
	return own == where.resource || slices.Contains(s.aliases[own], where.resource)
}

// Resolve implements OwnerLookup. Each kind is resolved once.
func (l *snapshotLookup) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	known, ok := l.mappings[gvk]
	if !ok {
		known.mapping, known.err = l.snapshot.Resolve(apiVersion, kind)
		l.mappings[gvk] = known
	}
	return known.mapping, known.err
}

// Lookup implements OwnerLookup for the locations that the snapshot's
// references name.
func (l *snapshotLookup) Lookup(resource schema.GroupVersionResource, namespace, name string) (*FoundOwner, error) {
	where := location{resource.GroupResource(), namespace, name}
	if i, ok := l.at[where]; ok && i >= 0 {
		o := &l.snapshot.objects[i]
		return &FoundOwner{UID: o.UID, DeletingDependents: o.DeletingDependents()}, nil
	}
	if l.snapshot.covers(where) {
		return nil, nil
	}
	return nil, fmt.Errorf("looking for %s %s/%s: %w", resource.GroupResource(), namespace, name, ErrUnlisted)
}

// IsAt reports whether a GET of the coordinates would answer with the object,
// under its own group or another that serves the same objects.
func (s *Snapshot) IsAt(o *Object, resource schema.GroupResource, namespace, name string) bool {
	return s.isAt(o, location{resource, namespace, name})
}
