// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Param is an object without which a ValidatingAdmissionPolicy refuses whatever one of its
// bindings has it judge (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
type Param struct {
	Binding  graph.Identity
	Policy   string
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is empty for an object that has none, and for the namespace of the object
	// that is judged if Near is set.
	Namespace, Name string
	Near            bool

	policy, binding *unstructured.Unstructured
}

// Params returns what the bindings name that could be read.
func (a *Asker) Params() []Param {
	if len(a.evidence.Instances(PolicyBindings.GroupResource())) == 0 && a.evidence.Covers(PolicyBindings.GroupResource(), "", "") {
		return nil
	}
	bindings, err := a.evidence.List(PolicyBindings, "")
	if err != nil {
		return nil // it is noted as unread, as below
	}
	var params []Param
	for i := range bindings {
		if p, needs := a.paramOf(&bindings[i]); needs {
			params = append(params, p)
		}
	}
	return params
}

func (a *Asker) paramOf(binding *unstructured.Unstructured) (Param, bool) {
	name, missing := evidence.Nested(binding, "spec", "paramRef", "name"), evidence.Nested(binding, "spec", "paramRef", "parameterNotFoundAction")
	if name == "" || missing != "Deny" {
		return Param{}, false
	}
	policy, err := a.evidence.Get(evidence.AdmissionPolicies, "", evidence.Nested(binding, "spec", "policyName"))
	if err != nil || evidence.Nested(policy, "spec", "failurePolicy") == "Ignore" {
		return Param{}, false
	}
	kind := schema.FromAPIVersionAndKind(evidence.Nested(policy, "spec", "paramKind", "apiVersion"), evidence.Nested(policy, "spec", "paramKind", "kind"))
	resource, namespaced, served := a.evidence.ServedKind(kind)
	if !served {
		return Param{}, false
	}
	p := Param{
		Binding: evidence.IdentityOf(PolicyBindings, "ValidatingAdmissionPolicyBinding", binding), Policy: policy.GetName(),
		Resource: resource, Kind: kind.Kind, Name: name, policy: policy, binding: binding,
	}
	if namespaced {
		p.Namespace = evidence.Nested(binding, "spec", "paramRef", "namespace")
		p.Near = p.Namespace == ""
	}
	return p, true
}

// Judges reports whether the API server asks the policy about updates of an object by the
// binding. certain is false where conditions or selectors of the binding decide.
func (p *Param) Judges(a *Asker, n graph.Node) (judges, certain bool) {
	conditions, _, _ := unstructured.NestedSlice(p.policy.Object, "spec", "matchConditions")
	_, limited, _ := unstructured.NestedMap(p.binding.Object, "spec", "matchResources")
	return a.policyMatches(p.policy, n), len(conditions) == 0 && !limited
}

// For returns the namespace in which the parameter is for an object that is judged.
func (p *Param) For(n graph.Node) string {
	if p.Near {
		return n.Namespace()
	}
	return p.Namespace
}
