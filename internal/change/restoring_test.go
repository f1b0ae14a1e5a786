// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// busy is an answer that says nothing.
var busy = apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", schema.GroupResource{}, "", "busy", 0, true)

// A claim and its volume are one's again, whichever read of the claim is not answered, and whether the answer to the binding comes or not.
func TestRestoreBinding(t *testing.T) {
	claim, volume := thing("persistentvolumeclaims", "c"), thing("persistentvolumes", "v")
	const (
		bound    = `{"spec":{"volumeName":"v"},"status":{"phase":"Bound"}}`
		retained = `{"spec":{"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"s","name":"c","uid":"uid-c"}}}`
	)
	for lost := range 12 {
		for _, both := range []bool{false, true} {
			objects := map[graph.Identity]string{claim: bound}
			if both {
				objects[volume] = retained
			}
			s, w, recorded := restoring(t, objects)
			if !both {
				s.Put(volume, object(t, retained))
			}
			plan := w.Restoration(t.Context(), recorded.Lost(), nil)
			requests, read := 0, w.Read
			fails := func(*remedy.Op) error {
				if requests++; requests == lost {
					return busy
				}
				return nil
			}
			s.After = fails
			w.Read = func(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
				if id.Name == claim.Name {
					if err := fails(nil); err != nil {
						return nil, err
					}
				}
				return read(ctx, id)
			}
			told := both // as a creation
			_, all := w.Restore(t.Context(), "dir", plan, func(r change.Record) { told = told || r.Status == change.Done && r.Change.Op.Binds() })
			uid, _, _ := unstructured.NestedString(s.Object(volume).Object, "spec", "claimRef", "uid")
			if !all || !told || s.Object(claim) == nil || uid != string(s.Object(claim).GetUID()) {
				t.Errorf("request %d lost, both deleted: %t: all %t, told %t, the volume is of %q", lost, both, all, told, uid)
			}
		}
	}
}

// What was not deleted is not linked to an owner that was deleted again meanwhile: it would be collected.
func TestLinkToWhatIsGone(t *testing.T) {
	owner, stays := thing("configmaps", "owner"), thing("configmaps", "stays")
	s, w, _ := restoring(t, nil)
	s.Put(stays, object(t, `{}`))
	saved := []restore.Saved{
		{Object: owner, Manifest: &unstructured.Unstructured{Object: object(t, `{"data":{"a":"b"}}`)}},
		{Object: stays, Stayed: true, Manifest: &unstructured.Unstructured{Object: object(t, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"uid-owner"}]}}`)}},
	}
	s.Before = func(op *remedy.Op) error {
		if op.Verb != remedy.Patch {
			return nil
		}
		s.Before = nil
		s.Remove(owner)
		return busy
	}
	_, all := w.Restore(t.Context(), "dir", w.Restoration(t.Context(), saved, nil), func(change.Record) {})
	if refs := s.Object(stays).GetOwnerReferences(); all || len(refs) > 0 {
		t.Errorf("all %t, linked to %v", all, refs)
	}
}

// A policy is not put back on a volume that another claim has by now, nor a volume taken from the claim that an undo has given it to.
func TestUndoOfVolumes(t *testing.T) {
	volume := thing("persistentvolumes", "v")
	namespaces := thing("namespaces", "s")
	for name, test := range map[string]struct {
		op   remedy.Op
		then func(*testapi.Server)
		want string
	}{
		"retained": {remedy.RetainOf(volume, "Delete"), nil, "replace /spec/persistentVolumeReclaimPolicy Delete"},
		"retained, and rescued by others": {remedy.RetainOf(volume, "Delete"), func(s *testapi.Server) {
			s.Put(thing("persistentvolumeclaims", "rescue"), object(t, `{}`))
			s.Edit(volume, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedStringMap(o.Object, map[string]string{"namespace": "s", "name": "rescue", "uid": "uid-rescue"}, "spec", "claimRef")
			})
		}, "Destroys"},
		"given to a claim": {remedy.PatchOf(volume, remedy.Test("/spec/claimRef/uid", "uid-c"), remedy.Replace("/spec/claimRef/uid", "new")), nil, "Final"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.New()
			s.Put(namespaces, object(t, `{}`))
			s.Put(thing("persistentvolumeclaims", "c"), object(t, `{}`))
			s.Put(volume, object(t, `{"spec":{"persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"s","name":"c","uid":"uid-c"}},"status":{"phase":"Bound"}}`))
			w := writing(t, s)
			if made := w.Make(t.Context(), &change.Change{Op: test.op}, s.Object(volume)); made.Status != change.Done {
				t.Fatalf("%s: %v", made.Status, made.Err)
			}
			if test.then != nil {
				test.then(s)
			}
			recorded := journalOf(t, &w)
			for _, v := range recorded.Undo(t.Context(), &w, nil) {
				if got := undone(&v); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
			}
		})
	}
}

// What was never made has not been deleted again: no answer to its creation names it.
func TestRestoreNeverMade(t *testing.T) {
	a := thing("configmaps", "a")
	s, w, recorded := restoring(t, map[graph.Identity]string{a: `{"data":{"a":"b"}}`})
	s.Before = func(*remedy.Op) error { return busy }
	ctx, stop := context.WithCancel(t.Context())
	w = writing(t, s)
	w.Wait = func(context.Context, time.Duration) { stop() }
	w.Restore(ctx, "dir", w.Restoration(ctx, recorded.Lost(), nil), func(change.Record) {})
	later := journalOf(t, &w)
	later.Started = recorded.Started.Add(time.Minute)
	lost := recorded.Lost()
	recorded.Since(lost, []*change.Recorded{later})
	s.Before = nil
	if plan := w.Restoration(t.Context(), lost, nil); len(later.Changes) == 0 || plan.Writes() != 1 {
		t.Errorf("%d changes, %d writes: %v", len(later.Changes), plan.Writes(), plan.Items[0].Reason)
	}
}

// What others have made meanwhile is theirs: it is not linked, and was not made by an undo.
func TestRestoreBesideOthers(t *testing.T) {
	a := thing("configmaps", "a")
	s, w, recorded := restoring(t, map[graph.Identity]string{a: `{"data":{"a":"b"}}`})
	plan := w.Restoration(t.Context(), recorded.Lost(), nil)
	s.Before = func(*remedy.Op) error {
		theirs := a
		theirs.UID = "theirs"
		s.Put(theirs, object(t, `{"metadata":{"managedFields":[{"manager":"others"}]},"data":{"a":"b"}}`))
		return busy
	}
	w = writing(t, s)
	ids, all := w.Restore(t.Context(), "dir", plan, func(r change.Record) { t.Errorf("told: %s", r.Status) })
	later := journalOf(t, &w)
	if !all || ids[a.UID] != "theirs" || later.Changes[0].Status != change.Unanswered {
		t.Errorf("all %t, %v, %s", all, ids, later.Changes[0].Status)
	}
}

// What was sent twice, the first time without an answer, is one change.
func TestSentTwice(t *testing.T) {
	a := thing("configmaps", "a")
	s := testapi.New()
	s.Put(a, object(t, `{"spec":{"replicas":3}}`))
	w := writing(t, s)
	s.Before = func(*remedy.Op) error {
		s.Before = nil
		return busy
	}
	for _, want := range []change.Status{change.Unanswered, change.Done} {
		if made := w.Make(t.Context(), &change.Change{Op: remedy.ScaleOf(a, remedy.Replicas{Current: 3})}, s.Object(a)); made.Status != want {
			t.Fatalf("%s: %v", made.Status, made.Err)
		}
	}
	recorded := journalOf(t, &w)
	if n := len(recorded.Undo(t.Context(), &w, nil)); recorded.Standing() != 1 || n != 1 {
		t.Errorf("%d stand, %d are taken back", recorded.Standing(), n)
	}
}

// What admission changes is made also where the answer is lost, and what it owns with it.
func TestRestoreChangedByAdmission(t *testing.T) {
	owner, child := thing("configmaps", "owner"), thing("configmaps", "child")
	s, w, recorded := restoring(t, map[graph.Identity]string{owner: `{"data":{"a":"b"}}`,
		child: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"uid-owner"}]},"data":{"c":"d"}}`})
	s.After = func(op *remedy.Op) error {
		if op.Object.Name != owner.Name {
			return nil
		}
		s.After = nil
		s.Edit(owner, func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{"a": "changed"}
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: remedy.FieldManager}})
		})
		return busy
	}
	var told []change.Status
	w = writing(t, s)
	ids, all := w.Restore(t.Context(), "dir", w.Restoration(t.Context(), recorded.Lost(), nil), func(r change.Record) { told = append(told, r.Status) })
	if s.Object(child) == nil || all || ids[owner.UID] != s.Object(owner).GetUID() || !slices.Equal(told, []change.Status{change.Reverted, change.Done}) {
		t.Errorf("all %t, %v, %v", all, told, ids)
	}
	later, lost := journalOf(t, &w), recorded.Lost()
	later.Started = recorded.Started.Add(time.Minute)
	if recorded.Since(lost, []*change.Recorded{later}); !slices.ContainsFunc(lost, func(o restore.Saved) bool { return o.Made == s.Object(owner).GetUID() }) {
		t.Errorf("it is not known what was made: %v", lost)
	}
}

// What others have freed of its owner, after an undo has linked it, is not linked again.
func TestLinkOfFreed(t *testing.T) {
	owner, stays := thing("configmaps", "owner"), thing("configmaps", "stays")
	s, w, recorded := restoring(t, nil)
	s.Put(stays, object(t, `{}`))
	saved := []restore.Saved{
		{Object: owner, Manifest: &unstructured.Unstructured{Object: object(t, `{"data":{"a":"b"}}`)}},
		{Object: stays, Stayed: true, Manifest: &unstructured.Unstructured{Object: object(t, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"uid-owner"}]}}`)}},
	}
	w = writing(t, s)
	if _, all := w.Restore(t.Context(), recorded.Dir, w.Restoration(t.Context(), saved, nil), func(change.Record) {}); !all || len(s.Object(stays).GetOwnerReferences()) != 1 {
		t.Fatalf("all %t: %v", all, s.Object(stays))
	}
	s.Edit(stays, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	later := journalOf(t, &w)
	later.Started, later.Undoes = recorded.Started.Add(time.Minute), recorded.Dir
	recorded.Since(saved, []*change.Recorded{later})
	if plan := w.Restoration(t.Context(), saved, nil); plan.Writes() > 0 {
		t.Errorf("%d writes", plan.Writes())
	}
}
