// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Devices and groups of pods: pkg/controller/resourceclaim and
// scheduling/podgroupprotection.

// DeviceClaim is a ResourceClaim: the pods for which it is reserved have to end first (pkg/controller/resourceclaim).
func DeviceClaim(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, unread := f.WholeOr(n.Node, say.Of(ReservedForPod), "the claim")
	if full == nil {
		return unread, true
	}
	consumers, _, _ := unstructured.NestedSlice(full.Object, "status", "reservedFor")
	var blockers []finding.Blocker
	for _, entry := range consumers {
		consumer, _ := entry.(map[string]any)
		resource, name := evidence.Text(consumer["resource"]), evidence.Text(consumer["name"])
		if resource != "pods" || evidence.Text(consumer["apiGroup"]) != "" {
			blockers = append(blockers, finding.Blocker{Because: say.Of(ReservedForObject, resource, name), Cause: reservedFor(n.Node, consumer)})
			continue
		}
		pod, err := f.Get(evidence.Pods, n.Namespace(), name)
		if apierrors.IsNotFound(err) || err == nil && (string(pod.GetUID()) != evidence.Text(consumer["uid"]) || evidence.PodEnded(pod)) {
			continue // the controller takes the reservation back
		}
		if err != nil {
			return rules.Unread(n.Node, say.Of(ReservedForPod), "pod "+name, err), true
		}
		blockers = append(blockers, f.Link(finding.DraClaimReserved, say.Of(ReservedForPod), evidence.Pods, pod, func() *finding.Cause {
			return user(f, finding.DraClaimReserved, n.Node, pod, finding.Field(n.Node, "status.reservedFor", "pods/"+pod.GetName()))
		}))
	}
	if len(blockers) > 0 {
		return blockers, true
	}
	return f.Protected(n.Node, finding.DraClaimReserved, say.Of(DeviceFree)), true
}

// user is a pod that is not being deleted and that an object waits for.
func user(f *rules.Facts, kind finding.Kind, n graph.Node, pod *unstructured.Unstructured, first finding.Fact) *finding.Cause {
	at := evidence.IdentityOf(evidence.Pods, "Pod", pod)
	c := &finding.Cause{
		Kind: kind, At: at, Key: n.Identity().String(), Verdict: finding.Stuck, Summary: say.Of(Uses, n.Identity()),
		Evidence: []finding.Fact{
			first,
			finding.At(at, "status.phase", evidence.Nested(pod, "status", "phase")),
			finding.At(at, "metadata.deletionTimestamp", evidence.NotSet),
		},
	}
	if endsByItself(pod) {
		c.Verdict, c.Summary = finding.Unknown, say.Of(UsesUntilDone, n.Identity())
		c.Evidence = append(c.Evidence, finding.At(at, "spec.restartPolicy", evidence.Nested(pod, "spec", "restartPolicy")))
	}
	after := say.Of(ThenDeleted, n.Identity())
	end := End(f, pod, after, after)
	c.Ways, c.Evidence = append(Await(pod, after), end.Ways...), append(c.Evidence, end.Evidence...)
	return c
}

// reservedFor is a claim that is reserved for something that is not a pod.
func reservedFor(n graph.Node, consumer map[string]any) *finding.Cause {
	name := evidence.Text(consumer["name"])
	return &finding.Cause{
		Kind: finding.DraClaimReserved, At: n.Identity(), Key: name, Verdict: finding.Unknown, Summary: say.Of(ReservedElsewhere),
		Evidence: []finding.Fact{finding.Field(n, "status.reservedFor", fmt.Sprintf("%s.%s/%s", evidence.Text(consumer["resource"]),
			evidence.Text(consumer["apiGroup"]), name))},
	}
}

// Group is a PodGroup: its pods have to end first (pkg/controller/podgroupprotection).
func Group(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	list, err := f.List(evidence.Pods, n.Namespace())
	if err != nil {
		return rules.Unread(n.Node, say.Of(GroupMightHave), "pods in namespace "+n.Namespace(), err), true
	}
	var blockers []finding.Blocker
	for i := range list {
		if evidence.Nested(&list[i], "spec", "schedulingGroup", "podGroupName") != n.Name() || evidence.PodEnded(&list[i]) {
			continue
		}
		blockers = append(blockers, f.Link(finding.PodGroupInUse, say.Of(GroupRuns), evidence.Pods, &list[i], func() *finding.Cause {
			at := evidence.IdentityOf(evidence.Pods, "Pod", &list[i])
			return user(f, finding.PodGroupInUse, n.Node, &list[i], finding.At(at, "spec.schedulingGroup.podGroupName", n.Name()))
		}))
	}
	if len(blockers) > 0 {
		return blockers, true
	}
	return f.Protected(n.Node, finding.PodGroupInUse, say.Of(GroupEnded)), true
}
