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
	var view struct {
		Spec struct {
			MatchConstraints struct {
				ResourceRules     []admissionRule       `json:"resourceRules"`
				NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
				ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
			} `json:"matchConstraints"`
		} `json:"spec"`
	}
	if !evidence.Decode(policy, &view) {
		return false
	}
	m := view.Spec.MatchConstraints
	h := &Webhook{Spec: Spec{Rules: m.ResourceRules, NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector}}
	matches, _ := a.Matches(h, "UPDATE", "", n)
	return matches
}
