// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Claims and volumes: pkg/controller/volume/pvcprotection and pvprotection.

// claim is the finalizer kubernetes.io/pvc-protection: pods on nodes that use the claim have to end first
// (pkg/controller/volume/pvcprotection).
func (w *walker) claim(n graph.Node) []hold {
	o := n.Object()
	list, err := w.evidence.PodsWithClaims(o.Namespace)
	if err != nil {
		return w.unread(n, mightHaveUsers, fmt.Sprintf(podsIn, o.Namespace), err)
	}
	var users []*unstructured.Unstructured
	for i := range list {
		if evidence.ProtectsClaim(&list[i], o) {
			users = append(users, &list[i])
		}
	}
	var holds []hold
	for _, pod := range users {
		user, known := w.evidence.Node(pods.GroupResource(), o.Namespace, pod.GetUID())
		if known && user.BeingDeleted() {
			holds = append(holds, hold{symptom: finding.PvcInUse, because: usedByEnding, next: &user})
		} else {
			holds = append(holds, hold{symptom: finding.PvcInUse, because: usedByPod, cause: w.user(n, pod, users)})
		}
	}
	if len(holds) > 0 {
		return holds
	}
	return []hold{w.protection(n, finding.PvcInUse, claimUnused)}
}

// user is a pod that is not being deleted and that uses a claim, one of its users.
func (w *walker) user(claim graph.Node, pod *unstructured.Unstructured, users []*unstructured.Unstructured) *Cause {
	at := evidence.IdentityOf(pods, "Pod", pod)
	return w.cause(finding.PvcInUse, at, claim.Identity().String(), func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(claimUsed, claim.Name())
		if pod.GetDeletionTimestamp() != nil { // since the lists were made
			c.Verdict, c.Summary = Progressing, fmt.Sprintf(claimReleased, claim.Name())
			return
		}
		c.Evidence = []Evidence{
			{Source: at.String(), Path: "spec.volumes", Value: "persistentVolumeClaim " + claim.Object().Name},
			{Source: at.String(), Path: "status.phase", Value: evidence.Nested(pod, "status", "phase")},
			{Source: at.String(), Path: "metadata.deletionTimestamp", Value: notSet},
		}
		ref := metav1.GetControllerOf(pod)
		maker, found := w.makerOf(pod)
		data := w.storage.dataOf(claim)
		if found && maker.Resource().Kind == "StatefulSet" && ofItsTemplate(pod, claim.Name()) {
			scale := w.scaleDown(w.evidence, maker, released(claim, len(users)-w.madeBy(maker, users)))
			c.Remedies = data.losing(scale, w.renew(c, pod, maker, released(claim, len(users)-1)))
			return
		}
		after, afterAll := released(claim, len(users)-1), released(claim, 0)
		if found {
			afterAll = released(claim, len(users)-w.madeBy(maker, users))
		}
		c.Remedies = append(w.awaitEnd(pod, after), data.losing(w.endPod(c, pod, after, afterAll)...)...)
		if ref != nil && ref.Kind == "Job" && evidence.PodEnded(pod) {
			job := evidence.Identity(jobs, pod.GetNamespace(), ref.Name)
			job.UID = ref.UID
			end := Remedy{
				Risk: Disruptive, Action: w.delete(job, background),
				Effect: fmt.Sprintf(deleteFinishedJob, ref.Name, released(claim, len(users)-endedOf(ref.UID, users))),
				Loss:   losesObject(job, lostJobResult),
			}
			if data.lost != nil {
				end.Risk, end.Loss = Dangerous, append(end.Loss, *data.lost)
			}
			c.Remedies = append(c.Remedies, end)
		}
	})
}

// ofItsTemplate reports whether a claim is one that a StatefulSet has made for the pod
// (pkg/controller/statefulset/stateful_set_utils.go, getPersistentVolumeClaimName).
func ofItsTemplate(pod *unstructured.Unstructured, claim string) bool {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName")
		return name == claim && claim == evidence.Text(volume["name"])+"-"+pod.GetName()
	})
}

// renew ends a pod of a StatefulSet whose own claim is being deleted: the next claim is not created before that has been
// (pkg/controller/statefulset/stateful_pod_control.go, createPersistentVolumeClaims).
func (w *walker) renew(c *Cause, pod *unstructured.Unstructured, set graph.Node, after string) Remedy {
	return Remedy{
		Risk:   Disruptive,
		Effect: fmt.Sprintf(renewPod, after, set.Identity()) + w.lingers(c, pod),
		Action: w.delete(evidence.IdentityOf(pods, "Pod", pod), byPolicy),
	}
}

// released says what becomes of a claim that so many pods still use.
func released(claim graph.Node, users int) string {
	switch {
	case users == 1:
		return claimUsedByOne
	case users > 1:
		return fmt.Sprintf(claimUsedByMore, users)
	case len(claim.Object().Finalizers) > 1:
		return claimUnprotected
	}
	return claimDeletable
}

// lingers says that a pod is kept after its deletion because no kubelet ends it, with evidence for that. A pod that has
// ended needs none: the API server gives it no grace period.
func (w *walker) lingers(c *Cause, pod *unstructured.Unstructured) string {
	name := evidence.Nested(pod, "spec", "nodeName")
	if name == "" || evidence.PodEnded(pod) {
		return ""
	}
	node, err := w.evidence.Get(nodes, "", name)
	switch {
	case apierrors.IsNotFound(err):
		c.Evidence = append(c.Evidence, Evidence{Source: "Node/" + name, Value: doesNotExist})
		return fmt.Sprintf(nodeMissing, name)
	case err != nil:
		return fmt.Sprintf(nodeUnread, name)
	}
	down := w.nodeDown(node)
	if down == nil {
		return ""
	}
	c.Evidence = append(c.Evidence, down.Evidence[0])
	if down.Verdict != Stuck {
		return fmt.Sprintf(kubeletUnknown, name)
	}
	return fmt.Sprintf(kubeletSilent, name)
}

// volume is the finalizer kubernetes.io/pv-protection: a volume that is bound is kept
// (pkg/controller/volume/pvprotection).
func (w *walker) volume(n graph.Node) []hold {
	full, unread := w.whole(n, mightBeBound, "the volume")
	if full == nil {
		return unread
	}
	if evidence.Nested(full, "status", "phase") != "Bound" {
		return []hold{w.protection(n, finding.PvBound, unbound)}
	}
	namespace, name := evidence.Nested(full, "spec", "claimRef", "namespace"), evidence.Nested(full, "spec", "claimRef", "name")
	claim, err := w.evidence.Get(claims, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return []hold{w.protection(n, finding.PvBound, claimGone)}
	case err != nil:
		return w.unread(n, isBound, fmt.Sprintf("claim %s/%s", namespace, name), err)
	}
	because := fmt.Sprintf(boundTo, namespace, name)
	if m, known := w.evidence.Node(claims.GroupResource(), namespace, claim.GetUID()); known && m.BeingDeleted() {
		return []hold{{symptom: finding.PvBound, because: because, next: &m}}
	}
	return []hold{{because: because, cause: w.bound(n, claim)}}
}

// bound is a claim that is not being deleted and that has a volume.
func (w *walker) bound(volume graph.Node, claim *unstructured.Unstructured) *Cause {
	at := evidence.IdentityOf(claims, "PersistentVolumeClaim", claim)
	return w.cause(finding.PvBound, at, "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(claimBinds, volume.Name())
		c.Evidence = []Evidence{
			evidence.Field(volume, "status.phase", "Bound"),
			{Source: at.String(), Path: "metadata.deletionTimestamp", Value: notSet},
		}
		data := stored{lost: mayLoseData()}
		if full, err := w.evidence.Whole(volume); err == nil {
			data = w.storage.dataOn(full)
		}
		c.Remedies = data.losing(Remedy{Risk: Disruptive, Effect: deleteClaim, Action: w.delete(at, byPolicy)})
	})
}
