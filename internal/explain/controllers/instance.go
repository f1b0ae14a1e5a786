// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// entriesFor returns what the catalogue has of the finalizer, with what the fields of an object say.
func (f *searcher) entriesFor(n graph.Node, finalizer string, list finalizers.Field) []finalizers.Match {
	known := f.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), list)
	for i, m := range known {
		known[i] = m.For(func(path string) string {
			full, err := f.evidence.Whole(n)
			if err != nil {
				return ""
			}
			return evidence.FieldOf(full, path)
		})
	}
	return known
}

// instanceOf returns the object of a product in whose pods the controller runs, by an entry of the catalogue; nil where none exists.
func (f *searcher) instanceOf(s *Search, m finalizers.Match, namespace string) *Workload {
	for _, usual := range m.Workloads {
		for _, r := range f.evidence.Types() {
			if !usual.Instance() || usual.Name == "*" || usual.Kind != r.GroupVersionKind().GroupKind().String() {
				continue
			}
			o, err := f.evidence.Get(r.GroupVersionResource, namespace, usual.Name)
			if err == nil {
				return f.ofInstance(r, o)
			} else if !apierrors.IsNotFound(err) {
				s.unread = append(s.unread, r.GroupResource().String())
			}
		}
	}
	return nil
}

// ofInstance is an object of a product as a workload, whose pods are those that it controls: they tell the account. It is as new as the
// last word of whoever makes its pods.
func (f *roster) ofInstance(r *graph.Resource, o *unstructured.Unstructured) *Workload {
	var template corev1.PodTemplateSpec
	l := ofWhole(r, o, &template)
	l.made, l.account = o.GetCreationTimestamp().Unix(), ""
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil && !isPerson(entry.Manager) {
			l.made = max(l.made, entry.Time.Unix())
		}
	}
	if own, err := f.podsOf(l); err == nil && len(own) > 0 && evidence.Decode(own[0], &template) {
		l.account, l.programs, l.speaks = accountOf(&template.Spec), programs(&template.Spec), "pod/"+own[0].GetName()
	}
	return l
}

// isInstance reports whether it is an object of a product.
func (l *Workload) isInstance() bool {
	return l.resource != nil && !graph.BuiltinGroup(l.resource.Group)
}

// controls reports whether the workload is the controller of a pod, by its owner reference.
func (l *Workload) controls(pod *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.UID == l.uid
}

// isIdle reports whether an instance has no pods, and whoever makes them has said nothing for a while.
func (l *Workload) isIdle(now time.Time) bool {
	return l.isInstance() && now.Sub(time.Unix(l.made, 0)) >= startDelay
}
