// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Attachments and storage of CSI drivers: pkg/controller/volume/attachdetach, and
// kubernetes-csi/external-attacher and external-provisioner.

var (
	attachments    = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	csiDrivers     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	secrets        = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	volumesOf      = evidence.Volumes
)

// attachment is a VolumeAttachment: its driver has to detach the volume from
// the node.
func (w *walker) attachment(n graph.Node, index int) []hold {
	full, unread := w.whole(n, detachVolume.because(), "the attachment")
	if full == nil {
		return unread
	}
	driver, node := evidence.Nested(full, "spec", "attacher"), evidence.Nested(full, "spec", "nodeName")
	return []hold{{because: detachVolume.because(), cause: w.cause(finding.VaDetach, n.Identity(), "", func(c *Cause) {
		attached, _, _ := unstructured.NestedBool(full.Object, "status", "attached")
		failure := evidence.Nested(full, "status", "detachError", "message")
		c.Summary = detachVolume.undone(fmt.Sprintf(theDriver, driver), failure != "") + fmt.Sprintf(fromNode, node)
		c.Evidence = []Evidence{
			evidence.Field(n, fmt.Sprintf("metadata.finalizers[%d]", index), n.Object().Finalizers[index]),
			evidence.Field(n, "status.attached", fmt.Sprint(attached)),
		}
		if failure != "" {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.detachError.message", failure), evidence.Field(n, "status.detachError.time", evidence.Nested(full, "status", "detachError", "time")))
		}
		c.Evidence = append(c.Evidence, nodeEvidence(w.evidence, node)...)
		fresh := w.driver(c, driver, "external-attacher-leader-"+dashed(driver))
		driverVerdict(w.evidence, c, n, failure, fresh)
		c.Remedies = append(c.Remedies, []Remedy{
			see(fmt.Sprintf(repairAttacher, driver), "%s get volumeattachments,csidrivers,csinodes", w.Kubectl),
			w.removeFinalizer(n, index, n.Object().Finalizers[index], loses(remedy.CorruptsData, lostAttachment)),
		}...)
	})}}
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
func nodeEvidence(r *evidence.Reader, node string) []Evidence {
	machine, err := r.Get(nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return []Evidence{{Source: "Node/" + node, Value: doesNotExist}}
	case err != nil:
		return nil
	}
	ready, _ := evidence.ConditionOf(machine, "Ready")
	return []Evidence{ready.Fact("Node/" + node)}
}

// driver adds what is known of a CSI driver's controller, and returns the state of the lease of its sidecar. The lease is
// in the namespace of the driver, which nothing names: of several the one that was renewed last counts, the others are
// left over. evidence.LeaseStale means that its holder does not run, either.
func (w *walker) driver(c *Cause, driver, leaseName string) evidence.LeaseState {
	c.Controller = &Controller{Name: fmt.Sprintf(theCSIDriver, driver), Liveness: string(Unknown)}
	if _, err := w.evidence.Get(csiDrivers, "", driver); apierrors.IsNotFound(err) {
		c.Controller.Evidence = append(c.Controller.Evidence, Evidence{Source: "CSIDriver/" + driver, Value: doesNotExist})
	}
	all, err := w.evidence.List(leases, "")
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
		c.Controller.Evidence = append(c.Controller.Evidence, Evidence{Source: fmt.Sprintf(leasesNamed, leaseName), Value: noLeases})
		return evidence.LeaseMissing
	}
	return w.leader(c, freshest)
}

func renewTime(lease *unstructured.Unstructured) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, evidence.Nested(lease, "spec", "renewTime")) // zero for an error
	return t
}

// leader says of a cause's controller what its lease tells. A lease that is not
// renewed may be left over, since leader election can be switched off: its
// holder is dead only when the pod or the workload that it names does not run.
// Otherwise the state is evidence.LeaseUnread.
func (w *walker) leader(c *Cause, lease *unstructured.Unstructured) evidence.LeaseState {
	state, fact := w.evidence.LeaseState(lease)
	c.Controller.Evidence = append(c.Controller.Evidence, fact)
	switch state {
	case evidence.LeaseFresh:
		c.Controller.Liveness = controllers.Alive
	case evidence.LeaseStale:
		holder := controllers.PodOfHolder(evidence.Nested(lease, "spec", "holderIdentity"))
		l := w.finder.WorkloadOfPod(lease.GetNamespace(), holder)
		if l == nil {
			c.Controller.Evidence = append(c.Controller.Evidence, Evidence{Source: "Pod/" + lease.GetNamespace() + "/" + holder, Value: holderGone})
			return evidence.LeaseUnread
		}
		st := w.finder.StateOf(l)
		c.Controller.Evidence = append(c.Controller.Evidence, Evidence{Source: l.ID().String(), Value: st.Because})
		c.Controller.Evidence = append(c.Controller.Evidence, st.Evidence...)
		if st.Liveness != controllers.Dead {
			return evidence.LeaseUnread
		}
		c.Controller.Liveness = controllers.Dead
		c.Remedies = append(c.Remedies, w.revive(l, st)...)
	}
	return state
}

// driverVerdict judges a driver that should have acted: it is stuck with a
// failure that lasts, and when nothing of it runs; it is at work when it has a
// lease and nothing failed.
func driverVerdict(r *evidence.Reader, c *Cause, n graph.Node, failure string, lease evidence.LeaseState) {
	age := r.Now.Sub(evidence.Requested(n.Object()))
	switch {
	case lease == evidence.LeaseStale:
		c.Verdict, c.Summary = Stuck, c.Summary+driverDown
	case failure != "" && age > driverDelay:
		c.Verdict = Stuck
	case failure == "" && lease == evidence.LeaseFresh && age <= driverDelay:
		c.Verdict, c.Until = Progressing, evidence.Requested(n.Object()).Add(driverDelay)
	default:
		c.Verdict = Unknown
	}
}

// attachedVolume is a PersistentVolume whose attacher waits until it is attached
// nowhere. It returns false when it is attached nowhere, so far as can be told.
func (w *walker) attachedVolume(n graph.Node) ([]hold, bool) {
	list, err := w.evidence.List(attachments, "")
	if err != nil {
		return w.unread(n, detachFromNodes, "volumeattachments.storage.k8s.io", err), true
	}
	var holds []hold
	for i := range list {
		if evidence.Nested(&list[i], "spec", "source", "persistentVolumeName") != n.Object().Name {
			continue
		}
		holds = append(holds, objectLink(w.evidence, finding.VaDetach, detachFromNodes, attachments, &list[i], func() *Cause { return w.stillAttached(n, &list[i]) }))
	}
	return holds, len(holds) > 0
}

// stillAttached is an attachment that is not being deleted: the attach/detach controller deletes it when no pod on the
// node uses the volume any more.
func (w *walker) stillAttached(volume graph.Node, attachment *unstructured.Unstructured) *Cause {
	at := evidence.IdentityOf(attachments, "VolumeAttachment", attachment)
	node := evidence.Nested(attachment, "spec", "nodeName")
	return w.cause(finding.VaDetach, at, "", func(c *Cause) {
		c.Summary = fmt.Sprintf(stillAttachedTo, volume.Name(), node)
		c.Evidence = append([]Evidence{
			{Source: at.String(), Path: "metadata.deletionTimestamp", Value: notSet},
			{Source: at.String(), Path: "spec.nodeName", Value: node},
		}, nodeEvidence(w.evidence, node)...)
		c.Remedies = []Remedy{see(seePods, "%s get pods -A --field-selector=%s", w.Kubectl, shell.Quote("spec.nodeName="+node))}
	})
}

// provisioned is a PersistentVolume whose storage has to be deleted first.
func (w *walker) provisioned(n graph.Node, index int, finalizer string) []hold {
	full, unread := w.whole(n, deleteStorage.because(), "the volume")
	if full == nil {
		return unread
	}
	phase, policy := evidence.Nested(full, "status", "phase"), evidence.Nested(full, "spec", "persistentVolumeReclaimPolicy")
	if phase == "Bound" {
		return []hold{{symptom: finding.PvProvisioner, because: waitsForRelease}}
	}
	return []hold{{because: deleteStorage.because(), cause: w.cause(finding.PvProvisioner, n.Identity(), finalizer, func(c *Cause) {
		driver := evidence.Nested(full, "spec", "csi", "driver")
		if driver == "" {
			driver = full.GetAnnotations()["pv.kubernetes.io/provisioned-by"]
		}
		failure := evidence.Nested(full, "status", "message")
		c.Summary = deleteStorage.undone(driver, failure != "")
		c.Evidence = []Evidence{
			evidence.Field(n, fmt.Sprintf("metadata.finalizers[%d]", index), finalizer), evidence.Field(n, "status.phase", phase),
			evidence.Field(n, "spec.persistentVolumeReclaimPolicy", policy),
		}
		if failure != "" {
			c.Evidence = append(c.Evidence, evidence.Field(n, "status.message", failure))
		}
		events := warnings(w.evidence, n)
		c.Evidence = append(append(c.Evidence, events...), missingParts(w.evidence, full)...)
		if handle := evidence.Nested(full, "spec", "csi", "volumeHandle"); handle != "" {
			c.Evidence = append(c.Evidence, evidence.Field(n, "spec.csi.volumeHandle", handle))
		}
		lease := w.driver(c, driver, dashed(driver))
		driverVerdict(w.evidence, c, n, failure+lasting(w.evidence, n), lease)
		if policy == "Retain" {
			c.Evidence = append(c.Evidence, evidence.Field(n, "spec.persistentVolumeReclaimPolicy", nothingToDelete))
		}
		c.Remedies = append(c.Remedies, w.provisionerRemedies(n, index, finalizer, driver)...)
	})}}
}

// lasting returns what an event says that tells of the same failure again and
// again; empty for none. One that came once may be over.
func lasting(r *evidence.Reader, n graph.Node, reasons ...string) string {
	asked := evidence.Requested(n.Object())
	for _, o := range r.Events(n.Namespace(), n.UID()) {
		e := evidence.NewEvent(&o)
		about := len(reasons) == 0 || slices.Contains(reasons, e.Reason)
		if e.Type == "Warning" && about && !e.Last.Before(asked) && e.Repeats(controllers.SameFailure) && r.Now.Sub(e.Last) <= controllers.SameFailure {
			return e.Message
		}
	}
	return ""
}

func (d commands) provisionerRemedies(n graph.Node, index int, finalizer, driver string) []Remedy {
	return []Remedy{
		see(fmt.Sprintf(repairProvisioner, driver), "%s describe %s", d.programs.Kubectl, shell.Target(n.Identity())),
		{Risk: Disruptive, Action: d.keepVolume(n.Identity()).Action, Effect: keepStorage, Keeps: true},
		d.removeFinalizer(n, index, finalizer, loses(remedy.Leaks, lostStorage)),
	}
}

// missingParts names objects that a driver needs to delete a volume and that do not exist.
func missingParts(r *evidence.Reader, volume *unstructured.Unstructured) []Evidence {
	var facts []Evidence
	if class := evidence.Nested(volume, "spec", "storageClassName"); class != "" {
		if _, err := r.Get(storageClasses, "", class); apierrors.IsNotFound(err) {
			facts = append(facts, Evidence{Source: "StorageClass/" + class, Value: doesNotExist})
		}
	}
	annotations := volume.GetAnnotations()
	name, namespace := annotations["volume.kubernetes.io/provisioner-deletion-secret-name"], annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"]
	if name != "" && secretGone(r, namespace, name) {
		facts = append(facts, Evidence{Source: "Secret/" + namespace + "/" + name, Value: secretMissing})
	}
	return facts
}

// secretGone reports whether a Secret provably does not exist, by the lists of
// metadata: its data is never read.
func secretGone(r *evidence.Reader, namespace, name string) bool {
	return len(r.Named(secrets.GroupResource(), namespace, name)) == 0 && r.Covers(secrets.GroupResource(), namespace, name)
}
