// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// aggregated returns the ClusterRoles that go and are put together from others which go, too. For
// each of these the controller writes all that may be put together, by server-side apply from
// what it has in its cache, and so makes one again that has gone a moment ago
// (clusterroleaggregation_controller.go, syncClusterRole).
func (l *scene) aggregated() map[types.UID]bool {
	if !l.goes("clusterroles") {
		return nil
	}
	roles, err := l.now.evidence.List(clusterRoles, "")
	if err != nil {
		return nil // it is noted as unread
	}
	aggregated := map[types.UID]bool{}
	for i := range roles {
		var view struct {
			Rule struct {
				Selectors []metav1.LabelSelector `json:"clusterRoleSelectors"`
			} `json:"aggregationRule"`
		}
		if !l.going[roles[i].GetUID()] || !evidence.Decode(&roles[i], &view) {
			continue
		}
		for k := range roles {
			part := &roles[k]
			selected := func(s metav1.LabelSelector) bool { return admission.Selects(&s, part.GetLabels()) }
			if k != i && l.going[part.GetUID()] && slices.ContainsFunc(view.Rule.Selectors, selected) {
				aggregated[roles[i].GetUID()] = true
			}
		}
	}
	return aggregated
}
