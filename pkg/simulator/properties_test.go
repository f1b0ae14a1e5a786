// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// clusters draws small worlds, as lines of scenarios.
var clusters = rapid.Custom(func(t *rapid.T) []string {
	lines := []string{"actors " + strings.Join(rapid.SliceOfDistinct(rapid.SampledFrom([]string{
		"kubelets", "podgc", "namespace-controller", "x=Acts", "y=Nobody", "kubernetes.io/pvc-protection=Acts",
	}), rapid.ID[string]).Draw(t, "actors"), " ")}
	for _, line := range []string{
		"node n1 silent", "node n1 absent", "nodes unread", "unlisted pods", "unlisted widgets.example.com",
		"unlisted namespaces", "unlisted group metrics.k8s.io", "no namespace shop",
	} {
		if rapid.IntRange(0, 9).Draw(t, line) == 0 {
			lines = append(lines, line)
		}
	}
	paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"ConfigMap/shop/a", "ConfigMap/shop/b", "ConfigMap/other/a", "Pod/shop/a", "Pod/shop/b", "Pod/other/a",
		"Service/shop/a", "Endpoints/shop/a", "PersistentVolumeClaim/shop/a", "Job/shop/a", "Widget/shop/a",
		"Widget/other/b", "Gizmo/a", "Namespace/shop", "Namespace/other", "Node/n1",
		"CustomResourceDefinition/widgets.example.com", "CustomResourceDefinition/gizmos.example.com",
	}), 1, 10, rapid.ID[string]).Draw(t, "objects")
	for _, path := range paths {
		lines = append(lines, path+drawWords(t, path))
	}
	return lines
})

// drawWords draws what an object is like.
func drawWords(t *rapid.T, path string) string {
	words := ""
	maybe := func(label string, choices ...string) {
		if rapid.Bool().Draw(t, label) {
			words += " " + rapid.SampledFrom(choices).Draw(t, label+" choice")
		}
	}
	maybe("finalizers", "finalizers=x", "finalizers=y", "finalizers=z,x", "finalizers=foregroundDeletion,x",
		"finalizers=orphan", "finalizers=kubernetes.io/pvc-protection")
	maybe("deleting", "deleting=-60", "deleting=-60 dgps=0", "deleting=+10 dgps=30")
	maybe("owner", "owner=Gizmo/a!", "owner=Gizmo/a*", "owner=Gizmo/a owner=Gizmo/b!")
	maybe("unread", "unread")
	if strings.HasPrefix(path, "Pod/") {
		maybe("node", "node=n1", "node=n2", "node=n1 mirror", "node=n1 phase=Failed", "node=n1 grace=0")
	}
	if strings.HasPrefix(path, "Namespace/") {
		maybe("spec", "spec=-", "spec=x,kubernetes", "spec=y")
	}
	return words
}

// request is something that a client does.
type request struct {
	path    string
	options *metav1.DeleteOptions
	patch   *gc.Patch
	wait    bool
}

var requests = rapid.Custom(func(t *rapid.T) request {
	r := request{path: rapid.SampledFrom([]string{
		"ConfigMap/shop/a", "ConfigMap/shop/b", "Pod/shop/a", "Pod/shop/b", "Service/shop/a", "Gizmo/a",
		"PersistentVolumeClaim/shop/a", "Job/shop/a", "Widget/shop/a", "Namespace/shop", "Node/n1",
		"CustomResourceDefinition/widgets.example.com", "ConfigMap/shop/nobody",
	}).Draw(t, "path")}
	switch rapid.IntRange(0, 3).Draw(t, "request") {
	case 0:
		r.wait = true
	case 1:
		r.patch = &gc.Patch{RemoveFinalizer: rapid.SampledFrom([]string{
			"x", "y", "foregroundDeletion", "orphan",
		}).Draw(t, "finalizer")}
		if rapid.Bool().Draw(t, "owners") {
			r.patch = &gc.Patch{RemoveOwners: []types.UID{"Gizmo/a"}}
		}
	default:
		r.options = &metav1.DeleteOptions{}
		if rapid.Bool().Draw(t, "policy") {
			policy := rapid.SampledFrom([]metav1.DeletionPropagation{
				metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
			}).Draw(t, "policy choice")
			r.options.PropagationPolicy = &policy
		}
		if rapid.Bool().Draw(t, "grace") {
			grace := rapid.SampledFrom([]int64{-1, 0, 1, 30, 600}).Draw(t, "grace seconds")
			r.options.GracePeriodSeconds = &grace
		}
		if rapid.IntRange(0, 9).Draw(t, "dry run") == 0 {
			r.options.DryRun = []string{metav1.DryRunAll}
		}
	}
	return r
})

// client does requests and holds the server to what must always be true.
type client struct {
	t      *rapid.T
	world  *world
	server *simulator.Server
	start  map[types.UID]graph.Object
	read   map[types.UID]graph.Object // what the events say is there
	gone   map[types.UID]bool
	writes int
	log    []string
}

func newClient(t *rapid.T, lines []string) *client {
	w := newWorld()
	for _, line := range lines {
		if err := w.add(strings.Fields(line), line); err != nil {
			t.Fatal(err)
		}
	}
	s := w.snapshot()
	c := &client{
		t: t, world: w, server: simulator.New(s, w.options()),
		start: map[types.UID]graph.Object{}, read: map[types.UID]graph.Object{}, gone: map[types.UID]bool{},
	}
	for o := range s.Objects() {
		c.start[o.UID], c.read[o.UID] = o, o
	}
	return c
}

func (c *client) do(r request) {
	id := c.world.identity(r.path)
	before, fate := c.server.Object(id.UID)
	if fate.State == simulator.Unread {
		before = graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name, UID: id.UID}
	}
	var err error
	switch {
	case r.wait:
		if err = c.drain(true); errors.Is(err, gc.ErrAtRest) {
			c.checkRest()
		}
	case r.patch != nil:
		_, err = c.server.Patch(context.Background(), before, *r.patch)
	default:
		err = c.server.Delete(context.Background(), id, *r.options)
		if err == nil && len(r.options.DryRun) == 0 {
			c.checkDeleted(&before, fate)
		}
	}
	c.log = append(c.log, fmt.Sprint(r.path, " ", err))
	_ = c.drain(false)
	c.checkState()
}

// drain takes events in.
func (c *client) drain(wait bool) error {
	events, err := c.server.Events(context.Background(), wait)
	for _, e := range events {
		uid := e.Object.UID
		c.log = append(c.log, fmt.Sprint(e.Removed, " ", uid, " ", e.Object.ResourceVersion))
		if c.gone[uid] {
			c.t.Fatalf("%s comes back", uid)
		}
		if e.Removed {
			c.gone[uid] = true
			delete(c.read, uid)
			continue
		}
		if e.Lost {
			continue
		}
		version, conversion := strconv.Atoi(strings.TrimPrefix(e.Object.ResourceVersion, simulator.FirstVersion[:12]))
		if conversion != nil || version <= c.writes {
			c.t.Fatalf("resourceVersion %s of %s after %d", e.Object.ResourceVersion, uid, c.writes)
		}
		c.writes = version
		c.read[uid] = e.Object
	}
	return err
}

// checkDeleted: an object without finalizers that has no grace period is gone
// after a DELETE that was accepted.
func (c *client) checkDeleted(before *graph.Object, fate simulator.Fate) {
	switch before.Resource.Kind {
	case "Pod", "Namespace", "CustomResourceDefinition":
		return
	}
	now, after := c.server.Object(before.UID)
	if fate.State == simulator.Gone {
		c.t.Fatalf("%s was deleted twice", before.UID)
	}
	if after.State != simulator.Gone && len(now.Finalizers) == 0 || after.State == simulator.Live {
		c.t.Fatalf("%s is %s with %s after DELETE", before.UID, after.State, now.Finalizers)
	}
}

// checkState: the events over the start state give what Object and Get say.
func (c *client) checkState() {
	for uid, was := range c.start {
		o, fate := c.server.Object(uid)
		if read, there := c.read[uid]; there != (fate.State != simulator.Gone) || there && !cmp.Equal(read, o) {
			c.t.Fatalf("%s: events and Object differ:\n%s", uid, cmp.Diff(read, o))
		}
		got, err := c.server.Get(context.Background(), *was.Resource, was.Namespace, was.Name)
		unserved := len(fate.Notes) > 0 && fate.Notes[0].Has(simulator.OutOfReach)
		if there := err == nil; there != (fate.State != simulator.Gone && !unserved) || there && !cmp.Equal(got, o) {
			c.t.Fatalf("%s: Get and Object differ: %v", uid, err)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			c.t.Fatalf("Get of %s, which was read: %v", uid, err)
		}
		if was.BeingDeleted() && !o.BeingDeleted() {
			c.t.Fatalf("%s is not being deleted any more", uid)
		}
	}
}

// checkRest: what is terminating at rest waits for something, and whoever
// surely acts has acted.
func (c *client) checkRest() {
	for uid, o := range c.read {
		_, fate := c.server.Object(uid)
		if fate.State == simulator.Terminating && len(fate.Waits)+len(fate.Notes) == 0 {
			c.halfDeleted(&o)
		}
		for _, w := range fate.Waits {
			collector := w.Finalizer == metav1.FinalizerDeleteDependents || w.Finalizer == metav1.FinalizerOrphanDependents
			if w.Actor == simulator.Acts && w.Unknown.IsZero() && !collector && len(w.Objects) == 0 {
				c.t.Fatalf("%s still waits for %v at rest", uid, w)
			}
		}
	}
}

// halfDeleted: only an object that nothing keeps, which no API server shows for
// long, may terminate without a reason.
func (c *client) halfDeleted(o *graph.Object) {
	if len(o.Finalizers) > 0 || o.Resource.Kind == "Pod" || o.Resource.Kind == "Namespace" {
		c.t.Fatalf("%s is terminating and waits for nothing", o.UID)
	}
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := clusters.Draw(t, "cluster")
		script := rapid.SliceOfN(requests, 1, 12).Draw(t, "requests")
		c, again := newClient(t, lines), newClient(t, lines)
		untouched := cmp.Diff(c.start, again.start)
		for _, r := range script {
			c.do(r)
			again.do(r)
		}
		for range 100 {
			if err := c.drain(true); err != nil {
				break
			}
		}
		if err := c.drain(true); !errors.Is(err, gc.ErrAtRest) {
			t.Fatalf("no rest: %v", err)
		}
		c.checkState()
		c.checkRest()
		if untouched != "" || !slices.Equal(c.log[:len(again.log)], again.log) {
			t.Fatalf("the same requests gave\n%s\nand\n%s", c.log, again.log)
		}
	})
}

// The snapshot is read and never written.
func TestSnapshotStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := clusters.Draw(t, "cluster")
		c, fresh := newClient(t, lines), newClient(t, lines)
		for _, r := range rapid.SliceOfN(requests, 1, 12).Draw(t, "requests") {
			c.do(r)
		}
		for c.drain(true) == nil {
			continue
		}
		for uid, o := range c.start {
			if diff := cmp.Diff(fresh.start[uid], o); diff != "" {
				t.Fatalf("%s of the snapshot changed:\n%s", uid, diff)
			}
		}
	})
}

// Several clients at once: run with -race.
func TestConcurrentUse(t *testing.T) {
	s, objects := crowd(200)
	server := simulator.New(s, simulator.Options{Now: start, Actors: simulator.Actors{Kubelets: true}})
	done := make(chan error)
	for part := range 4 {
		go func() {
			var failure error
			for i := part; i < len(objects); i += 4 {
				o := objects[i]
				if _, err := server.Get(context.Background(), *o.Resource, o.Namespace, o.Name); err != nil {
					failure = err
				}
				if err := server.Delete(context.Background(), o.Identity(), metav1.DeleteOptions{}); err != nil {
					failure = err
				}
				server.Object(o.UID)
			}
			done <- failure
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	events, err := server.Events(context.Background(), false)
	if len(events) != len(objects) || err != nil {
		t.Errorf("%d events, want %d: %v", len(events), len(objects), err)
	}
}

// A context that has ended ends every call that could take long.
func TestContext(t *testing.T) {
	s, objects := crowd(1)
	server := simulator.New(s, simulator.Options{Now: start})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, get := server.Get(ctx, *objects[0].Resource, "shop", objects[0].Name)
	_, patch := server.Patch(ctx, objects[0], gc.Patch{Unblock: true})
	_, wait := server.Events(ctx, true)
	for i, err := range []error{get, patch, wait, server.Delete(ctx, objects[0].Identity(), metav1.DeleteOptions{})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// crowd returns n ConfigMaps, each owned by the one before.
func crowd(n int) (*graph.Snapshot, []graph.Object) {
	w := newWorld()
	s := &graph.Snapshot{}
	objects := make([]graph.Object, 0, n)
	for i := range n {
		name := "configmap-" + strconv.Itoa(i)
		o := graph.Object{
			Resource: w.resource("ConfigMap", ""), Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
			ResourceVersion: strconv.Itoa(i), CreationTimestamp: metav1.Time{Time: start.Add(-time.Hour)},
		}
		if i > 0 {
			before := objects[i-1]
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: before.Name, UID: before.UID}}
		}
		objects = append(objects, o)
		s.Add(o)
	}
	s.MarkListed(w.resource("ConfigMap", "").GroupResource(), "", "")
	s.MarkListed(w.resource("Pod", "").GroupResource(), "", "")
	return s, objects
}
