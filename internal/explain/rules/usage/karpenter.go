// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Nodes that Karpenter drains: sigs.k8s.io/karpenter, controllers/node/termination.

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// Karpenter is a Node, or the NodeClaim behind it, that Karpenter drains before
// it terminates the machine: pods that cannot be evicted keep it. It returns false
// when no such pod is left.
func Karpenter(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	if a := f.Finder.Find(n.Node, n.Key, finalizers.Metadata); a.Is != controllers.Served && a.Is != controllers.Unclear {
		return nil, false // it is not drained
	}
	name := n.Name()
	if n.Resource().GroupResource() != evidence.Nodes.GroupResource() {
		full, err := f.Whole(n.Node)
		if err != nil || evidence.Nested(full, "status", "nodeName") == "" {
			return nil, false
		}
		name = evidence.Nested(full, "status", "nodeName")
	}
	list, err := f.List(evidence.Pods, "")
	if err != nil {
		return rules.Unread(n.Node, say.Of(MightWaitForPods), "pods", err), true
	}
	var blockers []finding.Fact
	for i := range list {
		if evidence.Nested(&list[i], "spec", "nodeName") != name || evidence.PodEnded(&list[i]) || controlledBy(&list[i], "DaemonSet", "Node") ||
			toleratesDisruption(&list[i]) {
			continue
		}
		if fact, blocks := undisturbed(f.Reader, &list[i]); blocks {
			blockers = append(blockers, fact)
		}
	}
	if len(blockers) == 0 {
		return nil, false
	}
	c := &finding.Cause{
		Kind: finding.NodeKarpenter, At: n.Identity(), Verdict: finding.Unknown,
		Summary:    say.Of(NotEvictable, evidence.Number(len(blockers), "pod"), name),
		Decides:    say.Of(BlockedBy, blockers[0].Source, blockers[0].Path, blockers[0].Value),
		Evidence:   append([]finding.Fact{n.Evidence()}, blockers[:min(len(blockers), evidence.MaxShown)]...),
		Controller: &finding.Controller{Name: say.Plain("Karpenter"), Liveness: controllers.Unsure},
		Ways: []finding.Way{finding.See(remedy.Get("poddisruptionbudgets -A"), SeeBudgets),
			rules.RemoveFinalizer(n, finding.Lost(remedy.Leaks, graph.Identity{}, MachineLeft))},
	}
	if f.Age(n.Node) > rules.DriverDelay {
		c.Verdict = finding.Stuck
	}
	return []finding.Blocker{{Because: say.Of(PodsEvicted), Cause: c}}, true
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
func undisturbed(facts *evidence.Reader, pod *unstructured.Unstructured) (finding.Fact, bool) {
	source := evidence.Identity(evidence.Pods, pod.GetNamespace(), pod.GetName())
	if value := pod.GetAnnotations()["karpenter.sh/do-not-disrupt"]; value == "true" {
		return finding.At(source, "metadata.annotations[karpenter.sh/do-not-disrupt]", value), true
	}
	list, err := facts.List(budgets, pod.GetNamespace())
	if err != nil {
		return finding.Fact{}, false
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
		if evidence.Decode(&list[i], &view) && view.Status.DisruptionsAllowed == 0 && view.Spec.Selector != nil &&
			admission.Selects(view.Spec.Selector, pod.GetLabels()) {
			return finding.AtSays(evidence.Named("PodDisruptionBudget", pod.GetNamespace(), list[i].GetName()), "status.disruptionsAllowed",
				NoDisruption, source), true
		}
	}
	return finding.Fact{}, false
}
