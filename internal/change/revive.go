// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Revival is how objects are kept that are being deleted by mistake. A deletion cannot be taken back: the data of claims and volumes is
// secured, the objects are let go, and an undo of that recreates them.
type Revival struct {
	// Objects are revived, and Kept are their manifests as they are to be recreated.
	Objects []graph.Identity
	Kept    []*unstructured.Unstructured
	// volumes are the UIDs of the volumes of claims, by those of the claims.
	volumes map[types.UID]types.UID
	// Changes are made in their order: volumes are retained first.
	Changes []Change
	// Secured is how many of these keep data.
	Secured int
	// Orphans depend on the objects, and are linked to what is recreated. Interrupted are the directories of earlier revivals of them, which
	// are completed afterwards. Going are being deleted themselves.
	Orphans     []graph.Object
	Interrupted []string
	Going       []graph.Identity
}

// stores reports whether objects of a type are claims or volumes.
func stores(r graph.Resource) bool {
	return r.GroupVersionResource == evidence.Claims || r.GroupVersionResource == evidence.Volumes
}

// The reasons for which nothing is revived.
var (
	errNotDeleted   = errors.New("it is not being deleted")
	errNoVolume     = errors.New("it has no volume: there is no data to keep")
	errDestroying   = errors.New("its volume is being deleted, or was released: its driver might have begun to destroy the data")
	errHomeless     = errors.New("its namespace is being deleted")
	errReleased     = errors.New("its claim is gone, and its data is retained: it is not recreated, because it would be free for any claim of that name")
	errWorkloadPlan = errors.New("to end the pods that use it would also delete other claims or snapshots")
)

// Revive finds out how objects are kept that are being deleted, as they are now. secure: only that the data of claims and volumes is kept.
// The report explains others, and the graph has all that may depend on them; they are nil for claims and volumes alone.
func (w *Writer) Revive(ctx context.Context, ids []graph.Identity, secure bool, report *explain.Report, g *graph.Graph) (*Revival, error) {
	r := &Revival{volumes: map[types.UID]types.UID{}}
	revived := sets.New[types.UID]()
	for _, id := range ids {
		o, err := w.Read(ctx, id)
		if err == nil && o.GetDeletionTimestamp() == nil {
			err = errNotDeleted
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		id.UID = o.GetUID()
		revived.Insert(id.UID)
		r.Objects, r.Kept = append(r.Objects, id), append(r.Kept, o)
	}
	for n, id := range r.Objects {
		if !stores(id.Resource) {
			continue
		}
		if err := w.secure(ctx, r, id, r.Kept[n], revived, secure); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	if r.Secured = len(r.Changes); secure {
		return r, nil
	}
	for n, id := range r.Objects {
		err := w.recreatable(ctx, id, r.Kept[n], revived)
		if err != nil {
			if stores(id.Resource) {
				err = fmt.Errorf("%w (--secure keeps its data)", err)
			}
			return nil, fmt.Errorf("%s: it would not stay: %w", id, err)
		}
		if stores(id.Resource) {
			err = w.letGo(ctx, r, id, r.Kept[n], revived)
		} else {
			err = r.free(report, g, id, r.Kept[n], revived)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	return r, nil
}

// add adds a change, once.
func (r *Revival) add(op remedy.Op, risk explain.Risk) {
	if !slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Op.Key() == op.Key() }) {
		r.Changes = append(r.Changes, Change{Op: op, Why: reviving, Risk: risk})
	}
}

// secure has the volume retained whose data would be destroyed.
func (w *Writer) secure(ctx context.Context, r *Revival, id graph.Identity, o *unstructured.Unstructured,
	revived sets.Set[types.UID], secure bool) error {
	volume := o
	if id.Resource.Resource == evidence.Claims.Resource {
		name := evidence.Nested(o, "spec", "volumeName")
		if name == "" {
			return errNoVolume
		}
		id = evidence.Identity(evidence.Volumes, "", name)
		var err error
		if volume, err = w.look(ctx, id); err != nil {
			return err
		}
		if volume == nil || evidence.Nested(volume, "spec", "claimRef", "uid") != string(o.GetUID()) {
			return errDestroying
		}
		id.UID = volume.GetUID()
		if r.volumes[o.GetUID()] = id.UID; volume.GetDeletionTimestamp() != nil && !revived.Has(id.UID) && !secure {
			return fmt.Errorf("its volume %s is being deleted, too: revive both", id)
		}
	}
	policy, destroys := evidence.ReclaimPolicy(volume)
	switch phase := evidence.Nested(volume, "status", "phase"); {
	case !destroys && phase == string(corev1.VolumeReleased) && o == volume:
		return errReleased
	case !destroys:
		return nil
	case phase != string(corev1.VolumeBound) && phase != string(corev1.VolumeAvailable):
		return errDestroying
	}
	op := remedy.RetainOf(id, policy) // as long as it is so: one that is released meanwhile might be destroyed already
	op.Patch = slices.Insert(op.Patch, 1, remedy.Test("/status/phase", evidence.Nested(volume, "status", "phase")))
	r.add(op, explain.Safe)
	return nil
}

// recreatable returns why an object could not be recreated, or would be deleted again: its namespace or its owners go.
func (w *Writer) recreatable(ctx context.Context, id graph.Identity, o *unstructured.Unstructured, revived sets.Set[types.UID]) error {
	if id.Namespace != "" {
		namespace, err := w.Read(ctx, evidence.Identity(evidence.Namespaces, "", id.Namespace))
		if err != nil {
			return err
		}
		if namespace.GetDeletionTimestamp() != nil {
			return errHomeless
		}
	}
	met := map[types.UID]Obstacle{}
	for uid := range revived {
		met[uid] = ""
	}
	if obstacle, err := w.owned(ctx, o, met); obstacle != "" {
		return errors.Join(errors.New(Words(obstacle)), err)
	}
	return nil
}

// letGo adds what lets an object go: the workloads of the pods that use a claim are scaled to 0, the finalizers of a volume that is
// retained removed.
func (w *Writer) letGo(ctx context.Context, r *Revival, id graph.Identity, o *unstructured.Unstructured,
	revived sets.Set[types.UID]) error {
	if id.Resource.Resource == evidence.Volumes.Resource {
		kept := o.DeepCopy()
		kept.SetResourceVersion("") // it was never so: before its policy is changed, it is kept as it is
		r.Kept[slices.Index(r.Kept, o)] = kept
		if err := unstructured.SetNestedField(kept.Object, string(corev1.PersistentVolumeReclaimRetain), "spec",
			"persistentVolumeReclaimPolicy"); err != nil {
			return err
		}
		r.add(remedy.PatchOf(id, remedy.Test(remedy.ReclaimPolicy, string(corev1.PersistentVolumeReclaimRetain)),
			remedy.Remove("/metadata/finalizers")), explain.Disruptive)
		return nil
	}
	pods, err := w.List(ctx, evidence.Pods, id.Namespace)
	if err != nil {
		return err
	}
	for i := range pods {
		if !mounts(&pods[i], id.Name) {
			continue
		}
		if err := w.stop(ctx, r, &pods[i], revived); err != nil {
			return err
		}
	}
	return nil
}

// mounts reports whether a pod that has not ended uses a claim.
func mounts(pod *unstructured.Unstructured, claim string) bool {
	if evidence.PodEnded(pod) {
		return false
	}
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName")
		return name == claim
	})
}

// scaled are the workloads that end all of their pods when they have no replicas.
var scaled = []string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}

// stop adds that the workload of a pod is scaled to 0. Nobody above it must scale it up again.
func (w *Writer) stop(ctx context.Context, r *Revival, pod *unstructured.Unstructured, revived sets.Set[types.UID]) error {
	var workload *unstructured.Unstructured
	for o := pod; ; {
		ref := metav1.GetControllerOf(o)
		if ref == nil {
			break
		}
		above, obstacle, err := w.ownerOf(ctx, pod.GetNamespace(), map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind,
			"name": ref.Name, "uid": string(ref.UID)})
		switch {
		case obstacle != "":
			return errors.Join(fmt.Errorf("%s/%s, which controls %s/%s: %s", ref.Kind, ref.Name, o.GetKind(), o.GetName(), Words(obstacle)), err)
		case !slices.Contains(scaled, ref.Kind):
			return fmt.Errorf("pod/%s uses it, and is controlled by %s/%s: stop that, and run it again", pod.GetName(), ref.Kind, ref.Name)
		}
		workload, o = above, above
	}
	if workload == nil {
		return fmt.Errorf("pod/%s uses it, and no workload controls that: delete the pod, and run it again", pod.GetName())
	}
	if w.endsData(ctx, workload, revived) {
		return errWorkloadPlan
	}
	replicas, stated, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !stated {
		replicas = 1
	}
	resource, err := w.Resource(workload.GroupVersionKind())
	if err != nil {
		return err
	}
	if replicas > 0 {
		r.add(remedy.ScaleOf(graph.Identity{Resource: resource, Namespace: workload.GetNamespace(), Name: workload.GetName(),
			UID: workload.GetUID()}, remedy.Replicas{Current: replicas}), explain.Disruptive)
	}
	return nil
}

// Keep writes what a revival lets go, before its first change, so that an undo recreates it.
func (j *Journal) Keep(r *Revival) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keeps = true
	for n, id := range r.Objects {
		result := gc.Result("")
		if !stores(id.Resource) {
			result = letting
		}
		kept, err := j.keep(undeleted(r.Kept[n]), false)
		if err != nil {
			return err
		}
		if err := j.plan(&Planned{Object: id, Result: result, Kept: &kept, Volume: r.volumes[id.UID]}); err != nil {
			return err
		}
	}
	return j.keepOrphans(r)
}

// letting is the result of what a revival lets go by its own changes: without one of it, others have.
const letting gc.Result = "LetGo"

// KeepOrphans writes what has come to depend on what a revival lets go, before that is orphaned.
func (j *Journal) KeepOrphans(r *Revival) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.keepOrphans(r)
}

func (j *Journal) keepOrphans(r *Revival) error {
	for i := range r.Orphans {
		if err := j.plan(&Planned{Object: r.Orphans[i].Identity(), Result: gc.Orphaned, Owners: r.Orphans[i].OwnerReferences}); err != nil {
			return err
		}
	}
	return errors.Join(j.syncKept(), j.file.Sync(), syncDir(j.Dir))
}

// undeleted is an object as it was before its deletion, which is the mistake.
func undeleted(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetDeletionTimestamp(nil)
	return o
}
