// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Nodes that Karpenter drains: sigs.k8s.io/karpenter, controllers/node/termination.

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// karpenter is a Node, or the NodeClaim behind it, that Karpenter drains before
// it terminates the machine: pods that cannot be evicted keep it. It returns false
// when no such pod is left.
func (w *walker) karpenter(n graph.Node, index int, resource string) ([]hold, bool) {
	if a := w.finder.Find(n, "karpenter.sh/termination", finalizers.Metadata); a.Is != controllers.Served && a.Is != controllers.Unclear {
		return nil, false // it is not drained
	}
	name := n.Object().Name
	if resource != "nodes" {
		full, err := w.evidence.Whole(n)
		if err != nil || evidence.Nested(full, "status", "nodeName") == "" {
			return nil, false
		}
		name = evidence.Nested(full, "status", "nodeName")
	}
	list, err := w.evidence.List(pods, "")
	if err != nil {
		return w.unread(n, mightWaitForPods, "pods", err), true
	}
	var blockers []Evidence
	for i := range list {
		if evidence.Nested(&list[i], "spec", "nodeName") != name || evidence.PodEnded(&list[i]) || controlledBy(&list[i], "DaemonSet", "Node") || toleratesDisruption(&list[i]) {
			continue
		}
		if e, blocks := undisturbed(w.evidence, &list[i]); blocks {
			blockers = append(blockers, e)
		}
	}
	if len(blockers) == 0 {
		return nil, false
	}
	return []hold{{because: podsEvicted, cause: w.cause(finding.NodeKarpenter, n.Identity(), "", func(c *Cause) {
		c.Summary = fmt.Sprintf(notEvictable, evidence.Number(len(blockers), "pod"), name)
		if w.age(n) > driverDelay {
			c.Verdict = Stuck
		}
		c.Evidence = append([]Evidence{evidence.Field(n, fmt.Sprintf("metadata.finalizers[%d]", index), "karpenter.sh/termination")}, blockers[:min(len(blockers), evidence.MaxShown)]...)
		c.Controller = &Controller{Name: "Karpenter", Liveness: controllers.Unsure}
		c.Remedies = []Remedy{
			{Risk: Safe, Action: shows("%s get poddisruptionbudgets -A", w.Kubectl), Effect: seeBudgets},
			w.removeFinalizer(n, index, "karpenter.sh/termination", loses(remedy.Leaks, machineLeft)),
		}
	})}}, true
}

// toleratesDisruption reports whether a pod tolerates the taint with which Karpenter begins: Karpenter does not evict
// it, nor wait for it (sigs.k8s.io/karpenter/pkg/utils/pod, IsDrainable).
func toleratesDisruption(pod *unstructured.Unstructured) bool {
	var view struct {
		Spec struct {
			Tolerations []corev1.Toleration `json:"tolerations"`
		} `json:"spec"`
	}
	return evidence.Decode(pod, &view) && slices.ContainsFunc(view.Spec.Tolerations, func(t corev1.Toleration) bool {
		key := t.Key == "karpenter.sh/disrupted" || t.Key == "" && t.Operator == corev1.TolerationOpExists
		return key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) && (t.Operator == corev1.TolerationOpExists || t.Value == "")
	})
}

// controlledBy reports whether an object's controller is of one of the kinds.
func controlledBy(o *unstructured.Unstructured, kinds ...string) bool {
	ref := metav1.GetControllerOf(o)
	for _, kind := range kinds {
		if ref != nil && ref.Kind == kind {
			return true
		}
	}
	return false
}

// undisturbed shows why a pod cannot be evicted.
func undisturbed(facts *evidence.Reader, pod *unstructured.Unstructured) (Evidence, bool) {
	source := evidence.Identity(pods, pod.GetNamespace(), pod.GetName()).String()
	if value := pod.GetAnnotations()["karpenter.sh/do-not-disrupt"]; value == "true" {
		return Evidence{Source: source, Path: "metadata.annotations[karpenter.sh/do-not-disrupt]", Value: value}, true
	}
	list, err := facts.List(budgets, pod.GetNamespace())
	if err != nil {
		return Evidence{}, false
	}
	for i := range list {
		var view struct {
			Spec struct {
				Selector *metav1.LabelSelector `json:"selector"`
			} `json:"spec"`
			Status struct {
				DisruptionsAllowed int64 `json:"disruptionsAllowed"`
			} `json:"status"`
		}
		if evidence.Decode(&list[i], &view) && view.Status.DisruptionsAllowed == 0 && view.Spec.Selector != nil && admission.Selects(view.Spec.Selector, pod.GetLabels()) {
			return Evidence{Source: "PodDisruptionBudget/" + pod.GetNamespace() + "/" + list[i].GetName(), Path: "status.disruptionsAllowed", Value: fmt.Sprintf(noDisruption, source)}, true
		}
	}
	return Evidence{}, false
}
