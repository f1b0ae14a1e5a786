// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Where rights come from.

// Emptied is a ClusterRole that is put together from others, of which none is left.
type Emptied struct {
	Role graph.Identity
	// Selector chooses the roles that it is put together from, for kubectl.
	Selector string
	Evidence evidence.Fact
}

// Emptied returns the aggregated ClusterRoles of a workload's account for which there is
// no role that allows to change the object
// (kubernetes/pkg/controller/clusterroleaggregation).
func (f *Finder) Emptied(l *Workload, n graph.Node) []Emptied {
	r := f.rights()
	var found []Emptied
	for _, b := range r.bindings {
		role := r.clusterRoles[b.RoleRef.Name]
		ours := b.RoleRef.Kind == "ClusterRole" && (b.Namespace == "" || b.Namespace == n.Namespace()) &&
			slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return l.Account().Is(&s, b.Namespace) })
		if !ours || role == nil || role.AggregationRule == nil {
			continue
		}
		for i := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
			if err != nil || r.selects(selector, n) {
				continue
			}
			found = append(found, Emptied{
				Role: evidence.Named("ClusterRole", "", role.Name), Selector: selector.String(),
				Evidence: evidence.At(evidence.Named("ClusterRole", "", role.Name), "aggregationRule.clusterRoleSelectors",
					say.Of(noLabelledRole, selector)),
			})
		}
	}
	return found
}

// ofPieces are the rules of an aggregated role that the pieces still have which are left.
func (r *rights) ofPieces(role *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	pieces := r.piecesOf(role.Name)
	return slices.DeleteFunc(slices.Clone(role.Rules), func(rule rbacv1.PolicyRule) bool {
		return !slices.ContainsFunc(pieces, func(piece *rbacv1.ClusterRole) bool {
			return slices.ContainsFunc(piece.Rules, func(has rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(has, rule) })
		})
	})
}

// piecesOf are the ClusterRoles that an aggregated one is put together from, by their names; none for others.
func (r *rights) piecesOf(name string) (pieces []*rbacv1.ClusterRole) {
	of := r.clusterRoles[name]
	if of == nil || of.AggregationRule == nil {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(r.clusterRoles)) {
		piece := r.clusterRoles[other]
		selected := func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(piece.Labels))
		}
		if piece != of && slices.ContainsFunc(of.AggregationRule.ClusterRoleSelectors, selected) {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// selects reports whether a selected ClusterRole allows to change the object.
func (r *rights) selects(selector labels.Selector, n graph.Node) bool {
	for _, role := range r.clusterRoles {
		if selector.Matches(labels.Set(role.Labels)) && allowsChange(role, n) {
			return true
		}
	}
	return false
}

func allowsChange(role *rbacv1.ClusterRole, n graph.Node) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && policyRule(rule).covers(n.Resource().GroupResource()) && policyRule(rule).allows(changing...)
	})
}

// RoleFor returns the ClusterRole that allows to change the object and the least beside
// that, by the number of its rules; empty when there is none but for people.
func (f *Finder) RoleFor(n graph.Node) string {
	best := &rbacv1.ClusterRole{}
	for name, role := range f.rights().clusterRoles {
		states := slices.ContainsFunc(role.Rules,
			func(rule rbacv1.PolicyRule) bool { return policyRule(rule).names(n.Resource().GroupResource()) })
		if states && allowsChange(role, n) && (best.Name == "" || len(role.Rules) < len(best.Rules) ||
			len(role.Rules) == len(best.Rules) && name < best.Name) {
			best = role
		}
	}
	return best.Name
}
