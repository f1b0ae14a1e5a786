// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Workloads that are scaled to 0, and how many replicas they had.

// autoscaler is a type whose objects scale workloads.
type autoscaler struct {
	resource schema.GroupResource
	kind     string
	// minimum is the field of spec with the number of replicas to start with, unstated what an object without it has.
	minimum  string
	unstated int64
}

// The first that scales a workload counts: KEDA makes a HorizontalPodAutoscaler from a ScaledObject.
var autoscalers = []autoscaler{
	// kedacore/keda, apis/keda/v1alpha1/scaledobject_types.go, pkg/scaling/executor/scale_scaledobjects.go
	{schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"}, "ScaledObject", "minReplicaCount", 0},
	// kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal.go: ScalingDisabled while there are 0 replicas
	{schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, "HorizontalPodAutoscaler", "minReplicas", 1},
}

// pausedAt is the annotation of a ScaledObject with the number of replicas at which KEDA keeps the workload.
const pausedAt = "autoscaling.keda.sh/paused-replicas"

// savedReplicas are the annotations in which tools keep how many replicas a workload had before they scaled it to 0, and
// from which they scale it up.
var savedReplicas = []struct {
	annotation, tool string
	// again: the tool looks all the time, and scales to 0 what was scaled up
	again bool
}{
	// hjacobs/kube-downscaler, kube_downscaler/scaler.py; caas-team/GoKubeDownscaler, internal/pkg/scalable/util.go
	{"downscaler/original-replicas", "kube-downscaler", true},
	// kubecost/cluster-turndown, pkg/cluster/flattener.go
	{"kubecost.kubernetes.io/turn-down-replicas", "cluster-turndown", false},
	// openshift/origin, pkg/oc/cli/idle/idle.go, pkg/unidling
	{"idling.alpha.openshift.io/previous-scale", "oc idle", false},
	// loft-sh/vcluster, pkg/lifecycle
	{"loft.sh/paused-replicas", "vcluster pause", false},
}

// ScaleUp starts a workload that is scaled to 0, with as many replicas as it had. To take that back would be no way out.
func ScaleUp(r *evidence.Reader, id graph.Identity, effect say.Text) finding.Way {
	h := had{id: id}
	h.byAutoscalers(r)
	if workload := r.Itself(id); workload != nil {
		if owner := metav1.GetControllerOf(workload); owner != nil { // which states the replicas, as OLM and Crossplane do
			h.again = cmp.Or[any](h.again, evidence.Named(owner.Kind, "", owner.Name))
		}
		h.bySaved(workload)
		h.byApplied(workload)
	}
	h.says(1, id, "spec.replicas", ReplicasUnknown)
	if h.again != nil {
		effect = effect.And(ScalesDownAgain, h.again)
	}
	op := remedy.ScaleOf(id, remedy.Replicas{Wanted: h.replicas})
	return finding.Way{Effect: effect, Op: &op, Facts: h.facts}
}

// had is how many replicas a workload had, and what shows it.
type had struct {
	id       graph.Identity
	replicas int64
	facts    []finding.Fact
	// again is what might scale the workload to 0 again, an object or the name of a tool, nil for nothing.
	again any
}

// says takes a number of replicas to scale up to, unless another was found before.
func (h *had) says(replicas int64, source graph.Identity, path string, w string, args ...any) {
	if replicas > 0 && h.replicas == 0 {
		h.replicas, h.facts = replicas, append(h.facts, finding.AtSays(source, path, w, args...))
	}
}

// byAutoscalers looks for what scales the workload. Nothing is read where there are no autoscalers.
func (h *had) byAutoscalers(r *evidence.Reader) {
	for _, a := range autoscalers {
		resource, served := r.Served(a.resource)
		if !served || r.NoneOf(a.resource) {
			continue
		}
		list, err := r.List(resource, h.id.Namespace)
		if err != nil {
			h.facts = append(h.facts, finding.At(a.resource.String()+" in namespace "+h.id.Namespace, "", err.Error()))
		}
		for i := range list {
			if a.scales(&list[i], h.id) {
				h.byAutoscaler(a, &list[i], evidence.IdentityOf(resource, a.kind, &list[i]))
			}
		}
	}
}

// scales reports whether the target of an object is the workload. KEDA's is a Deployment without a word.
func (a autoscaler) scales(scaler *unstructured.Unstructured, id graph.Identity) bool {
	target, _, _ := unstructured.NestedStringMap(scaler.Object, "spec", "scaleTargetRef")
	kind, group := target["kind"], schema.FromAPIVersionAndKind(target["apiVersion"], "").Group
	if kind == "" {
		kind = "Deployment"
	}
	return target["name"] == id.Name && kind == id.Resource.Kind && (group == "" || group == id.Resource.Group)
}

func (h *had) byAutoscaler(a autoscaler, scaler *unstructured.Unstructured, at graph.Identity) {
	floor, stated, _ := unstructured.NestedInt64(scaler.Object, "spec", a.minimum)
	if !stated {
		floor = a.unstated
	}
	_, idles, _ := unstructured.NestedInt64(scaler.Object, "spec", "idleReplicaCount")
	paused := scaler.GetAnnotations()[pausedAt]
	if floor < 1 || idles || paused == "0" {
		h.again = cmp.Or[any](h.again, at)
	}
	if paused != "" {
		h.facts = append(h.facts, finding.At(at, annotation(pausedAt), paused))
	}
	h.says(max(1, floor), at, "spec."+a.minimum, MinimumOf, floor, h.id)
}

// bySaved looks for what a tool has kept.
func (h *had) bySaved(workload *unstructured.Unstructured) {
	for _, s := range savedReplicas {
		replicas, err := strconv.ParseInt(workload.GetAnnotations()[s.annotation], 10, 32)
		if err != nil {
			continue
		}
		if s.again {
			h.again = cmp.Or[any](h.again, s.tool)
		}
		h.says(replicas, h.id, annotation(s.annotation), SavedBy, replicas, s.tool)
	}
}

// byApplied looks for what "kubectl apply" has written last.
func (h *had) byApplied(workload *unstructured.Unstructured) {
	var applied struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
	}
	if json.Unmarshal([]byte(workload.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) == nil {
		h.says(applied.Spec.Replicas, h.id, annotation(corev1.LastAppliedConfigAnnotation), LastApplied, applied.Spec.Replicas)
	}
}

func annotation(name string) string { return "metadata.annotations[" + name + "]" }
