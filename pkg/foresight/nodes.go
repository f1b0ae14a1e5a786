// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// onNode is a node that goes, with the pods that stay without it and are then deleted (pkg/controller/podgc/gc_controller.go, gcOrphaned).
type onNode struct {
	node graph.Node
	pods []graph.Node
	// running are those that have not ended, and are not of DaemonSets.
	running []graph.Identity
	unread  error
}

// findPods finds the pods of the nodes that go.
func (l *scene) findPods() {
	nodes := map[string]*onNode{}
	for uid := range l.going {
		if n, ok := l.node(uid); ok && n.Resource().GroupResource() == evidence.Nodes.GroupResource() {
			nodes[n.Name()] = &onNode{node: n}
		}
	}
	if len(nodes) == 0 {
		return
	}
	begin := func() {
		for _, on := range nodes {
			on.pods, on.running = nil, nil
		}
	}
	l.onNodes = sets.New[types.UID]()
	err := evidence.EachPod(l.ctx, l.Source.Cluster, begin, func(pod *corev1.Pod) {
		on, n := nodes[pod.Spec.NodeName], graph.Node{}
		if on == nil || l.going[pod.UID] {
			return
		}
		n, known := l.node(pod.UID)
		if !known {
			return // it was made since
		}
		on.pods = append(on.pods, n)
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if c := metav1.GetControllerOfNoCopy(pod); !ended && (c == nil || c.Kind != "DaemonSet") {
			on.running = append(on.running, n.Identity())
		}
	})
	for _, on := range nodes {
		on.unread = err
		slices.SortFunc(on.running, graph.Identity.Compare)
		l.nodes = append(l.nodes, on)
		for _, pod := range on.pods {
			l.onNodes.Insert(pod.UID())
		}
	}
	slices.SortFunc(l.nodes, func(a, b *onNode) int { return a.node.Compare(b.node) })
}

// evictions are the nodes that go below pods that run.
func (l *looker) evictions() []Break {
	var all []Break
	for _, on := range l.nodes {
		switch {
		case on.unread != nil:
			all = append(all, Break{Object: on.node.Identity(), Why: say.Of(nodePodsUnread, on.unread)})
		case len(on.running) > 0:
			all = append(all, Break{Object: on.node.Identity(), Why: say.Of(nodeGoes, some(on.running)), Certain: true})
		}
	}
	return all
}

// fallen says what becomes of the volumes of claims that the garbage collector deletes after the pods of nodes that go, and after claims that are freed.
func (l *losses) fallen(freed []graph.Node) []Loss {
	var all []Loss
	after, known := graph.Fall{Set: graph.NewSet(freed...)}, graph.NewSet(freed...)
	for _, on := range l.nodes {
		for _, pod := range on.pods {
			after.Set.Add(pod)
		}
	}
	if after.Set.Len() == 0 {
		return nil
	}
	for uid := range l.going {
		if n, there := l.graph.Node(uid); there {
			after.Set.Add(n)
		}
	}
	after.Spread()
	for _, n := range after.Set.Sorted() {
		if n.Resource().GroupResource() != evidence.Claims.GroupResource() || l.going[n.UID()] || known.Has(n) {
			continue
		}
		for _, loss := range l.volumeOf(n) {
			loss.Why = say.Of(withFall, loss.Why)
			all = append(all, loss)
		}
	}
	return all
}
