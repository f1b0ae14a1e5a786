// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Above finds what is above objects: what ends, or makes smaller, has the object deleted.
type Above struct {
	// makers are the namespaces and StatefulSets.
	makers []graph.Node
}

// NewAbove goes over a graph once.
func NewAbove(g *graph.Graph) Above {
	var a Above
	for n := range g.Nodes() {
		if !n.Virtual() && (n.Resource().IsNamespace() || n.Resource().GroupResource() == StatefulSets.GroupResource()) {
			a.makers = append(a.makers, n)
		}
	}
	return a
}

// Any reports whether something holds for an object or for one above it: its owners, its namespace, the StatefulSet of which a claim may
// be, and theirs.
func (a Above) Any(n graph.Node, is func(graph.Node) bool) bool {
	above := graph.NewSet(n)
	for queue := above.Sorted(); len(queue) > 0; queue = queue[1:] {
		next := queue[0]
		if is(next) {
			return true
		}
		for _, ref := range next.Owners() {
			if ref.State == graph.Solid && above.Add(ref.Owner) {
				queue = append(queue, ref.Owner)
			}
		}
		for _, o := range a.makers {
			if (o.Resource().IsNamespace() && o.Name() == next.Namespace() || mayMake(o, next)) && above.Add(o) {
				queue = append(queue, o)
			}
		}
	}
	return false
}

// mayMake reports whether a claim may be of a template of a StatefulSet, by their names.
func mayMake(set, claim graph.Node) bool {
	if set.Resource().GroupResource() != StatefulSets.GroupResource() || claim.Resource().GroupResource() != Claims.GroupResource() ||
		set.Namespace() != claim.Namespace() {
		return false
	}
	at := strings.LastIndex(claim.Name(), "-")
	return at > 0 && strings.HasSuffix(claim.Name()[:at], "-"+set.Name())
}
