// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// PodsWithClaims lists the pods of a namespace that have volumes which are claims, and
// maybe others. Of most pods nobody asks that.
func (r *lists) PodsWithClaims(namespace string) ([]unstructured.Unstructured, error) {
	all := place{Pods, namespace, ""}
	if _, known := r.all[all]; known {
		return r.List(Pods, namespace)
	}
	l := r.podsIn(namespace).claimants
	r.note(all, l.err)
	return l.items, l.err
}

// podList is what is kept of the pods of a namespace.
type podList struct {
	// claimants have volumes which are claims.
	claimants listing
	// ending are being deleted.
	ending *found
}

// podsIn reads the pods of a namespace, and when it is not the first
// one those of the next that have terminating claims, too: they are asked for in order.
func (r *lists) podsIn(namespace string) podList {
	if l, known := r.pods[namespace]; known {
		return l
	}
	namespaces := []string{namespace}
	if len(r.pods) > 1 {
		for n := range r.seen(Claims.GroupResource()) {
			if next := n.Namespace(); len(namespaces) < aheadOf && next > namespace && n.BeingDeleted() && next != namespaces[len(namespaces)-1] {
				namespaces = append(namespaces, next)
			}
		}
	}
	read := make([]podList, len(namespaces))
	var group sync.WaitGroup
	for i, namespace := range namespaces {
		group.Go(func() { read[i] = r.readPods(namespace) })
	}
	group.Wait()
	for i, namespace := range namespaces {
		if _, known := r.pods[namespace]; !known {
			r.pods[namespace] = read[i]
		}
	}
	return read[0]
}

// readPods may be called by several goroutines: it asks the cluster alone. In Go's type, of which there is a
// form in protobuf, pods are a third of their JSON.
func (r *lists) readPods(namespace string) (l podList) {
	begin := func() { l = podList{ending: &found{packed: map[types.UID][]byte{}}} }
	begin()
	err := r.source.Cluster.EachTyped(r.ctx, Pods, kinds[Pods], namespace, begin, func(o runtime.Object) error {
		pod, isPod := o.(*corev1.Pod)
		claims := isPod && slices.ContainsFunc(pod.Spec.Volumes, isClaim)
		if !isPod || r.gone(pod.UID) || !claims && pod.DeletionTimestamp == nil {
			return nil
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			return err
		}
		whole := unstructured.Unstructured{Object: object}
		if claims {
			l.claimants.items = append(l.claimants.items, whole)
		}
		if pod.DeletionTimestamp != nil {
			return l.ending.pack(&whole)
		}
		return nil
	})
	if err != nil {
		return podList{listing{err: err}, &found{err: err}}
	}
	return l
}

func isClaim(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }

// EachPod calls begin, and then yield with each pod of the cluster that is on a node. When it has to read the list again, it calls begin
// again: what came before does not count.
func EachPod(ctx context.Context, cluster Cluster, begin func(), yield func(*corev1.Pod)) error {
	return cluster.EachTyped(ctx, Pods, "Pod", "", begin, func(o runtime.Object) error {
		pod, is := o.(*corev1.Pod)
		if !is {
			return fmt.Errorf("%T is no Pod", o)
		}
		if pod.Spec.NodeName != "" {
			yield(pod)
		}
		return nil
	})
}
