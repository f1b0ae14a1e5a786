// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/finalizer"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/network"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/storage"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/usage"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// rule says what a finalizer waits for.
type rule struct {
	// finalizer is its name; one that ends with a star is what it begins with.
	finalizer string
	// on is the type, with its group, of the objects that are examined; empty for all.
	on string
	// look returns the blockers. It is false when the API does not show them, so that the question is who should act.
	look rules.Rule
}

// table has the finalizers of Kubernetes and of its storage, network and device projects. The first rule that fits counts;
// for all other finalizers the walker looks for the controllers that remove them.
var table = []rule{
	{metav1.FinalizerDeleteDependents, "", collector.Foreground},
	{metav1.FinalizerOrphanDependents, "", collector.Orphan},
	{definition.Cleanup, "customresourcedefinitions.apiextensions.k8s.io", definition.Instances},
	{"kubernetes.io/pvc-protection", "persistentvolumeclaims", storage.Claim},
	{"kubernetes.io/pv-protection", "persistentvolumes", storage.Volume},
	{"batch.kubernetes.io/job-tracking", "pods", pod.JobTracking},
	{"kubernetes.io/vac-protection", "volumeattributesclasses.storage.k8s.io", storage.AttributesClass},
	{"external-provisioner.volume.kubernetes.io/finalizer", "persistentvolumes", storage.Provisioned},
	{"kubernetes.io/pv-controller", "persistentvolumes", storage.Provisioned},
	{"snapshot.storage.kubernetes.io/pvc-as-source-protection", "persistentvolumeclaims", storage.SnapshotSource},
	{"provisioner.storage.kubernetes.io/cloning-protection", "persistentvolumeclaims", storage.CopiedClaim},
	{"snapshot.storage.kubernetes.io/volumesnapshot-bound-protection", "volumesnapshots.snapshot.storage.k8s.io", storage.SnapshotContent},
	{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection", "volumesnapshots.snapshot.storage.k8s.io", storage.CopiedSnapshot},
	{"provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection", "volumesnapshots.snapshot.storage.k8s.io",
		storage.CopiedSnapshot},
	{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection", "volumesnapshotcontents.snapshot.storage.k8s.io",
		storage.ContentOfSnapshot},
	{"service.kubernetes.io/load-balancer-cleanup", "services", network.LoadBalancer},
	{"networking.k8s.io/service-cidr-finalizer", "servicecidrs.networking.k8s.io", network.ServiceCIDR},
	{"resource.kubernetes.io/delete-protection", "resourceclaims.resource.k8s.io", pod.DeviceClaim},
	{"scheduling.k8s.io/podgroup-protection", "podgroups.scheduling.k8s.io", pod.Group},
	{"in-use.crossplane.io", "", usage.ProviderConfig},
	{"usage.apiextensions.crossplane.io", "", usage.Usage},
	{"karpenter.sh/termination", "", usage.Karpenter},
	{"external-attacher/*", "volumeattachments.storage.k8s.io", storage.Attachment},
	{"external-attacher/*", "persistentvolumes", storage.AttachedVolume},
}

// fits reports whether the rule is about the finalizer.
func (r rule) fits(m rules.Mark) bool {
	prefix, open := strings.CutSuffix(r.finalizer, "*")
	if m.Key != r.finalizer && !(open && strings.HasPrefix(m.Key, prefix)) {
		return false
	}
	return r.on == "" || r.on == m.Resource().GroupResource().String()
}

// finalizer returns what the object's finalizer waits for.
func (w *walker) finalizer(n graph.Node, index int, key string) []blocker {
	m := rules.Mark{Node: n, Index: index, Key: key}
	for _, r := range table {
		if !r.fits(m) {
			continue
		}
		if blockers, told := r.look(w.rules, m); told {
			return w.holdsOf(blockers)
		}
	}
	holds := w.holdsOf(finalizer.Foreign(w.rules, m, finalizers.Metadata))
	for i := range holds {
		switch {
		case n.Resource().IsPod():
			holds[i].symptom = finding.PodFinalizer
		case n.Resource().IsCRD():
			holds[i].symptom = finding.CrdFinalizer
		}
	}
	return holds
}

// namespace returns what the finalizers in a namespace's spec wait for.
func (w *walker) namespace(n graph.Node) []blocker {
	full, unread := namespace.Whole(w.rules, n)
	holds := w.holdsOf(unread)
	if full == nil {
		return holds
	}
	for i, key := range rules.SpecFinalizers(full) {
		if key == "kubernetes" {
			holds = append(holds, w.holdsOf(namespace.Emptying(w.rules, n, full))...)
		} else {
			holds = append(holds, w.holdsOf(finalizer.Foreign(w.rules, rules.Mark{Node: n, Index: i, Key: key}, finalizers.Spec))...)
		}
	}
	return holds
}
