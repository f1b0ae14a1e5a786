// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mark is a finalizer at its index in the list of an object.
type mark struct {
	node      graph.Node
	index     int
	finalizer string
}

// rule says what a finalizer waits for.
type rule struct {
	// finalizer is its name; one that ends with a star is what it begins with.
	finalizer string
	// on is the type, with its group, of the objects that are examined; empty for all.
	on string
	// look returns the blockers. It is false when the API does not show them, so that the question is who should act.
	look func(*walker, mark) ([]hold, bool)
}

// crdCleanup is the API server's own finalizer of CustomResourceDefinitions.
const crdCleanup = "customresourcecleanup.apiextensions.k8s.io"

// rules has the finalizers of Kubernetes and of its storage, network and device projects. The first rule that fits counts;
// for all other finalizers the walker looks for the controllers that remove them.
var rules []rule

// init fills the table, because the rules refer to it when they follow an object to the next.
func init() {
	rules = []rule{
		{metav1.FinalizerDeleteDependents, "", always((*walker).foreground)},
		{metav1.FinalizerOrphanDependents, "", always((*walker).orphan)},
		{crdCleanup, "customresourcedefinitions.apiextensions.k8s.io", always((*walker).instances)},
		{"kubernetes.io/pvc-protection", "persistentvolumeclaims", always((*walker).claim)},
		{"kubernetes.io/pv-protection", "persistentvolumes", always((*walker).volume)},
		{"batch.kubernetes.io/job-tracking", "pods", indexed((*walker).jobTracking)},
		{"kubernetes.io/vac-protection", "volumeattributesclasses.storage.k8s.io", always((*walker).attributesClass)},
		{"external-provisioner.volume.kubernetes.io/finalizer", "persistentvolumes", named((*walker).provisioned)},
		{"kubernetes.io/pv-controller", "persistentvolumes", named((*walker).provisioned)},
		{"snapshot.storage.kubernetes.io/pvc-as-source-protection", "persistentvolumeclaims", maybe((*walker).snapshotSource)},
		{"provisioner.storage.kubernetes.io/cloning-protection", "persistentvolumeclaims", filled(finding.PvcSnapshotSource, "PersistentVolumeClaim")},
		{"snapshot.storage.kubernetes.io/volumesnapshot-bound-protection", "volumesnapshots.snapshot.storage.k8s.io", maybe((*walker).snapshotContent)},
		{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection", "volumesnapshots.snapshot.storage.k8s.io", filled(finding.SnapshotClone, "VolumeSnapshot")},
		{"provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection", "volumesnapshots.snapshot.storage.k8s.io", filled(finding.SnapshotClone, "VolumeSnapshot")},
		{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection", "volumesnapshotcontents.snapshot.storage.k8s.io", maybe((*walker).contentOfSnapshot)},
		{"service.kubernetes.io/load-balancer-cleanup", "services", indexed((*walker).loadBalancer)},
		{"networking.k8s.io/service-cidr-finalizer", "servicecidrs.networking.k8s.io", always((*walker).serviceCIDR)},
		{"resource.kubernetes.io/delete-protection", "resourceclaims.resource.k8s.io", always((*walker).deviceClaim)},
		{"scheduling.k8s.io/podgroup-protection", "podgroups.scheduling.k8s.io", always((*walker).podGroup)},
		{"in-use.crossplane.io", "", maybe((*walker).providerConfig)},
		{"usage.apiextensions.crossplane.io", "", maybe((*walker).usage)},
		{"karpenter.sh/termination", "", func(w *walker, m mark) ([]hold, bool) {
			return w.karpenter(m.node, m.index, m.node.Resource().GroupResource().String())
		}},
		{"external-attacher/*", "volumeattachments.storage.k8s.io", indexed((*walker).attachment)},
		{"external-attacher/*", "persistentvolumes", maybe((*walker).attachedVolume)},
	}
}

// always is the rule of a finalizer whose blockers the API always shows.
func always(look func(*walker, graph.Node) []hold) func(*walker, mark) ([]hold, bool) {
	return func(w *walker, m mark) ([]hold, bool) { return look(w, m.node), true }
}

// maybe is the rule of a finalizer whose blockers the API does not always show.
func maybe(look func(*walker, graph.Node) ([]hold, bool)) func(*walker, mark) ([]hold, bool) {
	return func(w *walker, m mark) ([]hold, bool) { return look(w, m.node) }
}

// indexed is always, for rules that need the index of the finalizer.
func indexed(look func(*walker, graph.Node, int) []hold) func(*walker, mark) ([]hold, bool) {
	return func(w *walker, m mark) ([]hold, bool) { return look(w, m.node, m.index), true }
}

// named is indexed, for rules of several finalizers.
func named(look func(*walker, graph.Node, int, string) []hold) func(*walker, mark) ([]hold, bool) {
	return func(w *walker, m mark) ([]hold, bool) { return look(w, m.node, m.index, m.finalizer), true }
}

// fits reports whether the rule is about the finalizer.
func (r rule) fits(m mark) bool {
	prefix, open := strings.CutSuffix(r.finalizer, "*")
	if m.finalizer != r.finalizer && !(open && strings.HasPrefix(m.finalizer, prefix)) {
		return false
	}
	return r.on == "" || r.on == m.node.Resource().GroupResource().String()
}

// finalizer returns what the object's finalizer waits for.
func (w *walker) finalizer(n graph.Node, index int, finalizer string) []hold {
	m := mark{n, index, finalizer}
	for _, r := range rules {
		if !r.fits(m) {
			continue
		}
		if holds, told := r.look(w, m); told {
			return holds
		}
	}
	holds := w.foreign(n, index, finalizer, finalizers.Metadata)
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
