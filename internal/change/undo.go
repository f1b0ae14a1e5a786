// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Obstacle says why a change is not taken back.
type Obstacle string

// The obstacles.
const (
	// Gone: the object does not exist any more, or another one has its name.
	Gone Obstacle = "Gone"
	// Replaced: another object has the name, with what the change made.
	Replaced Obstacle = "Replaced"
	// Exists: what was deleted exists again. Going: it still does.
	Exists Obstacle = "Exists"
	Going  Obstacle = "Going"
	// Undone: the object is as it was before.
	Undone Obstacle = "Undone"
	// Terminating: the API server takes no new finalizers for an object that is being deleted.
	Terminating Obstacle = "Terminating"
	// Ownerless: the owner of a reference does not exist any more.
	Ownerless Obstacle = "Ownerless"
	// Destroys: the data of a volume would be destroyed, because its claim is gone or being deleted, or goes with a pod.
	Destroys Obstacle = "Destroys"
	// Changed: what the change has made was changed since by others.
	Changed Obstacle = "Changed"
	// Late: it is not there, but no answer to it ever came, and it might still be made unless that is prevented.
	Late Obstacle = "Late"
	// Incomplete: a workload would start, or a volume be deleted with its claim, before all is recreated.
	Incomplete Obstacle = "Incomplete"
	// Final: the change cannot be taken back.
	Final Obstacle = "Final"
	// Unread: the object, or its manifest, could not be read.
	Unread Obstacle = "Unread"
)

// Withhold keeps a change as it is that starts a workload, or has a volume deleted again, as long as not all that the run has deleted is
// recreated.
func (v *Reversal) Withhold() {
	if op := v.Entry.Op; op.Verb == remedy.Scale && op.Replicas.Wanted < op.Replicas.Current || op.Verb == remedy.Patch && op.Retains() {
		v.Op, v.Obstacle, v.Later = nil, Incomplete, false
	}
}

// Possible reports whether there is something to do.
func (v *Reversal) Possible() bool { return v.Op != nil || v.Obstacle == Late || v.Later }

// Left reports whether the change stands, or may, and is not taken back.
func (v *Reversal) Left() bool {
	return !v.Possible() && !slices.Contains([]Obstacle{Gone, Exists, Undone}, v.Obstacle)
}

// Ended reports whether there is nothing of the change that could be taken back, now or later.
func (v *Reversal) Ended() bool {
	return v.Obstacle == Undone || v.Obstacle == Gone && v.Entry.Temporary
}

// Ends reports whether it is to be ended as a temporary change is (TakeBack): others are undone.
func (v *Reversal) Ends() bool {
	return v.Entry.Temporary || v.Obstacle == Late || v.Entry.Op.Grant != nil
}

// Reversal is what takes a recorded change back: an Op, or nothing, for an Obstacle.
type Reversal struct {
	Entry    Entry
	Op       *remedy.Op
	Obstacle Obstacle
	Err      error
	// Later: it can be taken back once what the run has deleted is recreated.
	Later bool
	// now is what was looked at, nil where nothing has the name.
	now *unstructured.Unstructured
}

// Undo finds out what takes the recorded changes back, the last first, as their objects are now. What was never made, or was taken back, is
// left out, and so is what a restoration of lost objects takes back: all but the finalizers of what was to be lost, and still exists.
func (r *Recorded) Undo(ctx context.Context, w *Writer, lost []restore.Saved) []Reversal {
	var all []Reversal
	restored := restoredBy(lost)
	for _, e := range slices.Backward(r.Changes) {
		is := restored(&e)
		if !e.Status.stands() || is && !e.Op.Unfinalizes() {
			continue
		}
		if v := r.Reverse(ctx, w, e); !is || v.now != nil && v.now.GetUID() == e.Op.Object.UID {
			all = append(all, v)
		}
	}
	return all
}

// Undoable reports whether one of the recorded changes can be taken back, or it is not known.
func (r *Recorded) Undoable(ctx context.Context, w *Writer) bool {
	lost := r.Lost()
	restored := restoredBy(lost)
	return w.Restoration(ctx, lost, nil).Writes() > 0 || slices.ContainsFunc(r.Changes, func(e Entry) bool {
		if restored(&e) || !e.Status.stands() {
			return false
		}
		v := r.Reverse(ctx, w, e)
		return v.Possible() || v.Obstacle == Unread
	})
}

// Reverse finds out what takes one change back, of its object as it is now.
func (r *Recorded) Reverse(ctx context.Context, w *Writer, e Entry) Reversal {
	v := Reversal{Entry: e}
	before, err := r.before(&e)
	if err != nil {
		v.Obstacle, v.Err = Unread, err
		return v
	}
	now, err := w.Read(ctx, e.Op.Object)
	v.now = now
	v.Op, v.Obstacle, v.Err = w.back(ctx, e.Op, before, now, err)
	switch {
	case v.Obstacle == Changed && !e.Temporary:
		v.Op = nil // all or nothing
	case v.Obstacle == Replaced && !e.Temporary:
		v.Obstacle = Gone
	case v.Obstacle == Undone && mayArrive(e.Status, before, now):
		v.Obstacle = Late
	}
	return v
}

// TakeBack ends one temporary change of an earlier run.
func (r *Recorded) TakeBack(ctx context.Context, w *Writer, e *Entry) Record {
	c := &Change{Op: *e.Op, Cause: e.Cause, Why: e.Why, Risk: e.Risk, Temporary: true}
	before, err := r.before(e)
	if err != nil {
		return Record{Time: w.Now(), Change: *c, Status: NotTakenBack, Err: err}
	}
	return w.TakeBack(ctx, c, before, e.Status)
}

// DigestOf is the same as long as the same changes would be taken back in the same way.
func DigestOf(reversals []Reversal) string {
	var keys []any
	for i := range reversals {
		if op := reversals[i].Op; op != nil {
			keys = append(keys, op.Key())
		}
	}
	return preview.Checksum(keys...)
}

// Undo takes one change of an earlier run back, of its object as it is by now. It is found out again right before whether that can be done;
// what it puts back is what was there before the change.
func (w *Writer) Undo(ctx context.Context, r *Recorded, agreed *Reversal) Record {
	lost := false
	for tries := 1; ; tries++ {
		v := r.Reverse(ctx, w, agreed.Entry)
		c := &Change{Op: *agreed.Op, Cause: agreed.Entry.Cause, Why: undoing(agreed.Entry.Number, r.Dir), Risk: agreed.Entry.Risk}
		if lost && v.Obstacle == Undone {
			return Record{Time: w.Now(), Change: *c, Status: Done}
		}
		if v.Op == nil {
			return Record{Time: w.Now(), Change: *c, Status: Skipped, Err: errors.Join(errors.New(Words(v.Obstacle)), v.Err)}
		}
		c.Op = *v.Op
		made := w.Make(ctx, c, v.now)
		if lost = lost || made.Status == Unanswered; made.Status != Skipped && made.Status != Unanswered || tries == mostTries {
			return made
		}
		w.Wait(ctx, time.Duration(tries)*racing)
	}
}

// back returns what takes a change back, of an object that was as before and of which a GET has answered now or err, or why nothing does.
// When others have Changed a part of it, it is for the rest. It is the inverse of the change and of what is there, whatever a journal says.
func (w *Writer) back(ctx context.Context, op *remedy.Op, before, now *unstructured.Unstructured, err error) (*remedy.Op, Obstacle, error) {
	absent := answer.NoSuchObject(err, op.Object.Resource.GroupResource(), op.Object.Name)
	switch {
	case err != nil && !absent:
		return nil, Unread, err
	case op.Verb == remedy.Delete:
		return nil, deleted(op, now), nil
	case op.Verb == remedy.Create:
		return revoke(op, now, absent)
	case op.Verb == remedy.Restore, op.Binds(): // its data is the claim's
		return nil, Final, nil
	case absent, before == nil && now.GetUID() != op.Object.UID:
		return nil, Gone, nil
	case before == nil:
		return nil, Final, nil
	}
	fields, err := op.Fields(before.Object)
	if err != nil || len(fields) == 0 || op.Verb == remedy.Finalize {
		return nil, Final, err
	}
	steps, standing := remedy.Reverse(fields, before.Object, now.Object)
	if rest := slices.DeleteFunc(slices.Clone(steps),
		func(s remedy.Step) bool { return now.GetUID() == op.Object.UID && rewritten(op, s, now) }); len(rest) < len(steps) {
		steps, standing = rest, remedy.Altered
	}
	writes := slices.ContainsFunc(steps, func(s remedy.Step) bool { return s.Op != "test" })
	switch {
	case now.GetUID() != op.Object.UID && writes:
		return nil, Replaced, nil
	case now.GetUID() != op.Object.UID:
		return nil, Gone, nil
	case standing == remedy.AsBefore:
		return nil, Undone, nil
	case !writes:
		return nil, Changed, nil
	}
	if now.GetDeletionTimestamp() != nil &&
		slices.ContainsFunc(steps, func(s remedy.Step) bool { return s.Op == "add" && strings.HasPrefix(s.Path, "/metadata/finalizers") }) {
		return nil, Terminating, nil
	}
	if obstacle, err := w.owners(ctx, now, steps); obstacle != "" {
		return nil, obstacle, err
	}
	back := remedy.PatchOf(op.Object, steps...)
	switch op.Verb {
	case remedy.Scale:
		back = remedy.ScaleOf(op.Object, remedy.Replicas{Current: op.Replicas.Wanted, Wanted: op.Replicas.Current})
	case remedy.Taint:
		back = remedy.Op{Verb: remedy.Untaint, Object: op.Object, Value: op.Value}
	}
	if w.destroys(ctx, steps, before, now) || back.EndsPods() && w.endsData(ctx, now, nil) {
		return nil, Destroys, nil
	}
	return &back, map[remedy.Standing]Obstacle{remedy.Altered: Changed}[standing], nil
}

// owners returns why a reference that steps put back must not be: its owner is gone, so that the garbage collector would delete the object.
func (w *Writer) owners(ctx context.Context, now *unstructured.Unstructured, steps []remedy.Step) (Obstacle, error) {
	for _, step := range steps {
		if step.Op == "test" || !strings.HasPrefix(step.Path, "/metadata/ownerReferences") {
			continue
		}
		values, several := step.Value.([]any)
		if !several {
			values = []any{step.Value}
		}
		if path, is := strings.CutSuffix(step.Path, "/uid"); is {
			entry, _ := remedy.At(now.Object, path)
			fields, _ := entry.(map[string]any)
			fields = maps.Clone(fields)
			fields["uid"] = step.Value
			values = []any{fields}
		}
		for _, value := range values {
			if _, reference := value.(map[string]any); !reference {
				continue // a flag of one that is there
			}
			if obstacle, err := w.owner(ctx, now.GetNamespace(), value, map[types.UID]Obstacle{}); obstacle != "" {
				return obstacle, err
			}
		}
	}
	return "", nil
}

// owner looks for the owner of a reference, and for one of its owners, and so on: an owner stays if one above it does, or if it is above
// itself. met has what was found out before.
func (w *Writer) owner(ctx context.Context, namespace string, reference any, met map[types.UID]Obstacle) (Obstacle, error) {
	fields, _ := reference.(map[string]any)
	uid, _ := fields["uid"].(string)
	if is, known := met[types.UID(uid)]; known {
		return is, nil
	}
	owner, obstacle, err := w.ownerOf(ctx, namespace, reference)
	if obstacle != "" {
		return obstacle, err
	}
	return w.owned(ctx, owner, met)
}

// ownerOf reads the owner of a reference. One that is being deleted comes with the obstacle.
func (w *Writer) ownerOf(ctx context.Context, namespace string, reference any) (*unstructured.Unstructured, Obstacle, error) {
	fields, _ := reference.(map[string]any)
	text := func(key string) string { value, _ := fields[key].(string); return value }
	resource, err := w.Resource(schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")))
	if err != nil {
		return nil, Unread, err
	}
	id := graph.Identity{Resource: resource, Name: text("name"), UID: types.UID(text("uid"))}
	if resource.Namespaced {
		id.Namespace = namespace
	}
	owner, err := w.Read(ctx, id)
	switch {
	case IsGone(id, owner, err):
		return nil, Ownerless, nil
	case err != nil:
		return nil, Unread, err
	case owner.GetDeletionTimestamp() != nil:
		return owner, Ownerless, nil
	}
	return owner, "", nil
}

// endsData reports whether claims or snapshots go, or may, when a workload is made smaller: claims that a StatefulSet deletes, what its
// pods own, and claims that are being deleted, which its pods may be the last to use. Those whose data is known to be kept do not count.
func (w *Writer) endsData(ctx context.Context, workload *unstructured.Unstructured, kept sets.Set[types.UID]) bool {
	claims, err := w.List(ctx, evidence.Claims, workload.GetNamespace())
	if err != nil || slices.ContainsFunc(claims, func(claim unstructured.Unstructured) bool {
		// which goes with it alone
		owned := slices.ContainsFunc(claim.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == workload.GetUID() })
		return !kept.Has(claim.GetUID()) && (claim.GetDeletionTimestamp() != nil || evidence.ScalesAway(workload, 0, claim.GetName()) ||
			!owned && w.below(ctx, &claim, workload.GetUID(), sets.New[types.UID]()))
	}) {
		return true
	}
	return slices.ContainsFunc(evidence.Copies, func(c evidence.Copy) bool {
		resource, err := w.Resource(schema.GroupVersionKind{Group: c.Of.Group, Kind: strings.TrimSuffix(c.Kind, "Content")})
		if meta.IsNoMatchError(err) {
			return false
		}
		var all []unstructured.Unstructured
		if err == nil {
			all, err = w.List(ctx, resource.GroupVersionResource, workload.GetNamespace())
		}
		return err != nil || slices.ContainsFunc(all, func(o unstructured.Unstructured) bool {
			return w.below(ctx, &o, workload.GetUID(), sets.New[types.UID]())
		})
	})
}

// below reports whether an object is above another one, or may be.
func (w *Writer) below(ctx context.Context, o *unstructured.Unstructured, above types.UID, met sets.Set[types.UID]) bool {
	met.Insert(o.GetUID())
	owners, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	return slices.ContainsFunc(owners, func(reference any) bool {
		owner, obstacle, _ := w.ownerOf(ctx, o.GetNamespace(), reference)
		switch {
		case owner == nil:
			return obstacle == Unread
		case met.Has(owner.GetUID()):
			return false
		}
		return owner.GetUID() == above || w.below(ctx, owner, above, met)
	})
}

// owned returns why the garbage collector would, or might, delete an object: all of its owners are gone or go.
func (w *Writer) owned(ctx context.Context, o *unstructured.Unstructured, met map[types.UID]Obstacle) (is Obstacle, err error) {
	met[o.GetUID()] = ""
	defer func() { met[o.GetUID()] = is }()
	owners, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	for _, reference := range owners {
		if is, err = w.owner(ctx, o.GetNamespace(), reference, met); is == "" {
			return "", nil
		}
	}
	return is, err
}

// destroys reports whether steps put a policy back by which data is destroyed at once, or soon: that of a volume whose claim does not use
// it any more, or goes (pkg/controller/volume/persistentvolume/pv_controller.go, reclaimVolume), or that of the content of a
// VolumeSnapshot. So it is if another claim than before uses it.
func (w *Writer) destroys(ctx context.Context, steps []remedy.Step, before, volume *unstructured.Unstructured) bool {
	ref, user := "", schema.GroupVersionResource{}
	for _, s := range steps {
		switch {
		case s.Op != "replace" || s.Value == "Retain":
		case s.Path == remedy.ReclaimPolicy:
			ref, user = "claimRef", evidence.Claims
		case s.Path == remedy.DeletionPolicy:
			for _, c := range evidence.Copies {
				if gv := volume.GroupVersionKind().GroupVersion(); gv.Group == c.Of.Group {
					ref, user = c.Ref, gv.WithResource(c.Of.Resource)
				}
			}
		}
	}
	if ref == "" {
		return false
	}
	field := func(path ...string) string { return evidence.Nested(volume, path...) }
	if slices.ContainsFunc([]string{"namespace", "name"},
		func(part string) bool { return evidence.Nested(before, "spec", ref, part) != field("spec", ref, part) }) {
		return true
	}
	namespace, err := w.Read(ctx, evidence.Identity(evidence.Namespaces, "", field("spec", ref, "namespace")))
	if err != nil || namespace.GetDeletionTimestamp() != nil {
		return true
	}
	claim, err := w.Read(ctx, evidence.Identity(user, namespace.GetName(), field("spec", ref, "name")))
	if err != nil || claim.GetDeletionTimestamp() != nil || volume.GetDeletionTimestamp() != nil ||
		ref == "claimRef" && field("status", "phase") != "Bound" ||
		string(claim.GetUID()) != field("spec", ref, "uid") {
		return true
	}
	obstacle, _ := w.owned(ctx, claim, map[types.UID]Obstacle{})
	return obstacle != ""
}

// revoke takes back a binding that was made: it is deleted, unless it grants something to others as well, or stays although it is deleted;
// then the subject is taken out of it. One without subjects is what was made first of it. Other objects that were made stay, for others may
// use them by now.
func revoke(op *remedy.Op, now *unstructured.Unstructured, absent bool) (*remedy.Op, Obstacle, error) {
	switch {
	case absent:
		return nil, Gone, nil
	case op.Grant == nil:
		return nil, Final, nil
	}
	id := op.Object
	index, ours, subjects := op.Grant.In(now.Object)
	known := id.UID == now.GetUID() || id.UID == "" && op.Made(now)
	switch {
	case !known && ours && index >= 0:
		return nil, Replaced, nil
	case !known:
		return nil, Gone, nil
	}
	id.UID = now.GetUID()
	switch deleted := now.GetDeletionTimestamp() != nil; {
	case ours && !deleted && (subjects == 0 || index == 0 && subjects == 1):
		return new(remedy.DeleteOf(id, metav1.DeleteOptions{})), "", nil
	case index < 0:
		return nil, Undone, nil
	}
	return ungrant(op, now), "", nil
}

// ungrant takes the subject out of a binding, nil where it is in none.
func ungrant(op *remedy.Op, now *unstructured.Unstructured) *remedy.Op {
	index, _, _ := op.Grant.In(now.Object)
	if index < 0 {
		return nil
	}
	id, path := op.Object, fmt.Sprint("/subjects/", index)
	id.UID = now.GetUID()
	return new(remedy.PatchOf(id, remedy.Test(path, op.Grant.Subject()), remedy.Remove(path)))
}

// deleted says how an object stands to its deletion, of which nothing whole was kept: what was, a restoration makes again.
func deleted(op *remedy.Op, now *unstructured.Unstructured) Obstacle {
	switch {
	case now == nil:
		return Final
	case now.GetUID() != op.Object.UID:
		return Exists
	case now.GetDeletionTimestamp() == nil:
		return Undone
	}
	return Going
}
