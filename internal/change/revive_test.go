// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// An object is let go only if nobody acts on any of its finalizers, and all that depends on it is known: that is orphaned first.
func TestRevive(t *testing.T) {
	widgets := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true}
	secrets := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	parts := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	deleted := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		of       graph.Resource
		kind     explain.Kind
		verdict  explain.Verdict
		unread   bool
		written  time.Duration // after the deletion, 0 for never
		by       string
		want     string
		finalize string
	}{
		"nobody removes it":                {want: "delete widget/w -n s (orphan), remove the finalizer example.com/cleanup from widget/w -n s; links kept; leaves going"},
		"only the garbage collector's":     {finalize: "foregroundDeletion", want: "delete widget/w -n s (orphan); links kept; leaves going"},
		"its controller works":             {kind: finding.FinWorking, verdict: explain.Progressing, want: "the cause"},
		"its controller fails":             {kind: finding.FinFailing, want: "the cause"},
		"perhaps a controller":             {kind: finding.FinAbsent, verdict: explain.Unknown, want: "the cause"},
		"another finalizer has the cause":  {finalize: "example.com/other", want: "unclear whether a controller acts on its finalizer example.com/other"},
		"written since":                    {written: time.Second, by: "operator", want: "operator has changed it since it was deleted, and may have begun to clean up"},
		"written by the collector":         {written: time.Second, by: "kube-controller-manager", want: "delete widget/w -n s (orphan), remove the finalizer example.com/cleanup from widget/w -n s; links kept; leaves going"},
		"dependents that were not read":    {unread: true, want: "what depends on it is not known: configmaps were not read"},
		"a Secret, whose data is not kept": {of: secrets, want: "it cannot be recreated as it was: save it with kubectl get -o yaml, and create it when it is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			of, finalizer := widgets, "example.com/cleanup"
			if test.of.Kind != "" {
				of = test.of
			}
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(of.GroupVersionKind())
			o.SetNamespace("s")
			o.SetName("w")
			o.SetUID("w")
			o.SetDeletionTimestamp(&deleted)
			o.SetFinalizers([]string{finalizer})
			if test.finalize != "" {
				o.SetFinalizers([]string{test.finalize})
			}
			if test.written > 0 {
				o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: test.by, Time: new(metav1.NewTime(deleted.Add(test.written)))}})
			}
			id := graph.Identity{Resource: of, Namespace: "s", Name: "w", UID: "w"}
			s := &graph.Snapshot{Types: []*graph.Resource{&parts, &of}, Mapper: testworld.Mapper([]graph.Resource{parts, of})}
			s.MarkListed(of.GroupResource(), "", "1")
			if !test.unread {
				s.MarkListed(parts.GroupResource(), "", "1")
			}
			s.Add(graph.Object{Resource: &of, Namespace: "s", Name: "w", UID: "w", Finalizers: o.GetFinalizers(), DeletionTimestamp: &deleted})
			owner := []metav1.OwnerReference{{APIVersion: of.GroupVersion().String(), Kind: of.Kind, Name: "w", UID: "w"}}
			s.Add(graph.Object{Resource: &parts, Namespace: "s", Name: "kept", UID: "kept", OwnerReferences: owner})
			s.Add(graph.Object{Resource: &parts, Namespace: "s", Name: "going", UID: "going", OwnerReferences: owner, DeletionTimestamp: &deleted})
			cause := &explain.Cause{Kind: finding.FinAbsent, Object: id, Verdict: explain.Stuck, Summary: say.Plain("the cause")}
			if test.kind.ID != "" {
				cause.Kind = test.kind
			}
			if test.verdict != "" {
				cause.Verdict = test.verdict
			}
			remove := remedy.PatchOf(id, remedy.Test("/metadata/finalizers/0", finalizer), remedy.Remove("/metadata/finalizers/0"))
			cause.Remedies = []explain.Remedy{{Action: explain.Action{Operation: &remove}}}
			report := &explain.Report{Causes: []*explain.Cause{cause}, Objects: []explain.Explanation{{
				Object: id, Verdict: cause.Verdict, Findings: []explain.Finding{{Cause: cause, Chain: []explain.Link{{Object: id, Finalizer: finalizer}}}},
			}}}
			w := &change.Writer{
				Read: func(_ context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
					switch {
					case id.Name == "w":
						return o, nil
					case id.Resource.IsNamespace():
						return &unstructured.Unstructured{Object: map[string]any{}}, nil
					}
					return nil, apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
				},
				Resource: func(kind schema.GroupVersionKind) (graph.Resource, error) {
					return graph.Resource{}, &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
				},
			}
			r, err := w.Revive(t.Context(), []graph.Identity{id}, false, report, graph.New(s))
			if got := revival(r, err); !strings.HasSuffix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// revival is what a revival does, or why not.
func revival(r *change.Revival, err error) string {
	if err != nil {
		return err.Error()
	}
	var does []string
	for i := range r.Changes {
		does = append(does, render.Change(&r.Changes[i].Op))
	}
	text := strings.Join(does, ", ")
	for i := range r.Orphans {
		text += "; links " + r.Orphans[i].Name
	}
	for _, id := range r.Going {
		text += "; leaves " + id.Name
	}
	return text
}

// What comes to depend on an object while that is let go is in the journal, too; what the run did not come to let go is not lost by it.
func TestRevivalJournal(t *testing.T) {
	resource := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	r := &change.Revival{}
	for _, name := range []types.UID{"a", "b"} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(resource.GroupVersionKind())
		o.SetName(string(name))
		o.SetNamespace("s")
		o.SetUID(name)
		o.SetResourceVersion("1")
		r.Objects = append(r.Objects, graph.Identity{Resource: resource, Namespace: "s", Name: string(name), UID: name})
		r.Kept = append(r.Kept, o)
	}
	j, err := change.NewJournal(t.TempDir(), change.Header{Started: time.Now(), Where: answer.Where{Server: "https://example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keep(j.Keep(r))
	finish, err := j.Begin(&change.Change{Op: remedy.DeleteOf(r.Objects[0], metav1.DeleteOptions{})}, r.Kept[0])
	keep(err)
	keep(finish(change.Done, ""))
	r.Orphans = []graph.Object{{Resource: &resource, Namespace: "s", Name: "late", UID: "late"}}
	keep(j.KeepOrphans(r))
	keep(j.Close())
	recorded, err := change.ReadJournal(j.Dir)
	keep(err)
	var lost []string
	for _, s := range recorded.Lost() {
		lost = append(lost, s.Object.Name)
	}
	if got := strings.Join(lost, " "); got != "a late" {
		t.Errorf("lost is %q", got)
	}
}
