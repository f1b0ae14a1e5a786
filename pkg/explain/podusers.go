// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Pods that nobody is deleting, and that something waits for.

// maker returns the workload that makes such a pod again as long as it is to have
// any, the highest that is known: the Deployment of a ReplicaSet.
func (w *walker) maker(pod *unstructured.Unstructured) (graph.Node, bool) {
	var top graph.Node
	n, known := w.evidence.Node(pods.GroupResource(), pod.GetNamespace(), pod.GetUID())
	found := false
	for known {
		ref := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
		if ref == nil {
			break
		}
		w.evidence.Owners(n)
		n, known = w.Graph.Node(ref.UID)
		if known && !n.Virtual() && !n.BeingDeleted() && slices.Contains([]string{"ReplicaSet", "Deployment", "StatefulSet"}, n.Resource().Kind) && n.Resource().Group == "apps" {
			top, found = n, true
		}
	}
	return top, found
}

// madeBy counts the pods that a workload makes.
func (w *walker) madeBy(maker graph.Node, pods []*unstructured.Unstructured) int {
	count := 0
	for _, pod := range pods {
		if m, found := w.maker(pod); found && m.UID() == maker.UID() {
			count++
		}
	}
	return count
}

// endPod returns the ways to end a pod, with what becomes of what waits for it. One
// that is made again is ended by its workload alone. What a running pod does is lost
// with it.
func (w *walker) endPod(c *Cause, pod *unstructured.Unstructured, after, afterAll string, loss []remedy.Loss) []Remedy {
	at := evidence.IdentityOf(pods, "Pod", pod)
	if maker, found := w.maker(pod); found {
		return []Remedy{w.scaleDown(maker, afterAll, loss)}
	}
	effect, risk := "delete the pod, "+after, Dangerous
	if evidence.PodEnded(pod) || !w.mayRun(pod) {
		risk = Disruptive
	}
	if ref := metav1.GetControllerOf(pod); ref != nil {
		effect += fmt.Sprintf("; its controller %s/%s might recreate it", ref.Kind, ref.Name)
	}
	return []Remedy{{Risk: risk, Effect: effect + w.lingers(c, pod), Loss: loss, Action: w.delete(at, byPolicy)}}
}

// scaleDown ends all pods of a workload, which is out of service then. A StatefulSet may
// delete the claims of all of them with them.
func (w *walker) scaleDown(maker graph.Node, afterAll string, loss []remedy.Loss) Remedy {
	id := maker.Identity()
	way := Remedy{
		Risk: Disruptive, Loss: loss,
		Effect: fmt.Sprintf("scale %s to 0 (it recreates pods that are only deleted), %s", id, afterAll),
	}
	full, err := w.evidence.Whole(maker)
	if err != nil {
		way.Risk = Dangerous // what else goes with its pods could not be read
		way.Action = shows("%s scale %s --replicas=0", shell.In(w.Kubectl, id.Namespace), shell.Target(id))
		return way
	}
	replicas, stated, _ := unstructured.NestedInt64(full.Object, "spec", "replicas")
	if !stated {
		replicas = 1
	}
	losesClaims := evidence.Nested(full, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete"
	way.Action = w.scaleToNone(id, replicas, losesClaims)
	if losesClaims {
		way.Risk = Dangerous
		way.Loss = []remedy.Loss{{Kind: remedy.LosesData, Unsure: true, What: "the claims of all its pods, which it deletes when scaled down (persistentVolumeClaimRetentionPolicy), with their data unless their volumes are retained"}}
	}
	if owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: maker.Object().OwnerReferences}); owner != nil {
		way.Effect += fmt.Sprintf("; its controller %s/%s might scale it up again", owner.Kind, owner.Name)
	}
	return way
}

// mayRun reports whether something may run of a pod that has not ended: it is on a node
// that is there, as far as is known.
func (w *walker) mayRun(pod *unstructured.Unstructured) bool {
	node := evidence.Nested(pod, "spec", "nodeName")
	if node == "" {
		return false
	}
	_, err := w.evidence.Get(nodes, "", node)
	return !apierrors.IsNotFound(err)
}

// endedOf counts the pods of a controller that have ended.
func endedOf(controller types.UID, users []*unstructured.Unstructured) int {
	n := 0
	for _, pod := range users {
		if ref := metav1.GetControllerOf(pod); ref != nil && ref.UID == controller && evidence.PodEnded(pod) {
			n++
		}
	}
	return n
}
