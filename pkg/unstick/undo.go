// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Obstacle says why a change is not taken back.
type Obstacle string

// The obstacles.
const (
	// Gone: the object does not exist any more, or another one has its name.
	Gone Obstacle = "Gone"
	// Exists: what was deleted exists again.
	Exists Obstacle = "Exists"
	// Undone: the object is as it was before.
	Undone Obstacle = "Undone"
	// Terminating: the API server takes no new finalizers for an object that is being deleted.
	Terminating Obstacle = "Terminating"
	// Ownerless: the owner of a reference does not exist any more.
	Ownerless Obstacle = "Ownerless"
	// Destroys: the data of a volume would be destroyed, because its claim is gone or being deleted.
	Destroys Obstacle = "Destroys"
	// Changed: what the change has made was changed since by others.
	Changed Obstacle = "Changed"
	// Final: the change cannot be taken back.
	Final Obstacle = "Final"
	// Unread: the object, or its manifest, could not be read.
	Unread Obstacle = "Unread"
)

// Reversal is what takes a recorded change back: an Op, or nothing, for an Obstacle.
type Reversal struct {
	Entry    Entry
	Op       *remedy.Op
	Obstacle Obstacle
	Err      error
}

// Reading is what Undo asks of the cluster.
type Reading struct {
	// Read is that of Edges.
	Read func(context.Context, graph.Identity) (*unstructured.Unstructured, error)
	// Resource finds the type of an owner.
	Resource func(schema.GroupVersionKind) (graph.Resource, error)
}

// Undo finds out what takes the recorded changes back, the last first, as their objects are now. What was never made, or was
// taken back, is left out.
func (r *Recorded) Undo(ctx context.Context, reading *Reading) []Reversal {
	var all []Reversal
	for _, e := range slices.Backward(r.Changes) {
		if e.Result == Skipped || e.Result == Refused || e.Result == TakenBack {
			continue
		}
		reversal := Reversal{Entry: e}
		current, err := reading.Read(ctx, e.Op.Object)
		switch absent := answer.NoSuchObject(err, e.Op.Object.Resource.GroupResource(), e.Op.Object.Name); {
		case absent:
			current = nil
		case err != nil:
			reversal.Obstacle, reversal.Err = Unread, err
		}
		if reversal.Obstacle == "" {
			r.reverse(&reversal, current)
		}
		if reversal.Op != nil {
			reading.owners(ctx, &reversal)
			reading.reclaimed(ctx, &reversal, current)
		}
		all = append(all, reversal)
	}
	return all
}

// owners gives up putting back a reference to an owner that is gone: the garbage collector would delete the object.
func (r *Reading) owners(ctx context.Context, v *Reversal) {
	for _, step := range v.Op.Patch {
		if !strings.HasPrefix(step.Path, "/metadata/ownerReferences") {
			continue
		}
		values, several := step.Value.([]any)
		if !several {
			values = []any{step.Value}
		}
		for _, value := range values {
			if obstacle, err := r.owner(ctx, v.Op.Object.Namespace, value); obstacle != "" {
				v.Op, v.Obstacle, v.Err = nil, obstacle, err
				return
			}
		}
	}
}

// reclaimed gives up putting a volume's reclaim policy back to Delete unless its claim uses it on: a volume without one is deleted at
// once, with its data (pkg/controller/volume/persistentvolume/pv_controller.go, reclaimVolume).
func (r *Reading) reclaimed(ctx context.Context, v *Reversal, volume *unstructured.Unstructured) {
	if v.Op == nil || !slices.ContainsFunc(v.Op.Patch, func(s remedy.Step) bool {
		return s.Op == "replace" && s.Path == remedy.ReclaimPolicy && s.Value != "Retain"
	}) {
		return
	}
	field := func(path ...string) string { return evidence.Nested(volume, path...) }
	claim, err := r.Read(ctx, graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: evidence.Claims, Kind: "PersistentVolumeClaim", Namespaced: true},
		Namespace: field("spec", "claimRef", "namespace"), Name: field("spec", "claimRef", "name"),
	})
	if err != nil || volume.GetDeletionTimestamp() != nil || field("status", "phase") != "Bound" ||
		claim.GetDeletionTimestamp() != nil || string(claim.GetUID()) != field("spec", "claimRef", "uid") {
		v.Op, v.Obstacle = nil, Destroys
	}
}

// owner looks for the owner of a reference.
func (r *Reading) owner(ctx context.Context, namespace string, reference any) (Obstacle, error) {
	fields, _ := reference.(map[string]any)
	text := func(key string) string { value, _ := fields[key].(string); return value }
	resource, err := r.Resource(schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")))
	if err != nil {
		return Unread, err
	}
	id := graph.Identity{Resource: resource, Name: text("name"), UID: types.UID(text("uid"))}
	if resource.Namespaced {
		id.Namespace = namespace
	}
	owner, err := r.Read(ctx, id)
	switch {
	case isGone(id, owner, err):
		return Ownerless, nil
	case err != nil:
		return Unread, err
	}
	return "", nil
}

// reverse finds out what takes one change back, of an object that is nil when there is none of its name.
func (r *Recorded) reverse(v *Reversal, current *unstructured.Unstructured) {
	op := v.Entry.Op
	if op.Verb == remedy.Delete && op.Back != nil && op.Back.Verb == remedy.Restore {
		r.restore(v, current)
		return
	}
	if op.Verb == remedy.Create {
		revoke(v, current)
		return
	}
	if current == nil || current.GetUID() != op.Object.UID {
		v.Obstacle = Gone
		return
	}
	switch {
	case op.Verb == remedy.Scale:
		v.Op = new(remedy.ScaleOf(op.Object, remedy.Replicas{Current: op.Replicas.Wanted, Wanted: op.Replicas.Current}))
	case op.Verb == remedy.Resume:
		v.Op = new(remedy.PatchOf(op.Object, remedy.Add("/spec/paused", true)))
	case op.Back != nil:
		v.Op = byName(op.Back, current)
	case op.Verb == remedy.Patch:
		r.putBack(v, current)
	default:
		v.Obstacle = Final
	}
	switch {
	case v.Op == nil:
	case asBefore(v.Op, current):
		v.Op, v.Obstacle = nil, Undone
	case changedSince(v.Op, current):
		v.Op, v.Obstacle = nil, Changed
	case v.Op.Verb != remedy.Untaint:
		v.Op = new(v.Op.At(current.GetResourceVersion()))
	}
}

// revoke deletes a binding that was made, if what has its name grants exactly that: its UID was not known when it was made. Other objects that
// were made stay, for others may use them by now.
func revoke(v *Reversal, current *unstructured.Unstructured) {
	op := v.Entry.Op
	switch {
	case current == nil, op.Grant != nil && !op.Grant.IsOf(current.Object):
		v.Obstacle = Gone
	case op.Grant == nil:
		v.Obstacle = Final
	default:
		id := op.Object
		id.UID = current.GetUID()
		v.Op = new(remedy.DeleteOf(id, metav1.DeleteOptions{}).At(current.GetResourceVersion()))
	}
}

// restore makes a deleted object again, unless there is one of its name.
func (r *Recorded) restore(v *Reversal, current *unstructured.Unstructured) {
	if current != nil {
		v.Obstacle = Exists
		return
	}
	saved, err := r.Saved(&v.Entry)
	if err != nil {
		v.Obstacle, v.Err = Unread, err
		return
	}
	v.Op = &remedy.Op{Verb: remedy.Restore, Object: v.Entry.Op.Object, Manifest: saved.Object}
}

// putBack puts entries of lists back that a patch has removed: they come last.
func (r *Recorded) putBack(v *Reversal, current *unstructured.Unstructured) {
	saved, err := r.Saved(&v.Entry)
	if err != nil {
		v.Obstacle, v.Err = Unread, err
		return
	}
	var steps []remedy.Step
	for _, step := range v.Entry.Op.Patch {
		if step.Op != "remove" {
			continue
		}
		list := step.Path[:strings.LastIndexByte(step.Path, '/')]
		value, known := remedy.At(saved.Object, step.Path)
		entries, _ := remedy.At(current.Object, list)
		now, _ := entries.([]any)
		switch {
		case !known:
			v.Obstacle = Final
			return
		case slices.ContainsFunc(now, func(have any) bool { return reflect.DeepEqual(have, value) }):
		case list == "/metadata/finalizers" && current.GetDeletionTimestamp() != nil:
			v.Obstacle = Terminating
			return
		case len(now) == 0:
			steps = append(steps, remedy.Add(list, []any{value}))
		default:
			steps = append(steps, remedy.Add(list+"/-", value))
		}
	}
	if len(steps) == 0 {
		v.Obstacle = Undone
		return
	}
	v.Op = new(remedy.PatchOf(v.Entry.Op.Object, steps...))
}
