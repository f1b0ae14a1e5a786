// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// How long the small protection controllers of kube-controller-manager may take
// after the last user of an object went, and how long an external driver may be
// at the same failure before that counts.
const (
	protectionDelay = 15 * time.Second
	driverDelay     = 10 * time.Minute
)

// waiter returns what a finalizer of Kubernetes or one of its storage, network
// and device projects waits for; false when it is not one of them, or when what
// it waits for cannot be told from the API, so that the question is who should
// act.
func (w *walker) waiter(n graph.Node, index int, finalizer string) ([]hold, bool) {
	resource := n.Resource().GroupResource().String()
	switch finalizer + " " + resource {
	case "batch.kubernetes.io/job-tracking pods":
		return w.jobTracking(n, index), true
	case "kubernetes.io/vac-protection volumeattributesclasses.storage.k8s.io":
		return w.attributesClass(n), true
	case "external-provisioner.volume.kubernetes.io/finalizer persistentvolumes", "kubernetes.io/pv-controller persistentvolumes":
		return w.provisioned(n, index, finalizer), true
	case "snapshot.storage.kubernetes.io/pvc-as-source-protection persistentvolumeclaims":
		return w.snapshotSource(n)
	case "provisioner.storage.kubernetes.io/cloning-protection persistentvolumeclaims":
		return w.cloneSource(n)
	case "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection volumesnapshots.snapshot.storage.k8s.io":
		return w.snapshotContent(n)
	case "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection volumesnapshots.snapshot.storage.k8s.io",
		"provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection volumesnapshots.snapshot.storage.k8s.io":
		return w.restoreSource(n)
	case "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection volumesnapshotcontents.snapshot.storage.k8s.io":
		return w.contentOfSnapshot(n)
	case "service.kubernetes.io/load-balancer-cleanup services":
		return w.loadBalancer(n, index), true
	case "networking.k8s.io/service-cidr-finalizer servicecidrs.networking.k8s.io":
		return w.serviceCIDR(n), true
	case "resource.kubernetes.io/delete-protection resourceclaims.resource.k8s.io":
		return w.deviceClaim(n), true
	case "scheduling.k8s.io/podgroup-protection podgroups.scheduling.k8s.io":
		return w.podGroup(n), true
	}
	if finalizer == "karpenter.sh/termination" {
		return w.karpenter(n, index, resource)
	}
	if strings.HasPrefix(finalizer, "external-attacher/") {
		switch resource {
		case "volumeattachments.storage.k8s.io":
			return w.attachment(n, index), true
		case "persistentvolumes":
			return w.attachedVolume(n)
		}
	}
	return nil, false
}

// protection is a finalizer that a controller of kube-controller-manager takes
// off within seconds, and for which nothing else is missing.
func (w *walker) protection(n graph.Node, symptom Kind, because string) hold {
	return w.withSymptom(symptom, w.manager(n, because, w.late(n)))
}

// objectLink leads to an object that must go, or change, first: by the graph
// when it is being deleted, to the cause that fill makes when it is not.
func (w *walker) objectLink(symptom Kind, because string, o *unstructured.Unstructured, fill func() *Cause) hold {
	if m, known := w.Graph.Node(o.GetUID()); known && m.BeingDeleted() {
		return hold{symptom: symptom, because: because, next: &m}
	}
	return hold{symptom: symptom, because: because, cause: fill()}
}

// warnings are the failures that events tell of an object since its deletion
// was asked for; with reasons only those of these.
func (w *walker) warnings(n graph.Node, reasons ...string) []Evidence {
	asked := evidence.Requested(n.Object())
	var facts []Evidence
	for _, o := range w.evidence.Events(n.Namespace(), n.UID()) {
		e := evidence.NewEvent(&o)
		if e.Type != "Warning" || e.Last.Before(asked) || len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		if len(facts) < evidence.MaxShown {
			facts = append(facts, e.Fact())
		}
	}
	return facts
}
