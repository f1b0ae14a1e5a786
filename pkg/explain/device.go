// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Devices and groups of pods: pkg/controller/resourceclaim and
// scheduling/podgroupprotection.

// deviceClaim is a ResourceClaim: the pods for which it is reserved have to end first (pkg/controller/resourceclaim).
func (w *walker) deviceClaim(n graph.Node) []hold {
	full, unread := w.whole(n, reservedForPod, "the claim")
	if full == nil {
		return unread
	}
	consumers, _, _ := unstructured.NestedSlice(full.Object, "status", "reservedFor")
	var holds []hold
	for _, entry := range consumers {
		consumer, _ := entry.(map[string]any)
		if evidence.Text(consumer["resource"]) != "pods" || evidence.Text(consumer["apiGroup"]) != "" {
			holds = append(holds, hold{because: fmt.Sprintf(reservedForObject, evidence.Text(consumer["resource"]), evidence.Text(consumer["name"])), cause: w.reservedFor(n, consumer)})
			continue
		}
		pod, err := w.evidence.Get(pods, n.Namespace(), evidence.Text(consumer["name"]))
		if apierrors.IsNotFound(err) || err == nil && (string(pod.GetUID()) != evidence.Text(consumer["uid"]) || evidence.PodEnded(pod)) {
			continue // the controller takes the reservation back
		}
		if err != nil {
			return w.unread(n, reservedForPod, "pod "+evidence.Text(consumer["name"]), err)
		}
		holds = append(holds, objectLink(w.evidence, finding.DraClaimReserved, reservedForPod, pods, pod, func() *Cause {
			return w.podUser(finding.DraClaimReserved, n, pod, Evidence{Source: n.Identity().String(), Path: "status.reservedFor", Value: "pods/" + pod.GetName()})
		}))
	}
	if len(holds) > 0 {
		return holds
	}
	return []hold{w.protection(n, finding.DraClaimReserved, deviceFree)}
}

// podUser is a pod that is not being deleted and that an object waits for.
func (w *walker) podUser(id Kind, n graph.Node, pod *unstructured.Unstructured, first Evidence) *Cause {
	at := evidence.IdentityOf(pods, "Pod", pod)
	return w.cause(id, at, n.Identity().String(), func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(podUses, n.Identity())
		c.Evidence = []Evidence{
			first,
			{Source: at.String(), Path: "status.phase", Value: evidence.Nested(pod, "status", "phase")},
			{Source: at.String(), Path: "metadata.deletionTimestamp", Value: notSet},
		}
		if endsByItself(pod) {
			c.Verdict, c.Summary = Unknown, fmt.Sprintf(podUsesUntilDone, n.Identity())
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "spec.restartPolicy", Value: evidence.Nested(pod, "spec", "restartPolicy")})
		}
		after := fmt.Sprintf(thenDeleted, n.Identity())
		c.Remedies = append(w.awaitEnd(pod, after), w.endPod(c, pod, after, after)...)
	})
}

// awaitEnd waits for a pod that works until it is done, if it is one.
func (d commands) awaitEnd(pod *unstructured.Unstructured, after string) []Remedy {
	if !endsByItself(pod) || evidence.PodEnded(pod) {
		return nil
	}
	return []Remedy{see(fmt.Sprintf(awaitPod, after), "%s wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=1h %s", shell.In(d.programs.Kubectl, pod.GetNamespace()), shell.Quote("pod/"+pod.GetName()))}
}

// endsByItself reports whether a pod is one that works until it is done.
func endsByItself(pod *unstructured.Unstructured) bool {
	policy := evidence.Nested(pod, "spec", "restartPolicy")
	return policy == "Never" || policy == "OnFailure"
}

// reservedFor is a claim that is reserved for something that is not a pod.
func (w *walker) reservedFor(n graph.Node, consumer map[string]any) *Cause {
	return w.cause(finding.DraClaimReserved, n.Identity(), evidence.Text(consumer["name"]), func(c *Cause) {
		c.Summary = reservedElsewhere
		c.Evidence = []Evidence{evidence.Field(n, "status.reservedFor", fmt.Sprintf("%s.%s/%s", evidence.Text(consumer["resource"]), evidence.Text(consumer["apiGroup"]), evidence.Text(consumer["name"])))}
	})
}

// podGroup is a PodGroup: its pods have to end first (pkg/controller/podgroupprotection).
func (w *walker) podGroup(n graph.Node) []hold {
	list, err := w.evidence.List(pods, n.Namespace())
	if err != nil {
		return w.unread(n, groupMightHave, fmt.Sprintf(podsIn, n.Namespace()), err)
	}
	var holds []hold
	for i := range list {
		if evidence.Nested(&list[i], "spec", "schedulingGroup", "podGroupName") != n.Object().Name || evidence.PodEnded(&list[i]) {
			continue
		}
		holds = append(holds, objectLink(w.evidence, finding.PodGroupInUse, groupPodRuns, pods, &list[i], func() *Cause {
			at := evidence.IdentityOf(pods, "Pod", &list[i])
			return w.podUser(finding.PodGroupInUse, n, &list[i], Evidence{Source: at.String(), Path: "spec.schedulingGroup.podGroupName", Value: n.Object().Name})
		}))
	}
	if len(holds) > 0 {
		return holds
	}
	return []hold{w.protection(n, finding.PodGroupInUse, groupEnded)}
}
