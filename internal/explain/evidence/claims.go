// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ProtectsClaim reports whether a pod keeps a claim of its namespace that is being deleted. One
// that is on no node does not, and one that has shut down does not keep that of an ephemeral
// volume (pkg/controller/volume/pvcprotection/pvc_protection_controller.go, podUsesPVC).
func ProtectsClaim(pod *unstructured.Unstructured, claim *graph.Object) bool {
	if Nested(pod, "spec", "nodeName") == "" {
		return false
	}
	grace := pod.GetDeletionGracePeriodSeconds()
	down := pod.GetDeletionTimestamp() != nil && grace != nil && *grace == 0
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name == claim.Name {
			return true
		}
		if _, ephemeral := volume["ephemeral"]; ephemeral && !down && claim.Name == pod.GetName()+"-"+Text(volume["name"]) &&
			controls(pod, claim) {
			return true
		}
	}
	return false
}

// ClaimNames are the names of the claims of a pod's volumes, with those that are made for ephemeral ones.
func ClaimNames(pod *unstructured.Unstructured) []string {
	var names []string
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			names = append(names, name)
		}
		if _, ephemeral := volume["ephemeral"]; ephemeral {
			names = append(names, pod.GetName()+"-"+Text(volume["name"]))
		}
	}
	return names
}

// IsTemplateClaim reports whether a name is that of a claim that a StatefulSet makes from one of its templates
// (pkg/controller/statefulset/stateful_set_utils.go, getPersistentVolumeClaimName).
func IsTemplateClaim(set *unstructured.Unstructured, name string) bool {
	return ordinalOf(set, name) >= 0
}

// ordinalOf is the ordinal of the pod of a StatefulSet whose claim has the name, -1 for no claim of its templates.
func ordinalOf(set *unstructured.Unstructured, name string) int64 {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, each := range templates {
		template, _ := each.(map[string]any)
		base, _, _ := unstructured.NestedString(template, "metadata", "name")
		digits, is := strings.CutPrefix(name, base+"-"+set.GetName()+"-")
		if ordinal, err := strconv.ParseUint(digits, 10, 31); is && err == nil {
			return int64(ordinal)
		}
	}
	return -1
}

// Condemned returns the pods that a StatefulSet has to end because it was made smaller, one after another, with the claims that it deletes
// then.
func Condemned(whole *unstructured.Unstructured, set graph.Node, nodes iter.Seq[graph.Node]) []graph.Node {
	var all []graph.Node
	for n := range nodes {
		claim := !n.Virtual() && n.Resource().GroupResource() == Claims.GroupResource() && n.Namespace() == set.Namespace()
		pod := !n.Virtual() && n.Resource().IsPod() && slices.ContainsFunc(n.Owners(), func(ref graph.Reference) bool { return ref.Owner == set })
		if claim && ScalesAway(whole, replicas(whole), n.Name()) || pod && ordinal(whole, n.Name()) >= ordinals(whole)+replicas(whole) {
			all = append(all, n)
		}
	}
	return all
}

// SetsOf returns the StatefulSets of a pod that are not being deleted.
func SetsOf(pod graph.Node) []graph.Node {
	var sets []graph.Node
	for _, ref := range pod.Owners() {
		if o := ref.Owner; !o.Virtual() && o.Resource().GroupResource() == StatefulSets.GroupResource() && !o.BeingDeleted() {
			sets = append(sets, o)
		}
	}
	return sets
}

// ordinal is the ordinal of a StatefulSet's pod, -1 for no name of one.
func ordinal(set *unstructured.Unstructured, pod string) int64 {
	digits, is := strings.CutPrefix(pod, set.GetName()+"-")
	if ordinal, err := strconv.ParseUint(digits, 10, 31); is && err == nil {
		return int64(ordinal)
	}
	return -1
}

// ClaimOf reports whether a name is that of a claim that a StatefulSet has made for one of its pods, of any ordinal.
func ClaimOf(set *unstructured.Unstructured, claim string) bool { return ordinalOf(set, claim) >= 0 }

// WantsClaim reports whether a name is that of a claim that a StatefulSet makes for one of its pods.
func WantsClaim(set *unstructured.Unstructured, claim string) bool {
	at := ordinalOf(set, claim)
	return at >= ordinals(set) && at < ordinals(set)+replicas(set)
}

func replicas(set *unstructured.Unstructured) int64 {
	count, stated, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	if !stated {
		return 1
	}
	return count
}

// ordinals is the first ordinal of a StatefulSet's pods.
func ordinals(set *unstructured.Unstructured) int64 {
	start, _, _ := unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
	return start
}

// DeletesScaled reports whether a StatefulSet deletes the claims of the pods that it ends when it is made smaller.
func DeletesScaled(set *unstructured.Unstructured) bool {
	return Nested(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete"
}

// ScalesAway reports whether a StatefulSet deletes a claim when it is made so small
// (pkg/controller/statefulset/stateful_set_utils.go, updateClaimOwnerRefForSetAndPod).
func ScalesAway(set *unstructured.Unstructured, replicas int64, claim string) bool {
	return DeletesScaled(set) && ordinalOf(set, claim) >= ordinals(set)+replicas
}

func controls(pod *unstructured.Unstructured, claim *graph.Object) bool {
	c := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: claim.OwnerReferences})
	return c != nil && c.UID == pod.GetUID()
}

// ReclaimPolicy returns that of a volume, and whether it destroys the data when the claim is deleted: Delete deletes the storage, and
// Recycle the files in it (pkg/controller/volume/persistentvolume/pv_controller.go, reclaimVolume).
func ReclaimPolicy(volume *unstructured.Unstructured) (policy string, destroys bool) {
	policy = Nested(volume, "spec", "persistentVolumeReclaimPolicy")
	return policy, policy != "" && policy != "Retain"
}

// DriverOf returns the driver that deletes the storage of a volume.
func DriverOf(volume *unstructured.Unstructured) string {
	return cmp.Or(Nested(volume, "spec", "csi", "driver"), volume.GetAnnotations()["pv.kubernetes.io/provisioned-by"])
}

// manyVolumes is how many volumes are read one by one, before all are.
const manyVolumes = 20

// Volume reads a volume. Of many volumes all are read at once, if they may be.
func (r *Reader) Volume(name string) (*unstructured.Unstructured, error) {
	if r.looked++; r.looked <= manyVolumes {
		return r.Get(Volumes, "", name)
	}
	all, err := r.List(Volumes, "")
	if err != nil {
		return r.Get(Volumes, "", name)
	}
	if r.volumes == nil {
		r.volumes = make(map[string]*unstructured.Unstructured, len(all))
		for i := range all {
			r.volumes[all[i].GetName()] = &all[i]
		}
	}
	if volume := r.volumes[name]; volume != nil {
		return volume, nil
	}
	return nil, apierrors.NewNotFound(Volumes.GroupResource(), name)
}
