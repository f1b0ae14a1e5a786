// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Snapshots, copies and classes of volumes: kubernetes-csi/external-snapshotter and
// external-provisioner, pkg/controller/volume/vacprotection.

const snapshotGroup = "snapshot.storage.k8s.io"

var (
	snapshots        = schema.GroupResource{Group: snapshotGroup, Resource: "volumesnapshots"}
	snapshotContents = schema.GroupResource{Group: snapshotGroup, Resource: "volumesnapshotcontents"}
)

// snapshotting is a snapshot or a copy that is not complete. It blocks its source until its controller has completed it.
func (w *walker) snapshotting(id Kind, n graph.Node, user *unstructured.Unstructured, resource schema.GroupVersionResource, kind, summary, path string) *Cause {
	at := evidence.IdentityOf(resource, kind, user)
	return w.cause(id, at, n.Identity().String(), func(c *Cause) {
		c.Summary = summary
		c.Evidence = []Evidence{{Source: at.String(), Path: path, Value: n.Object().Name}}
		failure := evidence.Nested(user, "status", "error", "message")
		if failure != "" {
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "status.error.message", Value: failure})
			if w.age(n) > driverDelay {
				c.Verdict = Stuck
			}
		}
		if resource == claims && failure == "" {
			w.filledBy(c, n, user)
		}
		c.Remedies = append(c.Remedies, []Remedy{
			see(completeCopy, "%s describe %s", shell.In(w.Kubectl, at.Namespace), shell.Target(at)),
			{Risk: Disruptive, Action: w.delete(at, byPolicy), Effect: abandonCopy},
		}...)
	})
}

// filledBy follows a claim that is being filled to the driver that fills it.
func (w *walker) filledBy(c *Cause, n graph.Node, claim *unstructured.Unstructured) {
	driver := claim.GetAnnotations()["volume.kubernetes.io/storage-provisioner"]
	if class, err := w.evidence.Get(storageClasses, "", evidence.Nested(claim, "spec", "storageClassName")); driver == "" && err == nil {
		driver = evidence.Nested(class, "provisioner")
	}
	if driver == "" {
		return
	}
	c.Summary += fmt.Sprintf(filledByDriver, driver)
	driverVerdict(w.evidence, c, n, "", w.driver(c, driver, dashed(driver)))
}

// snapshotSource is a claim of which snapshots are being taken.
func (w *walker) snapshotSource(n graph.Node) ([]hold, bool) {
	resource, served := w.evidence.Served(snapshots)
	if !served {
		return nil, false
	}
	list, err := w.evidence.List(resource, n.Namespace())
	if err != nil {
		return w.unread(n, mightBeSnapshotted, snapshots.String(), err), true
	}
	var holds []hold
	for i := range list {
		ready, _, _ := unstructured.NestedBool(list[i].Object, "status", "readyToUse")
		if evidence.Nested(&list[i], "spec", "source", "persistentVolumeClaimName") != n.Object().Name || ready {
			continue
		}
		holds = append(holds, objectLink(w.evidence, finding.PvcSnapshotSource, isSnapshotted, resource, &list[i], func() *Cause {
			return w.snapshotting(finding.PvcSnapshotSource, n, &list[i], resource, "VolumeSnapshot", fmt.Sprintf(snapshotIncomplete, n.Name()), "spec.source.persistentVolumeClaimName")
		}))
	}
	return holds, len(holds) > 0
}

// sources of data of a claim.
func dataSource(claim *unstructured.Unstructured, kind, name string) bool {
	for _, path := range []string{"dataSource", "dataSourceRef"} {
		if evidence.Nested(claim, "spec", path, "kind") == kind && evidence.Nested(claim, "spec", path, "name") == name {
			return true
		}
	}
	return false
}

// consumers returns the claims that are being filled from an object.
func (w *walker) consumers(n graph.Node, id Kind, kind string) ([]hold, bool) {
	list, err := w.evidence.List(claims, n.Namespace())
	if err != nil {
		return w.unread(n, mightBeCopied, fmt.Sprintf(claimsIn, n.Namespace()), err), true
	}
	var holds []hold
	for i := range list {
		if !dataSource(&list[i], kind, n.Object().Name) || evidence.Nested(&list[i], "status", "phase") == "Bound" {
			continue
		}
		holds = append(holds, objectLink(w.evidence, id, isCopied, claims, &list[i], func() *Cause {
			return w.snapshotting(id, n, &list[i], claims, "PersistentVolumeClaim", fmt.Sprintf(copyIncomplete, n.Identity()), "spec.dataSource.name")
		}))
	}
	return holds, len(holds) > 0
}

// filled is the rule of an object of a kind from which claims are being filled.
func filled(id Kind, kind string) func(*walker, mark) ([]hold, bool) {
	return maybe(func(w *walker, n graph.Node) ([]hold, bool) { return w.consumers(n, id, kind) })
}

// snapshotContent is a snapshot whose content has to be deleted first.
func (w *walker) snapshotContent(n graph.Node) ([]hold, bool) {
	full, err := w.evidence.Whole(n)
	if err != nil {
		return nil, false
	}
	name := evidence.Nested(full, "status", "boundVolumeSnapshotContentName")
	resource, served := w.evidence.Served(snapshotContents)
	if name == "" || !served {
		return nil, false
	}
	content, err := w.evidence.Get(resource, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false
	case err != nil:
		return w.unread(n, contentsFirst, "content "+name, err), true
	case content.GetDeletionTimestamp() == nil:
		return nil, false // the snapshot controller deletes it
	}
	return []hold{objectLink(w.evidence, finding.SnapshotClone, contentsFirst, resource, content, func() *Cause {
		return w.contentFails(evidence.IdentityOf(resource, "VolumeSnapshotContent", content), content, n)
	})}, true
}

// contentOfSnapshot is the content of a snapshot: the driver has to delete the snapshot behind it.
func (w *walker) contentOfSnapshot(n graph.Node) ([]hold, bool) {
	full, err := w.evidence.Whole(n)
	if err != nil || evidence.Nested(full, "status", "error", "message") == "" {
		return nil, false
	}
	return []hold{{because: deleteSnapshot.because(), cause: w.contentFails(n.Identity(), full, n)}}, true
}

// contentFails is a snapshot content that its driver fails at.
func (w *walker) contentFails(at graph.Identity, content *unstructured.Unstructured, n graph.Node) *Cause {
	return w.cause(finding.SnapshotClone, at, "", func(c *Cause) {
		driver, failure := evidence.Nested(content, "spec", "driver"), evidence.Nested(content, "status", "error", "message")
		c.Summary = deleteSnapshot.undone(driver, failure != "")
		c.Evidence = []Evidence{
			{Source: at.String(), Path: "spec.deletionPolicy", Value: evidence.Nested(content, "spec", "deletionPolicy")},
			{Source: at.String(), Path: "status.snapshotHandle", Value: evidence.Nested(content, "status", "snapshotHandle")},
		}
		if failure != "" {
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "status.error.message", Value: failure})
		}
		lease := w.driver(c, driver, "external-snapshotter-leader-"+dashed(driver))
		driverVerdict(w.evidence, c, n, failure, lease)
		c.Remedies = append(c.Remedies, see(fmt.Sprintf(repairSnapshotter, driver), "%s describe %s", w.Kubectl, shell.Target(at)))
	})
}

// attributesClass is a VolumeAttributesClass: claims and volumes that name it have to be deleted, or name another, first
// (pkg/controller/volume/vacprotection).
func (w *walker) attributesClass(n graph.Node) []hold {
	name := n.Object().Name
	var holds []hold
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		kind     string
		paths    [][]string
	}{
		{claims, "PersistentVolumeClaim", [][]string{{"spec", "volumeAttributesClassName"}, {"status", "currentVolumeAttributesClassName"}, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"}}},
		{volumesOf, "PersistentVolume", [][]string{{"spec", "volumeAttributesClassName"}}},
	} {
		list, err := w.evidence.List(kind.resource, "")
		if err != nil {
			return w.unread(n, mightBeUsed, kind.resource.Resource, err)
		}
		for i := range list {
			for _, path := range kind.paths {
				if evidence.Nested(&list[i], path...) != name {
					continue
				}
				at := evidence.IdentityOf(kind.resource, kind.kind, &list[i])
				holds = append(holds, objectLink(w.evidence, finding.VacInUse, isUsed, kind.resource, &list[i], func() *Cause { return w.classUser(n, at, path, nextClass(w.evidence, &list[i], name)) }))
				break
			}
		}
	}
	if len(holds) == 0 {
		return []hold{w.protection(n, finding.VacInUse, classUnused)}
	}
	return holds
}

// nextClass returns the class that a claim, or the claim of a volume, is to have instead of its own; empty when it is not
// to be changed.
func nextClass(r *evidence.Reader, user *unstructured.Unstructured, class string) string {
	claim := user
	if name := evidence.Nested(user, "spec", "claimRef", "name"); name != "" {
		var err error
		if claim, err = r.Get(claims, evidence.Nested(user, "spec", "claimRef", "namespace"), name); err != nil {
			return ""
		}
	}
	if wanted := evidence.Nested(claim, "spec", "volumeAttributesClassName"); wanted != class {
		return wanted
	}
	return ""
}

// classUser is a claim or volume that names a class, and may be about to get the
// next one.
func (w *walker) classUser(class graph.Node, at graph.Identity, path []string, next string) *Cause {
	return w.cause(finding.VacInUse, at, class.Identity().String(), func(c *Cause) {
		c.Summary = fmt.Sprintf(classKept, class.Name())
		c.Verdict = Stuck
		field := path[0] + "." + path[len(path)-1]
		c.Evidence = []Evidence{{Source: at.String(), Path: field, Value: class.Object().Name}, {Source: at.String(), Path: "metadata.deletionTimestamp", Value: notSet}}
		if next != "" {
			c.Verdict = Unknown
			c.Summary = fmt.Sprintf(classChanging, class.Name(), next)
			c.Remedies = []Remedy{see(awaitClass, "%s describe %s", shell.In(w.Kubectl, at.Namespace), shell.Target(at))}
			return
		}
		way := see(chooseClass, "%s get volumeattributesclasses", w.Kubectl)
		if path[0] == "spec" && at.Resource.Resource == claims.Resource {
			end := Remedy{Risk: Disruptive, Action: w.delete(at, byPolicy), Effect: endClassUser}
			data := stored{lost: mayLoseData()}
			if n, known := w.evidence.Node(claims.GroupResource(), at.Namespace, at.UID); known {
				data = w.storage.dataOf(n)
			}
			c.Remedies = data.losing(end)
		}
		c.Remedies = append([]Remedy{way}, c.Remedies...)
	})
}
