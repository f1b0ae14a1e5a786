// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Pods that are not being deleted, and that something waits for.

// controllerOf returns the reference of an object to its controller, nil without one.
func controllerOf(n graph.Node) *metav1.OwnerReference {
	return metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
}

// endPod returns the ways to end a pod, with what follows for the object that waits for it. One that is recreated is
// ended by its workload alone. What a running pod does is lost with it.
func (w *walker) endPod(c *Cause, pod *unstructured.Unstructured, after, afterAll string) []Remedy {
	at := evidence.IdentityOf(pods, "Pod", pod)
	if maker, found := w.makerOf(pod); found {
		return []Remedy{w.scaleDown(w.evidence, maker, afterAll)}
	}
	risk := Dangerous
	if evidence.PodEnded(pod) || !mayRun(w.evidence, pod) {
		risk = Disruptive
	}
	return []Remedy{{Risk: risk, Effect: fmt.Sprintf(deletePod, after) + might(metav1.GetControllerOf(pod), recreateThePod) + w.lingers(c, pod), Action: w.delete(at, byPolicy)}}
}

// scaleDown ends all pods of a workload, which is then out of service. A StatefulSet might delete the claims of all of
// them with them.
func (d commands) scaleDown(r *evidence.Reader, maker graph.Node, afterAll string) Remedy {
	id := maker.Identity()
	way := Remedy{Risk: Disruptive, Effect: fmt.Sprintf(scaleToZero, id, afterAll)}
	full, err := r.Whole(maker)
	if err != nil {
		way.Risk = Dangerous // what else goes with its pods could not be read
		way.Action = shows("%s scale %s --replicas=0", shell.In(d.programs.Kubectl, id.Namespace), shell.Target(id))
		return way
	}
	replicas, stated, _ := unstructured.NestedInt64(full.Object, "spec", "replicas")
	if !stated {
		replicas = 1
	}
	losesClaims := evidence.Nested(full, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete"
	way.Action = d.scaleToNone(id, replicas, losesClaims)
	if losesClaims {
		way.Risk = Dangerous
		way.Loss = []remedy.Loss{{Kind: remedy.LosesData, Unsure: true, What: lostClaims}}
	}
	way.Effect += might(controllerOf(maker), scaleUpAgain)
	return way
}

// mayRun reports whether something might run of a pod that has not ended: its node exists, as far as is known.
func mayRun(r *evidence.Reader, pod *unstructured.Unstructured) bool {
	node := evidence.Nested(pod, "spec", "nodeName")
	if node == "" {
		return false
	}
	_, err := r.Get(nodes, "", node)
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
