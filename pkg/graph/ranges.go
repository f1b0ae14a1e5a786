// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ranges says where in an order of objects those of a type stand, and those in a namespace,
// by their numbers. Lists are sorted, so that they stand together, in few places. It does not
// change, and may be used by several goroutines at once.
type Ranges struct {
	ofType      map[schema.GroupResource]*typeRanges
	inNamespace map[string][]span
}

// typeRanges are those of a type, and it in the kind that comes first.
type typeRanges struct {
	resource *Resource
	spans    []span
}

// span is a part of an order.
type span struct{ from, to int32 }

// RangesOf goes over an order of objects, of which it is told the types and namespaces.
func RangesOf(order iter.Seq2[*Resource, string]) *Ranges {
	r := &Ranges{ofType: map[schema.GroupResource]*typeRanges{}, inNamespace: map[string][]span{}}
	var latest span
	var of *Resource
	var in string
	for resource, namespace := range order {
		if resource != of || namespace != in {
			r.add(latest, of, in)
			latest.from, of, in = latest.to, resource, namespace
		}
		latest.to++
	}
	r.add(latest, of, in)
	return r
}

func (r *Ranges) add(s span, resource *Resource, namespace string) {
	if s.from == s.to {
		return
	}
	t := r.ofType[resource.GroupResource()]
	if t == nil {
		t = &typeRanges{resource: resource}
		r.ofType[resource.GroupResource()] = t
	}
	t.spans = append(t.spans, s)
	if namespace != "" {
		r.inNamespace[namespace] = append(r.inNamespace[namespace], s)
	}
}

// Types returns the types, each once, in no order.
func (r *Ranges) Types() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for _, t := range r.ofType {
			if !yield(t.resource) {
				return
			}
		}
	}
}

// OfType returns the numbers of the objects of a type, in their order.
func (r *Ranges) OfType(resource schema.GroupResource) iter.Seq[int32] {
	if t := r.ofType[resource]; t != nil {
		return numbers(t.spans)
	}
	return numbers(nil)
}

// InNamespace returns the numbers of the objects in a namespace, in their order: none for the
// empty one.
func (r *Ranges) InNamespace(namespace string) iter.Seq[int32] {
	return numbers(r.inNamespace[namespace])
}

func numbers(spans []span) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, s := range spans {
			for i := s.from; i < s.to; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}
