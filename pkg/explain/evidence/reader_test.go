// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a cluster that counts what it is asked.
type world struct {
	objects map[string]*unstructured.Unstructured // by resource/namespace/name
	asked   []string
	failing string
}

func (w *world) Read(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	key := fmt.Sprintf("%s/%s/%s", resource.Resource, namespace, name)
	w.asked = append(w.asked, "get "+key)
	switch o := w.objects[key]; {
	case key == w.failing:
		return nil, errors.New("broken")
	case o != nil:
		return o, nil
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (w *world) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	w.asked = append(w.asked, fmt.Sprintf("list %s/%s", resource.Resource, namespace))
	var items []unstructured.Unstructured
	for key, o := range w.objects {
		if strings.HasPrefix(key, resource.Resource+"/"+namespace) {
			items = append(items, *o)
		}
	}
	return items, nil
}

func (w *world) ListTerminating(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	items, err := w.List(ctx, resource, namespace)
	w.asked[len(w.asked)-1] += " terminating"
	return items, err
}

func (w *world) ListMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, _ ...string) ([]unstructured.Unstructured, error) {
	return w.List(ctx, resource, namespace)
}

func (w *world) Each(ctx context.Context, resource schema.GroupVersionResource, namespace string, yield func([]byte) error) error {
	items, err := w.List(ctx, resource, namespace)
	for i := range items {
		text, encodingErr := json.Marshal(items[i].Object)
		if err = errors.Join(err, encodingErr); err == nil {
			err = yield(text)
		}
	}
	return err
}

var configMaps = &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// crowd returns a cluster with so many terminating objects of the resource in the
// namespace shop, and their graph.
func crowd(resource *graph.Resource, n int) (*world, *graph.Graph) {
	w, s := &world{objects: map[string]*unstructured.Unstructured{}}, &graph.Snapshot{}
	for i := range n {
		name := fmt.Sprint("o", i)
		s.Add(graph.Object{Resource: resource, Namespace: "shop", Name: name, UID: types.UID(name), DeletionTimestamp: &metav1.Time{Time: now}})
		o := &unstructured.Unstructured{}
		o.SetNamespace("shop")
		o.SetName(name)
		o.SetUID(types.UID(name))
		w.objects[resource.GroupVersionResource.Resource+"/shop/"+name] = o
	}
	return w, graph.New(s)
}

// Each thing is asked for once; of many objects of a type the list is, of pods that
// of their namespace.
func TestWhole(t *testing.T) {
	pods := &graph.Resource{GroupVersionResource: evidence.Pods, Kind: "Pod", Namespaced: true}
	for name, test := range map[string]struct {
		resource *graph.Resource
		objects  int
		asked    []string
	}{
		"a few":           {configMaps, 3, []string{"get configmaps/shop/o0", "get configmaps/shop/o1", "get configmaps/shop/o2"}},
		"many":            {configMaps, 30, []string{"list configmaps/ terminating"}},
		"a crowd of pods": {pods, 30, []string{"list pods/shop terminating"}},
	} {
		w, g := crowd(test.resource, test.objects)
		r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Now: now})
		for range 2 {
			for n := range g.Nodes() {
				if full, err := r.Whole(n); err != nil || full.GetUID() != n.UID() {
					t.Errorf("%s: %s is %v, error %v", name, n.Name(), full, err)
				}
			}
		}
		if diff := cmp.Diff(test.asked, w.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", name, diff)
		}
	}
}

// Of a type with very many objects a few dozen are read one by one.
func TestWholeAmongMany(t *testing.T) {
	w, s := &world{objects: map[string]*unstructured.Unstructured{}}, &graph.Snapshot{}
	for i := range 3000 {
		o := graph.Object{Resource: configMaps, Namespace: "shop", Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint("o", i))}
		if i < 30 {
			o.DeletionTimestamp = &metav1.Time{Time: now}
			full := &unstructured.Unstructured{}
			full.SetUID(o.UID)
			w.objects["configmaps/shop/"+o.Name] = full
		}
		s.Add(o)
	}
	r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: graph.New(s), Now: now})
	for n := range graph.New(s).Nodes() {
		if _, err := r.Whole(n); n.BeingDeleted() && err != nil {
			t.Error(err)
		}
		if n.BeingDeleted() && !strings.HasPrefix(w.asked[len(w.asked)-1], "get ") {
			t.Fatalf("asked %s", w.asked[len(w.asked)-1])
		}
	}
}

// A node of which another object has the name is gone, also for who asks again.
func TestWholeOfAnother(t *testing.T) {
	w, g := crowd(configMaps, 1)
	w.objects["configmaps/shop/o0"].SetUID("another")
	r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Now: now})
	n, _ := g.Node("o0")
	if _, err := r.Whole(n); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
	if got := r.Version(n.Identity()); got != "o0" {
		t.Errorf("its version is %s", got)
	}
}

// What could not be read is kept, once; what is absent is no failure.
func TestUnread(t *testing.T) {
	w, g := crowd(configMaps, 1)
	w.failing = "configmaps/shop/broken"
	reads := 0
	r := evidence.New(t.Context(), evidence.Source{
		Cluster: w, Graph: g, Now: now,
		Events: func(context.Context, string, types.UID) ([]unstructured.Unstructured, error) {
			reads++
			return nil, errors.New("no rights")
		},
	})
	for range 2 {
		_, _ = r.Get(configMaps.GroupVersionResource, "shop", "broken")
		_, _ = r.Get(configMaps.GroupVersionResource, "shop", "absent")
		for i := range 100 {
			r.Events("shop", types.UID(fmt.Sprint(i)))
		}
	}
	want := []string{"configmaps/broken in namespace shop: broken", "events in namespace shop: no rights"}
	if got := r.Unread(); !slices.Equal(got, want) {
		t.Errorf("unread: %q", got)
	}
	if reads != 40 || len(w.asked) != 2 {
		t.Errorf("%d reads of events, and %q", reads, w.asked)
	}
}
