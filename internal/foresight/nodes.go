// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// evictions are the nodes that go below pods that run, and are not part of the plan.
func (l *forecaster) evictions() []Break {
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

// detached are the volumes that are taken from pods which run: their attachments go.
func (l *forecaster) detached() (all []Break) {
	for uid := range l.going {
		n, ok := l.node(uid)
		if !ok || n.Resource().Resource != "volumeattachments" {
			continue
		}
		attachment, err := l.now.evidence.Whole(n)
		if err != nil {
			continue // it is noted as unread
		}
		volume, err := l.now.evidence.Volume(evidence.Nested(attachment, "spec", "source", "persistentVolumeName"))
		claim, node := "", evidence.Nested(attachment, "spec", "nodeName")
		if err == nil {
			claim = evidence.Nested(volume, "spec", "claimRef", "name")
		}
		if _, goes := l.named["Node/"+node]; goes || claim == "" {
			continue
		}
		pods, _ := l.now.evidence.List(evidence.Pods, evidence.Nested(volume, "spec", "claimRef", "namespace"))
		var users []graph.Identity
		for i := range pods {
			runs := evidence.Nested(&pods[i], "spec", "nodeName") == node && !evidence.PodEnded(&pods[i]) && !l.going[pods[i].GetUID()]
			if runs && slices.Contains(evidence.ClaimNames(&pods[i]), claim) {
				users = append(users, evidence.IdentityOf(evidence.Pods, "Pod", &pods[i]))
			}
		}
		if len(users) > 0 {
			all = append(all, Break{Object: n.Identity(), Why: say.Of(detaches, evidence.Identity(evidence.Volumes, "", volume.GetName()), node,
				some(users)), Certain: true})
		}
	}
	graph.SortByIdentity(all, func(b *Break) graph.Identity { return b.Object })
	return all
}
