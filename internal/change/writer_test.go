// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// thing is an object of a plural, such as configmaps, in a namespace, or in none after a dash.
func thing(resource, name string) graph.Identity {
	kinds := map[string]string{"configmaps": "ConfigMap", "guards": "Guard", "pods": "Pod", "secrets": "Secret", "persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim", "namespaces": "Namespace"}
	id := graph.Identity{Resource: graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Kind: kinds[resource]}, Name: name, UID: types.UID("uid-" + name)}
	if id.Resource.Namespaced = !slices.Contains([]string{"guards", "persistentvolumes", "namespaces", "volumesnapshotcontents"}, resource); id.Resource.Namespaced {
		id.Namespace = "s"
	}
	return id
}

// journalOf reads what a writer has written.
func journalOf(t *testing.T, w *change.Writer) *change.Recorded {
	t.Helper()
	recorded, err := change.ReadJournal(w.Journal.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return recorded
}

// object is one in JSON.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := kjson.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// writing is a writer on a server, with a journal.
func writing(t *testing.T, server *testapi.Server) change.Writer {
	t.Helper()
	j, err := change.NewJournal(t.TempDir(), change.Header{Started: start, Where: answer.Where{Server: "https://example.com", UID: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	return change.Writer{
		Read: server.Read, List: server.List, Do: server.Do, Journal: j, Wait: func(context.Context, time.Duration) {}, Now: func() time.Time { return start },
		Resource: func(gvk schema.GroupVersionKind) (graph.Resource, error) {
			return thing(strings.ToLower(gvk.Kind)+"s", "").Resource, nil
		},
	}
}

const guarded = `{"webhooks":[{"name":"w","failurePolicy":"Fail","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]}`

// exempted is a bypass as a rule makes it: with a list of Go's strings.
func exempted() remedy.Op {
	return remedy.PatchOf(thing("guards", "g"), remedy.Test("/webhooks/0/name", "w"),
		remedy.Add("/webhooks/0/namespaceSelector/matchExpressions/-", map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []string{"s"}}))
}

var errLost = errors.New("connection lost")

// A temporary change is as before at the end, whatever becomes of its answers and whoever writes beside it; or it is said that it is not.
func TestTakeBack(t *testing.T) {
	g := thing("guards", "g")
	before := func(o *unstructured.Unstructured) { // others put a webhook before it, and an expression
		webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		o.Object["webhooks"] = append([]any{map[string]any{"name": "new", "failurePolicy": "Fail"}}, webhooks...)
	}
	lose := func(n int) func(*remedy.Op) error {
		return func(*remedy.Op) error {
			if n--; n >= 0 {
				return errLost
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		op      remedy.Op
		before  func(*remedy.Op) error // the change
		after   func(*remedy.Op) error
		between func(s *testapi.Server) // the change and its end
		back    func(*remedy.Op) error  // before what takes it back is made
		want    change.Status
		left    string // of webhooks
	}{
		"an exemption beside a guard's own": {op: exempted(), want: change.TakenBack, left: `[{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"among others' webhooks": {op: exempted(), between: func(s *testapi.Server) { s.Edit(g, before) }, want: change.TakenBack,
			left: `[{"failurePolicy":"Fail","name":"new"},{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"edited by others": {op: exempted(), between: func(s *testapi.Server) {
			s.Edit(g, func(o *unstructured.Unstructured) {
				o.Object["webhooks"] = object(t, strings.Replace(guarded, `{"key":"theirs","operator":"Exists"}`, `{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["s","t"]}`, 1))["webhooks"]
			})
		}, want: change.NotTakenBack},
		"one of two edited by others": {op: remedy.PatchOf(g, append(exempted().Patch[1:], remedy.Replace("/webhooks/0/failurePolicy", "Ignore"))...), between: func(s *testapi.Server) {
			s.Edit(g, func(o *unstructured.Unstructured) {
				o.Object["webhooks"].([]any)[0].(map[string]any)["failurePolicy"] = "Sometimes"
			})
		}, want: change.NotTakenBack, left: `[{"failurePolicy":"Sometimes","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"another has its name, and the change": {op: exempted(), between: func(s *testapi.Server) {
			s.Edit(g, func(o *unstructured.Unstructured) { o.SetUID("other") })
		}, want: change.NotTakenBack},
		"another has its name, without the change": {op: exempted(), between: func(s *testapi.Server) {
			s.Edit(g, func(o *unstructured.Unstructured) {
				o.SetUID("other")
				o.Object["webhooks"] = object(t, guarded)["webhooks"]
			})
		}, want: change.TakenBack},
		"gone":                           {op: exempted(), between: func(s *testapi.Server) { s.Remove(g) }, want: change.TakenBack},
		"made, and not answered":         {op: exempted(), after: lose(1), want: change.TakenBack, left: `[{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"its end is made, not answered":  {op: exempted(), back: nil, after: nil, want: change.TakenBack, left: `[{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"others write at its end":        {op: exempted(), back: lose(2), want: change.TakenBack, left: `[{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
		"its end is never answered":      {op: exempted(), back: lose(100), want: change.NotTakenBack},
		"never made, and to arrive late": {op: exempted(), before: lose(1), want: change.TakenBack, left: `[{"failurePolicy":"Fail","name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs","operator":"Exists"}]}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.New()
			s.Put(g, object(t, guarded))
			was := s.Object(g)
			w := writing(t, s)
			s.Before, s.After = test.before, test.after
			c := &change.Change{Op: test.op, Temporary: true}
			made := w.Make(t.Context(), c, was)
			s.Before, s.After = test.back, nil
			if test.between != nil {
				test.between(s)
			}
			ended := w.TakeBack(t.Context(), c, was, made.Status)
			if ended.Status != test.want {
				t.Fatalf("%s, and then %s: %v", made.Status, ended.Status, ended.Err)
			}
			s.Before = nil
			late := test.op.At(was.GetResourceVersion()) // a load balancer delivers it after all
			if err := s.Apply(&late); test.before != nil && !errors.Is(err, remedy.ErrChanged) {
				t.Errorf("it arrives late, and is made: %v", err)
			}
			if now := s.Object(g); now != nil && test.left != "" {
				if got, _ := json.Marshal(now.Object["webhooks"]); string(got) != test.left || len(now.GetAnnotations()) > 0 {
					t.Errorf("left %s %v\nwant %s", got, now.GetAnnotations(), test.left)
				}
			}
			recorded, err := change.ReadJournal(w.Journal.Dir)
			if open := len(recorded.Open()); err != nil || (open == 0) != (test.want == change.TakenBack) {
				t.Errorf("%v: %d open in the journal", err, open)
			}
		})
	}
}

// Others write between each look at an object and the change of it: what is temporary is taken back, and what was never answered is not
// made late.
func TestTakeBackBesideOthers(t *testing.T) {
	g := thing("guards", "g")
	for name, late := range map[string]bool{"made": false, "arrives before the fence": true} {
		s := testapi.New()
		s.Put(g, object(t, guarded))
		was := s.Object(g)
		w, c, left := writing(t, s), &change.Change{Op: exempted(), Temporary: true}, 2
		status := change.Unanswered
		if !late {
			status = w.Make(t.Context(), c, was).Status
		}
		s.Before = func(*remedy.Op) error {
			switch left--; {
			case late && left == 1:
				err := s.Apply(new(c.Op.At(was.GetResourceVersion())))
				return err
			case left >= 0:
				s.Edit(g, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"n": fmt.Sprint(left)}) })
			}
			return nil
		}
		ended := w.TakeBack(t.Context(), c, was, status)
		if now := s.Object(g); ended.Status != change.TakenBack || !remedy.Same(now.Object["webhooks"], was.Object["webhooks"]) {
			t.Errorf("%s: %s, %v: %v", name, ended.Status, ended.Err, now.Object["webhooks"])
		}
	}
}

// A fence of which the answer is lost, and which arrives between two looks, is taken away again.
func TestLateFence(t *testing.T) {
	g := thing("guards", "g")
	s := testapi.New()
	s.Put(g, object(t, guarded))
	was := s.Object(g)
	w, c := writing(t, s), &change.Change{Op: exempted(), Temporary: true}
	s.Before = func(*remedy.Op) error { return errLost }
	w.Make(t.Context(), c, was)
	var lost remedy.Op
	s.Before = func(op *remedy.Op) error {
		if lost.Verb == "" {
			lost = *op
			return errLost
		}
		s.Before = nil
		err := s.Apply(&lost) // between the next look and what follows it
		return err
	}
	ended := w.TakeBack(t.Context(), c, was, change.Unanswered)
	if now := s.Object(g); ended.Status != change.TakenBack || len(now.GetAnnotations()) > 0 {
		t.Errorf("%s, %v: %v", ended.Status, ended.Err, now.GetAnnotations())
	}
	recorded, err := change.ReadJournal(w.Journal.Dir)
	if err != nil || len(recorded.Open()) > 0 {
		t.Errorf("%v: open in the journal: %v", err, recorded.Open())
	}
}

// restoring is a run that has deleted what the objects show, and the cluster without it.
func restoring(t *testing.T, objects map[graph.Identity]string) (*testapi.Server, change.Writer, *change.Recorded) {
	t.Helper()
	s := testapi.New()
	s.Put(thing("namespaces", "s"), object(t, `{}`))
	w := writing(t, s)
	for id, text := range objects {
		s.Put(id, object(t, text))
		w.Make(t.Context(), &change.Change{Op: remedy.DeleteOf(id, metav1.DeleteOptions{}).Saved("1")}, s.Object(id))
		s.Remove(id)
	}
	recorded := journalOf(t, &w)
	return s, w, recorded
}

// What was made again is what has its fields: another object of its name is not it, also when no answer came.
func TestRestoreIsNotAnother(t *testing.T) {
	g := thing("guards", "g")
	for _, theirs := range []string{guarded, strings.Replace(guarded, "Fail", "Ignore", 1)} {
		s, w, recorded := restoring(t, map[graph.Identity]string{g: guarded})
		p := w.Restoration(t.Context(), recorded.Lost(), nil)
		s.Before = func(*remedy.Op) error { // it is lost, and somebody else makes one
			another := g
			another.UID = "another"
			s.Put(another, object(t, theirs))
			return errLost
		}
		ids, all := w.Restore(t.Context(), "dir", p, func(change.Record) {})
		if same := theirs == guarded; all != same || (ids[g.UID] == "another") != same {
			t.Errorf("%s: all %t, %v", theirs, all, ids)
		}
	}
}

// An object is made with the UIDs that its owners have by now, after these, once, and again where the answer is lost.
func TestRestoreOwners(t *testing.T) {
	owner, child := thing("configmaps", "owner"), thing("configmaps", "child")
	for _, lost := range []int{0, 1, 2} {
		s, w, recorded := restoring(t, map[graph.Identity]string{owner: `{"data":{"a":"b"}}`,
			child: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"uid-owner"}]},"data":{"c":"d"}}`})
		requests := 0
		s.Before = func(*remedy.Op) error {
			if requests++; requests == lost {
				return errLost
			}
			return nil
		}
		ids, all := w.Restore(t.Context(), "dir", w.Restoration(t.Context(), recorded.Lost(), nil), func(change.Record) {})
		now := s.Object(child)
		if !all || now == nil || len(now.GetOwnerReferences()) != 1 || now.GetOwnerReferences()[0].UID != s.Object(owner).GetUID() || ids[owner.UID] != s.Object(owner).GetUID() {
			t.Errorf("answer %d lost: all %t, %v, %v", lost, all, ids, now)
		}
		if again := w.Restoration(t.Context(), recorded.Lost(), nil); again.Writes() > 0 || again.Left() {
			t.Errorf("answer %d lost: a second time: %v", lost, again.Items)
		}
	}
}

// A run that ends after any of its requests, whether that arrived or not, is ended by the next one: each object is there once, with its
// owners.
func TestRestoreKilled(t *testing.T) {
	claim := thing("persistentvolumeclaims", "claim")
	owner, child, grandchild, linked := thing("configmaps", "owner"), thing("configmaps", "child"), thing("configmaps", "grandchild"), thing("configmaps", "linked")
	owned := func(by string) string {
		return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":"uid-%s"}]}}`, by, by)
	}
	lost := func(id graph.Identity, text string) restore.Saved {
		return restore.Saved{Object: id, Manifest: &unstructured.Unstructured{Object: object(t, text)}}
	}
	saved := []restore.Saved{lost(owner, `{"data":{"a":"b"}}`), lost(child, owned("owner")), lost(grandchild, owned("child")), lost(linked, owned("owner")), lost(claim, `{"spec":{"volumeName":"v"}}`)}
	saved[3].Stayed = true
	for kill := 1; ; kill++ {
		for _, arrives := range []bool{false, true} {
			s := testapi.New()
			s.Put(thing("namespaces", "s"), object(t, `{}`))
			s.Put(thing("persistentvolumes", "v"), object(t, `{"spec":{"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"s","name":"claim","uid":"uid-claim"}}}`))
			s.Put(linked, object(t, `{}`))
			var requests atomic.Int64
			var dead atomic.Bool
			s.Before = func(*remedy.Op) error {
				if n := int(requests.Add(1)); n < kill || arrives && n == kill {
					return nil
				}
				dead.Store(true)
				return errLost
			}
			w := writing(t, s)
			ctx, die := context.WithCancel(t.Context())
			w.Wait = func(context.Context, time.Duration) { die() }
			if arrives {
				s.After = func(*remedy.Op) error {
					if int(requests.Load()) >= kill {
						dead.Store(true)
						die()
						return errLost
					}
					return nil
				}
			}
			w.Restore(ctx, "dir", w.Restoration(ctx, saved, nil), func(change.Record) {})
			s.Before, s.After = nil, nil
			w = writing(t, s)
			if _, all := w.Restore(t.Context(), "dir", w.Restoration(t.Context(), saved, nil), func(change.Record) {}); !all {
				t.Errorf("killed at request %d (arrives: %t): not all is there", kill, arrives)
			}
			die()
			for _, is := range []struct{ object, owner graph.Identity }{{child, owner}, {grandchild, child}, {linked, owner}} {
				refs := s.Object(is.object).GetOwnerReferences()
				if len(refs) != 1 || refs[0].UID != s.Object(is.owner).GetUID() {
					t.Errorf("killed at request %d (arrives: %t): %s has %v", kill, arrives, is.object, refs)
				}
			}
			if uid, _, _ := unstructured.NestedString(s.Object(thing("persistentvolumes", "v")).Object, "spec", "claimRef", "uid"); s.Object(claim) == nil || uid != string(s.Object(claim).GetUID()) {
				t.Errorf("killed at request %d (arrives: %t): the volume is of the claim %q", kill, arrives, uid)
			}
			if !dead.Load() {
				return
			}
		}
	}
}

// Done is what is there when it is read back.
func TestReadBack(t *testing.T) {
	restore := remedy.Op{Verb: remedy.Restore, Object: thing("configmaps", "a"), Manifest: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
	for name, test := range map[string]struct {
		op     remedy.Op
		object string
		after  func(s *testapi.Server, id graph.Identity)
		want   change.Status
	}{
		"a finalizer": {remedy.PatchOf(thing("configmaps", "a"), remedy.Test("/metadata/finalizers/0", "x/y"), remedy.Remove("/metadata/finalizers/0")), `{"metadata":{"finalizers":["x/y"]}}`, nil, change.Done},
		"a finalizer that is re-added": {remedy.PatchOf(thing("configmaps", "a"), remedy.Test("/metadata/finalizers/0", "x/y"), remedy.Remove("/metadata/finalizers/0")), `{"metadata":{"finalizers":["x/y"]}}`,
			func(s *testapi.Server, id graph.Identity) {
				s.Edit(id, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) })
			}, change.Reverted},
		"the last finalizer":      {remedy.PatchOf(thing("configmaps", "a"), remedy.Remove("/metadata/finalizers/0")), `{"metadata":{"finalizers":["x/y"],"deletionTimestamp":"2026-01-02T03:04:05Z"}}`, nil, change.Done},
		"a restart":               {remedy.Op{Verb: remedy.Restart, Object: thing("configmaps", "a")}, `{}`, nil, change.Done},
		"a restart of a bare pod": {remedy.Op{Verb: remedy.Restart, Object: thing("pods", "a")}, `{}`, nil, change.Reverted},
		"a deletion":              {remedy.DeleteOf(thing("configmaps", "a"), metav1.DeleteOptions{}), `{"metadata":{"finalizers":["x/y"]}}`, nil, change.Done},
		"a workload scaled again": {remedy.ScaleOf(thing("configmaps", "a"), remedy.Replicas{Wanted: 2}), `{"spec":{"replicas":0}}`, func(s *testapi.Server, id graph.Identity) {
			s.Edit(id, func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(0)} })
		}, change.Reverted},
		"a version that nobody read": {remedy.PatchOf(thing("configmaps", "a"), remedy.Test("/metadata/finalizers/0", "x/z"), remedy.Remove("/metadata/finalizers/0")), `{"metadata":{"finalizers":["x/y"]}}`, nil, change.Skipped},
		"an object that admission has changed": {restore, "", func(s *testapi.Server, id graph.Identity) {
			s.Edit(id, func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(2)} })
		}, change.Done},
		"an object that was removed": {restore, "", func(s *testapi.Server, id graph.Identity) { s.Remove(id) }, change.Reverted},
	} {
		s := testapi.New()
		if test.object != "" {
			s.Put(test.op.Object, object(t, test.object))
		}
		w := writing(t, s)
		s.After = func(*remedy.Op) error {
			if test.after != nil {
				test.after(s, test.op.Object)
			}
			return nil
		}
		if made := w.Make(t.Context(), &change.Change{Op: test.op}, s.Object(test.op.Object)); made.Status != test.want {
			t.Errorf("%s: %s, %v", name, made.Status, made.Err)
		}
	}
}

// What can be put back is put back, and what cannot is said. Each change is put back as it was before that change.
func TestUndo(t *testing.T) {
	a := thing("configmaps", "a")
	finalizer := remedy.PatchOf(a, remedy.Test("/metadata/finalizers/0", "x/y"), remedy.Remove("/metadata/finalizers/0"))
	reference := remedy.PatchOf(a, remedy.Test("/metadata/ownerReferences/0/uid", "uid-b"), remedy.Remove("/metadata/ownerReferences/0"))
	second := remedy.PatchOf(a, remedy.Test("/metadata/ownerReferences/0/uid", "uid-c"), remedy.Remove("/metadata/ownerReferences/0"))
	suspended := remedy.PatchOf(a, remedy.Replace("/spec/suspend", false))
	scale := remedy.ScaleOf(a, remedy.Replicas{Current: 3})
	edit := func(f func(*unstructured.Unstructured)) func(*testapi.Server) {
		return func(s *testapi.Server) { s.Edit(a, f) }
	}
	replicas := func(n int64) func(*testapi.Server) {
		return edit(func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, n, "spec", "replicas") })
	}
	ignored := remedy.PatchOf(a, remedy.Test("/webhooks/1/name", "w"), remedy.Replace("/webhooks/1/failurePolicy", "Ignore"))
	const replicated, policy = `{"f:spec":{"f:replicas":{}}}`, `{"f:webhooks":{"k:{\"name\":\"w\"}":{"f:failurePolicy":{}},"k:{\"name\":\"z\"}":{"f:failurePolicy":{}}}}`
	managed := func(fields string, by ...string) func(*testapi.Server) {
		return edit(func(o *unstructured.Unstructured) {
			entries := []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:suspend":{}}}`)}}}
			for _, manager := range by {
				if manager != "" {
					entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}})
				}
			}
			o.SetManagedFields(entries)
		})
	}
	for name, test := range map[string]struct {
		ops  []remedy.Op
		then func(*testapi.Server)
		want string
	}{
		"a workload that others have scaled up, and down":  {[]remedy.Op{scale}, managed(replicated, "kubectl"), "Changed"},
		"a workload that this program has scaled":          {[]remedy.Op{scale}, managed(replicated, "kubectl-gc"), "scale 0 3"},
		"a workload whose replicas nobody manages":         {[]remedy.Op{scale}, managed(replicated, ""), "Changed"},
		"a workload that others declare so, too":           {[]remedy.Op{scale}, managed(replicated, "kubectl-gc", "argocd"), "Changed"},
		"a webhook's policy":                               {[]remedy.Op{ignored}, managed(policy, "kubectl-gc"), "replace /webhooks/1/failurePolicy Fail"},
		"one that others have set to the same":             {[]remedy.Op{ignored}, managed(policy, "kubectl-gc", "kubectl-edit"), "Changed"},
		"a webhook beside one that others have set so":     {[]remedy.Op{remedy.PatchOf(a, append(ignored.Patch, remedy.Test("/webhooks/2/name", "z"), remedy.Replace("/webhooks/2/failurePolicy", "Ignore"))...)}, managed(strings.Replace(policy, `"w\"`, `"y\"`, 1), "kubectl-edit"), "Changed"},
		"another webhook that others have set to the same": {[]remedy.Op{ignored}, managed(strings.Replace(policy, `"w\"`, `"x\"`, 1), "kubectl-edit"), "replace /webhooks/1/failurePolicy Fail"},

		"a finalizer":                  {[]remedy.Op{finalizer}, nil, `add /metadata/finalizers/- x/y`},
		"a reference":                  {[]remedy.Op{reference}, nil, `add /metadata/ownerReferences/- b`},
		"two references of one object": {[]remedy.Op{reference, second}, nil, `add /metadata/ownerReferences c; add /metadata/ownerReferences b`},
		"a reference to what is gone":  {[]remedy.Op{reference}, func(s *testapi.Server) { s.Remove(thing("configmaps", "b")) }, "Ownerless"},
		"a reference to its heir": {[]remedy.Op{reference}, func(s *testapi.Server) {
			s.Edit(thing("configmaps", "b"), func(o *unstructured.Unstructured) { o.SetUID("other") })
		}, "Ownerless"},
		"a suspension that was ended": {[]remedy.Op{suspended}, nil, "replace /spec/suspend true"},
		"it is there again":           {[]remedy.Op{finalizer}, edit(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/z", "x/y"}) }), "Undone"},
		"it is being deleted":         {[]remedy.Op{finalizer}, edit(func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(new(metav1.Now())) }), "Terminating"},
		"it is gone":                  {[]remedy.Op{finalizer}, func(s *testapi.Server) { s.Remove(a) }, "Gone"},
		"another has its name":        {[]remedy.Op{finalizer}, edit(func(o *unstructured.Unstructured) { o.SetUID("other") }), "Gone"},
		"a workload":                  {[]remedy.Op{scale}, nil, "scale 0 3"},
		"a workload that was scaled":  {[]remedy.Op{scale}, replicas(5), "Changed"},
		"a workload as it was before": {[]remedy.Op{scale}, replicas(3), "Undone"},
		"a deletion":                  {[]remedy.Op{remedy.DeleteOf(a, metav1.DeleteOptions{})}, func(s *testapi.Server) { s.Remove(a) }, "Final"},
		"a restart":                   {[]remedy.Op{{Verb: remedy.Restart, Object: a}}, nil, "Final"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.New()
			s.Put(a, object(t, `{"metadata":{"finalizers":["x/y","x/z"],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"uid-b"},{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"uid-c"}]},"spec":{"replicas":3,"suspend":true},"webhooks":[{"name":"x","failurePolicy":"Ignore"},{"name":"w","failurePolicy":"Fail"},{"name":"z","failurePolicy":"Fail"}]}`))
			s.Put(thing("configmaps", "b"), map[string]any{})
			s.Put(thing("configmaps", "c"), map[string]any{})
			w := writing(t, s)
			for _, op := range test.ops {
				if made := w.Make(t.Context(), &change.Change{Op: op}, s.Object(a)); made.Status != change.Done {
					t.Fatalf("%s: %v", made.Status, made.Err)
				}
			}
			if test.then != nil {
				test.then(s)
			}
			recorded := journalOf(t, &w)
			var all []string
			for _, v := range recorded.Undo(t.Context(), &w, recorded.Lost()) {
				all = append(all, undone(&v))
				if v.Op != nil {
					if made := w.Undo(t.Context(), recorded, &v); made.Status != change.Done {
						t.Errorf("%s: %v", made.Status, made.Err)
					}
				}
			}
			if got := strings.Join(all, "; "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func undone(v *change.Reversal) string {
	switch op := v.Op; {
	case op == nil:
		return string(v.Obstacle)
	case op.Verb == remedy.Patch:
		var parts []string
		for _, s := range op.Patch {
			value := s.Value
			if list, is := value.([]any); is {
				value = list[0]
			}
			if reference, is := value.(map[string]any); is {
				value = reference["name"]
			}
			if s.Op != "test" {
				parts = append(parts, fmt.Sprint(s.Op, " ", s.Path, " ", value))
			}
		}
		return strings.Join(parts, ", ")
	case op.Verb == remedy.Scale:
		return fmt.Sprint("scale ", op.Replicas.Current, " ", op.Replicas.Wanted)
	default:
		return string(op.Verb) + " " + op.Manifest["metadata"].(map[string]any)["name"].(string)
	}
}

// What was agreed to is found out again right before it is taken back: who answers takes a while.
func TestUndoAfterTheAnswer(t *testing.T) {
	a, b := thing("configmaps", "a"), thing("configmaps", "b")
	s := testapi.New()
	s.Put(b, map[string]any{})
	s.Put(a, object(t, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"uid-b"}]}}`))
	w := writing(t, s)
	w.Make(t.Context(), &change.Change{Op: remedy.PatchOf(a, remedy.Remove("/metadata/ownerReferences/0"))}, s.Object(a))
	recorded := journalOf(t, &w)
	agreed := recorded.Undo(t.Context(), &w, recorded.Lost())
	s.Remove(b)
	if made := w.Undo(t.Context(), recorded, &agreed[0]); made.Status != change.Skipped || len(s.Object(a).GetOwnerReferences()) > 0 {
		t.Errorf("%s, %v: %v", made.Status, s.Object(a).GetOwnerReferences(), made.Err)
	}
}

// The policy of the content of a snapshot is put back only while the snapshot is there.
func TestUndoDeletionPolicy(t *testing.T) {
	for left, want := range map[bool]change.Obstacle{true: "", false: change.Destroys} {
		content, snapshot := thing("volumesnapshotcontents", "v"), thing("volumesnapshots", "s")
		snapshot.Resource.Group = "snapshot.storage.k8s.io"
		s := testapi.New()
		s.Put(thing("namespaces", "s"), map[string]any{})
		s.Put(content, object(t, `{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotContent","spec":{"deletionPolicy":"Delete","volumeSnapshotRef":{"namespace":"s","name":"s","uid":"uid-s"}}}`))
		if left {
			s.Put(snapshot, object(t, `{"metadata":{"namespace":"s"}}`))
		}
		w := writing(t, s)
		w.Make(t.Context(), &change.Change{Op: remedy.RetainOf(content, "Delete")}, s.Object(content))
		recorded := journalOf(t, &w)
		if all := recorded.Undo(t.Context(), &w, recorded.Lost()); len(all) != 1 || all[0].Obstacle != want {
			t.Errorf("%t: %+v", left, all)
		}
	}
}

// A workload is not made smaller again where claims go with its pods.
func TestUndoScale(t *testing.T) {
	const owned, going = `{"metadata":{"namespace":"s","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"uid-p"}]}}`, `{"metadata":{"namespace":"s","finalizers":["x/y"],"deletionTimestamp":"2026-01-02T03:04:05Z"}}`
	for name, test := range map[string]struct {
		retention, claim, owner string
		want                    change.Obstacle
	}{
		"no claims":                    {"Delete", "", "", ""},
		"claims that stay":             {"Retain", `{"metadata":{"namespace":"s"}}`, "", ""},
		"claims of its pods":           {"Retain", owned, "w", change.Destroys},
		"claims of pods of others":     {"Retain", owned, "other", ""},
		"claims of pods that are gone": {"Retain", owned, "", ""},
		"claims that it deletes":       {"Delete", `{"metadata":{"namespace":"s"}}`, "", change.Destroys},
		"claims that are going":        {"Retain", going, "", change.Destroys},
	} {
		workload, s := thing("statefulsets", "w"), testapi.New()
		if test.claim != "" {
			s.Put(thing("persistentvolumeclaims", "data-w-0"), object(t, test.claim))
		}
		if test.owner != "" {
			s.Put(thing("pods", "p"), object(t, `{"metadata":{"namespace":"s","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"`+test.owner+`","uid":"uid-`+test.owner+`"}]}}`))
		}
		s.Put(workload, object(t, `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"namespace":"s"},"spec":{"replicas":0,"volumeClaimTemplates":[{"metadata":{"name":"data"}}],"persistentVolumeClaimRetentionPolicy":{"whenScaled":"`+test.retention+`"}}}`))
		w := writing(t, s)
		w.Make(t.Context(), &change.Change{Op: remedy.ScaleOf(workload, remedy.Replicas{Wanted: 1})}, s.Object(workload))
		recorded := journalOf(t, &w)
		all := recorded.Undo(t.Context(), &w, recorded.Lost())
		if len(all) != 1 || all[0].Obstacle != test.want || (all[0].Op != nil) != (test.want == "") {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// The policy by which a volume's data is destroyed is put back only while its claim uses it.
func TestUndoReclaimPolicy(t *testing.T) {
	volume, claim := thing("persistentvolumes", "v"), thing("persistentvolumeclaims", "c")
	for name, test := range map[string]struct {
		phase, claim string
		want         change.Obstacle
	}{
		"in use":                                         {"Bound", `{"metadata":{"namespace":"s","uid":"c"}}`, ""},
		"its namespace is not known":                     {"Bound", `{"metadata":{"namespace":"s","uid":"c"}}`, change.Destroys},
		"its owner is going":                             {"Bound", `{"metadata":{"namespace":"s","uid":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"uid-b"}]}}`, change.Destroys},
		"an owner of its owner is gone":                  {"Bound", `{"metadata":{"namespace":"s","uid":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"top","uid":"uid-top"}]}}`, change.Destroys},
		"both owners are gone, one of them by the other": {"Bound", `{"metadata":{"namespace":"s","uid":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"top","uid":"uid-top"},{"apiVersion":"v1","kind":"ConfigMap","name":"below","uid":"uid-below"}]}}`, change.Destroys},
		"one of two owners is gone":                      {"Bound", `{"metadata":{"namespace":"s","uid":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"uid-b"},{"apiVersion":"v1","kind":"ConfigMap","name":"root","uid":"uid-root"}]}}`, ""},
		"its claim is going":                             {"Bound", `{"metadata":{"uid":"c","finalizers":["x"],"deletionTimestamp":"2026-01-02T03:04:05Z"}}`, change.Destroys},
		"another claim":                                  {"Bound", `{"metadata":{"uid":"d"}}`, change.Destroys},
		"its claim is gone":                              {"Released", ``, change.Destroys},
		"released, a new one":                            {"Released", `{"metadata":{"uid":"c"}}`, change.Destroys},
	} {
		s := testapi.New()
		s.Put(volume, object(t, fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"s","name":"c","uid":"c"}},"status":{"phase":%q}}`, test.phase)))
		if test.claim != "" {
			s.Put(claim, object(t, test.claim))
		}
		s.Put(thing("configmaps", "root"), map[string]any{})
		s.Put(thing("configmaps", "top"), object(t, `{"metadata":{"namespace":"s","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"uid-b"}]}}`))
		s.Put(thing("configmaps", "below"), object(t, `{"metadata":{"namespace":"s","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"top","uid":"uid-top"}]}}`))
		if name != "its namespace is not known" {
			s.Put(thing("namespaces", "s"), map[string]any{})
		}
		w := writing(t, s)
		w.Make(t.Context(), &change.Change{Op: remedy.RetainOf(volume, "Delete")}, s.Object(volume))
		recorded := journalOf(t, &w)
		if all := recorded.Undo(t.Context(), &w, recorded.Lost()); len(all) != 1 || all[0].Obstacle != test.want {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// A journal that another user might have written is not believed, nor one that was changed; hostile names become no files of others.
func TestForeignJournals(t *testing.T) {
	a := thing("secrets", "../../a\n\x1b[2J"+strings.Repeat("x", 200))
	for name, test := range map[string]struct {
		spoil  func(dir string) error
		undone bool // the journal can be read, and the change not be taken back
	}{
		"as it was written":       {func(string) error { return nil }, true},
		"others may write to it":  {func(dir string) error { return os.Chmod(dir, 0o777) }, false},                                 //nolint:gosec // that is what is tested
		"others may read it":      {func(dir string) error { return os.Chmod(filepath.Join(dir, "journal.jsonl"), 0o644) }, false}, //nolint:gosec // that is what is tested
		"a link to another file":  {func(dir string) error { return relink(dir, "journal.jsonl") }, false},
		"a link to another lock":  {func(dir string) error { return relink(dir, "lock") }, true},
		"a manifest that changed": {func(dir string) error { return spoilManifest(dir) }, true},
		"nothing in it":           {func(dir string) error { return os.Truncate(filepath.Join(dir, "journal.jsonl"), 0) }, false},
		"half of its first line":  {func(dir string) error { return os.Truncate(filepath.Join(dir, "journal.jsonl"), 20) }, false},
		"a change without a part": {func(dir string) error { return rewrite(dir, `"Verb":"patch"`, `"Verb":"scale"`) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.New()
			s.Put(a, object(t, `{"kind":"Secret","apiVersion":"v1","data":{"password":"c2VjcmV0"},"metadata":{"finalizers":["x/y","x/z"]}}`))
			w := writing(t, s)
			w.Make(t.Context(), &change.Change{Op: remedy.PatchOf(a, remedy.Remove("/metadata/finalizers/0"))}, s.Object(a))
			dir := w.Journal.Dir
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil || strings.Contains(string(data), "c2VjcmV0") || strings.ContainsAny(filepath.Base(file), "\n\x1b") || len(filepath.Base(file)) > 220 {
					t.Errorf("%q: %v: %s", file, err, data)
				}
			}
			if err := w.Journal.Close(); err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			recorded, err := change.ReadJournal(dir)
			if (err == nil) != test.undone || err != nil && !errors.Is(err, change.ErrForeign) && strings.HasPrefix(name, "others") {
				t.Fatalf("read: %v", err)
			}
			if err != nil {
				return
			}
			_, claimed := recorded.Claim()
			all := recorded.Undo(t.Context(), &w, recorded.Lost())
			if honest := name == "as it was written"; claimed == nil && (all[0].Op != nil) != honest {
				t.Errorf("%+v", all)
			}
			if name == "a link to another lock" && !errors.Is(claimed, change.ErrForeign) {
				t.Errorf("claimed: %v", claimed)
			}
		})
	}
	if known := (change.Header{Where: answer.Where{UID: "c"}}); !known.Same("c") || known.Same("") || (&change.Header{}).Same("") || (&change.Header{Where: answer.Where{Server: "s"}}).Same("c") {
		t.Error("a cluster that is not known is the same as none")
	}
}

func relink(dir, name string) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.Rename(path, path+".other"), os.Symlink(path+".other", path))
}

func rewrite(dir, old, text string) error {
	path := filepath.Join(dir, "journal.jsonl")
	data, err := os.ReadFile(path) //nolint:gosec // of the test
	if err != nil || !strings.Contains(string(data), old) {
		return fmt.Errorf("%q is not in it: %w", old, err)
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, text)), 0o600)
}

func spoilManifest(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%v: %w", files, err)
	}
	return os.WriteFile(files[0], []byte(`{"metadata":{"finalizers":["evil/x"]}}`), 0o600)
}

// A Secret is kept without its data, or encrypted, and made again only with it.
func TestUndoOfASecret(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	a := thing("secrets", "a")
	for _, c := range []struct {
		kept []age.Recipient
		keys []age.Identity
		want restore.Reason
	}{{nil, nil, restore.Unkept}, {[]age.Recipient{key.Recipient()}, nil, restore.Unread}, {[]age.Recipient{key.Recipient()}, []age.Identity{key}, ""}} {
		s := testapi.New()
		s.Put(thing("namespaces", "s"), object(t, `{}`))
		s.Put(a, object(t, `{"kind":"Secret","apiVersion":"v1","data":{"password":"c2VjcmV0"}}`))
		w := writing(t, s)
		w.Journal.Secrets = c.kept
		w.Make(t.Context(), &change.Change{Op: remedy.DeleteOf(a, metav1.DeleteOptions{}).Saved("1")}, s.Object(a))
		s.Remove(a)
		files, err := filepath.Glob(filepath.Join(w.Journal.Dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err != nil || bytes.Contains(data, []byte("c2VjcmV0")) { //nolint:gosec // of the test
				t.Errorf("%s has the data of the Secret (%v)", file, err)
			}
		}
		recorded := journalOf(t, &w)
		recorded.Keys = c.keys
		if p := w.Restoration(t.Context(), recorded.Lost(), nil); p.Items[0].Reason != c.want {
			t.Errorf("%+v: %q", c, p.Items[0].Reason)
		}
	}
}

// An answer that says that an object does not exist is believed of that object alone.
func TestIsGone(t *testing.T) {
	a := thing("configmaps", "a")
	other := apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "webhook")
	if change.IsGone(a, nil, other) || !change.IsGone(a, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a")) {
		t.Error("a webhook's answer about its service was taken for that of the object")
	}
}

// The usual place of journals knows of the others, once each.
func TestBases(t *testing.T) {
	usual, other := filepath.Join(t.TempDir(), "usual"), filepath.Join(t.TempDir(), "with a\nbreak")
	for _, base := range []string{usual, other, other} {
		if err := change.Remember(usual, base); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"x", usual, other}, change.Bases(usual, "x")); diff != "" {
		t.Error(diff)
	}
	if err := os.Chmod(filepath.Join(usual, "elsewhere"), 0o666); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{usual}, change.Bases(usual, usual)); diff != "" {
		t.Error(diff)
	}
}

// A right that was granted for a while is gone when it is said to be taken back, whatever others have made of the binding.
func TestTakeBackOfAGrant(t *testing.T) {
	binding := thing("clusterrolebindings", "kubectl-gc-x")
	binding.UID = ""
	grant := remedy.Grant{ClusterRole: "kites", Namespace: "ops", ServiceAccount: "kite-operator"}
	other := map[string]any{"kind": "Group", "name": "break-glass"}
	edit := func(f func(*unstructured.Unstructured)) func(*testapi.Server) {
		return func(s *testapi.Server) { s.Edit(binding, f) }
	}
	for name, test := range map[string]struct {
		between func(*testapi.Server)
		left    string
	}{
		"as it was made":                  {func(*testapi.Server) {}, ""},
		"gone":                            {func(s *testapi.Server) { s.Remove(binding) }, ""},
		"made, and without a subject yet": {edit(func(o *unstructured.Unstructured) { delete(o.Object, "subjects") }), ""},
		"with another subject": {edit(func(o *unstructured.Unstructured) {
			o.Object["subjects"] = []any{other, grant.Subject()}
		}), `[{"kind":"Group","name":"break-glass"}]`},
		"without its mark": {edit(func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }), ""},
		"with a finalizer": {edit(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) }), "[]"},
		"of others, with the same grant": {func(s *testapi.Server) {
			s.Remove(binding)
			s.Put(binding, grant.Binding())
		}, `[{"kind":"ServiceAccount","name":"kite-operator","namespace":"ops"}]`},
		"made again by others, as it was": {func(s *testapi.Server) {
			again := s.Object(binding).Object
			unstructured.RemoveNestedField(again, "metadata", "uid")
			s.Remove(binding)
			s.Put(binding, again)
		}, `[{"kind":"ServiceAccount","name":"kite-operator","namespace":"ops"}]`},
		"and may not be deleted": {func(s *testapi.Server) {
			s.Before = func(op *remedy.Op) error {
				if op.Verb == remedy.Delete {
					return apierrors.NewForbidden(binding.Resource.GroupResource(), binding.Name, nil)
				}
				return nil
			}
		}, "[]"},
		"of others, for another role": {edit(func(o *unstructured.Unstructured) {
			o.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "theirs"}
		}), `[{"kind":"ServiceAccount","name":"kite-operator","namespace":"ops"}]`},
	} {
		s := testapi.New()
		w, c := writing(t, s), &change.Change{Op: remedy.GrantOf(binding, grant), Temporary: true}
		made := w.Make(t.Context(), c, nil)
		test.between(s)
		ended := w.TakeBack(t.Context(), &made.Change, nil, made.Status)
		want := change.TakenBack
		if name == "of others, with the same grant" || name == "made again by others, as it was" {
			want = change.NotTakenBack
		}
		if made.Status != change.Done || ended.Status != want {
			t.Errorf("%s: %s, %s: %v", name, made.Status, ended.Status, ended.Err)
		}
		left := ""
		if now := s.Object(binding); now != nil {
			text, _ := json.Marshal(now.Object["subjects"])
			left = string(text)
		}
		if left != test.left {
			t.Errorf("%s: left %s, want %s", name, left, test.left)
		}
	}
}
