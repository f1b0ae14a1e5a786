// SPDX-License-Identifier: Apache-2.0

package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Mutator is a configuration that may change an object as it is written.
type Mutator struct {
	At       graph.Identity
	Evidence evidence.Fact
	// Webhook is the entry of a webhook configuration, nil for a policy, which is
	// whole.
	Webhook *Webhook
	Whole   *unstructured.Unstructured
}

// Mutators returns the webhooks and policies that may change the object when it
// is updated.
func (a *Asker) Mutators(n graph.Node) []Mutator {
	var found []Mutator
	all, _ := a.webhooks() // what cannot be read is noted
	for _, h := range all {
		if h.Config.Resource.Resource != evidence.MutatingWebhooks.Resource {
			continue
		}
		if matches, _ := a.Matches(h, "UPDATE", "", n); !matches {
			continue
		}
		found = append(found, Mutator{
			At: h.Config, Webhook: h, Whole: h.Whole,
			Evidence: evidence.Fact{Source: h.Config.String(), Path: h.Path(), Value: h.Name + " is asked about updates of it"},
		})
	}
	resource, served := a.evidence.Served(schema.GroupResource{Group: admissionGroup, Resource: mutatingPolicies.Resource})
	if !served {
		return found
	}
	policies, _ := a.evidence.List(resource, "") // as above
	for i := range policies {
		if !a.policyMatches(&policies[i], n) {
			continue
		}
		at := evidence.IdentityOf(resource, "MutatingAdmissionPolicy", &policies[i])
		found = append(found, Mutator{
			At: at, Whole: &policies[i],
			Evidence: evidence.Fact{Source: at.String(), Path: "spec.matchConstraints", Value: "it applies to updates of it"},
		})
	}
	return found
}

// policyMatches reports whether a mutating policy may apply to updates of the
// object.
func (a *Asker) policyMatches(policy *unstructured.Unstructured, n graph.Node) bool {
	return a.constrained(policy, "matchConstraints", "UPDATE")(n)
}

// PolicyAsked returns what reports whether a policy may be asked by its binding about an
// operation on an object, as far as their rules and selectors tell.
func (a *Asker) PolicyAsked(policy, binding *unstructured.Unstructured, operation string) func(graph.Node) bool {
	byPolicy, byBinding := a.constrained(policy, "matchConstraints", operation), a.constrained(binding, "matchResources", operation)
	return func(n graph.Node) bool { return byPolicy(n) && byBinding(n) }
}

// constrained returns what reports whether an operation on an object meets the match criteria
// in a field of the spec. A binding without criteria or rules is met by all.
func (a *Asker) constrained(o *unstructured.Unstructured, field, operation string) func(graph.Node) bool {
	var m struct {
		ResourceRules     []admissionRule       `json:"resourceRules"`
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	}
	criteria, found, _ := unstructured.NestedMap(o.Object, "spec", field)
	ofBinding := field == "matchResources"
	if !found || !evidence.Decode(&unstructured.Unstructured{Object: criteria}, &m) {
		return func(graph.Node) bool { return ofBinding }
	}
	if len(m.ResourceRules) == 0 && ofBinding {
		m.ResourceRules = []admissionRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Operations: []string{"*"}}}
	}
	h := &Webhook{Spec: Spec{Rules: m.ResourceRules, NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector}}
	return func(n graph.Node) bool {
		matches, _ := a.Matches(h, operation, "", n)
		return matches
	}
}
