// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
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
	places := r.unreadAfter(n, r.counts().deleted[of.resource])
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

// unreadAfter returns where a node is and the next ones with its finalizers that were not
// read. The nodes are in the order of the graph.
func (r *Reader) unreadAfter(n graph.Node, nodes []graph.Node) []place {
	places := []place{placeOf(n)}
	from, _ := slices.BinarySearchFunc(nodes, n.Index()+1, func(m graph.Node, i int) int { return cmp.Compare(m.Index(), i) })
	for _, next := range nodes[from:] {
		if len(places) == aheadOf {
			break
		}
		p := placeOf(next)
		_, known := r.objects[p]
		_, read := r.early[p]
		if !known && !read && slices.Equal(next.Finalizers(), n.Finalizers()) {
			places = append(places, p)
		}
	}
	return places
}
