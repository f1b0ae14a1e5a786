// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
)

var waiterCases = []struct{ name, cluster, want string }{
	{"a Job that another controller manages", alive + `
Job/s/j {"spec":{"managedBy":"example.com/other"}}
Pod/s/p deleted=60 finalizers=batch.kubernetes.io/job-tracking owners=Job/j*`,
		"Pod/s/p: Unknown pod-job-tracking@j*1\n"},
	{"a Job of the built-in controller", alive + `
Job/s/j {"spec":{"managedBy":"kubernetes.io/job-controller"}}
Pod/s/p deleted=20 finalizers=batch.kubernetes.io/job-tracking owners=Job/j*`,
		"Pod/s/p: Pending\n"},
	{"a Job that is gone", alive + `
Pod/s/p deleted=20 finalizers=batch.kubernetes.io/job-tracking owners=Job/j*`,
		"Pod/s/p: Pending\n"},
	{"no Job at all", alive + `
Pod/s/p deleted=60 finalizers=batch.kubernetes.io/job-tracking owners=Deployment/r*`,
		"Pod/s/p: Stuck pod-job-tracking@p*1\n"},
	{"nobody counts", `
ConfigMap/s/idle deleted=60 finalizers=foregroundDeletion
Job/s/j
Pod/s/p deleted=60 finalizers=batch.kubernetes.io/job-tracking owners=Job/j*`,
		"ConfigMap/s/idle: Stuck gc-absent@kube-controller-manager*2\nPod/s/p: Stuck gc-absent@kube-controller-manager*2\n"},
	{"an attachment", alive + `
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"attached":true}}`,
		"VolumeAttachment/v: Unknown va-detach@v*1\n"},
	{"an attachment whose driver works", alive + `
lease driver/external-attacher-leader-d-example-com 5
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"attached":true}}`,
		"VolumeAttachment/v: Progressing va-detach@v*1\n"},
	{"an attachment whose driver does not run", alive + `
Deployment/driver/csi {"spec":{"replicas":0}}
Lease/driver/external-attacher-leader-d-example-com {"spec":{"holderIdentity":"csi-5b9d8454ff-5bqk4","leaseDurationSeconds":15,"renewTime":"2026-01-02T02:04:00.000000Z"}}
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"attached":true}}`,
		"VolumeAttachment/v: Stuck va-detach@v*1\n"},
	{"an attachment whose driver has left a lease", alive + `
lease driver/external-attacher-leader-d-example-com 900
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"attached":true}}`,
		"VolumeAttachment/v: Unknown va-detach@v*1\n"},
	{"an attachment whose driver was moved to another namespace", alive + `
lease a/external-attacher-leader-d-example-com 9000
lease b/external-attacher-leader-d-example-com 5
lease c/external-attacher-leader-d-example-com 900
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"attached":true}}`,
		"VolumeAttachment/v: Progressing va-detach@v*1\n"},
	{"an attachment at which the driver has failed for long", alive + `
lease driver/external-attacher-leader-d-example-com 5
VolumeAttachment/v deleted=900 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"detachError":{"message":"busy"}}}`,
		"VolumeAttachment/v: Stuck va-detach@v*1\n"},
	{"an attachment at which the driver has just failed", alive + `
lease driver/external-attacher-leader-d-example-com 5
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n"},"status":{"detachError":{"message":"busy"}}}`,
		"VolumeAttachment/v: Unknown va-detach@v*1\n"},
	{"a volume that is attached", alive + `
PersistentVolume/pv deleted=60 finalizers=external-attacher/d-example-com
VolumeAttachment/v deleted=60 finalizers=external-attacher/d-example-com {"spec":{"attacher":"d.example.com","nodeName":"n","source":{"persistentVolumeName":"pv"}}}
VolumeAttachment/other {"spec":{"attacher":"d.example.com","nodeName":"n","source":{"persistentVolumeName":"x"}}}`,
		"PersistentVolume/pv: Unknown va-detach@v*2\nVolumeAttachment/v: Unknown va-detach@v*2\n"},
	{"a volume whose attachment nobody deletes", alive + `
PersistentVolume/pv deleted=60 finalizers=external-attacher/d-example-com
VolumeAttachment/v {"spec":{"attacher":"d.example.com","nodeName":"n","source":{"persistentVolumeName":"pv"}}}`,
		"PersistentVolume/pv: Unknown va-detach@v*1\n"},
	{"a volume behind which something has to be deleted", alive + `
lease driver/d-example-com 5
PersistentVolume/pv deleted=900 finalizers=external-provisioner.volume.kubernetes.io/finalizer {"spec":{"csi":{"driver":"d.example.com"}},"status":{"phase":"Released","message":"denied"}}`,
		"PersistentVolume/pv: Stuck pv-provisioner@pv*1\n"},
	{"a volume of which an event tells", alive + `
lease driver/d-example-com 5
PersistentVolume/pv deleted=900 finalizers=external-provisioner.volume.kubernetes.io/finalizer {"spec":{"csi":{"driver":"d.example.com"}},"status":{"phase":"Released"}}
Event/default/e {"type":"Warning","reason":"VolumeFailedDelete","message":"denied","involvedObject":{"uid":"pv"},"lastTimestamp":"2026-01-02T03:04:00Z"}`,
		"PersistentVolume/pv: Unknown pv-provisioner@pv*1\n"},
	{"a volume that is still bound", alive + `
PersistentVolume/pv deleted=900 finalizers=external-provisioner.volume.kubernetes.io/finalizer {"spec":{"csi":{"driver":"d.example.com"}},"status":{"phase":"Bound"}}`,
		"PersistentVolume/pv: Pending\n"},
	{"a snapshot is being taken", alive + `
PersistentVolumeClaim/s/c deleted=60 finalizers=snapshot.storage.kubernetes.io/pvc-as-source-protection
VolumeSnapshot/s/v {"spec":{"source":{"persistentVolumeClaimName":"c"}}}
VolumeSnapshot/s/done {"spec":{"source":{"persistentVolumeClaimName":"c"}},"status":{"readyToUse":true}}`,
		"PersistentVolumeClaim/s/c: Unknown pvc-snapshot-source@v*1\n"},
	{"a snapshot has failed for long", alive + `
PersistentVolumeClaim/s/c deleted=900 finalizers=snapshot.storage.kubernetes.io/pvc-as-source-protection
VolumeSnapshot/s/v {"spec":{"source":{"persistentVolumeClaimName":"c"}},"status":{"error":{"message":"full"}}}`,
		"PersistentVolumeClaim/s/c: Stuck pvc-snapshot-source@v*1\n"},
	{"a copy is being made", alive + `
PersistentVolumeClaim/s/c deleted=60 finalizers=provisioner.storage.kubernetes.io/cloning-protection
PersistentVolumeClaim/s/d {"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"c"}},"status":{"phase":"Pending"}}
PersistentVolumeClaim/s/e {"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"c"}},"status":{"phase":"Bound"}}`,
		"PersistentVolumeClaim/s/c: Unknown pvc-snapshot-source@d*1\n"},
	{"a snapshot is being restored", alive + `
VolumeSnapshot/s/v deleted=60 finalizers=snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection
PersistentVolumeClaim/s/d {"spec":{"dataSourceRef":{"kind":"VolumeSnapshot","name":"v"}},"status":{"phase":"Pending"}}`,
		"VolumeSnapshot/s/v: Unknown snapshot-clone@d*1\n"},
	{"the content of a snapshot fails", alive + `
VolumeSnapshot/s/v deleted=900 finalizers=snapshot.storage.kubernetes.io/volumesnapshot-bound-protection {"status":{"boundVolumeSnapshotContentName":"c"}}
VolumeSnapshotContent/c deleted=900 finalizers=snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection {"spec":{"driver":"d"},"status":{"error":{"message":"full"}}}`,
		"VolumeSnapshot/s/v: Stuck snapshot-clone@c*2\nVolumeSnapshotContent/c: Stuck snapshot-clone@c*2\n"},
	{"a class in use", alive + `
VolumeAttributesClass/v deleted=60 finalizers=kubernetes.io/vac-protection
PersistentVolumeClaim/s/c {"status":{"currentVolumeAttributesClassName":"v"}}
PersistentVolume/p {"spec":{"volumeAttributesClassName":"v"}}
PersistentVolume/q {"spec":{"volumeAttributesClassName":"w"}}`,
		"VolumeAttributesClass/v: Stuck vac-in-use@p*1 vac-in-use@c*1\n"},
	{"a class that nothing uses", alive + `
VolumeAttributesClass/v deleted=6 finalizers=kubernetes.io/vac-protection`, "VolumeAttributesClass/v: Pending\n"},
	{"a load balancer", alive + `
Deployment/kube-system/ccm {"spec":{"replicas":0}}
Lease/kube-system/cloud-controller-manager {"spec":{"holderIdentity":"ccm-5b9d8454ff-5bqk4_1","leaseDurationSeconds":15,"renewTime":"2026-01-02T02:04:00.000000Z"}}
Service/s/l deleted=60 finalizers=service.kubernetes.io/load-balancer-cleanup`, "Service/s/l: Stuck svc-lb@l*1\n"},
	{"a load balancer, and a lease that is left", alive + `
lease kube-system/cloud-controller-manager 900
Service/s/l deleted=60 finalizers=service.kubernetes.io/load-balancer-cleanup`, "Service/s/l: Unknown svc-lb@l*1\n"},
	{"a load balancer of a class", alive + `
lease kube-system/cloud-controller-manager 900
Service/s/l deleted=60 finalizers=service.kubernetes.io/load-balancer-cleanup {"spec":{"loadBalancerClass":"x"}}`, "Service/s/l: Unknown svc-lb@l*1\n"},
	{"a load balancer that is being deleted", alive + `
lease kube-system/cloud-controller-manager 5
Service/s/l deleted=60 finalizers=service.kubernetes.io/load-balancer-cleanup`, "Service/s/l: Progressing svc-lb@l*1\n"},
	{"a load balancer that fails for long", alive + `
lease kube-system/cloud-controller-manager 5
Service/s/l deleted=900 finalizers=service.kubernetes.io/load-balancer-cleanup
Event/s/e {"type":"Warning","reason":"SyncLoadBalancerFailed","message":"denied","involvedObject":{"uid":"l"},"lastTimestamp":"2026-01-02T03:04:00Z","count":9}`,
		"Service/s/l: Stuck svc-lb@l*1\n"},
	{"a load balancer that has failed once", alive + `
lease kube-system/cloud-controller-manager 5
Service/s/l deleted=900 finalizers=service.kubernetes.io/load-balancer-cleanup
Event/s/e {"type":"Warning","reason":"SyncLoadBalancerFailed","message":"conflict","involvedObject":{"uid":"l"},"lastTimestamp":"2026-01-02T03:04:00Z"}`,
		"Service/s/l: Unknown svc-lb@l*1\n"},
	{"a failure from before the deletion", alive + `
lease kube-system/cloud-controller-manager 5
Service/s/l deleted=60 finalizers=service.kubernetes.io/load-balancer-cleanup
Event/s/e {"type":"Warning","reason":"SyncLoadBalancerFailed","message":"denied","involvedObject":{"uid":"l"},"lastTimestamp":"2026-01-02T02:00:00Z"}`,
		"Service/s/l: Progressing svc-lb@l*1\n"},
	{"a range with an address", alive + `
ServiceCIDR/r deleted=60 finalizers=networking.k8s.io/service-cidr-finalizer {"spec":{"cidrs":["10.1.0.0/24"]}}
ServiceCIDR/other {"spec":{"cidrs":["10.1.0.0/28"]}}
IPAddress/10.1.0.3 {"metadata":{"labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"namespace":"s","name":"covered"}}}
IPAddress/10.1.0.99 {"metadata":{"labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"namespace":"s","name":"web"}}}
IPAddress/10.2.0.99 {"metadata":{"labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"namespace":"s","name":"outside"}}}
Service/s/web`, "ServiceCIDR/r: Stuck servicecidr-in-use@web*1\n"},
	{"a range without addresses", alive + `
ServiceCIDR/r deleted=6 finalizers=networking.k8s.io/service-cidr-finalizer {"spec":{"cidrs":["10.1.0.0/24"]}}`, "ServiceCIDR/r: Pending\n"},
	{"a claim for a pod", alive + `
ResourceClaim/s/c deleted=60 finalizers=resource.kubernetes.io/delete-protection {"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"p"},{"resource":"pods","name":"gone","uid":"gone"},{"resource":"pods","name":"done","uid":"done"}]}}
Pod/s/p
Pod/s/done {"status":{"phase":"Succeeded"}}`, "ResourceClaim/s/c: Stuck dra-claim-reserved@p*1\n"},
	{"a claim that no pod uses", alive + `
ResourceClaim/s/c deleted=6 finalizers=resource.kubernetes.io/delete-protection {"status":{"allocation":{}}}`, "ResourceClaim/s/c: Pending\n"},
	{"a group of pods", alive + `
PodGroup/s/g deleted=60 finalizers=scheduling.k8s.io/podgroup-protection
Pod/s/p {"spec":{"schedulingGroup":{"podGroupName":"g"}}}
Pod/s/q {"spec":{"schedulingGroup":{"podGroupName":"g"}},"status":{"phase":"Failed"}}`, "PodGroup/s/g: Stuck podgroup@p*1\n"},
	{"a node that is no machine", alive + `
Node/v {"metadata":{"labels":{"type":"virtual-kubelet"}},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"v"}}`, "Pod/s/p: Stuck pod-virtual-node@v*1\n"},
	{"a pod on a node that is no machine", alive + `
lease kube-node-lease/v 5
Node/v {"spec":{"taints":[{"key":"virtual-kubelet.io/provider","value":"cloud"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}
Pod/s/p deleted=300 grace=10 {"spec":{"nodeName":"v"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}`,
		"Pod/s/p: Stuck pod-virtual-node@p*1\n"},
	{"a sandbox that is not taken down", alive + node + `
Pod/s/p deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"phase":"Running","containerStatuses":[{"name":"c","state":{"terminated":{}}}]}}
Event/s/e {"type":"Warning","reason":"FailedKillPod","message":"CNI","involvedObject":{"uid":"p"},"lastTimestamp":"2026-01-02T03:04:00Z"}`,
		"Pod/s/p: Stuck pod-kubelet-kill@p*1\n"},
	{"pods of a node that is gone, and nobody collects", `
ConfigMap/s/idle deleted=60 finalizers=foregroundDeletion
Pod/s/p deleted=300 grace=10 {"spec":{"nodeName":"none"}}`,
		"ConfigMap/s/idle: Stuck gc-absent@kube-controller-manager*2\nPod/s/p: Stuck gc-absent@kube-controller-manager*2 pod-node-gone@none*1\n"},
	{"pods of a node that is gone, too early to tell", `
ConfigMap/s/idle deleted=60 finalizers=foregroundDeletion
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"none"}}`,
		"ConfigMap/s/idle: Stuck gc-absent@kube-controller-manager*1\nPod/s/p: Unknown gc-absent@kube-controller-manager*1 pod-node-gone@none*1\n"},
	{"a container that has not started", alive + node + `
Pod/s/p deleted=300 grace=30 {"spec":{"nodeName":"n"},"status":{"initContainerStatuses":[{"name":"i","state":{"terminated":{}}}],"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"PodInitializing"}}},{"name":"d","state":{"terminated":{}}}]}}`,
		"Pod/s/p: Unknown pod-kubelet-kill@p*1\n"},
	{"a deletion in the future", alive + `
ConfigMap/s/a deleted=-600 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown clock-skew@a*1\n"},
	{"dependents that are made again and again", alive + `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b made=5 owners=ConfigMap/a!`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1 gc-fg-recreated@a*1\n"},
	{"a machine that cannot be drained", alive + `
Node/n deleted=900 finalizers=karpenter.sh/termination
Pod/s/p {"metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"n"}}
PodDisruptionBudget/s/b {"spec":{"selector":{"matchLabels":{"a":"b"}}},"status":{"disruptionsAllowed":0}}`, "Node/n: Stuck node-karpenter@n*1\n"},
	{"a machine that must not be disturbed", alive + `
Node/n deleted=60 finalizers=karpenter.sh/termination
Pod/s/p {"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}},"spec":{"nodeName":"n"}}`, "Node/n: Unknown node-karpenter@n*1\n"},
	{"an API that cannot be parsed", alive + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionGroupVersionParsingFailure","status":"True","message":"a/b/c"}]}}`,
		"Namespace/s: Stuck ns-gv-parse@s*1\n"},
}

func TestWaiters(t *testing.T) {
	for _, c := range waiterCases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parse(t, c.cluster).explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSymptoms holds the steps that lead to a cause.
func TestSymptoms(t *testing.T) {
	for name, c := range map[string]struct{ cluster, want string }{
		"a namespace without a controller": {`
Namespace/s deleted=60 {"spec":{"finalizers":["kubernetes"]}}
ConfigMap/s/a`, "Namespace/s ns-controller-absent -> Lease/kube-system/kube-controller-manager"},
		"a finalizer on a definition": {alive + `
CustomResourceDefinition/widgets.example.com deleted=60 finalizers=example.com/x`, "CustomResourceDefinition/widgets.example.com crd-finalizer"},
		"a finalizer on a pod": {alive + `
Pod/s/p deleted=60 finalizers=example.com/x`, "Pod/s/p pod-finalizer"},
		"a pod on no node": {alive + `
Pod/s/p deleted=60 grace=10`, "Pod/s/p pod-unscheduled"},
		"a volume, its attachment": {alive + `
PersistentVolume/pv deleted=60 finalizers=external-attacher/d
VolumeAttachment/v deleted=60 finalizers=external-attacher/d {"spec":{"source":{"persistentVolumeName":"pv"}}}`,
			"PersistentVolume/pv va-detach -> VolumeAttachment/v"},
		"a device, its pod, its node": {alive + `
Node/dead {"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}
ResourceClaim/s/c deleted=60 finalizers=resource.kubernetes.io/delete-protection {"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"p"}]}}
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"dead"}}`,
			"ResourceClaim/s/c dra-claim-reserved -> Pod/s/p -> Node/dead"},
	} {
		report := parse(t, c.cluster).report(t)
		var got string
		for _, o := range report.Objects {
			var steps []string
			for _, link := range o.Chain {
				steps = append(steps, strings.TrimSpace(link.Object.String()+" "+link.Symptom))
			}
			if chain := strings.Join(steps, " -> "); len(chain) > len(got) {
				got = chain
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestWaysOutOfForeground shows the ways to free an owner that something below
// holds up.
func TestWaysOutOfForeground(t *testing.T) {
	report := parse(t, alive+`
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b deleted=60 finalizers=example.com/x owners=ConfigMap/a!`).report(t)
	var got []string
	for _, r := range report.Causes[0].Remedies {
		if r.Risk == explain.Disruptive {
			got = append(got, r.Command)
		}
	}
	const patch = `kubectl -n s patch configmaps/b --type=json -p '[{"op":"test","path":"/metadata/uid","value":"b"},{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"a"},`
	want := []string{
		`echo '{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":"a"}}' | kubectl delete --raw /api/v1/namespaces/s/configmaps/a -f -`,
		patch + `{"op":"replace","path":"/metadata/ownerReferences/0/blockOwnerDeletion","value":false}]'`,
		patch + `{"op":"remove","path":"/metadata/ownerReferences/0"}]'`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFinishedJobHoldsClaim offers to delete the Job whose pods have come to
// their end and still use a claim, and no other.
func TestFinishedJobHoldsClaim(t *testing.T) {
	const cluster = alive + `
PersistentVolumeClaim/s/c deleted=60 finalizers=kubernetes.io/pvc-protection
Pod/s/p {"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"j-uid","controller":true}]},` +
		`"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]},"status":{"phase":"PHASE"}}`
	for phase, want := range map[string]bool{"Succeeded": true, "Failed": true, "Running": false} {
		report := parse(t, strings.Replace(cluster, "PHASE", phase, 1)).report(t)
		got := false
		for _, r := range report.Causes[0].Remedies {
			got = got || strings.Contains(r.Command, `{"uid":"j-uid"}`) && strings.HasSuffix(r.Command, "/apis/batch/v1/namespaces/s/jobs/j -f -")
		}
		if got != want {
			t.Errorf("%s: the Job can be deleted: %t, want %t: %v", phase, got, want, report.Causes[0].Remedies)
		}
	}
}

// TestPodsOfManyLists reads each pod from the list of its own namespace, whatever
// was listed before and after.
func TestPodsOfManyLists(t *testing.T) {
	var cluster strings.Builder
	cluster.WriteString(install + deployment(1) + pod(ready) + "ConfigMap/s/c deleted=60 finalizers=" + fin + ` {"metadata":{` + setter + "}}\n")
	cluster.WriteString(`Node/k deleted=60 finalizers=karpenter.sh/termination {"status":{"conditions":[{"type":"Ready","status":"True"}]}}` + "\n")
	for i := range 30 {
		fmt.Fprintf(&cluster, "Pod/other/o%d {\"spec\":{\"nodeName\":\"n\"}}\n", i)
	}
	cluster.WriteString(`Pod/op/victim deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}` + "\n")
	for range 5 { // the order of a list is any
		if got := parse(t, cluster.String()).explained(t); !strings.Contains(got, "Pod/op/victim: Stuck pod-kubelet-kill@victim*1\n") {
			t.Error(got)
		}
	}
}

// TestNamespaceThatHasJustGone says that what a namespace took along is gone,
// and that only what outlives it was left behind.
func TestNamespaceThatHasJustGone(t *testing.T) {
	const cluster = alive + `
no namespace s
ConfigMap/s/a deleted=5 finalizers=example.com/x
Pod/s/p deleted=5 grace=30 {"spec":{"nodeName":"n"}}`
	for _, c := range []struct {
		name string
		gone []string
		want string
	}{
		{"all of it", []string{"configmaps/s/a", "pods/s/p"}, "ConfigMap/s/a: Pending\nPod/s/p: Pending\n"},
		{"all but one", []string{"configmaps/s/a"}, "ConfigMap/s/a: Pending\nPod/s/p: Stuck ns-forced-leftovers@s*1 pod-grace@p*1\n"},
	} {
		s := parse(t, cluster)
		for _, key := range c.gone {
			if s.Whole[key] == nil {
				t.Fatalf("no %s", key)
			}
			delete(s.Whole, key)
		}
		if diff := cmp.Diff(c.want, s.explained(t)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
	s := parse(t, cluster)
	s.Whole["configmaps/s/a"].SetUID("another")
	if got := s.explained(t); !strings.HasPrefix(got, "ConfigMap/s/a: Pending\n") {
		t.Errorf("another object of its name: %s", got)
	}
}
