// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// unreadGraceSeconds is the grace period of a pod that could not be read: the
// API's default. What becomes of such a pod is unknown anyway.
const unreadGraceSeconds = 30

// gracePeriod returns the grace period of a pod's first DELETE
// (registry/core/pod/strategy.go, CheckGracefulDelete).
func (s *Server) gracePeriod(o *graph.Object, requested *int64) int64 {
	facts, read := s.snapshot.Facts.Pods[o.UID]
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
func (s *Server) node(name string) NodeState {
	h, found := s.located(location{nodeResource, "", name})
	reports, read := s.snapshot.Facts.Nodes[name]
	switch {
	case found && s.isGone(h):
		return NodeAbsent
	case read && reports:
		return NodeReports
	case read:
		return NodeSilent
	case !found && s.snapshot.Facts.NodesRead:
		return NodeAbsent
	}
	return NodeUnread
}

// planPod plans what ends a terminating pod: the kubelet of its node, or
// podgc when there is no node.
func (s *Server) planPod(o *graph.Object) {
	facts, read := s.snapshot.Facts.Pods[o.UID]
	if !read || s.nothingButFinalizers(o) && len(o.Finalizers) > 0 {
		return
	}
	node := NodeAbsent
	if facts.NodeName != "" {
		node = s.node(facts.NodeName)
	}
	switch {
	case node == NodeReports && s.actors.Kubelets:
		s.plan(kubeletEndsPod, o.UID, s.kubeletTime(o, facts).Add(kubeletDelay))
	case node == NodeAbsent && s.actors.PodGC:
		s.plan(podGCDeletesPod, o.UID, s.now.Add(podGCDelay))
	}
}

// kubeletTime returns when the kubelet is done with the containers: at the end
// of the grace period, which may be past. For the mirror of a static pod it
// waits for nothing.
func (s *Server) kubeletTime(o *graph.Object, facts graph.PodFacts) time.Time {
	if facts.Mirror || o.DeletionTimestamp.Before(&metav1.Time{Time: s.now}) {
		return s.now
	}
	return o.DeletionTimestamp.Time
}

// kubeletEnds deletes a pod whose containers have stopped
// (pkg/kubelet/status/status_manager.go, syncPod; pkg/kubelet/pod/
// mirror_client.go, DeleteMirrorPod).
func (s *Server) kubeletEnds(o graph.Object) {
	facts := s.snapshot.Facts.Pods[o.UID]
	switch {
	case !o.BeingDeleted() || s.node(facts.NodeName) != NodeReports:
	case s.kubeletTime(&o, facts).After(s.now): // the grace period is not over
	default:
		s.forceDelete(o)
	}
}

func (s *Server) forceDelete(o graph.Object) {
	s.deleteAs(o, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      &metav1.Preconditions{UID: &o.UID},
	})
}

// startPodGC plans the deletion of the pods whose node does not exist,
// terminating or not (pkg/controller/podgc/gc_controller.go, gcOrphaned), and
// remembers which pods each of the other nodes has.
func (s *Server) startPodGC() {
	if !s.actors.PodGC {
		return
	}
	var pods []graph.Handle // of which the node is known, in the order of the snapshot
	for uid, facts := range s.snapshot.Facts.Pods {
		if h, listed := s.snapshot.Handle(uid); listed && facts.NodeName != "" {
			pods = append(pods, h)
		}
	}
	slices.Sort(pods)
	for _, h := range pods {
		uid := s.snapshot.UID(h)
		node := s.snapshot.Facts.Pods[uid].NodeName
		s.podsOn[node] = append(s.podsOn[node], uid)
	}
	for _, name := range slices.Sorted(maps.Keys(s.podsOn)) {
		if s.node(name) == NodeAbsent {
			s.planPodsOf(name)
		}
	}
}

// planPodsOf plans the deletion of the pods on a node that does not exist, or is out of service.
func (s *Server) planPodsOf(node string) {
	for _, uid := range s.podsOn[node] {
		s.plan(podGCDeletesPod, uid, s.now.Add(podGCDelay))
	}
}

// podGCDeletes deletes a pod without a node (pkg/controller/podgc/
// gc_controller.go, gcOrphaned, gcUnscheduledTerminating and gcTerminating).
func (s *Server) podGCDeletes(o graph.Object) {
	facts := s.snapshot.Facts.Pods[o.UID]
	node := s.node(facts.NodeName)
	if facts.NodeName == "" && o.BeingDeleted() || facts.NodeName != "" && node == NodeAbsent ||
		o.BeingDeleted() && node == NodeSilent && s.tainted.Has(facts.NodeName) {
		s.forceDelete(o)
	}
}
