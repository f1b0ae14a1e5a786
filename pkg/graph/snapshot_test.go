// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// lookupStub resolves everything as a Secret or a Node and notes what it is
// asked for.
type lookupStub struct {
	resolveErr, lookupErr error
	owner                 *graph.FoundOwner
	asked                 string
}

func (l *lookupStub) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	if l.resolveErr != nil {
		return nil, l.resolveErr
	}
	return testworld.Mapper(testworld.Types(servedTypes)).RESTMapping(schema.GroupKind{Kind: kind}, apiVersion)
}

func (l *lookupStub) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	l.asked = resource.Resource + " " + namespace + "/" + name
	return l.owner, l.lookupErr
}

// Classify asks for one place and tells what could not be known from what is
// not there, whoever answers.
func TestClassifyAsks(t *testing.T) {
	broken := errors.New("connection refused")
	for _, test := range []struct {
		name            string
		lookup          lookupStub
		kind, namespace string
		want, asked     string
	}{
		{"type not discovered", lookupStub{resolveErr: fmt.Errorf("resolving: %w", graph.ErrUnlisted)}, "Secret", "shop", "Unknown Unlisted", ""},
		{"type not served", lookupStub{resolveErr: broken}, "Secret", "shop", "Unknown Unresolvable", ""},
		{"owner unread", lookupStub{lookupErr: graph.ErrUnlisted}, "Secret", "shop", "Unknown Unlisted", "secrets shop/a"},
		{"any other error", lookupStub{lookupErr: broken}, "Secret", "shop", "Unknown Unlisted", "secrets shop/a"},
		{"absent", lookupStub{}, "Secret", "shop", "Dangling Absent", "secrets shop/a"},
		{"another UID", lookupStub{owner: &graph.FoundOwner{UID: "t", DeletingDependents: true}}, "Secret", "shop", "Dangling UIDMismatch", "secrets shop/a"},
		{"found", lookupStub{owner: &graph.FoundOwner{UID: "s"}}, "Secret", "shop", "Solid ", "secrets shop/a"},
		{"waiting", lookupStub{owner: &graph.FoundOwner{UID: "s", DeletingDependents: true}}, "Secret", "shop", "WaitingForDependentsDeletion Waiting", "secrets shop/a"},
		{"cluster-scoped owner", lookupStub{owner: &graph.FoundOwner{UID: "s"}}, "Node", "shop", "Solid ", "nodes /a"},
		{"cluster-scoped dependent", lookupStub{owner: &graph.FoundOwner{UID: "s"}}, "Node", "", "Solid ", "nodes /a"},
		{"cluster-scoped dependent of a namespaced owner", lookupStub{owner: &graph.FoundOwner{UID: "s"}}, "Secret", "", "Unknown ClusterScopedDependent", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ref := metav1.OwnerReference{APIVersion: "v1", Kind: test.kind, Name: "a", UID: "s"}
			state, reason := graph.Classify(ref, test.namespace, &test.lookup)
			if got := state.String() + " " + reason.String(); got != test.want || test.lookup.asked != test.asked {
				t.Errorf("got %s, asked for %q; want %s, %q", got, test.lookup.asked, test.want, test.asked)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	sc := newScenario()
	if err := sc.add("unlisted group example.com/v1 DiscoveryFailed"); err != nil {
		t.Fatal(err)
	}
	s := sc.snapshot()
	if _, err := s.Resolve("example.com/v1", "Widget"); !errors.Is(err, graph.ErrUnlisted) {
		t.Errorf("undiscovered: %v", err)
	}
	if _, err := s.Resolve("apps/v1", "Widget"); err == nil || errors.Is(err, graph.ErrUnlisted) {
		t.Errorf("unserved: %v", err)
	}
	mapping, err := s.Resolve("autoscaling/v1", "HorizontalPodAutoscaler")
	if err != nil {
		t.Fatal(err)
	}
	want := graph.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"},
		Kind:                 "HorizontalPodAutoscaler", Namespaced: true,
	}
	if got := graph.ResourceOf(mapping); got != want || got.GroupVersionKind() != mapping.GroupVersionKind {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnlistedIsSorted(t *testing.T) {
	var want []graph.Unlisted
	for _, group := range []string{"", "apps"} {
		for _, resource := range []string{"", "pods", "secrets"} {
			for _, version := range []string{"v1", "v2"} {
				for _, namespace := range []string{"", "shop"} {
					for _, name := range []string{"", "a"} {
						want = append(want, graph.Unlisted{
							GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
							Namespace:            namespace, Name: name, Reason: graph.Timeout,
						})
					}
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := graph.Snapshot{}
		for _, i := range rapid.Permutation(indices(len(want))).Draw(t, "order") {
			s.MarkUnlisted(want[i])
		}
		if diff := cmp.Diff(want, s.Unlisted()); diff != "" || s.Complete() {
			t.Fatal(diff)
		}
	})
}

// An object that is read again counts once, as it is last.
func TestAddAgain(t *testing.T) {
	r := testworld.Types(servedTypes)[0]
	s := graph.Snapshot{}
	s.Add(graph.Object{Resource: &r, Namespace: "shop", Name: "p", UID: "p", ResourceVersion: "1"})
	s.Add(graph.Object{Resource: &r, Namespace: "shop", Name: "q", UID: "q"})
	s.Add(graph.Object{Resource: &r, Namespace: "shop", Name: "p", UID: "p", ResourceVersion: "2"})
	if o, ok := s.Object("p"); !ok || o.ResourceVersion != "2" || s.Len() != 2 {
		t.Errorf("got %v %v of %d", o, ok, s.Len())
	}
	if o, ok := s.Object("nobody"); ok {
		t.Errorf("got %v", o)
	}
}

// Only asks for the types that objects have, and for no others.
func TestOnly(t *testing.T) {
	kinds := testworld.Types(servedTypes)
	widget, gizmo := &kinds[13], &kinds[14]
	var packer graph.Packer
	packer.Add(&graph.Object{Resource: widget, Namespace: "shop", Name: "a", UID: "a"})
	var s graph.Snapshot
	s.AddBatch(packer.Batch())
	isWidget := func(r *graph.Resource) bool { return r == widget }
	if !s.Only(isWidget) {
		t.Error("there are others than a widget")
	}
	s.Add(graph.Object{Resource: gizmo, Namespace: "shop", Name: "b", UID: "b"})
	if s.Only(isWidget) {
		t.Error("a gizmo is no other")
	}
}

// A UID that was read under several names says of none of them that it is meant,
// and proves nothing about where the others are. The same name under another group
// is the same object.
func TestAmbiguous(t *testing.T) {
	kinds := testworld.Types(servedTypes)
	widget, gizmo, ingress, old := &kinds[13], &kinds[14], &kinds[10], &kinds[11]
	stream := graph.Object{Resource: widget, Namespace: "shop", Name: "app", UID: "stream"}
	tag := graph.Object{Resource: gizmo, Namespace: "shop", Name: "app:old", UID: "stream"}
	latest := graph.Object{Resource: gizmo, Namespace: "shop", Name: "app:new", UID: "stream"}
	other := graph.Object{Resource: widget, Namespace: "office", Name: "app", UID: "stream"}
	web := graph.Object{Resource: ingress, Namespace: "shop", Name: "web", UID: "web"}
	alias := web
	alias.Resource = old
	objects := []graph.Object{stream, tag, latest, other, web, alias, tag}
	var packer graph.Packer
	var one, many graph.Snapshot
	for _, o := range objects {
		one.Add(o)
		packer.Add(&o)
	}
	many.AddBatch(packer.Batch())
	want := []graph.Identity{stream.Identity(), tag.Identity(), latest.Identity(), other.Identity()}
	for name, s := range map[string]*graph.Snapshot{"one by one": &one, "batch": &many} {
		for _, resource := range []*graph.Resource{widget, gizmo, ingress} {
			s.MarkListed(resource.GroupResource(), "", "1")
		}
		if diff := cmp.Diff(want, s.Ambiguous("stream")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		h, _ := s.Handle("web")
		if also := s.Ambiguous("web"); also != nil || !s.HandleIsAt(h, old.GroupResource(), "shop", "web") {
			t.Errorf("%s: an object that two groups serve: %v", name, also)
		}
		if o, _ := s.Object("stream"); o.Identity() != stream.Identity() || s.Len() != 2 {
			t.Errorf("%s: %d objects, and that with the UID is %s", name, s.Len(), o.Identity())
		}
		if s.Covers(gizmo.GroupResource(), "shop", "app:old") || !s.Covers(gizmo.GroupResource(), "shop", "app:gone") {
			t.Errorf("%s: what was read is said to be absent, or what was not is not", name)
		}
	}
}

func TestNewObject(t *testing.T) {
	r := testworld.Types(servedTypes)[0]
	seconds, time := int64(30), metav1.Now()
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "p", UID: "u", ResourceVersion: "7", CreationTimestamp: time,
		DeletionTimestamp: &time, DeletionGracePeriodSeconds: &seconds, Finalizers: []string{"x"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}}, Labels: map[string]string{"app": "web"},
	}
	want := graph.Object{
		Resource: &r, Namespace: "shop", Name: "p", UID: "u", ResourceVersion: "7", CreationTimestamp: time,
		DeletionTimestamp: &time, DeletionGracePeriodSeconds: &seconds, Finalizers: meta.Finalizers,
		OwnerReferences: meta.OwnerReferences, Labels: meta.Labels,
	}
	if diff := cmp.Diff(want, graph.NewObject(&r, &meta)); diff != "" {
		t.Error(diff)
	}
}

// Identities are ordered, and only equal ones compare as equal.
func TestIdentityCompare(t *testing.T) {
	identities := rapid.Custom(func(t *rapid.T) graph.Identity {
		text := func(label string) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, label) }
		id := graph.Identity{Namespace: text("namespace"), Name: text("name"), Resource: graph.Resource{Kind: text("kind")}}
		id.Resource.Group, id.Resource.Version = text("group"), text("version")
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(identities, 3, 3).Draw(t, "identities")
		slices.SortFunc(ids, graph.Identity.Compare)
		for i, a := range ids {
			for j, b := range ids {
				if got := a.Compare(b); got != -b.Compare(a) || (got == 0) != (a == b) || i < j && got > 0 {
					t.Fatalf("%v %v: %d", a, b, got)
				}
			}
		}
	})
}

func TestListed(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	s := graph.Snapshot{}
	if got := s.Listed(secrets); len(got) > 0 {
		t.Errorf("before: %v", got)
	}
	s.MarkListed(secrets, "shop", "7")
	s.MarkListed(secrets, "other", "8")
	s.MarkListed(secrets, "shop", "9")
	if diff := cmp.Diff(map[string]string{"shop": "9", "other": "8"}, s.Listed(secrets)); diff != "" {
		t.Error(diff)
	}
}
