// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Attachments and storage of CSI drivers: pkg/controller/volume/attachdetach, and
// kubernetes-csi/external-attacher and external-provisioner.

var (
	attachments    = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	csiDrivers     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// undone says that a controller has not done its task, or fails to.
func undone(not, fails string, failure string, controller any) say.Text {
	if failure != "" {
		return say.Of(fails, controller)
	}
	return say.Of(not, controller)
}

// Attachment is a VolumeAttachment: its driver has to detach the volume from
// the node.
func Attachment(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, unread := f.WholeOr(n.Node, say.Of(VolumeAttached), "the attachment")
	if full == nil {
		return unread, true
	}
	driver, node := evidence.Nested(full, "spec", "attacher"), evidence.Nested(full, "spec", "nodeName")
	attached, _, _ := unstructured.NestedBool(full.Object, "status", "attached")
	failure := evidence.Nested(full, "status", "detachError", "message")
	c := &finding.Cause{
		Kind: finding.VaDetach, At: n.Identity(), Summary: undone(DetachUndone, DetachFails, failure, say.Of(TheDriver, driver)).And(FromNode,
			node),
		Evidence: []finding.Fact{n.Evidence(), finding.Field(n.Node, "status.attached", fmt.Sprint(attached))},
	}
	if failure != "" {
		c.Evidence = append(c.Evidence, finding.Field(n.Node, "status.detachError.message", failure),
			finding.Field(n.Node, "status.detachError.time", evidence.Nested(full, "status", "detachError", "time")))
	}
	c.Evidence = append(c.Evidence, nodeEvidence(f.Reader, node)...)
	rules.Judge(f.Reader, c, n.Node, failure, driverOf(f, c, driver, "external-attacher-leader-"+dashed(driver)))
	c.Ways = []finding.Way{
		finding.See(remedy.Get("volumeattachments,csidrivers,csinodes"), RepairAttacher, driver),
		rules.RemoveFinalizer(n, finding.Lost(remedy.CorruptsData, graph.Identity{}, LostAttachment)),
	}
	return []finding.Blocker{{Because: say.Of(VolumeAttached), Cause: c}}, true
}

// dashed is how the sidecars of CSI drivers make names of a driver's name.
func dashed(driver string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, driver)
}

// nodeEvidence says whether a node exists and is ready.
func nodeEvidence(r *evidence.Reader, node string) []finding.Fact {
	machine, err := r.Get(evidence.Nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return []finding.Fact{finding.At(evidence.Identity(evidence.Nodes, "", node), "", evidence.DoesNotExist)}
	case err != nil:
		return nil
	}
	ready, _ := evidence.ConditionOf(machine, "Ready")
	return finding.Facts(ready.Fact(evidence.Identity(evidence.Nodes, "", node)))
}

// driverOf adds what is known of a CSI driver's controller, and returns the state of the lease of its sidecar. The lease is
// in the namespace of the driver, which nothing names: of several the one that was renewed last counts, the others are
// left over. evidence.LeaseStale means that its holder does not run, either.
func driverOf(f *rules.Facts, c *finding.Cause, driver, leaseName string) evidence.LeaseState {
	by := &finding.Controller{Name: say.Of(TheCSIDriver, driver), Liveness: string(finding.Unknown)}
	c.Controller, c.Driver = by, driver
	if _, err := f.Get(csiDrivers, "", driver); apierrors.IsNotFound(err) {
		by.Evidence = append(by.Evidence, finding.At(evidence.Named("CSIDriver", "", driver), "", evidence.DoesNotExist))
	}
	all, err := f.List(evidence.Leases, "")
	if err != nil {
		return evidence.LeaseUnread
	}
	var freshest *unstructured.Unstructured
	for i := range all {
		if all[i].GetName() == leaseName && (freshest == nil || renewTime(&all[i]).After(renewTime(freshest))) {
			freshest = &all[i]
		}
	}
	if freshest == nil {
		by.Evidence = append(by.Evidence, finding.AtSays("Leases named "+leaseName, "", NoLeases))
		return evidence.LeaseMissing
	}
	return f.Leader(by, freshest)
}

func renewTime(lease *unstructured.Unstructured) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, evidence.Nested(lease, "spec", "renewTime")) // zero for an error
	return t
}

// AttachedVolume is a PersistentVolume whose attacher waits until it is attached
// nowhere. It returns false when it is attached nowhere, so far as can be told.
func AttachedVolume(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	list, err := f.List(attachments, "")
	if err != nil {
		return rules.Unread(n.Node, say.Of(DetachFromNodes), "volumeattachments.storage.k8s.io", err), true
	}
	var blockers []finding.Blocker
	for i := range list {
		if evidence.Nested(&list[i], "spec", "source", "persistentVolumeName") == n.Name() {
			blockers = append(blockers, f.Link(finding.VaDetach, say.Of(DetachFromNodes), attachments, &list[i],
				func() *finding.Cause { return stillAttached(f, n.Node, &list[i]) }))
		}
	}
	return blockers, len(blockers) > 0
}

// stillAttached is an attachment that is not being deleted: the attach/detach controller deletes it when no pod on the
// node uses the volume any more.
func stillAttached(f *rules.Facts, volume graph.Node, attachment *unstructured.Unstructured) *finding.Cause {
	at := evidence.IdentityOf(attachments, "VolumeAttachment", attachment)
	node := evidence.Nested(attachment, "spec", "nodeName")
	return &finding.Cause{
		Kind: finding.VaDetach, At: at, Verdict: finding.Unknown, Summary: say.Of(StillAttachedTo, volume.Name(), node),
		Evidence: append([]finding.Fact{
			finding.At(at, "metadata.deletionTimestamp", evidence.NotSet),
			finding.At(at, "spec.nodeName", node),
		}, nodeEvidence(f.Reader, node)...),
		Ways: []finding.Way{finding.See(remedy.Look{Words: "get pods -A", Args: []string{"--field-selector=spec.nodeName=" + node}}, SeePods)},
	}
}

// Provisioned is a PersistentVolume whose storage has to be deleted first.
func Provisioned(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, unread := f.WholeOr(n.Node, say.Of(StorageLeft), "the volume")
	if full == nil {
		return unread, true
	}
	phase := evidence.Nested(full, "status", "phase")
	policy, _ := evidence.ReclaimPolicy(full)
	if phase == "Bound" {
		return []finding.Blocker{{Symptom: finding.PvProvisioner, Because: say.Of(WaitsForRelease)}}, true
	}
	driver := evidence.DriverOf(full)
	failure := evidence.Nested(full, "status", "message")
	c := &finding.Cause{
		Kind: finding.PvProvisioner, At: n.Identity(), Key: n.Key, Summary: undone(StorageUndone, StorageFails, failure, driver),
		Evidence: []finding.Fact{n.Evidence(), finding.Field(n.Node, "status.phase", phase),
			finding.Field(n.Node, "spec.persistentVolumeReclaimPolicy", policy)},
	}
	if failure != "" {
		c.Evidence = append(c.Evidence, finding.Field(n.Node, "status.message", failure))
	}
	c.Evidence = slices.Concat(c.Evidence, rules.Warnings(f.Reader, n.Node), missingParts(f.Reader, full))
	if handle := evidence.Nested(full, "spec", "csi", "volumeHandle"); handle != "" {
		c.Evidence = append(c.Evidence, finding.Field(n.Node, "spec.csi.volumeHandle", handle))
	}
	lease := driverOf(f, c, driver, dashed(driver))
	rules.Judge(f.Reader, c, n.Node, failure+rules.Lasting(f.Reader, n.Node), lease)
	if policy == "Retain" {
		c.Summary, c.Evidence = say.Of(ProtectionLeft, driver),
			append(c.Evidence, finding.FieldSays(n.Node, "spec.persistentVolumeReclaimPolicy", NothingToDelete))
		c.Ways = []finding.Way{
			finding.See(remedy.Describe(n.Identity()), ReleaseVolume, driver),
			rules.RemoveFinalizer(n, finding.Lost(remedy.Leaks, graph.Identity{}, LostVolume)),
		}
		return []finding.Blocker{{Because: say.Of(StorageKept), Cause: c}}, true
	}
	c.Ways = []finding.Way{
		finding.See(remedy.Describe(n.Identity()), RepairProvisioner, driver),
		keepVolume(n.Identity(), policy, KeepStorage),
		rules.RemoveFinalizer(n, finding.Lost(remedy.Leaks, graph.Identity{}, LostStorage)),
	}
	return []finding.Blocker{{Because: say.Of(StorageLeft), Cause: c}}, true
}

// missingParts names objects that a driver needs to delete a volume and that do not exist.
func missingParts(r *evidence.Reader, volume *unstructured.Unstructured) []finding.Fact {
	var facts []finding.Fact
	if class := evidence.Nested(volume, "spec", "storageClassName"); class != "" {
		if _, err := r.Get(storageClasses, "", class); apierrors.IsNotFound(err) {
			facts = append(facts, finding.At(evidence.Named("StorageClass", "", class), "", evidence.DoesNotExist))
		}
	}
	annotations := volume.GetAnnotations()
	name, namespace := annotations["volume.kubernetes.io/provisioner-deletion-secret-name"],
		annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"]
	if name != "" && secretGone(r, namespace, name) {
		facts = append(facts, finding.AtSays(evidence.Named("Secret", namespace, name), "", SecretMissing))
	}
	return facts
}

// secretGone reports whether a Secret provably does not exist, by the lists of
// metadata: its data is never read.
func secretGone(r *evidence.Reader, namespace, name string) bool {
	return len(r.Named(evidence.Secrets.GroupResource(), namespace, name)) == 0 && r.Covers(evidence.Secrets.GroupResource(), namespace, name)
}
