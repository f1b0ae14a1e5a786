// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/lease"
)

// maxPodGets is the number of pods of a namespace up to which each is read by itself; of
// more they are listed.
const maxPodGets = 50

// HasFacts reports whether Facts reads anything of objects of the resource.
func HasFacts(resource *graph.Resource) bool {
	return resource.IsPod() || resource.IsNamespace() || resource.IsCRD()
}

// Facts reads what a prediction about the objects needs beyond metadata: pods
// with their nodes, namespaces, CustomResourceDefinitions. What cannot be read
// is missing from the result.
func (r *Reader) Facts(ctx context.Context, objects []graph.Object) graph.Facts {
	f := facts{Facts: graph.Facts{
		Pods: map[types.UID]graph.PodFacts{}, Namespaces: map[types.UID]graph.NamespaceFacts{},
		CRDs: map[types.UID]graph.CRDFacts{}, Nodes: map[string]bool{},
	}}
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for _, o := range objects {
		switch {
		case o.Resource.IsNamespace():
			group.Go(func() error { return r.namespaceFacts(ctx, &o, &f) })
		case o.Resource.IsCRD():
			group.Go(func() error { return r.crdFacts(ctx, &o, &f) })
		}
	}
	r.podFacts(ctx, objects, &group, &f)
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

func (r *Reader) namespaceFacts(ctx context.Context, o *graph.Object, f *facts) error {
	var namespace corev1.Namespace
	if err := r.read(ctx, &namespace, o.Resource.Path(o.Namespace, o.Name)...); err != nil || namespace.UID != o.UID {
		return err
	}
	read := graph.NamespaceFacts{}
	for _, finalizer := range namespace.Spec.Finalizers {
		read.Finalizers = append(read.Finalizers, string(finalizer))
	}
	f.add(func(all *graph.Facts) { all.Namespaces[o.UID] = read })
	return nil
}

func (r *Reader) crdFacts(ctx context.Context, o *graph.Object, f *facts) error {
	var crd struct {
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
	if err := r.read(ctx, &crd, o.Resource.Path(o.Namespace, o.Name)...); err != nil || crd.Metadata.UID != o.UID {
		return err
	}
	read := graph.CRDFacts{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural}
	for _, c := range crd.Status.Conditions {
		read.Established = read.Established || c.Type == "Established" && c.Status == metav1.ConditionTrue
	}
	f.add(func(all *graph.Facts) { all.CRDs[o.UID] = read })
	return nil
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

// podFacts reads the pods among the objects: each by itself, or all of a namespace.
func (r *Reader) podFacts(ctx context.Context, objects []graph.Object, group *errgroup.Group, f *facts) {
	in := map[string]int{}
	for i := range objects {
		if objects[i].Resource.IsPod() {
			in[objects[i].Namespace]++
		}
	}
	keep := func(p *corev1.Pod) { f.add(func(all *graph.Facts) { all.Pods[p.UID] = factsOf(p) }) }
	for namespace, wanted := range in {
		if wanted > maxPodGets {
			group.Go(func() error { return r.listPodFacts(ctx, namespace, keep) })
		}
	}
	for _, o := range objects {
		if !o.Resource.IsPod() || in[o.Namespace] > maxPodGets {
			continue
		}
		group.Go(func() error {
			var pod corev1.Pod
			err := r.read(ctx, &pod, o.Resource.Path(o.Namespace, o.Name)...)
			if err == nil && pod.UID == o.UID {
				keep(&pod)
			}
			return err
		})
	}
}

// listPodFacts calls keep with the pods of a namespace, as far as they can be read, with
// some of them maybe twice.
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
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for name := range names {
		group.Go(func() error {
			var node corev1.Node
			err := r.read(ctx, &node, "api", "v1", "nodes", name)
			f.add(func(all *graph.Facts) {
				switch {
				case answer.NoObject(err):
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
	l, err := r.Read(ctx, leases, metav1.NamespaceSystem, "kube-controller-manager")
	return err == nil && lease.Of(l.Object).Judge(now) == lease.Held
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
