// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// endsPods reports whether a way out ends pods.
func endsPods(r *explain.Remedy) bool { return r.Operation != nil && r.Operation.EndsPods() }

// shrunk are the namespaces of the workloads of which a way out ends pods.
func shrunk(way []*explain.Remedy) sets.Set[string] {
	all := sets.New[string]()
	for _, r := range way {
		if endsPods(r) {
			all.Insert(r.Operation.Object.Namespace)
		}
	}
	return all.Delete("")
}

// findEnded finds out what goes with the pods that ways out end. What cannot be read is Unlisted.
func (l *Look) findEnded(ctx context.Context, cluster evidence.Cluster) {
	l.ended = map[types.UID][]graph.Node{}
	tainted := map[string]*remedy.Op{}
	for _, c := range l.Report.Causes {
		for i := range c.Remedies {
			switch r := &c.Remedies[i]; {
			case c.Verdict != explain.Stuck || !endsPods(r):
			case r.Operation.Verb == remedy.Taint:
				tainted[r.Operation.Object.Name] = r.Operation
			default:
				l.ended[r.Operation.Object.UID] = slices.Concat(l.ofPods(r.Operation), l.scaledAway(ctx, cluster, r.Operation))
			}
		}
	}
	if len(tainted) > 0 {
		l.findEvicted(ctx, cluster, tainted)
	}
}

// ofPods are the dependents of the pods of a workload that goes without them.
func (l *Look) ofPods(op *remedy.Op) []graph.Node {
	workload, known := l.Graph.Node(op.Object.UID)
	if !known {
		return nil // no claim that was read has it for an owner
	}
	below := graph.Fall{Set: graph.NewSet(workload)}
	below.Spread()
	pods := slices.DeleteFunc(below.Set.Sorted(), func(n graph.Node) bool { return !n.Resource().IsPod() })
	after := graph.Fall{Set: graph.NewSet(pods...)}
	after.Spread()
	return slices.DeleteFunc(after.Set.Sorted(), func(n graph.Node) bool { return slices.Contains(pods, n) })
}

// scaledAway are the claims that a StatefulSet deletes when it is made smaller.
func (l *Look) scaledAway(ctx context.Context, cluster evidence.Cluster, op *remedy.Op) []graph.Node {
	if op.Verb != remedy.Scale || op.Object.Resource.GroupResource() != evidence.StatefulSets.GroupResource() {
		return nil
	}
	set, err := cluster.Read(ctx, op.Object.Resource.GroupVersionResource, op.Object.Namespace, op.Object.Name)
	if err != nil {
		l.Unlisted = append(l.Unlisted, claimsIn(sets.New("", op.Object.Namespace))...)
		return nil
	}
	var all []graph.Node
	for n := range l.Graph.Nodes() {
		claim := !n.Virtual() && n.Resource().GroupResource() == evidence.Claims.GroupResource() && n.Namespace() == op.Object.Namespace
		if claim && evidence.ScalesAway(set, op.Replicas.Wanted, n.Name()) {
			all = append(all, n)
		}
	}
	return all
}

// findEvicted finds out which pods taints have deleted that ways out put on nodes: those that do not tolerate it for good
// (pkg/controller/tainteviction), and those that are being deleted already (pkg/controller/podgc, gcTerminating).
func (l *Look) findEvicted(ctx context.Context, cluster evidence.Cluster, tainted map[string]*remedy.Op) {
	unread := false
	begin := func() {
		unread = false
		for _, op := range tainted {
			delete(l.ended, op.Object.UID)
		}
	}
	err := evidence.EachPod(ctx, cluster, begin, func(pod *corev1.Pod) {
		op := tainted[pod.Spec.NodeName]
		if op == nil || pod.DeletionTimestamp == nil && tolerates(pod, remedy.ParseTaint(op.Value)) {
			return
		}
		n, known := l.Graph.Node(pod.UID)
		if unread = unread || !known; known {
			l.ended[op.Object.UID] = append(l.ended[op.Object.UID], n)
		}
	})
	if unread || err != nil {
		l.Unlisted = append(l.Unlisted, graph.Part{Resource: evidence.Pods.GroupResource()})
	}
}

// tolerates reports whether a pod tolerates a taint for good: the first of its tolerations that matches decides.
func tolerates(pod *corev1.Pod, taint remedy.NodeTaint) bool {
	of := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
	at := slices.IndexFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, &of, false) })
	return at >= 0 && pod.Spec.Tolerations[at].TolerationSeconds == nil
}
