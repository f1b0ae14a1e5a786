// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// evictions are the nodes that go below pods that run, and are not part of the plan.
func (l *looker) evictions() []Break {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok && n.Resource().GroupResource() == evidence.Nodes.GroupResource() {
			nodes = append(nodes, n)
		}
	}
	var all []Break
	for _, on := range l.after.OnNodes(nodes) {
		var running []graph.Identity
		for _, n := range on.Running {
			if !l.going[n.UID()] {
				running = append(running, n.Identity())
			}
		}
		switch {
		case on.Unread != nil:
			all = append(all, Break{Object: on.Node.Identity(), Why: say.Of(nodePodsUnread, on.Unread)})
		case len(running) > 0:
			all = append(all, Break{Object: on.Node.Identity(), Why: say.Of(nodeGoes, some(running)), Certain: true})
		}
	}
	return all
}
