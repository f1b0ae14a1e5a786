// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a cluster that counts what it is asked.
type world struct {
	objects map[string]*unstructured.Unstructured // by resource/namespace/name
	mu      sync.Mutex
	asked   []string
	failing string
	// about are the objects about which events were asked for.
	about []string
}

// Events returns an event that says what it is about; those about what fails cannot be read.
func (w *world) Events(_ context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.about = append(w.about, string(uid))
	if w.failing == "events/"+namespace+"/"+string(uid) {
		return nil, errors.New("broken")
	}
	return []unstructured.Unstructured{{Object: map[string]any{"about": string(uid)}}}, nil
}

func (w *world) Read(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	key := fmt.Sprintf("%s/%s/%s", resource.Resource, namespace, name)
	w.mu.Lock()
	defer w.mu.Unlock()
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
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list(resource, namespace)
}

func (w *world) list(resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	w.asked = append(w.asked, fmt.Sprintf("list %s/%s", resource.Resource, namespace))
	var items []unstructured.Unstructured
	for key, o := range w.objects {
		if strings.HasPrefix(key, resource.Resource+"/"+namespace) {
			items = append(items, *o)
		}
	}
	switch w.failing {
	case resource.Resource + "/" + namespace:
		return nil, errors.New("broken")
	case "forbidden " + resource.Resource + "/" + namespace:
		return nil, apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no rights"))
	}
	return items, nil
}

func (w *world) EachMentioning(_ context.Context, resource schema.GroupVersionResource, namespace string, fields []string, begin func(), yield func(*unstructured.Unstructured) error) error {
	begin()
	w.mu.Lock()
	defer w.mu.Unlock()
	items, err := w.list(resource, namespace)
	w.asked[len(w.asked)-1] += " with " + strings.Join(fields, ", ")
	for i := range items {
		if err == nil {
			err = yield(&items[i])
		}
	}
	return err
}

func (w *world) EachNaming(ctx context.Context, resource schema.GroupVersionResource, namespace string, texts []string, begin func(), yield func(*unstructured.Unstructured) error) error {
	return w.EachMentioning(ctx, resource, namespace, texts, begin, yield)
}

func (w *world) EachTyped(_ context.Context, resource schema.GroupVersionResource, _, namespace string, begin func(), yield func(runtime.Object) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin()
	items, err := w.list(resource, namespace)
	for i := range items {
		o := &corev1.Pod{}
		if err == nil {
			err = errors.Join(runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, o), yield(o))
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
		o.SetDeletionTimestamp(&metav1.Time{Time: now})
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
		failing  string
		asked    []string
	}{
		"a few": {configMaps, 3, "", []string{"get configmaps/shop/o0", "get configmaps/shop/o1", "get configmaps/shop/o2"}},
		"many":  {configMaps, 30, "", []string{"list configmaps/ with deletionTimestamp"}},
		"many, for who may not list all": {
			configMaps, 30, "forbidden configmaps/", []string{"list configmaps/ with deletionTimestamp", "list configmaps/shop with deletionTimestamp"},
		},
		"a crowd of pods": {pods, 30, "", []string{"list pods/shop"}},
	} {
		w, g := crowd(test.resource, test.objects)
		w.failing = test.failing
		r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Now: now})
		for range 2 {
			for n := range g.Nodes() {
				if full, err := r.Whole(n); err != nil || full.GetUID() != n.UID() {
					t.Errorf("%s: %s is %v, error %v", name, n.Name(), full, err)
				}
			}
		}
		slices.Sort(w.asked) // several at once
		if diff := cmp.Diff(test.asked, w.asked); diff != "" || len(r.Unread()) > 0 {
			t.Errorf("%s: unread %v, asked (-want +got):\n%s", name, r.Unread(), diff)
		}
	}
}

// Of objects that wait for the same, the next ones are read when the second is asked for. That
// one of them could not be read is said when it is asked for.
func TestWholeAhead(t *testing.T) {
	w, s := &world{objects: map[string]*unstructured.Unstructured{}, failing: "configmaps/shop/o5"}, &graph.Snapshot{}
	for i := range 12 {
		o := graph.Object{
			Resource: configMaps, Namespace: "shop", Name: fmt.Sprintf("o%x", i), UID: types.UID(fmt.Sprint(i)),
			DeletionTimestamp: &metav1.Time{Time: now}, Finalizers: []string{"a"},
		}
		switch i {
		case 4:
			o.DeletionTimestamp = nil
		case 6:
			o.Finalizers = []string{"a", "b"}
		}
		s.Add(o)
		full := &unstructured.Unstructured{}
		full.SetUID(o.UID)
		w.objects["configmaps/shop/"+o.Name] = full
	}
	whole := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: graph.New(s), Now: now})
	r := whole.Without(func(uid types.UID) bool { return uid == "8" })
	var steps []string
	for n := range graph.New(s).Nodes() {
		if n.Name() > "o9" {
			break
		}
		_, err := r.Whole(n)
		if wrong := n.Name() == "o5" || n.Name() == "o8"; (err != nil) != wrong {
			t.Errorf("%s: error %v", n.Name(), err)
		}
		steps = append(steps, strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(w.asked)), " "), "get configmaps/shop/", ""))
		w.asked = nil
		if unread := whole.Unread(); len(unread) != 0 && n.Name() < "o5" {
			t.Errorf("at %s: %q", n.Name(), unread)
		}
	}
	want := []string{"o0", "o1 o2 o3 o5", "", "", "o4", "", "o6", "o7 o8 o9 oa", "", ""}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if unread := r.Unread(); len(unread) != 1 || !strings.Contains(unread[0].String(), "o5") {
		t.Errorf("unread: %q", unread)
	}
}

// What is expected is read beside, once, and counts when it is asked for: then it is said
// what could not be read. Afterwards nothing of it is left.
func TestExpect(t *testing.T) {
	w, g := crowd(configMaps, 9)
	w.failing = "configmaps/shop/o1"
	whole := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Events: w.Events, Now: now})
	r := whole.Without(func(uid types.UID) bool { return uid == "o2" })
	done := r.Expect(slices.Collect(g.Nodes()))
	if unread := slices.Concat(r.Unread(), whole.Unread()); len(unread) != 0 {
		t.Errorf("unread before anything is asked for: %q", unread)
	}
	var steps []string
	for n := range g.Nodes() {
		if _, err := r.Whole(n); (err != nil) != (n.Name() == "o1" || n.Name() == "o2") {
			t.Errorf("%s: error %v", n.Name(), err)
		}
		w.mu.Lock()
		steps = append(steps, fmt.Sprint(len(w.asked)))
		w.mu.Unlock()
	}
	if got := whole.Events("shop", "o0"); len(got) != 1 {
		t.Errorf("events %v", got)
	}
	done()
	for n := range g.Nodes() {
		_, _ = r.Whole(n)
		if n.Name() < "o2" {
			whole.Events("shop", n.UID())
		}
	}
	slices.Sort(w.asked)
	if asked := slices.Compact(slices.Clone(w.asked)); len(asked) != 9 || len(w.asked) != 9 {
		t.Errorf("asked %q", w.asked)
	}
	slices.Sort(w.about)
	if diff := cmp.Diff([]string{"o0", "o1", "o2", "o3", "o4"}, w.about); diff != "" { // the first beside, the others with the second
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if want := []string{"9", "9", "9"}; !slices.Equal(steps[6:], want) { // those after the first five came together
		t.Errorf("asked for after each: %q", steps)
	}
	if unread := r.Unread(); len(unread) != 1 || !strings.Contains(unread[0].String(), "o1") {
		t.Errorf("unread: %q", unread)
	}
}

// The events about objects that wait for the same are read together from the second on, each
// once, and not more than may be asked for.
func TestEventsAhead(t *testing.T) {
	w, g := crowd(configMaps, 90)
	w.failing = "events/shop/o2"
	r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Events: w.Events, Now: now})
	var steps []int
	read := 0
	for n := range g.Nodes() {
		items := r.Events("shop", n.UID())
		steps = append(steps, len(w.about))
		if len(items) > 0 {
			read++
			if items[0].Object["about"] != string(n.UID()) {
				t.Errorf("those about %s are about %v", n.Name(), items[0].Object["about"])
			}
		}
	}
	if diff := cmp.Diff([]int{1, 5, 5, 5, 5, 9}, steps[:6]); diff != "" {
		t.Errorf("read after each (-want +got):\n%s", diff)
	}
	slices.Sort(w.about)
	if read != 39 || len(w.about) != 40 || len(slices.Compact(w.about)) != 40 {
		t.Errorf("%d had some, read %q", read, w.about)
	}
	if unread := r.Unread(); len(unread) != 1 || !strings.Contains(unread[0].String(), "broken") {
		t.Errorf("unread: %q", unread)
	}
}

// What nobody asks for is taken back, and can be read afterwards.
func TestExpectInVain(t *testing.T) {
	w, g := crowd(configMaps, 3)
	ctx, cancel := context.WithCancel(t.Context())
	hanging := func(ctx context.Context, _ string, _ types.UID) ([]unstructured.Unstructured, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Events: hanging, Now: now})
	done := r.Expect(slices.Collect(g.Nodes()))
	<-ctx.Done() // it hangs
	done()
	for n := range g.Nodes() {
		if _, err := r.Whole(n); err != nil {
			t.Error(err)
		}
	}
	if unread := r.Unread(); len(unread) != 0 {
		t.Errorf("unread: %q", unread)
	}
}

// What somebody is about to ask for one after the other is read at once, and once. That some
// of it could not be read is said when it is asked for.
func TestTogether(t *testing.T) {
	w, g := crowd(configMaps, 5)
	w.failing = "configmaps/shop/o3"
	nodes := slices.Collect(g.Nodes())
	whole := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Now: now})
	r := whole.Without(func(uid types.UID) bool { return uid == "o4" })
	_, _ = r.Whole(nodes[0])
	begun := evidence.Begin(t.Context(), w, evidence.CRDs)
	for range 2 {
		r.Together(nodes)
		r.ListTogether(begun, evidence.Pods, evidence.CRDs)
	}
	if unread := slices.Concat(r.Unread(), whole.Unread()); len(unread) != 0 {
		t.Errorf("unread before anything is asked for: %q", unread)
	}
	for i, n := range nodes {
		if full, err := r.Whole(n); (err != nil) != (i >= 3) || err == nil && full.GetUID() != n.UID() {
			t.Errorf("%s: %v, error %v", n.Name(), full, err)
		}
	}
	w.failing = "pods/"
	for _, resource := range []schema.GroupVersionResource{evidence.Pods, evidence.CRDs} {
		if _, err := r.List(resource, ""); err != nil {
			t.Errorf("%s was asked for again: %v", resource.Resource, err)
		}
	}
	want := []string{
		"get configmaps/shop/o0", "get configmaps/shop/o1", "get configmaps/shop/o2", "get configmaps/shop/o3", "get configmaps/shop/o4",
		"list customresourcedefinitions/", "list pods/",
	}
	slices.Sort(w.asked) // several at once
	if diff := cmp.Diff(want, w.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if unread := r.Unread(); len(unread) != 1 || !strings.Contains(unread[0].String(), "o3") {
		t.Errorf("unread: %q", unread)
	}
}

// Of objects that were announced, few are read by themselves, and those of which there are many, or that are much of their type, from one list; those that
// it does not have, by themselves after all.
func TestAnnounce(t *testing.T) {
	for _, test := range []struct {
		announced, others int
		gone              bool
		gets, lists       int
	}{{20, 5000, false, 20, 0}, {30, 100, false, 0, 1}, {120, 9000, false, 120, 0}, {160, 9000, false, 0, 1}, {30, 100, true, 1, 1}} {
		w, s := &world{objects: map[string]*unstructured.Unstructured{}}, &graph.Snapshot{}
		for i := range test.announced + test.others {
			name := fmt.Sprint("o", i)
			s.Add(graph.Object{Resource: configMaps, Namespace: "shop", Name: name, UID: types.UID(name)})
			o := &unstructured.Unstructured{}
			o.SetNamespace("shop")
			o.SetName(name)
			o.SetUID(types.UID(name))
			w.objects["configmaps/shop/"+name] = o
		}
		if test.gone {
			delete(w.objects, "configmaps/shop/o0")
		}
		g := graph.New(s)
		r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: g, Now: now})
		nodes := slices.Collect(g.Nodes())[:test.announced]
		r.For(evidence.Source{Cluster: w, Graph: g, Now: now}).Announce(slices.Concat(nodes[7:], nodes))
		for _, n := range nodes {
			if o, err := r.Whole(n); (err != nil || o.GetUID() != n.UID()) && !(test.gone && n.Name() == "o0") {
				t.Errorf("%+v: %s: %v", test, n.Name(), err)
			}
		}
		lists := len(slices.DeleteFunc(slices.Clone(w.asked), func(asked string) bool { return strings.HasPrefix(asked, "get") }))
		if gets := len(w.asked) - lists; gets != test.gets || lists != test.lists {
			t.Errorf("%+v: %d gets, %d lists", test, gets, lists)
		}
	}
}

// The pods of namespaces that are asked about one after the other are listed once each, and
// those of a namespace without terminating claims not ahead of time.
func TestPodsWithClaims(t *testing.T) {
	claims := &graph.Resource{GroupVersionResource: evidence.Claims, Kind: "PersistentVolumeClaim", Namespaced: true}
	w, s := &world{objects: map[string]*unstructured.Unstructured{}}, &graph.Snapshot{}
	for i := range 9 {
		claim := graph.Object{Resource: claims, Namespace: fmt.Sprint("ns", i), Name: "data", UID: types.UID(fmt.Sprint("c", i))}
		if i != 7 {
			claim.DeletionTimestamp = &metav1.Time{Time: now}
		}
		s.Add(claim)
		pod := &unstructured.Unstructured{}
		pod.SetName(fmt.Sprint("p", i))
		_ = unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}}}, "spec", "volumes")
		w.objects[fmt.Sprintf("pods/ns%d/p", i)] = pod
		other := &unstructured.Unstructured{}
		other.SetName(fmt.Sprint("without", i))
		w.objects[fmt.Sprintf("pods/ns%d/without", i)] = other
	}
	w.failing = "pods/ns5"
	r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: graph.New(s), Now: now})
	want := []string{}
	for i := range 9 {
		if i == 7 {
			continue
		}
		namespace := fmt.Sprint("ns", i)
		want = append(want, "list pods/"+namespace)
		switch items, err := r.PodsWithClaims(namespace); {
		case i == 5 && err == nil:
			t.Errorf("%s: no error", namespace)
		case i != 5 && (err != nil || len(items) != 1 || items[0].GetName() != fmt.Sprint("p", i)):
			t.Errorf("%s: %v, error %v", namespace, items, err)
		}
	}
	slices.Sort(w.asked) // several at once
	if diff := cmp.Diff(want, w.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if unread := r.Unread(); len(unread) != 1 || !strings.Contains(unread[0].String(), "ns5") {
		t.Errorf("unread: %q", unread)
	}
}

// A second look waits for what is left of the time since the objects were listed.
func TestSettle(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Second: 3 * time.Second, 9 * time.Second: 0} {
		var waited time.Duration
		r := evidence.New(t.Context(), evidence.Source{
			Wait: func(_ context.Context, d time.Duration) { waited += d }, Passed: func() time.Duration { return passed },
		})
		for range 2 {
			r.Settle(5 * time.Second)
		}
		if waited != want {
			t.Errorf("%s had passed, and it waited for %s, not %s", passed, waited, want)
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
	if got := evidence.Gaps(r.Unread()); !slices.Equal(got, want) {
		t.Errorf("unread: %q", got)
	}
	if reads != 40 || len(w.asked) != 2 {
		t.Errorf("%d reads of events, and %q", reads, w.asked)
	}
}

// Of many volumes all are read at once; where they may not be listed, each by itself.
func TestVolume(t *testing.T) {
	for failing, want := range map[string]int{"": 20, "persistentvolumes/": 30} {
		w := &world{objects: map[string]*unstructured.Unstructured{}, failing: failing}
		for i := range 30 {
			volume := &unstructured.Unstructured{}
			volume.SetName(fmt.Sprint("v", i))
			w.objects["persistentvolumes//"+volume.GetName()] = volume
		}
		r := evidence.New(t.Context(), evidence.Source{Cluster: w, Graph: graph.New(&graph.Snapshot{}), Now: now})
		for i := range 30 {
			if volume, err := r.Volume(fmt.Sprint("v", i)); err != nil || volume.GetName() != fmt.Sprint("v", i) {
				t.Errorf("v%d: %v", i, err)
			}
		}
		if _, err := r.Volume("none"); !apierrors.IsNotFound(err) {
			t.Errorf("none: %v", err)
		}
		gets := 0
		for _, asked := range w.asked {
			if strings.HasPrefix(asked, "get ") && asked != "get persistentvolumes//none" {
				gets++
			}
		}
		if gets != want {
			t.Errorf("%d GETs, want %d", gets, want)
		}
	}
}
