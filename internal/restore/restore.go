// SPDX-License-Identifier: Apache-2.0

// Package restore decides how objects that were deleted are made again from what was kept of them: in which order, with which owners, what
// is left to their controllers, and what must not be made again. It sends nothing: change.Writer does.
package restore

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Saved is an object as it was kept before a deletion.
type Saved struct {
	// Object is what it was, with the UID that it had.
	Object graph.Identity
	// Manifest is what was kept of it, nil for nothing. Partial: the data of a Secret is left out.
	Manifest *unstructured.Unstructured
	Partial  bool
	// Stayed: it was not to be deleted, or its deletion was refused. Going: it was being deleted before.
	Stayed, Going bool
	// Volume is the UID of the volume that a claim had, or of what an undo has made of it; empty where that is not known.
	Volume types.UID
	// Made is the UID of what an earlier undo made of it, empty for nothing. Sent: one has tried, and got no answer. Given are the references
	// to owners that undos have given to objects.
	Made  types.UID
	Sent  bool
	Given Given
	// Err says why it could not be read.
	Err error
}

// Given are the owners to which objects were given references, by the UIDs of both. What has the version for which such a change was sent
// without an answer has not got it.
type Given map[types.UID]map[types.UID]string

// Add adds a reference, which was given to an object of that version. Without an answer it is not certain.
func (g Given) Add(object, owner types.UID, version string, answered bool) {
	if g[object] == nil {
		g[object] = map[types.UID]string{}
	}
	if answered {
		version = "-" // of no object
	}
	g[object][owner] = version
}

// wasGiven reports whether the object that is there now has had a reference to an owner, or, for an empty UID, to any. What an undo has
// sent and got no answer to is there by another UID.
func (i *Item) wasGiven(owner types.UID) bool {
	given := []map[types.UID]string{i.Given[i.Now.GetUID()]}
	if i.Sent && i.Now.GetUID() != i.Made && remedy.Wrote(i.Now) {
		given = append(given, i.Given[i.Object.UID])
	}
	return slices.ContainsFunc(given, func(owners map[types.UID]string) bool {
		for uid, version := range owners {
			if (owner == "" || uid == owner) && version != i.Now.GetResourceVersion() {
				return true
			}
		}
		return false
	})
}

// Cluster is what there is by now.
type Cluster interface {
	// Find returns the object that has the name now, nil for none. The error says that it is not known.
	Find(graph.Identity) (*unstructured.Unstructured, error)
	// Resource finds the type of a kind.
	Resource(schema.GroupVersionKind) (graph.Resource, error)
	// Volumes are all PersistentVolumes.
	Volumes() ([]unstructured.Unstructured, error)
}

// Do is what is done about an object.
type Do string

// What is done.
const (
	// Make: it is created again.
	Make Do = "Make"
	// Await: its controller makes it again, and if it does not in time it is created.
	Await Do = "Await"
	// Leave: it is left to By, or to nobody.
	Leave Do = "Leave"
	// Bind: it is a claim that was made again, and has not its volume yet.
	Bind Do = "Bind"
	// Link: it exists, and has lost references to owners that are made again.
	Link Do = "Link"
	// Nothing: it is there as it was, or was made again.
	Nothing Do = "Nothing"
	// Refuse: it is not made, for the Reason.
	Refuse Do = "Refuse"
)

// Item is an object with what is done about it.
type Item struct {
	Saved
	Do     Do
	Reason Reason
	// By is the owner, controller or volume that is meant.
	By graph.Identity
	// Wave: those of a wave need only what is in earlier ones. It is counted from 0.
	Wave int
	// Requires are claims without which it must not be made: who makes it would make these, empty.
	Requires []*Item
	// Then gives a claim its volume, when it is there.
	Then *remedy.Op
	// Late: it is the link of another item to an owner that was made after it.
	Late bool
	// Now is what has the name, nil for nothing.
	Now *unstructured.Unstructured

	stage   stage
	depth   int
	settled bool
	owners  []metav1.OwnerReference
	without []metav1.OwnerReference // of these: it is made without them
	bound   *Item                   // the claim of a volume
	needy   bool                    // something else is made first
}

// There reports whether the object will be there, with a UID that references can be mapped to.
func (i *Item) There() bool { return slices.Contains([]Do{Make, Await, Bind, Link, Nothing}, i.Do) }

// Writes reports whether something is, or may be, sent.
func (i *Item) Writes() bool { return slices.Contains([]Do{Make, Await, Bind, Link}, i.Do) }

// Plan is how objects are made again, in the order in which that is done.
type Plan struct{ Items []*Item }

// Digest is the same as long as the same would be done.
func (p *Plan) Digest() string {
	var keys []any
	for _, i := range p.Items {
		if i.Writes() {
			keys = append(keys, i.Do, i.Object, i.Manifest, i.Then)
		}
	}
	return preview.Checksum(keys...)
}

// Writes is how many objects are, or may be, written to.
func (p *Plan) Writes() int {
	n := 0
	for _, i := range p.Items {
		if i.Writes() {
			n++
		}
	}
	return n
}

// Left reports whether something that was asked for is not made again.
func (p *Plan) Left() bool {
	return slices.ContainsFunc(p.Items, func(i *Item) bool { return i.Do == Refuse && i.Reason != NotAsked && i.Reason != NotDeleted })
}

// Tries are the changes that can be tried before anything is made: those that need nothing that is made before them.
func (p *Plan) Tries() []remedy.Op {
	var all []remedy.Op
	for _, i := range p.Items {
		if i.needy || !i.Writes() || i.Do == Link {
			continue
		}
		if i.Do != Bind {
			all = append(all, remedy.Op{Verb: remedy.Restore, Object: i.Object, Manifest: i.Content(nil).Object})
		}
		if i.Then != nil {
			all = append(all, *i.Then)
		}
	}
	return all
}

// planner has what the decisions about objects need of each other.
type planner struct {
	Cluster
	items map[types.UID]*Item
	named map[graph.Identity]*Item // without UIDs
	// wanted are those that were asked for, and no others; claims are those that were bound, and kinds are definitions.
	wanted func(graph.Identity) bool
	claims []*Item
	kinds  map[schema.GroupKind]*Item
}

// Of decides what is done about objects. wanted says which of them were asked for, nil is for all.
func Of(saved []Saved, c Cluster, wanted func(graph.Identity) bool) *Plan {
	p := &planner{Cluster: c, wanted: wanted, items: map[types.UID]*Item{}, named: map[graph.Identity]*Item{},
		kinds: map[schema.GroupKind]*Item{}}
	plan := &Plan{}
	for _, s := range saved {
		if p.items[s.Object.UID] != nil {
			continue
		}
		i := &Item{Saved: s}
		if s.Manifest != nil {
			i.owners = s.Manifest.GetOwnerReferences()
		}
		plan.Items, p.items[s.Object.UID], p.named[s.Object.Unidentified()] = append(plan.Items, i), i, i
		switch r := s.Object.Resource; {
		case s.Manifest == nil:
		case kindOf(r) == claim && i.wasBound():
			p.claims = append(p.claims, i)
		case r.IsCRD():
			p.kinds[schema.GroupKind{Group: evidence.Nested(s.Manifest, "spec", "group"),
				Kind: evidence.Nested(s.Manifest, "spec", "names", "kind")}] = i
		}
	}
	p.leaveOut(plan.Items)
	for _, i := range plan.Items {
		p.settle(i)
	}
	for _, i := range plan.Items {
		p.emptied(i, wanted != nil && wanted(i.Object))
	}
	for p.falls(plan.Items) {
	}
	for _, i := range plan.Items {
		p.bind(i)
	}
	plan.Items = append(plan.Items, p.late(plan.Items)...)
	plan.order()
	return plan
}

// asked reports whether an object was asked for by name, or a StatefulSet of whose claims it is one.
func (p *planner) asked(i *Item) bool {
	if p.wanted == nil || p.wanted(i.Object) {
		return p.wanted != nil
	}
	for _, set := range p.items {
		if p.wanted(set.Object) && isClaimOf(i.Object, set) {
			return true
		}
	}
	return false
}

// leaveOut leaves out what was not asked for: what is there of it counts, and nothing is made. The claims of a StatefulSet that was are
// asked for, too.
func (p *planner) leaveOut(items []*Item) {
	for _, i := range items {
		if p.wanted == nil || p.asked(i) {
			continue
		}
		i.settled = true
		i.Do, i.Reason = Refuse, NotAsked
		var err error
		if i.Now, err = p.Find(i.Object); err == nil && i.Now != nil && i.Now.GetDeletionTimestamp() == nil &&
			(i.Now.GetUID() == i.Object.UID || i.Now.GetUID() == i.Made || Same(i, i.Now)) {
			i.Do, i.Reason = Nothing, ""
		}
	}
}

// Owners are the references that the object had.
func (i *Item) Owners() []metav1.OwnerReference { return i.owners }

// order puts the items in waves.
func (plan *Plan) order() {
	slices.SortStableFunc(plan.Items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.depth, b.depth), a.Object.Compare(b.Object))
	})
	wave := 0
	for n, i := range plan.Items {
		if n > 0 && (plan.Items[n-1].stage != i.stage || plan.Items[n-1].depth != i.depth) {
			wave++
		}
		i.Wave = wave
	}
}

// refuse ends the decision about an item.
func (i *Item) refuse(why Reason, by graph.Identity, err error) {
	i.Do, i.Reason, i.By = Refuse, why, by
	if err != nil {
		i.Err = err
	}
}

// settle decides about an object, after those that it needs. One that needs itself is refused.
func (p *planner) settle(i *Item) {
	if i.settled {
		return
	}
	i.settled, i.stage = true, stageOf(i.Object.Resource)
	i.refuse(Ownerless, graph.Identity{}, nil) // of a circle
	now, err := p.find(i)
	if i.Now = now; err != nil || i.Err != nil {
		i.refuse(Unread, graph.Identity{}, err)
		return
	}
	switch {
	case now != nil && now.GetDeletionTimestamp() != nil:
		i.refuse(Going, graph.Identity{}, nil)
	case now != nil && (now.GetUID() == i.Object.UID || now.GetUID() == i.Made && i.Manifest != nil):
		p.stays(i)
	case i.Going && (i.Manifest == nil || !p.leaves(i)):
		i.refuse(WasGoing, graph.Identity{}, nil)
	case i.Stayed && (now == nil || i.Manifest == nil || i.Manifest.GetKind() == ""):
		i.refuse(NotDeleted, graph.Identity{}, nil)
	case i.Manifest == nil:
		i.refuse(NotKept, graph.Identity{}, nil)
	case now == nil && i.Made != "" && !p.asked(i):
		i.refuse(Deleted, graph.Identity{}, nil)
	case now == nil:
		p.absent(i)
	default:
		p.replaced(i)
	}
	if (i.Do == Nothing || i.Do == Link) && kindOf(i.Object.Resource) == claim && i.Now.GetUID() != i.Object.UID &&
		(i.Now.GetUID() == i.Made || Same(i, i.Now)) {
		p.unbound(i)
	}
}

// find returns what has the name of an object. Of a type whose definition goes with it nothing has, as long as that is not there.
func (p *planner) find(i *Item) (*unstructured.Unstructured, error) {
	if d := p.kinds[kindOf(i.Object.Resource)]; d != nil && i.Manifest != nil {
		if p.settle(d); d.Now == nil {
			return nil, nil
		}
	}
	return p.Find(i.Object)
}

// needs has an object come after another.
func (i *Item) needs(other *Item) {
	i.needy = i.needy || other.Writes()
	switch {
	case other.stage > i.stage:
		i.stage, i.depth = other.stage, other.depth+1
	case other.stage == i.stage:
		i.depth = max(i.depth, other.depth+1)
	}
}

// stays is an object that is there: it might have lost owners, by what the run did, or by what others have done to what it or an undo has
// left.
func (p *planner) stays(i *Item) {
	i.Do, i.Reason = Nothing, ""
	if len(i.owners) > 0 && len(i.Now.GetOwnerReferences()) == 0 && (!i.Stayed && i.Now.GetUID() == i.Object.UID || i.wasGiven("")) {
		i.Reason = Freed
		return
	}
	freed := false
	for _, ref := range slices.Clone(i.owners) {
		owner := p.items[ref.UID]
		if owner == nil {
			continue
		}
		if p.settle(owner); owner.There() && owner.Do != Link && (owner.Now == nil || owner.Now.GetUID() != ref.UID) {
			i.needs(owner)
			linked := owner.Now != nil &&
				slices.ContainsFunc(i.Now.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.Now.GetUID() })
			if other := metav1.GetControllerOf(i.Now); !linked && other != nil && other.UID != ref.UID && isController(&ref) {
				i.Do, i.Reason, i.By = Nothing, Adopted, p.owner(i, other)
				return
			} else if !linked && owner.Now != nil && i.wasGiven(owner.Now.GetUID()) {
				// it had that since
				i.owners, freed = slices.DeleteFunc(slices.Clone(i.owners), func(r metav1.OwnerReference) bool { return r.UID == ref.UID }), true
			} else if !linked {
				i.Do = Link
			}
		}
	}
	if freed && i.Do == Nothing {
		i.Reason = Freed
	}
}

func isController(ref *metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

// replaced is one of whose name there is another object by now. Where its controller has made that, it is its successor.
func (p *planner) replaced(i *Item) {
	was, is := metav1.GetControllerOf(i.Manifest), metav1.GetControllerOf(i.Now)
	switch {
	case p.leaves(i), was != nil && is != nil && was.Kind == is.Kind && was.Name == is.Name && !holds(i):
		i.Do, i.Reason, i.By = Nothing, "", graph.Identity{}
	case i.Partial && !isToken(i.Manifest):
		i.refuse(Unkept, graph.Identity{}, nil)
	case !Same(i, i.Now) && !(i.Sent && remedy.Wrote(i.Now)): // admission may change what an undo makes
		i.refuse(Replaced, graph.Identity{}, nil)
	case remedy.Wrote(i.Now):
		p.stays(i) // the answer was lost
	default: // others have made it, with the owners that they wanted
		i.Do, i.Reason = Nothing, ""
	}
}

// absent is one that is to be made, unless something speaks against it.
func (p *planner) absent(i *Item) {
	leave, by, gone, err := p.ownerless(i)
	if gone {
		i.refuse(Ownerless, by, err)
		return
	}
	if home, why, err := p.homeless(i); why != "" {
		i.refuse(why, home, err)
		return
	}
	if why := p.unfit(i); why != "" {
		i.refuse(why, graph.Identity{}, nil)
		return
	}
	if i.By = by; leave || p.leaves(i) {
		if i.Do, i.Reason = Leave, Remade; i.By.Name == "" && kinds[kindOf(i.Object.Resource)].unmade {
			i.Reason = Requested
		}
		return
	}
	i.Do, i.Reason, i.By = Make, "", graph.Identity{}
	if ref := metav1.GetControllerOf(i.Manifest); ref != nil &&
		!slices.ContainsFunc(i.without, func(w metav1.OwnerReference) bool { return w.UID == ref.UID }) {
		i.Do, i.By = Await, p.owner(i, ref)
	}
	if kindOf(i.Object.Resource) == claim {
		p.claim(i)
	}
}
