// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Devices and groups of pods: pkg/controller/resourceclaim and
// scheduling/podgroupprotection.

// deviceClaim is a ResourceClaim: the pods for which it is reserved go first
// (pkg/controller/resourceclaim).
func (w *walker) deviceClaim(n graph.Node) []hold {
	symptom := draClaimReserved
	const because = "it is reserved for a pod"
	full, err := w.evidence.Whole(n)
	switch {
	case apierrors.IsNotFound(err):
		return gone()
	case err != nil:
		return w.unread(n, because, "the claim", err)
	}
	consumers, _, _ := unstructured.NestedSlice(full.Object, "status", "reservedFor")
	var holds []hold
	for _, entry := range consumers {
		consumer, _ := entry.(map[string]any)
		if evidence.Text(consumer["resource"]) != "pods" || evidence.Text(consumer["apiGroup"]) != "" {
			holds = append(holds, hold{because: "it is reserved for " + evidence.Text(consumer["resource"]) + "/" + evidence.Text(consumer["name"]), cause: w.reservedFor(n, consumer)})
			continue
		}
		pod, err := w.evidence.Get(pods, n.Namespace(), evidence.Text(consumer["name"]))
		if apierrors.IsNotFound(err) || err == nil && (string(pod.GetUID()) != evidence.Text(consumer["uid"]) || evidence.PodEnded(pod)) {
			continue // the controller takes the reservation back
		}
		if err != nil {
			return w.unread(n, because, "pod "+evidence.Text(consumer["name"]), err)
		}
		holds = append(holds, w.objectLink(symptom, because, pods, pod, func() *Cause { return w.deviceUser(n, pod) }))
	}
	if len(holds) > 0 {
		return holds
	}
	what := "no pod uses it; the controller of ResourceClaims has to deallocate it and to remove the finalizer"
	return []hold{w.protection(n, symptom, what)}
}

// deviceUser is a pod that nobody has deleted and that a claim is reserved for.
func (w *walker) deviceUser(claim graph.Node, pod *unstructured.Unstructured) *Cause {
	return w.podUser(draClaimReserved, claim, pod, Evidence{
		Source: claim.Identity().String(), Path: "status.reservedFor", Value: "pods/" + pod.GetName(),
	}, nil)
}

// podUser is a pod that nobody has deleted and that an object waits for.
func (w *walker) podUser(id Kind, n graph.Node, pod *unstructured.Unstructured, first Evidence, loss []remedy.Loss) *Cause {
	at := evidence.IdentityOf(pods, "Pod", pod)
	return w.cause(id, at, n.Identity().String(), func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("it uses %s and is not being deleted", n.Identity())
		c.Evidence = []Evidence{
			first,
			{Source: at.String(), Path: "status.phase", Value: evidence.Nested(pod, "status", "phase")},
			{Source: at.String(), Path: "metadata.deletionTimestamp", Value: "not set"},
		}
		if endsByItself(pod) {
			c.Verdict = Unknown
			c.Summary = fmt.Sprintf("it uses %s until it has done its work, and is not being deleted", n.Identity())
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "spec.restartPolicy", Value: evidence.Nested(pod, "spec", "restartPolicy")})
		}
		after := "after which " + n.Identity().String() + " is deleted"
		c.Remedies = append(w.awaitEnd(pod, after), w.endPod(c, pod, after, after, loss)...)
	})
}

// awaitEnd waits for a pod that works until it is done, if it is one.
func (w *walker) awaitEnd(pod *unstructured.Unstructured, after string) []Remedy {
	if !endsByItself(pod) || evidence.PodEnded(pod) {
		return nil
	}
	return []Remedy{{
		Risk: Safe, Action: shows("%s wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=1h %s", shell.In(w.Kubectl, pod.GetNamespace()), shell.Quote("pod/"+pod.GetName())),
		Effect: "wait until the pod has done its work, " + after,
	}}
}

// endsByItself reports whether a pod is one that works until it is done.
func endsByItself(pod *unstructured.Unstructured) bool {
	policy := evidence.Nested(pod, "spec", "restartPolicy")
	return policy == "Never" || policy == "OnFailure"
}

// reservedFor is a claim that is reserved for something that is not a pod.
func (w *walker) reservedFor(n graph.Node, consumer map[string]any) *Cause {
	return w.cause(draClaimReserved, n.Identity(), evidence.Text(consumer["name"]), func(c *Cause) {
		c.Summary = "it is reserved for something that is not a pod; whoever reserved it has to take that back"
		c.Evidence = []Evidence{evidence.Field(n, "status.reservedFor", fmt.Sprintf("%s.%s/%s", evidence.Text(consumer["resource"]), evidence.Text(consumer["apiGroup"]), evidence.Text(consumer["name"])))}
	})
}

// podGroup is a PodGroup: its pods come to their end first
// (pkg/controller/podgroupprotection).
func (w *walker) podGroup(n graph.Node) []hold {
	symptom := podGroupInUse
	list, err := w.evidence.List(pods, n.Namespace())
	if err != nil {
		return w.unread(n, "may have pods", "pods in namespace "+n.Namespace(), err)
	}
	var holds []hold
	for i := range list {
		if evidence.Nested(&list[i], "spec", "schedulingGroup", "podGroupName") != n.Object().Name || evidence.PodEnded(&list[i]) {
			continue
		}
		holds = append(holds, w.objectLink(symptom, "a pod of it has not ended", pods, &list[i], func() *Cause {
			at := evidence.IdentityOf(pods, "Pod", &list[i])
			return w.podUser(symptom, n, &list[i], Evidence{Source: at.String(), Path: "spec.schedulingGroup.podGroupName", Value: n.Object().Name}, nil)
		}))
	}
	if len(holds) > 0 {
		return holds
	}
	return []hold{w.protection(n, symptom, "all pods of it have ended; the controller of podgroup-protection has to remove the finalizer")}
}
