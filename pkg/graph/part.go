// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Part is a part of a cluster: the objects of a type, in a namespace, that labels select. What
// is empty stands for all, so the zero Part is the cluster; with a namespace alone it is all
// that is in that.
type Part struct {
	Resource  schema.GroupResource
	Namespace string
	Labels    string
}

// contains reports whether all objects of another part are in this.
func (p Part) contains(q Part) bool {
	return (p.Resource == schema.GroupResource{} || p.Resource == q.Resource) &&
		(p.Namespace == "" || p.Namespace == q.Namespace) && (p.Labels == "" || p.Labels == q.Labels)
}

// Parts are what is read of a cluster; nil is all of it.
type Parts []Part

// Contain reports whether all objects of a part are in one of these.
func (ps Parts) Contain(q Part) bool {
	return ps == nil || slices.ContainsFunc(ps, func(p Part) bool { return p.contains(q) })
}

// maxPartsOfType is the number of namespaces in which objects of a type are read one namespace
// after the other: of more, those of all namespaces are.
const maxPartsOfType = 8

// With returns these parts with others, those left out that are in another.
func (ps Parts) With(others ...Part) Parts {
	all := slices.Concat(ps, others)
	if ps == nil || slices.Contains(all, Part{}) {
		return nil
	}
	of := map[schema.GroupResource]int{}
	for _, p := range all {
		if of[p.Resource]++; of[p.Resource] > maxPartsOfType && p.Resource.Resource != "" {
			all = append(all, Part{Resource: p.Resource})
			of[p.Resource] = -len(all)
		}
	}
	joined := Parts{}
	for i, p := range all {
		more := func(q Part) bool { return q != p && q.contains(p) }
		if !slices.Contains(all[:i], p) && !slices.ContainsFunc(all, more) {
			joined = append(joined, p)
		}
	}
	return joined
}

// Of returns the parts that the objects of a type make up of these.
func (ps Parts) Of(r *Resource) Parts {
	if ps == nil {
		return Parts{{Resource: r.GroupResource()}}
	}
	own := Parts{}
	for _, p := range ps {
		switch {
		case p.Resource == r.GroupResource(), p == Part{}, p.Resource == schema.GroupResource{} && r.Namespaced:
			p.Resource = r.GroupResource()
			if !r.Namespaced {
				p.Namespace = ""
			}
			own = own.With(p)
		}
	}
	return own
}
