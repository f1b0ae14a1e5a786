// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Where rights come from.

// Emptied is a ClusterRole that is put together from others, of which none is left.
type Emptied struct {
	Name string
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
	for _, b := range r.bound {
		ours := b.kind == "ClusterRole" && (b.namespace == "" || b.namespace == n.Namespace()) && slices.ContainsFunc(b.subjects, func(s subject) bool {
			return s.Kind == "ServiceAccount" && s.Name == l.Account().Name && (s.Namespace == l.Account().Namespace || s.Namespace == "" && b.namespace == l.Account().Namespace)
		})
		if !ours {
			continue
		}
		for i := range r.aggregated[b.role] {
			selector, err := metav1.LabelSelectorAsSelector(&r.aggregated[b.role][i])
			if err != nil || r.selects(selector, n) {
				continue
			}
			found = append(found, Emptied{
				Name: "ClusterRole/" + b.role, Selector: selector.String(),
				Evidence: evidence.Fact{Source: "ClusterRole/" + b.role, Path: "aggregationRule.clusterRoleSelectors", Value: fmt.Sprintf(noLabelledRole, selector)},
			})
		}
	}
	return found
}

// selects reports whether a selected ClusterRole allows to change the object.
func (r *rights) selects(selector labels.Selector, n graph.Node) bool {
	for name, set := range r.labels {
		if selector.Matches(set) && r.allowsChange(name, n) {
			return true
		}
	}
	return false
}

func (r *rights) allowsChange(role string, n graph.Node) bool {
	return slices.ContainsFunc(r.rules[role], func(rule policyRule) bool {
		return len(rule.ResourceNames) == 0 && rule.covers(n.Resource().GroupResource()) && rule.allows(changing...)
	})
}

// RoleFor returns the ClusterRole that allows to change the object and the least beside
// that, by the number of its rules; empty when there is none but for people.
func (f *Finder) RoleFor(n graph.Node) string {
	r := f.rights()
	best := ""
	for name, rules := range r.rules {
		states := slices.ContainsFunc(rules, func(rule policyRule) bool { return rule.names(n.Resource().GroupResource()) })
		if states && r.allowsChange(name, n) && (best == "" || len(rules) < len(r.rules[best]) || len(rules) == len(r.rules[best]) && name < best) {
			best = name
		}
	}
	return best
}
