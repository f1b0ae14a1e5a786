// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/lease"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxGets is the number of objects of a type up to which each is read by itself; more are listed. Of more pods, up to manyGets
// are still read alone where their namespace has more than perGet for each, which costs the server more; pods are listed in
// each of up to maxLists namespaces, or manyLists that have less than two thirds of all.
const (
	maxGets   = 50
	manyGets  = 150
	perGet    = 50
	maxLists  = 20
	manyLists = 150
)

// HasFacts reports whether Facts reads anything of objects of the resource.
func HasFacts(resource *graph.Resource) bool {
	return resource.IsPod() || resource.IsNamespace() || resource.IsCRD() || isVolume(resource)
}

// Facts reads what a prediction about the objects of a snapshot needs beyond metadata: pods
// with their nodes, namespaces, CustomResourceDefinitions. What cannot be read
// is missing from the result.
func (r *Reader) Facts(ctx context.Context, of *graph.Snapshot, objects []graph.Object) graph.Facts {
	f := facts{Facts: graph.Facts{
		Pods: map[types.UID]graph.PodFacts{}, Namespaces: map[types.UID]graph.NamespaceFacts{},
		CRDs: map[types.UID]graph.CRDFacts{}, Volumes: map[types.UID]types.UID{}, Nodes: map[string]bool{},
	}}
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	r.namespaceFacts(ctx, objects, &group, &f)
	r.definitionFacts(ctx, objects, &group, &f)
	volumeFacts(ctx, r, objects, &group, &f)
	r.podFacts(ctx, of, objects, &group, &f)
	_ = group.Wait() // what cannot be read is missing
	r.nodeFacts(ctx, &f)
	return f.Facts
}

// facts are added to by several goroutines.
type facts struct {
	mu sync.Mutex
	graph.Facts
}

// add lets a function add to the facts, one at a time.
func (f *facts) add(something func(*graph.Facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	something(&f.Facts)
}

// read gets a whole object as JSON.
func (r *Reader) read(ctx context.Context, into any, segments ...string) error {
	r.stats.gets.Add(1)
	data, err := raw(ctx, r.rest.Get().AbsPath(segments...).SetHeader("Accept", "application/json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// wanted returns the objects that are of a type, by UID.
func wanted(objects []graph.Object, is func(*graph.Resource) bool) map[types.UID]*graph.Object {
	uids := map[types.UID]*graph.Object{}
	for i := range objects {
		if o := &objects[i]; is(o.Resource) {
			uids[o.UID] = o
		}
	}
	return uids
}

// readEach calls keep with each of the objects that can be read.
func readEach[T any](ctx context.Context, r *Reader, objects map[types.UID]*graph.Object, group *errgroup.Group, keep func(*T)) {
	for _, o := range objects {
		group.Go(func() error {
			var whole T
			err := r.read(ctx, &whole, o.Resource.Path(o.Namespace, o.Name)...)
			if err == nil {
				keep(&whole)
			}
			return err
		})
	}
}

// readTyped calls keep with each of the objects, or with all there are of a type of version v1 of Kubernetes.
func readTyped[T any](ctx context.Context, r *Reader, kind string, objects map[types.UID]*graph.Object,
	group *errgroup.Group, keep func(*T)) {
	if len(objects) <= maxGets {
		readEach(ctx, r, objects, group, keep)
		return
	}
	group.Go(func() error {
		return r.EachTyped(ctx, corev1.SchemeGroupVersion.WithResource(strings.ToLower(kind)+"s"), kind, "", func() {},
			func(o runtime.Object) error {
				keep(any(o).(*T))
				return nil
			})
	})
}

// namespaceFacts reads the namespaces among the objects.
func (r *Reader) namespaceFacts(ctx context.Context, objects []graph.Object, group *errgroup.Group, f *facts) {
	uids := wanted(objects, (*graph.Resource).IsNamespace)
	keep := func(namespace *corev1.Namespace) {
		if uids[namespace.UID] == nil {
			return
		}
		read := graph.NamespaceFacts{}
		for _, finalizer := range namespace.Spec.Finalizers {
			read.Finalizers = append(read.Finalizers, string(finalizer))
		}
		f.add(func(all *graph.Facts) { all.Namespaces[namespace.UID] = read })
	}
	readTyped(ctx, r, "Namespace", uids, group, keep)
}

// definition is what facts take of a CustomResourceDefinition.
type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// definitionFacts reads the CustomResourceDefinitions among the objects: each by itself, or all there are.
func (r *Reader) definitionFacts(ctx context.Context, objects []graph.Object, group *errgroup.Group, f *facts) {
	uids := wanted(objects, (*graph.Resource).IsCRD)
	keep := func(crd *definition) {
		if uids[crd.Metadata.UID] == nil {
			return
		}
		read := graph.CRDFacts{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural}
		for _, c := range crd.Status.Conditions {
			read.Established = read.Established || c.Type == "Established" && c.Status == metav1.ConditionTrue
		}
		f.add(func(all *graph.Facts) { all.CRDs[crd.Metadata.UID] = read })
	}
	if len(uids) > maxGets {
		group.Go(func() error {
			return r.eachWhole(ctx, &listing{resource: &definitions}, func() {}, func(item []byte) error {
				var crd definition
				err := json.Unmarshal(item, &crd)
				if err == nil {
					keep(&crd)
				}
				return err
			})
		})
		return
	}
	readEach(ctx, r, uids, group, keep)
}

func isVolume(resource *graph.Resource) bool {
	return resource.GroupResource() == schema.GroupResource{Resource: "persistentvolumes"}
}

// volumeFacts reads the PersistentVolumes among the objects.
func volumeFacts(ctx context.Context, r *Reader, objects []graph.Object, group *errgroup.Group, f *facts) {
	uids := wanted(objects, isVolume)
	keep := func(volume *corev1.PersistentVolume) {
		if uids[volume.UID] == nil {
			return
		}
		claim := types.UID("")
		if ref := volume.Spec.ClaimRef; ref != nil && volume.Status.Phase == corev1.VolumeBound {
			claim = ref.UID
		}
		f.add(func(all *graph.Facts) { all.Volumes[volume.UID] = claim })
	}
	readTyped(ctx, r, "PersistentVolume", uids, group, keep)
}

func factsOf(p *corev1.Pod) graph.PodFacts {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	facts := graph.PodFacts{NodeName: p.Spec.NodeName, Phase: string(p.Status.Phase), Mirror: mirror, Claims: claims(p)}
	if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil {
		facts.TerminationGracePeriodSeconds = *seconds
	}
	return facts
}

// claims returns the names of the claims that the pod uses. That of an ephemeral volume
// is made for the pod (k8s.io/component-helpers/storage/ephemeral, VolumeClaimName).
func claims(p *corev1.Pod) []string {
	var names []string
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}

// podFacts reads the pods among the objects, as readings says; if pods may not be listed everywhere, those of each namespace.
func (r *Reader) podFacts(ctx context.Context, of *graph.Snapshot, objects []graph.Object, group *errgroup.Group, f *facts) {
	uids := wanted(objects, (*graph.Resource).IsPod)
	keep := func(p *corev1.Pod) {
		if uids[p.UID] != nil {
			f.add(func(all *graph.Facts) { all.Pods[p.UID] = factsOf(p) })
		}
	}
	if len(uids) <= maxGets {
		readEach(ctx, r, uids, group, keep)
		return
	}
	in, there := map[string]int{}, map[string]int{}
	for _, o := range uids {
		in[o.Namespace]++
	}
	for _, head := range of.Heads() {
		if head.Resource.IsPod() {
			there[head.Namespace]++
		}
	}
	alone, everywhere := readings(in, there)
	if everywhere {
		group.Go(func() error {
			err := r.listPodFacts(ctx, "", keep)
			if !apierrors.IsForbidden(err) {
				return err
			}
			for namespace := range in {
				_ = r.listPodFacts(ctx, namespace, keep) // what cannot be read is missing
			}
			return nil
		})
		return
	}
	each := maps.Clone(uids)
	maps.DeleteFunc(each, func(_ types.UID, o *graph.Object) bool { return !alone[o.Namespace] })
	readEach(ctx, r, each, group, keep)
	for namespace := range in {
		if !alone[namespace] {
			group.Go(func() error { return r.listPodFacts(ctx, namespace, keep) })
		}
	}
}

// readings decides how some of the pods there are in each namespace are read: all with one list, or those of each namespace
// with one, but alone where there are many others.
func readings(wanted, there map[string]int) (alone map[string]bool, everywhere bool) {
	alone = map[string]bool{}
	gets, all, inLists := 0, 0, 0
	for namespace, n := range wanted {
		if there[namespace] > n*perGet {
			alone[namespace] = true
			gets += n
		}
	}
	if gets > manyGets {
		clear(alone)
	}
	for namespace, n := range there {
		if all += n; wanted[namespace] > 0 && !alone[namespace] {
			inLists += n
		}
	}
	lists := len(wanted) - len(alone)
	return alone, lists > maxLists && (lists > manyLists || 3*inLists >= 2*all)
}

// listPodFacts calls keep with the pods of a namespace, or with all when that is empty, as far as they can
// be read, with some of them maybe twice.
func (r *Reader) listPodFacts(ctx context.Context, namespace string, keep func(*corev1.Pod)) error {
	pods := &graph.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true}
	return r.eachTyped(ctx, pods, namespace, notFacts, func() {}, func(o runtime.Object) error {
		keep(o.(*corev1.Pod))
		return nil
	})
}

// nodeFacts reads the nodes that the pods are on.
func (r *Reader) nodeFacts(ctx context.Context, f *facts) {
	names := map[string]bool{}
	for _, p := range f.Pods {
		if p.NodeName != "" {
			names[p.NodeName] = true
		}
	}
	f.NodesRead = true
	if len(names) > maxGets {
		r.listNodeFacts(ctx, names, f)
		return
	}
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for name := range names {
		group.Go(func() error {
			var node corev1.Node
			err := r.read(ctx, &node, "api", "v1", "nodes", name)
			f.add(func(all *graph.Facts) {
				switch {
				case answer.NoSuchObject(err, schema.GroupResource{Resource: "nodes"}, name):
				case err != nil:
					all.NodesRead = false
				default:
					all.Nodes[name] = nodeReports(&node)
				}
			})
			return nil
		})
	}
	_ = group.Wait() // no function fails
}

// listNodeFacts is nodeFacts for many.
func (r *Reader) listNodeFacts(ctx context.Context, names map[string]bool, f *facts) {
	err := r.EachTyped(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), "Node", "", func() {}, func(o runtime.Object) error {
		if node := o.(*corev1.Node); names[node.Name] {
			f.add(func(all *graph.Facts) { all.Nodes[node.Name] = nodeReports(node) })
		}
		return nil
	})
	f.NodesRead = err == nil
}

func nodeReports(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ControllerManagerAlive reports whether a kube-controller-manager holds its
// lease at that time of the API server. False means that none is known to work:
// it may run without a lease, or be about to take it.
func (r *Reader) ControllerManagerAlive(ctx context.Context, now time.Time) bool {
	o, err := r.Read(ctx, leases, metav1.NamespaceSystem, "kube-controller-manager")
	if err != nil {
		return false
	}
	l := lease.Of(o.Object)
	is := l.Judge(now)
	return is == lease.Held || is == lease.Expired && l.Age(now) < 0 // by a clock that is ahead, as far as one look tells
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
