// SPDX-License-Identifier: Apache-2.0

// Package pod has the rules of pods, and of what waits for pods that are not being deleted.
package pod

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Ending is a way to end a pod, with what else shows what becomes of it.
type Ending struct {
	Ways     []finding.Way
	Evidence []finding.Fact
}

// End returns the ways to end a pod, with what follows for the object that waits for it: after this pod, and after all
// pods of its workload. One that is recreated is ended by its workload alone. What a running pod does is lost with it.
func End(f *rules.Facts, pod *unstructured.Unstructured, after, afterAll say.Text) Ending {
	if maker, found := Maker(f, pod); found {
		return Ending{Ways: []finding.Way{ScaleDown(f.Reader, maker, afterAll)}}
	}
	way := finding.Does(remedy.DeleteOf(evidence.IdentityOf(evidence.Pods, "Pod", pod), metav1.DeleteOptions{}), DeletePod, after)
	way.Blind = !evidence.PodEnded(pod) && mayRun(f.Reader, pod)
	way.Effect = might(way.Effect, metav1.GetControllerOf(pod), MightRecreate)
	return Lingers(f.Reader, pod, way)
}

// might says what the controller of an object might do, nothing without one.
func might(effect say.Text, controller *metav1.OwnerReference, do string) say.Text {
	if controller == nil {
		return effect
	}
	return effect.And(do, controller.Kind, controller.Name)
}

// Await waits for a pod that works until it is done, if it is one.
func Await(pod *unstructured.Unstructured, after say.Text) []finding.Way {
	if !endsByItself(pod) || evidence.PodEnded(pod) {
		return nil
	}
	look := remedy.Look{Words: remedy.UntilSucceeded, Of: evidence.IdentityOf(evidence.Pods, "Pod", pod),
		Args: []string{"pod/" + pod.GetName()}}
	return []finding.Way{finding.See(look, AwaitPod, after)}
}

// endsByItself reports whether a pod is one that works until it is done.
func endsByItself(pod *unstructured.Unstructured) bool {
	policy := evidence.Nested(pod, "spec", "restartPolicy")
	return policy == "Never" || policy == "OnFailure"
}

// Lingers adds to a deletion of a pod that the pod is kept after it because no kubelet ends it, with evidence for that. A
// pod that has ended needs none: the API server gives it no grace period.
func Lingers(r *evidence.Reader, pod *unstructured.Unstructured, way finding.Way) Ending {
	name := evidence.Nested(pod, "spec", "nodeName")
	e := Ending{Ways: []finding.Way{way}}
	says := func(w string, shown ...finding.Fact) Ending {
		e.Ways[0].Effect, e.Evidence = way.Effect.And(w, name), shown
		return e
	}
	if name == "" || evidence.PodEnded(pod) {
		return e
	}
	node, err := r.Get(evidence.Nodes, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return says(NodeMissing, finding.At(evidence.Identity(evidence.Nodes, "", name), "", evidence.DoesNotExist))
	case err != nil:
		return says(NodeUnread)
	}
	silence := SilenceOf(r, node)
	switch {
	case silence == nil:
		return e
	case silence.Certain && (!silence.Program.IsZero() || !silence.OutOfService):
		return says(KubeletSilent, silence.Ready.Fact(silence.Node))
	}
	return says(KubeletUnknown, silence.Ready.Fact(silence.Node))
}

// ScaleDown ends all pods of a workload, which is then out of service. A StatefulSet might delete the claims of all of
// them with them.
func ScaleDown(r *evidence.Reader, maker graph.Node, afterAll say.Text) finding.Way {
	id := maker.Identity()
	full, err := r.Whole(maker)
	if err != nil { // what else goes with its pods could not be read
		way := finding.See(remedy.Look{Words: "scale", Of: id, Flags: " --replicas=0"}, ScaleToZero, id, afterAll)
		way.Blind = true
		return way
	}
	replicas, stated, _ := unstructured.NestedInt64(full.Object, "spec", "replicas")
	if !stated {
		replicas = 1
	}
	op := remedy.ScaleOf(id, remedy.Replicas{Current: replicas})
	way := finding.Does(op, ScaleToZero, id, afterAll)
	if evidence.DeletesScaled(full) {
		way.Loss = []remedy.Loss{{Kind: remedy.LosesData, Unsure: true, What: say.Of(LostClaims)}}
	} else {
		back := remedy.ScaleOf(id, remedy.Replicas{Wanted: replicas})
		way.Op.Back = &back
	}
	way.Effect = might(way.Effect, rules.ControllerOf(maker), MightScaleUp)
	return way
}

// mayRun reports whether something might run of a pod that has not ended: its node exists, as far as is known.
func mayRun(r *evidence.Reader, pod *unstructured.Unstructured) bool {
	node := evidence.Nested(pod, "spec", "nodeName")
	if node == "" {
		return false
	}
	_, err := r.Get(evidence.Nodes, "", node)
	return !apierrors.IsNotFound(err)
}

// Maker returns the workload that recreates such a pod as long as it is to have any, the highest that is known: the
// Deployment of a ReplicaSet.
func Maker(f *rules.Facts, pod *unstructured.Unstructured) (graph.Node, bool) {
	var top graph.Node
	n, known := f.Node(evidence.Pods.GroupResource(), pod.GetNamespace(), pod.GetUID())
	found := false
	for known {
		ref := rules.ControllerOf(n)
		if ref == nil {
			break
		}
		f.Owners(n)
		n, known = f.Graph.Node(ref.UID)
		if known && !n.Virtual() && !n.BeingDeleted() && slices.Contains([]string{"ReplicaSet", "Deployment", "StatefulSet"},
			n.Resource().Kind) && n.Resource().Group == "apps" {
			top, found = n, true
		}
	}
	return top, found
}
