// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
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

// findEnded finds out what goes with the pods that ways out end, and what others delete once an object is freed, and then what these lead
// to. What cannot be read is Unlisted.
func (l *Look) findEnded(reader *evidence.Reader, f *ensuing.Finder) {
	l.ended, l.unwanted = map[types.UID][]graph.Node{}, map[schema.GroupResource][]graph.Node{}
	var may graph.Fall
	tainted := map[string]*remedy.Op{}
	for _, c := range l.Report.Causes {
		if c.Verdict != explain.Stuck {
			continue
		}
		for i := range c.Remedies {
			r := &c.Remedies[i]
			switch {
			case !endsPods(r):
			case r.Operation.Verb == remedy.Taint:
				tainted[r.Operation.Object.Name] = r.Operation
			default:
				pods := l.podsOf(r.Operation.Object.UID)
				may.Set.AddAll(graph.NewSet(pods...))
				l.ended[r.Operation.Object.UID] = slices.Concat(ofPods(pods), l.scaledAway(reader, r.Operation))
			}
			if l.reaches([]*explain.Remedy{r}) {
				may.Set.AddAll(graph.NewSet(f.Leaving()...))
				may.Set.AddAll(l.findUnwanted(f, c))
			}
		}
		may.Set.AddAll(graph.NewSet(l.frees(c, nil)...))
	}
	l.findEvicted(f, tainted)
	for _, ended := range l.ended {
		may.Set.AddAll(graph.NewSet(ended...))
	}
	var asked graph.Set
	for before := -1; asked.Len() > before; {
		before = asked.Len()
		may.Spread()
		fresh := slices.DeleteFunc(may.Set.Sorted(), func(n graph.Node) bool { return n.Virtual() || !asked.Add(n) })
		effects, unread := f.After(fresh, graph.Set{})
		for _, n := range unread {
			l.unread(n.Identity())
		}
		for _, e := range effects {
			l.ended[e.Of.UID()] = append(l.ended[e.Of.UID()], e.Nodes...)
			may.Set.AddAll(graph.NewSet(e.Nodes...))
		}
		l.guards = map[*ensuing.Guard][]graph.Node{}
		for _, g := range f.Guards(asked) {
			l.guards[g] = f.Waiting(g)
			may.Set.AddAll(graph.NewSet(l.guards[g]...))
		}
	}
}

// findUnwanted finds out what the controller that a cause is about deletes as soon as it acts, whatever it is to act for.
func (l *Look) findUnwanted(f *ensuing.Finder, c *explain.Cause) (all graph.Set) {
	for of := range l.waiting(c).types {
		unwanted, unread := f.Unwanted(of)
		for _, n := range unread {
			l.unread(n.Identity())
		}
		l.unwanted[of] = unwanted.Sorted()
		all.AddAll(unwanted)
	}
	return all
}

// unread notes that it is not known what ensues of an object.
func (l *Look) unread(id graph.Identity) {
	parts := l.dataIn(sets.New("", id.Namespace))
	if id.Resource.GroupResource() == evidence.Nodes.GroupResource() {
		parts = []graph.Part{{Resource: evidence.Pods.GroupResource()}}
	}
	l.Unlisted = append(l.Unlisted, parts...)
}

// podsOf are the pods of a workload.
func (l *Look) podsOf(workload types.UID) []graph.Node {
	n, known := l.Graph.Node(workload)
	if !known {
		return nil // nothing that was read has it for an owner
	}
	below := graph.Fall{Set: graph.NewSet(n)}
	below.Spread()
	return slices.DeleteFunc(below.Set.Sorted(), func(n graph.Node) bool { return !n.Resource().IsPod() })
}

// ofPods are the dependents of pods.
func ofPods(pods []graph.Node) []graph.Node {
	after := graph.Fall{Set: graph.NewSet(pods...)}
	after.Spread()
	return slices.DeleteFunc(after.Set.Sorted(), func(n graph.Node) bool { return slices.Contains(pods, n) })
}

// scaledAway are the claims that a StatefulSet deletes when it is made smaller.
func (l *Look) scaledAway(reader *evidence.Reader, op *remedy.Op) []graph.Node {
	if op.Verb != remedy.Scale || op.Object.Resource.GroupResource() != evidence.StatefulSets.GroupResource() {
		return nil
	}
	set, err := reader.Get(op.Object.Resource.GroupVersionResource, op.Object.Namespace, op.Object.Name)
	if err != nil {
		l.unread(op.Object)
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

// findEvicted finds out which pods are deleted of nodes that ways out put taints on: those that do not tolerate it for good
// (pkg/controller/tainteviction), and those that are being deleted already (pkg/controller/podgc, gcTerminating).
func (l *Look) findEvicted(f *ensuing.Finder, tainted map[string]*remedy.Op) {
	nodes, taints := map[string]*ensuing.OnNode{}, map[*ensuing.OnNode]remedy.NodeTaint{}
	for name, op := range tainted {
		nodes[name] = &ensuing.OnNode{}
		taints[nodes[name]] = remedy.ParseTaint(op.Value)
	}
	f.EachPodOn(nodes, func(on *ensuing.OnNode, pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !tolerates(pod, taints[on])
	})
	for name, on := range nodes {
		detached, err := f.DetachedFrom(name)
		l.ended[tainted[name].Object.UID] = slices.Concat(on.Running, on.Others, detached)
		if err != nil || on.Unread != nil || on.Unknown {
			l.unread(tainted[name].Object)
		}
	}
}

// tolerates reports whether a pod tolerates a taint for good: the first of its tolerations that matches decides.
func tolerates(pod *corev1.Pod, taint remedy.NodeTaint) bool {
	of := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
	at := slices.IndexFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, &of, false) })
	return at >= 0 && pod.Spec.Tolerations[at].TolerationSeconds == nil
}
