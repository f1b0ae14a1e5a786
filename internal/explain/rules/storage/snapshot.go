// SPDX-License-Identifier: Apache-2.0

package storage

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Snapshots, copies and classes of volumes: kubernetes-csi/external-snapshotter and
// external-provisioner, pkg/controller/volume/vacprotection.

// copying is a snapshot or a copy that is not complete. It blocks its source until its controller has completed it.
func copying(f *rules.Facts, kind finding.Kind, n graph.Node, user *unstructured.Unstructured, at graph.Identity, summary say.Text,
	path string) *finding.Cause {
	c := &finding.Cause{
		Kind: kind, At: at, Key: n.Identity().String(), Verdict: finding.Unknown, Summary: summary,
		Evidence: []finding.Fact{finding.At(at, path, n.Name())},
		Ways: []finding.Way{finding.See(remedy.Describe(at), CompleteCopy),
			finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}), AbandonCopy)},
	}
	failure := evidence.Nested(user, "status", "error", "message")
	if failure != "" {
		c.Evidence = append(c.Evidence, finding.At(at, "status.error.message", failure))
		if f.Age(n) > rules.DriverDelay {
			c.Verdict = finding.Stuck
		}
	}
	if at.Resource.GroupVersionResource == evidence.Claims && failure == "" {
		filledBy(f, c, n, user)
	}
	return c
}

// filledBy follows a claim that is being filled to the driver that fills it.
func filledBy(f *rules.Facts, c *finding.Cause, n graph.Node, claim *unstructured.Unstructured) {
	driver := claim.GetAnnotations()["volume.kubernetes.io/storage-provisioner"]
	if class, err := f.Get(storageClasses, "", evidence.Nested(claim, "spec", "storageClassName")); driver == "" && err == nil {
		driver = evidence.Nested(class, "provisioner")
	}
	if driver == "" {
		return
	}
	c.Summary = c.Summary.And(FilledByDriver, driver)
	rules.Judge(f.Reader, c, n, "", driverOf(f, c, driver, dashed(driver)))
}

// SnapshotSource is a claim of which snapshots are being taken.
func SnapshotSource(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	resource, served := f.Served(evidence.Snapshots)
	if !served {
		return nil, false
	}
	list, err := f.List(resource, n.Namespace())
	if err != nil {
		return rules.Unread(n.Node, say.Of(MightBeSnapshotted), evidence.Snapshots.String(), err), true
	}
	var blockers []finding.Blocker
	for i := range list {
		ready, _, _ := unstructured.NestedBool(list[i].Object, "status", "readyToUse")
		if evidence.Nested(&list[i], "spec", "source", "persistentVolumeClaimName") != n.Name() || ready {
			continue
		}
		blockers = append(blockers, f.Link(finding.PvcSnapshotSource, say.Of(IsSnapshotted), resource, &list[i], func() *finding.Cause {
			at := evidence.IdentityOf(resource, "VolumeSnapshot", &list[i])
			return copying(f, finding.PvcSnapshotSource, n.Node, &list[i], at, say.Of(SnapshotIncomplete, n.Name()),
				"spec.source.persistentVolumeClaimName")
		}))
	}
	return blockers, len(blockers) > 0
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

// CopiedClaim and CopiedSnapshot are objects from which claims are being filled.
var (
	CopiedClaim    = copied(finding.PvcSnapshotSource, "PersistentVolumeClaim")
	CopiedSnapshot = copied(finding.SnapshotClone, "VolumeSnapshot")
)

// copied is the rule of an object of a kind from which claims are being filled.
func copied(symptom finding.Kind, kind string) rules.Rule {
	return func(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
		list, err := f.List(evidence.Claims, n.Namespace())
		if err != nil {
			return rules.Unread(n.Node, say.Of(MightBeCopied), "claims in namespace "+n.Namespace(), err), true
		}
		var blockers []finding.Blocker
		for i := range list {
			if !dataSource(&list[i], kind, n.Name()) || evidence.Nested(&list[i], "status", "phase") == "Bound" {
				continue
			}
			blockers = append(blockers, f.Link(symptom, say.Of(IsCopied), evidence.Claims, &list[i], func() *finding.Cause {
				at := evidence.IdentityOf(evidence.Claims, "PersistentVolumeClaim", &list[i])
				return copying(f, symptom, n.Node, &list[i], at, say.Of(CopyIncomplete, n.Identity()), "spec.dataSource.name")
			}))
		}
		return blockers, len(blockers) > 0
	}
}

// SnapshotContent is a snapshot whose content has to be deleted first.
func SnapshotContent(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, err := f.Whole(n.Node)
	if err != nil {
		return nil, false
	}
	name := evidence.Nested(full, "status", "boundVolumeSnapshotContentName")
	resource, served := f.Served(evidence.SnapshotContents)
	if name == "" || !served {
		return nil, false
	}
	content, err := f.Get(resource, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false
	case err != nil:
		return rules.Unread(n.Node, say.Of(ContentsFirst), "content "+name, err), true
	case content.GetDeletionTimestamp() == nil:
		return nil, false // the snapshot controller deletes it
	}
	return []finding.Blocker{f.Link(finding.SnapshotClone, say.Of(ContentsFirst), resource, content, func() *finding.Cause {
		return contentFails(f, evidence.IdentityOf(resource, "VolumeSnapshotContent", content), content, n.Node)
	})}, true
}

// ContentOfSnapshot is the content of a snapshot: the driver has to delete the snapshot behind it.
func ContentOfSnapshot(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, err := f.Whole(n.Node)
	if err != nil || evidence.Nested(full, "status", "error", "message") == "" {
		return nil, false
	}
	return []finding.Blocker{{Because: say.Of(SnapshotLeft), Cause: contentFails(f, n.Identity(), full, n.Node)}}, true
}

// contentFails is a snapshot content that its driver fails at.
func contentFails(f *rules.Facts, at graph.Identity, content *unstructured.Unstructured, n graph.Node) *finding.Cause {
	driver, failure := evidence.Nested(content, "spec", "driver"), evidence.Nested(content, "status", "error", "message")
	c := &finding.Cause{
		Kind: finding.SnapshotClone, At: at, Summary: undone(SnapshotUndone, SnapshotFails, failure, driver),
		Evidence: []finding.Fact{
			finding.At(at, "spec.deletionPolicy", evidence.Nested(content, "spec", "deletionPolicy")),
			finding.At(at, "status.snapshotHandle", evidence.Nested(content, "status", "snapshotHandle")),
		},
		Ways: []finding.Way{finding.See(remedy.Describe(at), RepairSnapshotter, driver)},
	}
	if failure != "" {
		c.Evidence = append(c.Evidence, finding.At(at, "status.error.message", failure))
	}
	rules.Judge(f.Reader, c, n, failure, driverOf(f, c, driver, "external-snapshotter-leader-"+dashed(driver)))
	return c
}

// AttributesClass is a VolumeAttributesClass: claims and volumes that name it have to be deleted, or name another, first
// (pkg/controller/volume/vacprotection).
func AttributesClass(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	var blockers []finding.Blocker
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		kind     string
		paths    [][]string
	}{
		{evidence.Claims, "PersistentVolumeClaim", [][]string{{"spec", "volumeAttributesClassName"},
			{"status", "currentVolumeAttributesClassName"}, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"}}},
		{evidence.Volumes, "PersistentVolume", [][]string{{"spec", "volumeAttributesClassName"}}},
	} {
		list, err := f.List(kind.resource, "")
		if err != nil {
			return rules.Unread(n.Node, say.Of(MightBeUsed), kind.resource.Resource, err), true
		}
		for i := range list {
			for _, path := range kind.paths {
				if evidence.Nested(&list[i], path...) != n.Name() {
					continue
				}
				at := evidence.IdentityOf(kind.resource, kind.kind, &list[i])
				blockers = append(blockers, f.Link(finding.VacInUse, say.Of(IsUsed), kind.resource, &list[i], func() *finding.Cause {
					return classUser(f, n.Node, at, path, nextClass(f.Reader, &list[i], n.Name()))
				}))
				break
			}
		}
	}
	if len(blockers) == 0 {
		return f.Protected(n.Node, finding.VacInUse, say.Of(ClassUnused)), true
	}
	return blockers, true
}

// nextClass returns the class that a claim, or the claim of a volume, is to have instead of its own; empty when it is not
// to be changed.
func nextClass(r *evidence.Reader, user *unstructured.Unstructured, class string) string {
	claim := user
	if name := evidence.Nested(user, "spec", "claimRef", "name"); name != "" {
		var err error
		if claim, err = r.Get(evidence.Claims, evidence.Nested(user, "spec", "claimRef", "namespace"), name); err != nil {
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
func classUser(f *rules.Facts, class graph.Node, at graph.Identity, path []string, next string) *finding.Cause {
	c := &finding.Cause{
		Kind: finding.VacInUse, At: at, Key: class.Identity().String(), Verdict: finding.Stuck, Summary: say.Of(ClassKept, class.Name()),
		Evidence: []finding.Fact{finding.At(at, path[0]+"."+path[len(path)-1], class.Name()),
			finding.At(at, "metadata.deletionTimestamp", evidence.NotSet)},
		Ways: []finding.Way{finding.See(remedy.Get("volumeattributesclasses"), ChooseClass)},
	}
	if next != "" {
		c.Verdict, c.Summary = finding.Unknown, say.Of(ClassChanging, class.Name(), next)
		c.Ways = []finding.Way{finding.See(remedy.Describe(at), AwaitClass)}
		return c
	}
	if path[0] == "spec" && at.Resource.Resource == evidence.Claims.Resource {
		data := unknown()
		if n, known := f.Node(evidence.Claims.GroupResource(), at.Namespace, at.UID); known {
			data = dataOf(f.Reader, n)
		}
		c.Ways = append(c.Ways, data.losing(finding.Does(remedy.DeleteOf(at, metav1.DeleteOptions{}), EndClassUser))...)
	}
	return c
}
