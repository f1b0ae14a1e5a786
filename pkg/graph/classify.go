// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation/path"
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
	// namespaced owner. The garbage collector gives the dependent up, unless it takes it
	// for one in a namespace (docs/internals/references.md).
	ClusterScopedDependent
	// InvalidName (Unknown): no object can have the stated name, see ValidName.
	InvalidName
	// UnlistedOwner (Unknown): the owner could not be looked for.
	UnlistedOwner
	// Waiting (WaitingForDependentsDeletion): the owner is in foreground
	// deletion.
	Waiting
)

var reasonNames = [...]string{
	"", "Absent", "UIDMismatch", "WrongNamespace", "CoordinatesMismatch",
	"Unresolvable", "ClusterScopedDependent", "InvalidName", "Unlisted", "Waiting",
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

// ValidName reports whether an object can have the name: whether it is one
// segment of a path (api/validation/path, IsValidPathSegmentName). References may
// state any other, which the garbage collector puts into the URL of its GET as
// it is (garbagecollector/operations.go, getObject). What it asks for then is a failure, or
// another object, or a subresource: accidents, of which most keep the dependent
// and some delete it. That there is no such owner proves nothing.
func ValidName(name string) bool {
	return name != "" && len(path.IsValidPathSegmentName(name)) == 0
}

// Classify says what an owner reference of an object in the namespace (empty
// for a cluster-scoped object) means to the garbage collector. It is steps 3
// to 9 of garbagecollector.go, isDangling and classifyReferences: the owner is
// looked for by the stated kind and name in the dependent's own namespace, and
// only then are UIDs compared. It is more careful than these about a name that
// no object can have: Lookup is not asked, and the dependent is kept.
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
	if !ValidName(ref.Name) {
		return Unknown, InvalidName
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

// classifier classifies the owner references in a snapshot. It is the
// OwnerLookup for those that quick leaves open, and indexes only the locations
// that these name, so that its size follows the mistakes, not the objects.
type classifier struct {
	snapshot *Snapshot
	mappings map[schema.GroupVersionKind]*resolution
	// kinds holds the resolutions of the kinds that a block's references state.
	kinds [][]*resolution
	// at says where the objects at the locations are, 0 for nowhere and
	// otherwise the handle + 1.
	at map[location]uint32

	// latest is the last answer of quick. The next reference is often the same.
	latest struct {
		owner     *ownerRecord
		namespace string
		verdict   verdict
	}
}

// resolution is what a stated apiVersion and kind means.
type resolution struct {
	mapping    *meta.RESTMapping
	err        error
	resource   schema.GroupResource
	namespaced bool
	// latest is the owner that a reference of that kind led to last. Dependents and owners are
	// in the same order, more or less, so that the next is mostly near it.
	latest handle
}

// verdict is what is known of a reference.
type verdict struct {
	// owner is the object with the UID, if known.
	owner handle
	known bool
	// decided: state and reason hold.
	decided bool
	state   State
	reason  Reason
}

func newClassifier(s *Snapshot) *classifier {
	return &classifier{
		snapshot: s,
		mappings: map[schema.GroupVersionKind]*resolution{},
		kinds:    make([][]*resolution, len(s.blocks)),
		at:       map[location]uint32{},
	}
}

// quick classifies a reference of the object without looking at locations, as
// far as that goes: nearly all references lead to an object by their UID, and
// it is where they say. What it decides is what Classify would. For the others
// it notes the location.
func (c *classifier) quick(h handle, w *ownerRecord) verdict {
	b := c.snapshot.blocks[h.block()]
	namespace := b.namespace(h.slot())
	if c.latest.owner == w && c.latest.namespace == namespace {
		return c.latest.verdict
	}
	var v verdict
	k := b.ownerKey(w)
	r := c.resolve(h.block(), w.kind())
	if v.owner, v.known = c.snapshot.near(r.latest, &k); !v.known {
		v.owner, v.known = c.snapshot.byUID.find(c.snapshot, &k)
	}
	if v.known {
		r.latest = v.owner
	}
	where := location{r.resource, namespace, b.ownerName(w)}
	if !r.namespaced {
		where.namespace = ""
	}
	switch {
	case errors.Is(r.err, ErrUnlisted):
		v.decided, v.state, v.reason = true, Unknown, UnlistedOwner
	case r.err != nil:
		v.decided, v.state, v.reason = true, Unknown, Unresolvable
	case r.namespaced && namespace == "":
		v.decided, v.state, v.reason = true, Unknown, ClusterScopedDependent
	case v.known && c.snapshot.handleIsAt(v.owner, &where):
		v.decided, v.state = true, Solid
		if c.snapshot.blocks[v.owner.block()].is(v.owner.slot(), foreground) {
			v.state, v.reason = WaitingForDependentsDeletion, Waiting
		}
	default:
		c.at[where] = 0
	}
	c.latest.owner, c.latest.namespace, c.latest.verdict = w, namespace, v
	return v
}

// near looks for the object with the UID among those that follow another.
func (s *Snapshot) near(h handle, k *key) (handle, bool) {
	const far = 4
	if !k.uuid { // others may be several objects'
		return 0, false
	}
	b := s.blocks[h.block()]
	for slot := h.slot(); slot < min(h.slot()+far, len(b.records)); slot++ {
		if b.hasKey(slot, k) && !b.is(slot, duplicate) {
			return handleOf(h.block(), slot), true
		}
	}
	return 0, false
}

// resolve returns what a kind that the block's references state means.
func (c *classifier) resolve(block, kind int) *resolution {
	if c.kinds[block] == nil {
		c.kinds[block] = make([]*resolution, len(c.snapshot.blocks[block].kinds))
	}
	r := &c.kinds[block][kind]
	if *r == nil {
		stated := c.snapshot.blocks[block].kinds[kind]
		*r = c.resolution(stated.apiVersion, stated.kind)
	}
	return *r
}

// resolution resolves each kind once.
func (c *classifier) resolution(apiVersion, kind string) *resolution {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	known, ok := c.mappings[gvk]
	if !ok {
		known = &resolution{}
		if known.mapping, known.err = c.snapshot.Resolve(apiVersion, kind); known.err == nil {
			known.resource = known.mapping.Resource.GroupResource()
			known.namespaced = known.mapping.Scope.Name() == meta.RESTScopeNameNamespace
		}
		c.mappings[gvk] = known
	}
	return known
}

// openReference is a reference that quick does not decide.
type openReference struct {
	dependent handle
	reference *ownerRecord
}

// openReferences returns the snapshot's references that quick does not decide,
// and makes the classifier ready for them. One that a run of dependents shares
// is there once.
func (c *classifier) openReferences() []openReference {
	var open []openReference
	for h := range c.snapshot.handles {
		b := c.snapshot.blocks[h.block()]
		for _, w := range b.ownersFrom(b.records[h.slot()].owners) {
			seen := c.latest.owner == w && c.latest.namespace == b.namespace(h.slot())
			if v := c.quick(h, w); !v.decided && !seen {
				open = append(open, openReference{h, w})
			}
		}
	}
	c.locate()
	return open
}

// locate looks for the objects at the locations that quick noted. The first one
// counts.
func (c *classifier) locate() {
	if len(c.at) == 0 {
		return
	}
	wanted := map[schema.GroupResource]bool{}
	for where := range c.at {
		wanted[where.resource] = true
	}
	var latest *Resource // objects of one type stand together
	var served []schema.GroupResource
	for h := range c.snapshot.handles {
		b, slot := c.snapshot.blocks[h.block()], h.slot()
		if r := b.resource(slot); r != latest {
			latest, served = r, c.snapshot.allServing(r)
			served = slices.DeleteFunc(served, func(r schema.GroupResource) bool { return !wanted[r] })
		}
		for _, resource := range served {
			c.found(location{resource, b.namespace(slot), b.name(slot)}, h)
		}
	}
}

// allListed reports whether all that the references of the snapshot may lead to was
// listed, so that none is undecided. It looks at kinds alone.
func (c *classifier) allListed() bool {
	if len(c.snapshot.hidden) > 0 {
		return false
	}
	for block, b := range c.snapshot.blocks {
		for kind := range b.kinds {
			if r := c.resolve(block, kind); r.err == nil && !c.snapshot.ListedIn(r.resource, "") {
				return false
			}
		}
	}
	return true
}

func (c *classifier) found(where location, h handle) {
	if at, wanted := c.at[where]; wanted && at == 0 {
		c.at[where] = uint32(h) + 1
	}
}

// Resolve implements OwnerLookup.
func (c *classifier) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	r := c.resolution(apiVersion, kind)
	return r.mapping, r.err
}

// Lookup implements OwnerLookup for the locations that quick noted, after
// locate.
func (c *classifier) Lookup(resource schema.GroupVersionResource, namespace, name string) (*FoundOwner, error) {
	where := location{resource.GroupResource(), namespace, name}
	if at := c.at[where]; at != 0 {
		h := handle(at - 1)
		b := c.snapshot.blocks[h.block()]
		return &FoundOwner{UID: b.key(h.slot()).uid(), DeletingDependents: b.is(h.slot(), foreground)}, nil
	}
	if c.snapshot.covers(where) {
		return nil, nil
	}
	return nil, fmt.Errorf("looking for %s %s/%s: %w", resource.GroupResource(), namespace, name, ErrUnlisted)
}

// IsAt reports whether a GET of the coordinates would answer with the object,
// under its own group or another that serves the same objects.
func (s *Snapshot) IsAt(o *Object, resource schema.GroupResource, namespace, name string) bool {
	return o.Name == name && o.Namespace == namespace && s.servedAs(o.Resource, resource)
}

// HandleIsAt is IsAt for an object that is not made for it.
func (s *Snapshot) HandleIsAt(h Handle, resource schema.GroupResource, namespace, name string) bool {
	return s.handleIsAt(h, &location{resource, namespace, name})
}

func (s *Snapshot) handleIsAt(h handle, where *location) bool {
	b, slot := s.blocks[h.block()], h.slot()
	return b.name(slot) == where.name && b.namespace(slot) == where.namespace && s.servedAs(b.resource(slot), where.resource)
}

// allServing returns the resources under which the objects of one are served, itself first.
func (s *Snapshot) allServing(r *Resource) []schema.GroupResource {
	own := r.GroupResource()
	return append([]schema.GroupResource{own}, s.aliases[own]...)
}

// servedAs reports whether the objects of one resource are those of the other.
func (s *Snapshot) servedAs(own *Resource, resource schema.GroupResource) bool {
	return own.Resource == resource.Resource && own.Group == resource.Group || slices.Contains(s.aliases[own.GroupResource()], resource)
}
