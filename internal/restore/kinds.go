// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// stage is when objects of a type are made, whatever owns them: what others need to be accepted, or to start as they did, comes first.
type stage int

const (
	homes     stage = iota + 1 // namespaces, definitions
	cluster                    // what is in no namespace, such as classes and volumes; accounts and roles
	content                    // what pods use: configuration, claims, Services; bindings of roles
	others                     // custom resources
	workloads                  // what starts pods
	limits                     // what might refuse or end the others, until its controller has counted them
	guards                     // what is asked about each request, and might not be answered yet
)

var (
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volume      = schema.GroupKind{Kind: "PersistentVolume"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// kind is what is special about objects of a type.
type kind struct {
	stage stage
	// drop are fields that name what is gone: whoever sets them sets them again.
	drop [][]string
	// unmade: who needs such an object makes it, and nobody else can.
	unmade bool
}

// kinds are the types of which something is special.
var kinds = map[schema.GroupKind]kind{
	{Kind: "Namespace"}: {stage: homes},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {stage: homes},

	{Kind: "ConfigMap"}: {stage: content},
	// Its token is signed for the UID of its account (pkg/controller/serviceaccount/tokens_controller.go, secretUpdateNeeded).
	{Kind: "Secret"}:         {stage: content, drop: [][]string{{"metadata", "annotations", corev1.ServiceAccountUIDKey}}},
	{Kind: "ServiceAccount"}: {stage: cluster}, // a Secret with its token is deleted where it does not exist
	{Kind: "Service"}:        {stage: content},
	// A claim that has been bound is lost if its volume names another UID (pkg/controller/volume/persistentvolume/pv_controller.go,
	// syncBoundClaim).
	claim: {stage: content, drop: [][]string{
		{"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}}},
	// A content is bound to the snapshot of its name that comes next (external-snapshotter, pkg/common-controller/snapshot_controller.go).
	{Group: evidence.SnapshotContents.Group, Kind: "VolumeSnapshotContent"}: {
		stage: cluster, drop: [][]string{{"spec", "volumeSnapshotRef", "uid"}, {"spec", "volumeSnapshotRef", "resourceVersion"}}},
	{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshotContent"}: {
		stage: cluster, drop: [][]string{{"spec", "volumeGroupSnapshotRef", "uid"}, {"spec", "volumeGroupSnapshotRef", "resourceVersion"}}},
	// A binding is accepted of who may not bind all roles only where its role exists (pkg/registry/rbac/rolebinding/policybased/storage.go).
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                {stage: cluster},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         {stage: content},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  {stage: content},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               {stage: content},
	{Group: "apps", Kind: "ControllerRevision"}:                       {stage: workloads},
	{Group: "apps", Kind: "Deployment"}:                               {stage: workloads},
	{Group: "apps", Kind: "ReplicaSet"}:                               {stage: workloads},
	{Group: "apps", Kind: "DaemonSet"}:                                {stage: workloads},
	statefulSet:                                                       {stage: workloads},
	{Kind: "ReplicationController"}:                                   {stage: workloads},
	{Group: "batch", Kind: "CronJob"}:                                 {stage: workloads},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           {stage: limits},
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    {stage: limits},
	{Kind: "ResourceQuota"}:                                           {stage: limits},
	{Kind: "LimitRange"}:                                              {stage: others}, // pods that start get its defaults
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {stage: guards},
	{Kind: "Event"}:                                                   {unmade: true},
	{Group: "events.k8s.io", Kind: "Event"}:                           {unmade: true},
	{Group: "coordination.k8s.io", Kind: "Lease"}:                     {unmade: true},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:               {unmade: true},
	{Group: "storage.k8s.io", Kind: "CSINode"}:                        {unmade: true},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   {unmade: true},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {unmade: true},
	// It is scheduled anew; priority and overhead come from its classes (plugin/pkg/admission/priority, runtimeclass).
	{Kind: "Pod"}: {stage: workloads, drop: [][]string{{"spec", "nodeName"}, {"spec", "ephemeralContainers"},
		{"spec", "priority"}, {"spec", "overhead"}}},
	// Its selector is made of its UID, unless it is given one (pkg/registry/batch/job/strategy.go, generateSelector).
	{Group: "batch", Kind: "Job"}: {stage: workloads},
}

func kindOf(r graph.Resource) schema.GroupKind { return r.GroupVersionKind().GroupKind() }

// stageOf is when objects of a type are made.
func stageOf(r graph.Resource) stage {
	switch s := kinds[kindOf(r)].stage; {
	case s != 0:
		return s
	case r.Group == "admissionregistration.k8s.io":
		return guards
	case !r.Namespaced:
		return cluster
	}
	return others
}

// Fit reports whether an object of a type that goes can be recreated as it was, with its manifest alone, before others act on that it was
// gone. Tokens are for the UID of their ServiceAccount, and contents for that of their snapshot.
func Fit(r graph.Resource) bool {
	if slices.ContainsFunc(evidence.Copies, func(c evidence.Copy) bool { return c.Has(r.GroupResource()) }) {
		return false
	}
	of := kindOf(r)
	unfit := []schema.GroupKind{{Kind: "Pod"}, {Kind: "Node"}, {Kind: "Secret"}, {Kind: "ServiceAccount"}, {Group: "batch", Kind: "Job"}}
	return kinds[of].stage != homes && !kinds[of].unmade && !slices.Contains(unfit, of)
}

// unfit returns why an object must not be made again, empty for nothing.
func (p *planner) unfit(i *Item) Reason {
	switch id := i.Object.Resource; kindOf(id) {
	case schema.GroupKind{Kind: "Secret"}:
		if i.Partial && !isToken(i.Manifest) {
			return Unkept
		}
		if isToken(i.Manifest) && !p.hasAccount(i) {
			return NoAccount
		}
	case schema.GroupKind{Kind: "Pod"}:
		if evidence.PodEnded(i.Manifest) {
			return Finished
		}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if finished(i.Manifest) {
			return Finished
		}
	case volume:
		if evidence.Nested(i.Manifest, "spec", "persistentVolumeReclaimPolicy") != string(corev1.PersistentVolumeReclaimRetain) {
			return Reclaimed
		}
	default:
		for _, c := range evidence.Copies {
			if c.Has(id.GroupResource()) {
				return p.copied(i, c)
			}
		}
	}
	return ""
}

// copied returns why a snapshot, or the content of one, must not be made again: it would have the present data, or none.
func (p *planner) copied(i *Item, c evidence.Copy) Reason {
	source, _, _ := unstructured.NestedMap(i.Manifest.Object, "spec", "source")
	for _, of := range []string{"persistentVolumeClaimName", "selector", "volumeHandle", "volumeHandles"} {
		if source[of] != nil {
			return OfNow
		}
	}
	if i.Object.Resource.GroupResource() == c.Contents {
		if evidence.Nested(i.Manifest, "spec", "deletionPolicy") != "Retain" {
			return Reclaimed
		}
		return ""
	}
	resource, err := p.Resource(i.Object.Resource.GroupVersion().WithKind(c.Kind))
	if err != nil {
		return Unread
	}
	name, _ := source[strings.ToLower(c.Kind[:1])+c.Kind[1:]+"Name"].(string)
	id := graph.Identity{Resource: resource, Name: name}
	if content := p.named[id]; content != nil {
		if p.settle(content); content.Do == Make {
			i.needs(content)
			i.Requires = append(i.Requires, content)
			return ""
		}
	}
	switch now, err := p.Find(id); {
	case err != nil:
		return Unread
	case now == nil || now.GetDeletionTimestamp() != nil:
		return NoContent
	case evidence.Nested(now, "spec", c.Ref, "uid") != "": // of another (external-snapshotter, checkandBindSnapshotContent)
		return Unbindable
	}
	return ""
}

// isToken reports whether a Secret has the token of a ServiceAccount, which is made for it.
func isToken(secret *unstructured.Unstructured) bool {
	return evidence.Nested(secret, "type") == string(corev1.SecretTypeServiceAccountToken)
}

// hasAccount reports whether the account of a token is there, or is made.
func (p *planner) hasAccount(i *Item) bool {
	id := evidence.Identity(evidence.ServiceAccounts, i.Object.Namespace, i.Manifest.GetAnnotations()[corev1.ServiceAccountNameKey])
	if account := p.named[id]; account != nil {
		p.settle(account)
		return account.There() || account.Now != nil
	}
	now, err := p.Find(id)
	return err == nil && now != nil
}

// finished reports whether a Job has ended.
func finished(job *unstructured.Unstructured) bool {
	return slices.ContainsFunc(evidence.Conditions(job), func(c evidence.Condition) bool {
		return (c.Type == string(batchv1.JobComplete) || c.Type == string(batchv1.JobFailed)) && c.Status == "True"
	})
}

// leaves reports whether nothing but a controller makes such an object: it has a name of chance, or it is work, which begins anew.
func (p *planner) leaves(i *Item) bool {
	of := kindOf(i.Object.Resource)
	if kinds[of].unmade || i.Manifest.GetAnnotations()[corev1.MirrorPodAnnotationKey] != "" {
		return true
	}
	if of == (schema.GroupKind{Kind: "Endpoints"}) {
		if service := p.named[evidence.Identity(evidence.Services, i.Object.Namespace, i.Object.Name)]; service != nil &&
			service.Manifest != nil {
			selector, _, _ := unstructured.NestedMap(service.Manifest.Object, "spec", "selector")
			return len(selector) > 0
		}
	}
	ref := metav1.GetControllerOf(i.Manifest)
	if ref == nil {
		return false
	}
	i.By = p.owner(i, ref)
	return i.Manifest.GetGenerateName() != "" || i.Object.Resource.IsPod() || ref.Kind == "CronJob"
}

// Content is what is made of an object, with the UIDs that its owners have by now, by those that they had.
func (i *Item) Content(ids map[types.UID]types.UID) *unstructured.Unstructured {
	o := i.Manifest.DeepCopy()
	for _, field := range kinds[kindOf(i.Object.Resource)].drop {
		unstructured.RemoveNestedField(o.Object, field...)
	}
	if finalizers := slices.DeleteFunc(o.GetFinalizers(), graph.IsCollectorFinalizer); len(finalizers) < len(o.GetFinalizers()) {
		o.SetFinalizers(finalizers)
	}
	owners := slices.DeleteFunc(slices.Clone(i.owners), func(ref metav1.OwnerReference) bool { return slices.Contains(i.without, ref) })
	for n := range owners {
		if uid := ids[owners[n].UID]; uid != "" {
			owners[n].UID = uid
		}
	}
	if o.SetOwnerReferences(owners); len(owners) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
	}
	switch of := kindOf(i.Object.Resource); {
	case of.Kind == "Job" && of.Group == "batch":
		unselect(o)
	case of.Kind == "Secret" && of.Group == "" && isToken(o):
		unstructured.RemoveNestedField(o.Object, "data")
	case of == volume && i.bound != nil && ids[i.bound.Object.UID] != "":
		_ = unstructured.SetNestedField(o.Object, string(ids[i.bound.Object.UID]), "spec", "claimRef", "uid") // it has one
		unstructured.RemoveNestedField(o.Object, "spec", "claimRef", "resourceVersion")
	}
	return o
}

// unselect takes what names its UID from a Job that has the selector that is made for it.
func unselect(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		unstructured.RemoveNestedField(job.Object, "metadata", "labels", label)
		unstructured.RemoveNestedField(job.Object, "spec", "template", "metadata", "labels", label)
	}
}

// holds reports whether objects of a type are what they hold, which nobody but their user knows.
func holds(i *Item) bool {
	of := kindOf(i.Object.Resource)
	return of == claim || of.Group == "" && (of.Kind == "ConfigMap" || of.Kind == "Secret")
}

// Same reports whether an object is as another was, with what others have added: to data nobody has, and to an account no annotation.
func Same(i *Item, now *unstructured.Unstructured) bool {
	if i.Manifest == nil || i.Partial && !isToken(i.Manifest) {
		return false
	}
	wanted := i.Content(nil).Object
	metadata, _ := wanted["metadata"].(map[string]any)
	for _, of := range []string{"labels", "annotations"} {
		are, _, _ := unstructured.NestedMap(now.Object, "metadata", of)
		if values, _ := metadata[of].(map[string]any); !remedy.Within(values, are) &&
			(of == "labels" || i.Object.Resource.Kind == "ServiceAccount") {
			return false
		}
	}
	for _, of := range []string{"data", "binaryData"} {
		if holds(i) && !isToken(i.Manifest) && !remedy.Same(wanted[of], now.Object[of]) {
			return false
		}
	}
	delete(wanted, "metadata")
	delete(wanted, "status")
	if kindOf(i.Object.Resource) == volume { // which may be bound by now, or released
		unstructured.RemoveNestedField(wanted, "spec", "claimRef")
	}
	return remedy.Within(wanted, now.Object)
}

// Relink is the patch that gives an object that has stayed the references to owners again that were recreated, and one that was made
// without them those that it lacks, where they were among the others; nil for nothing to do.
func (i *Item) Relink(ids map[types.UID]types.UID, now *unstructured.Unstructured) *remedy.Op {
	const list = "/metadata/ownerReferences"
	var steps []remedy.Step
	are, at := now.GetOwnerReferences(), 0
	has := func(uid types.UID) int {
		return slices.IndexFunc(are, func(r metav1.OwnerReference) bool { return uid != "" && r.UID == uid })
	}
	for _, ref := range i.owners {
		uid, was := ids[ref.UID], ref.UID
		switch n := has(was); {
		case uid == "" || uid == was && !i.Late || has(uid) >= 0:
			at = max(at, n+1, has(uid)+1)
			continue
		case n >= 0:
			path := fmt.Sprintf("%s/%d/uid", list, n)
			steps = append(steps, remedy.Test(path, string(was)), remedy.Replace(path, string(uid)))
			are[n].UID, at = uid, n+1
			continue
		case isController(&ref) && metav1.GetControllerOf(now) != nil:
			continue
		}
		ref.UID = uid
		entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ref)
		switch {
		case err != nil:
			continue
		case len(are) == 0:
			steps = append(steps, remedy.Add(list, []any{entry}))
		default:
			steps = append(steps, remedy.Add(fmt.Sprintf("%s/%d", list, at), entry))
		}
		are = slices.Insert(are, at, ref)
		at++
	}
	if len(steps) == 0 {
		return nil
	}
	id := i.Object
	id.UID = now.GetUID()
	return new(remedy.PatchOf(id, steps...))
}
