// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// number stands for a UID in one run. The UIDs of the graph's nodes have the first
// numbers, in the order of the nodes, so that what is known of objects can be kept in
// tables; those that come up later follow.
type number int32

// What is no UID, and what tasks wait for beside objects.
const (
	nobody     number = 0 // stands for the empty UID
	allTargets number = -1
	theRest    number = -2
	aProof     number = -3
)

// numbers gives numbers to UIDs. It may be used by several goroutines.
type numbers struct {
	graph *graph.Graph

	mu sync.Mutex
	// later are the UIDs that the graph has no node for, and uids the same by number.
	later map[types.UID]number
	uids  []types.UID
}

// of returns the number of the UID. The empty one says nothing of which object is meant,
// whatever nodes there are without UID.
func (x *numbers) of(uid types.UID) number {
	if uid == "" {
		return nobody
	}
	if n, ok := x.graph.Node(uid); ok {
		return numberOf(n)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n, known := x.later[uid]
	if !known {
		n = number(x.graph.Len()+len(x.uids)) + 1
		if x.later == nil {
			x.later = map[types.UID]number{}
		}
		x.later[uid], x.uids = n, append(x.uids, uid)
	}
	return n
}

// numberOf returns the number of a node. Each of those without UID has its own.
func numberOf(n graph.Node) number { return number(n.Index()) + 1 }

// node returns the node that the number stands for.
func (x *numbers) node(n number) (graph.Node, bool) {
	if n <= 0 || int(n) > x.graph.Len() {
		return graph.Node{}, false
	}
	return x.graph.At(int(n) - 1), true
}

// uid returns the UID that the number stands for.
func (x *numbers) uid(n number) types.UID {
	if node, ok := x.node(n); ok {
		return node.UID()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := int(n) - 1 - x.graph.Len(); i >= 0 && i < len(x.uids) {
		return x.uids[i]
	}
	return ""
}
