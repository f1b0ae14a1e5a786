// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// unreadGraceSeconds is the grace period of a pod that could not be read: the
// API's default. What becomes of such a pod is unknown anyway.
const unreadGraceSeconds = 30

// gracePeriod returns the grace period of a pod's first DELETE
// (registry/core/pod/strategy.go, CheckGracefulDelete).
func (v *view) gracePeriod(o *graph.Object, requested *int64) int64 {
	facts, read := v.snapshot.Facts.Pods[o.UID]
	period := int64(unreadGraceSeconds)
	switch {
	case read && (facts.NodeName == "" || facts.Phase == "Succeeded" || facts.Phase == "Failed"):
		return 0
	case requested != nil:
		period = *requested
	case read:
		period = facts.TerminationGracePeriodSeconds
	}
	if period < 0 {
		return 1
	}
	return period
}

// NodeState says what is known of a node.
type NodeState int

// The states of a node.
const (
	// NodeUnread: whether there is such a node, or whether its kubelet reports,
	// was not read.
	NodeUnread NodeState = iota
	// NodeReports: the node's kubelet reports.
	NodeReports
	// NodeSilent: the node exists and its kubelet does not report.
	NodeSilent
	// NodeAbsent: there is no such node.
	NodeAbsent
)

// String returns the state's name for messages.
func (n NodeState) String() string {
	return [...]string{"Unread", "Reports", "Silent", "Absent"}[n]
}

// node returns the state of a node. One that is gone is absent, whatever was
// read before.
func (v *view) node(name string) NodeState {
	h, found := v.located(location{nodeResource, "", name})
	reports, read := v.snapshot.Facts.Nodes[name]
	switch {
	case found && v.isGone(h):
		return NodeAbsent
	case read && reports:
		return NodeReports
	case read:
		return NodeSilent
	case !found && v.snapshot.Facts.NodesRead:
		return NodeAbsent
	}
	return NodeUnread
}

// podControllers end pods: kubelets those on their nodes, podgc those without a node. They own which pods are
// on which node, and which nodes are out of service.
type podControllers struct {
	view    *view
	clock   *clock
	actors  *Actors
	api     api
	podsOn  map[string][]types.UID // for podgc, by node
	tainted sets.Set[string]       // nodes that Do put out of service
}

// planPod plans what ends a terminating pod: the kubelet of its node, or
// podgc when there is no node.
func (p *podControllers) planPod(o *graph.Object) {
	facts, read := p.view.snapshot.Facts.Pods[o.UID]
	if !read || p.view.nothingButFinalizers(o) && len(o.Finalizers) > 0 {
		return
	}
	node := NodeAbsent
	if facts.NodeName != "" {
		node = p.view.node(facts.NodeName)
	}
	switch {
	case node == NodeReports && p.actors.Kubelets:
		p.clock.plan(kubeletEndsPod, o.UID, p.kubeletTime(o, facts).Add(kubeletDelay))
	case node == NodeAbsent && p.actors.PodGC:
		p.clock.after(podGCDeletesPod, o.UID, podGCDelay)
	}
}

// kubeletTime returns when the kubelet is done with the containers: at the end
// of the grace period, which may be past. For the mirror of a static pod it
// waits for nothing.
func (p *podControllers) kubeletTime(o *graph.Object, facts graph.PodFacts) time.Time {
	if facts.Mirror || o.DeletionTimestamp.Before(&metav1.Time{Time: p.clock.now}) {
		return p.clock.now
	}
	return o.DeletionTimestamp.Time
}

// kubeletEnds deletes a pod whose containers have stopped
// (pkg/kubelet/status/status_manager.go, syncPod; pkg/kubelet/pod/
// mirror_client.go, DeleteMirrorPod).
func (p *podControllers) kubeletEnds(o graph.Object) {
	facts := p.view.snapshot.Facts.Pods[o.UID]
	switch {
	case !o.BeingDeleted() || p.view.node(facts.NodeName) != NodeReports:
	case p.kubeletTime(&o, facts).After(p.clock.now): // the grace period is not over
	default:
		p.forceDelete(o)
	}
}

func (p *podControllers) forceDelete(o graph.Object) {
	p.api.deleteAs(o, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// startPodGC plans the deletion of the pods whose node does not exist,
// terminating or not (pkg/controller/podgc/gc_controller.go, gcOrphaned), and
// remembers which pods each of the other nodes has.
func (p *podControllers) startPodGC() {
	if !p.actors.PodGC {
		return
	}
	var pods []graph.Handle // of which the node is known, in the order of the snapshot
	for uid, facts := range p.view.snapshot.Facts.Pods {
		if h, listed := p.view.snapshot.Handle(uid); listed && facts.NodeName != "" {
			pods = append(pods, h)
		}
	}
	slices.Sort(pods)
	for _, h := range pods {
		uid := p.view.snapshot.UID(h)
		node := p.view.snapshot.Facts.Pods[uid].NodeName
		p.podsOn[node] = append(p.podsOn[node], uid)
	}
	for _, name := range slices.Sorted(maps.Keys(p.podsOn)) {
		if p.view.node(name) == NodeAbsent {
			p.planPodsOf(name)
		}
	}
}

// planPodsOf plans the deletion of the pods on a node that does not exist, or is out of service.
func (p *podControllers) planPodsOf(node string) {
	for _, uid := range p.podsOn[node] {
		p.clock.after(podGCDeletesPod, uid, podGCDelay)
	}
}

// podGCDeletes deletes a pod without a node (pkg/controller/podgc/
// gc_controller.go, gcOrphaned, gcUnscheduledTerminating and gcTerminating).
func (p *podControllers) podGCDeletes(o graph.Object) {
	facts := p.view.snapshot.Facts.Pods[o.UID]
	node := p.view.node(facts.NodeName)
	if facts.NodeName == "" && o.BeingDeleted() || facts.NodeName != "" && node == NodeAbsent ||
		o.BeingDeleted() && node == NodeSilent && p.tainted.Has(facts.NodeName) {
		p.forceDelete(o)
	}
}
