// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// world makes the objects of a test cluster, of which everything is listed.
type world struct {
	snapshot  *graph.Snapshot
	mapper    *meta.DefaultRESTMapper
	resources map[string]*graph.Resource
	n         int
}

var made = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func newWorld() *world {
	w := &world{mapper: meta.NewDefaultRESTMapper(nil), resources: map[string]*graph.Resource{}}
	w.snapshot = &graph.Snapshot{Mapper: w.mapper}
	for _, r := range []struct {
		version, plural, kind string
		namespaced            bool
	}{
		{"v1", "pods", "Pod", true}, {"v1", "configmaps", "ConfigMap", true}, {"v1", "secrets", "Secret", true}, {"v1", "nodes", "Node", false},
		{"apps/v1", "deployments", "Deployment", true}, {"apps/v1", "replicasets", "ReplicaSet", true}, {"apps/v1", "statefulsets", "StatefulSet", true},
		{"batch/v1", "jobs", "Job", true}, {"batch/v1", "cronjobs", "CronJob", true}, {"shop.example.com/v1", "carts", "Cart", true},
	} {
		gv, _ := schema.ParseGroupVersion(r.version)
		resource := &graph.Resource{GroupVersionResource: gv.WithResource(r.plural), Kind: r.kind, Namespaced: r.namespaced}
		w.resources[r.kind] = resource
		scope := meta.RESTScopeRoot
		if r.namespaced {
			scope = meta.RESTScopeNamespace
		}
		w.mapper.AddSpecific(resource.GroupVersionKind(), resource.GroupVersionResource, gv.WithResource(strings.ToLower(r.kind)), scope)
		w.snapshot.MarkListed(resource.GroupResource(), "", "1")
	}
	return w
}

// add adds an object with owners, and returns a reference to it.
func (w *world) add(kind, namespace, name string, change func(*graph.Object), owners ...metav1.OwnerReference) metav1.OwnerReference {
	w.n++
	uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n))
	o := graph.Object{
		Resource: w.resources[kind], Namespace: namespace, Name: name, UID: uid, ResourceVersion: "1",
		CreationTimestamp: made, OwnerReferences: owners,
	}
	if change != nil {
		change(&o)
	}
	w.snapshot.Add(o)
	apiVersion, _ := o.Resource.GroupVersionKind().ToAPIVersionAndKind()
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}
}

func terminating(finalizers ...string) func(*graph.Object) {
	return func(o *graph.Object) { o.DeletionTimestamp, o.Finalizers = &made, finalizers }
}

// shop is the shop of the examples, mistakes included.
func shop() *world {
	w := newWorld()
	web := w.add("Deployment", "shop", "web", nil)
	set := w.add("ReplicaSet", "shop", "web-787f5cff7f", nil, web)
	w.add("Pod", "shop", "web-787f5cff7f-8r7fl", nil, set)
	w.add("Pod", "shop", "web-787f5cff7f-fzfkz", nil, set)
	cart := w.add("Cart", "shop", "basket", terminating("shop.example.com/refund", metav1.FinalizerDeleteDependents))
	w.add("ConfigMap", "shop", "invoice", terminating("shop.example.com/archive"), cart)
	web.Controller = nil
	w.add("Secret", "shop", "session", nil, web, cart)
	w.add("ConfigMap", "shop", "lost", terminating("shop.example.com/keep"), metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-old", UID: "1"})
	w.add("ConfigMap", "shop", "coupon", nil, metav1.OwnerReference{APIVersion: "coupons.example.com/v1", Kind: "Coupon", Name: "spring", UID: "2"})
	settings := w.add("ConfigMap", "shop", "settings", nil)
	w.add("ConfigMap", "shop-eu", "prices", terminating("shop.example.com/keep"), settings)
	node := w.add("Node", "", "node-1", nil)
	w.add("Pod", "shop", "agent-node-1", nil, node)
	return w
}

// large is a namespace of about n objects: workloads of many sizes, jobs, and
// some mistakes.
func large(n int) *world {
	w := newWorld()
	for i := 0; w.n < n; i++ {
		web := w.add("Deployment", "large", fmt.Sprintf("service-%d", i), nil)
		for j := range 1 + i%3 {
			set := w.add("ReplicaSet", "large", fmt.Sprintf("service-%d-%d7f5cff7f", i, j), nil, web)
			for k := range (1 + i%7) * (1 - min(j, 1)) {
				w.add("Pod", "large", fmt.Sprintf("service-%d-%d7f5cff7f-%05d", i, j, k), nil, set)
			}
		}
		switch i % 25 {
		case 3:
			nightly := w.add("CronJob", "large", fmt.Sprintf("nightly-%d", i), nil)
			for j := range 12 {
				w.add("Pod", "large", fmt.Sprintf("nightly-%d-%d-x", i, j), nil, w.add("Job", "large", fmt.Sprintf("nightly-%d-%d", i, j), nil, nightly))
			}
		case 7:
			w.add("Secret", "large", fmt.Sprintf("lost-%d", i), nil, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "gone", UID: types.UID(fmt.Sprint("gone-", i))})
		case 11:
			cart := w.add("Cart", "large", fmt.Sprintf("cart-%d", i), terminating(metav1.FinalizerDeleteDependents))
			w.add("ConfigMap", "large", fmt.Sprintf("invoice-%d", i), terminating("shop.example.com/archive"), cart)
		case 19:
			db := w.add("StatefulSet", "large", fmt.Sprintf("db-%d", i), nil)
			for j := range 40 {
				w.add("Pod", "large", fmt.Sprintf("db-%d-%d", i, j), nil, db)
			}
		}
	}
	return w
}

// selection selects everything that owns or is owned.
func (w *world) selection() graph.Selection {
	sel := graph.Selection{}
	for n := range graph.New(w.snapshot).Nodes() {
		if n.HasOwners() || n.HasDependents() {
			sel.Nodes.Add(n)
		}
	}
	return sel
}

func (w *world) picture() *draw.Picture {
	p := draw.Ownership(w.selection())
	p.Title, p.Subtitle = "Ownership in namespace shop", "a subtitle"
	return p
}
