// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// aheadOf is how many things are read at once when one after the other is asked for.
const aheadOf = 4

// family is a type and finalizers. Objects that are being deleted and have the same wait for
// the same: who has asked for the whole of two will ask for that of the next one, too.
type family struct {
	resource   schema.GroupVersionResource
	finalizers string
}

// ahead reads the whole of a node that is being deleted and, unless it is the first of its
// family, that of the next ones, all at once. Get has what was read; that something could not
// be read is not worth a word before somebody asks for it.
func (r *Reader) ahead(n graph.Node) {
	if r.whole != nil {
		r.whole.ahead(n)
		return
	}
	of := family{n.Resource().GroupVersionResource, strings.Join(n.Finalizers(), " ")}
	if _, read := r.early[placeOf(n)]; read || !n.BeingDeleted() {
		return
	}
	if r.asked[of]++; r.asked[of] == 1 {
		return
	}
	r.readEarly(r.unreadAfter(n, r.counts().deleted[of.resource]))
}

// Together reads the whole of several nodes at once, for who is about to ask for each by
// Whole.
func (r *Reader) Together(nodes []graph.Node) {
	if r.whole != nil {
		r.whole.Together(nodes)
		return
	}
	var places []place
	for _, n := range nodes {
		if !r.many(alikeOf(n)) && !r.hasRead(placeOf(n)) {
			places = append(places, placeOf(n))
		}
	}
	r.readEarly(places)
}

// hasRead reports whether an object was read, maybe early.
func (r *Reader) hasRead(p place) bool {
	_, known := r.objects[p]
	_, early := r.early[p]
	return known || early
}

func (r *Reader) readEarly(places []place) {
	readings := make([]reading, len(places))
	var group sync.WaitGroup
	for i, p := range places {
		group.Go(func() { readings[i] = r.read(p) })
	}
	group.Wait()
	for i, p := range places {
		r.early[p] = readings[i]
	}
}

// Begun are lists of whole objects, everywhere, that are being read.
type Begun struct {
	group sync.WaitGroup
	lists map[place]*listing
}

// Begin begins to read lists, all at once, and does not wait.
func Begin(ctx context.Context, cluster Cluster, resources ...schema.GroupVersionResource) *Begun {
	b := &Begun{lists: map[place]*listing{}}
	for _, resource := range resources {
		l := &listing{}
		b.lists[place{resource: resource}] = l
		b.group.Go(func() { l.items, l.err = cluster.List(ctx, resource, "") })
	}
	return b
}

// ListTogether lists the whole objects of several resources everywhere, all at once, for who
// is about to ask for each by List. What was begun is not read again; nil is for nothing.
func (r *Reader) ListTogether(begun *Begun, resources ...schema.GroupVersionResource) {
	if r.whole != nil {
		r.whole.ListTogether(begun, resources...)
		return
	}
	var more []schema.GroupVersionResource
	for _, resource := range resources {
		if p := (place{resource: resource}); !r.hasListed(p) && (begun == nil || begun.lists[p] == nil) {
			more = append(more, resource)
		}
	}
	others := Begin(r.ctx, r.source.Cluster, more...)
	r.take(begun)
	r.take(others)
}

// hasListed reports whether a list was read, maybe early.
func (r *Reader) hasListed(p place) bool {
	_, known := r.lists[p]
	_, early := r.earlyLists[p]
	return known || early
}

// take waits for lists, and keeps those that were not read before.
func (r *Reader) take(begun *Begun) {
	if begun == nil {
		return
	}
	begun.group.Wait()
	for p, l := range begun.lists {
		if !r.hasListed(p) {
			r.earlyLists[p] = *l
		}
	}
}

// unreadAfter returns where a node is and the next ones with its finalizers that were not
// read. The nodes are in the order of the graph.
func (r *Reader) unreadAfter(n graph.Node, nodes []graph.Node) []place {
	places := []place{placeOf(n)}
	from, _ := slices.BinarySearchFunc(nodes, n.Index()+1, func(m graph.Node, i int) int { return cmp.Compare(m.Index(), i) })
	for _, next := range nodes[from:] {
		if len(places) == aheadOf {
			break
		}
		if p := placeOf(next); !r.hasRead(p) && slices.Equal(next.Finalizers(), n.Finalizers()) {
			places = append(places, p)
		}
	}
	return places
}
