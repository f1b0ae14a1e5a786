// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	// Selector stands for a name: any object that it selects will do.
	Selector *metav1.LabelSelector

	policy, binding *unstructured.Unstructured
}

// Params returns what the bindings name that could be read.
func (a *Asker) Params() []Param {
	if a.evidence.NoneOf(PolicyBindings.GroupResource()) {
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
	var view struct {
		Spec struct {
			ParamRef *struct {
				Name                    string                `json:"name"`
				Namespace               string                `json:"namespace"`
				Selector                *metav1.LabelSelector `json:"selector"`
				ParameterNotFoundAction string                `json:"parameterNotFoundAction"`
			} `json:"paramRef"`
		} `json:"spec"`
	}
	if !evidence.Decode(binding, &view) || view.Spec.ParamRef == nil || view.Spec.ParamRef.ParameterNotFoundAction != "Deny" {
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
		Resource: resource, Kind: kind.Kind, Name: view.Spec.ParamRef.Name, Selector: view.Spec.ParamRef.Selector, policy: policy, binding: binding,
	}
	if namespaced {
		p.Namespace = view.Spec.ParamRef.Namespace
		p.Near = p.Namespace == ""
	}
	return p, true
}

// Deniers returns, by their names, the policies that may deny an operation on an object by one of their bindings: what their expressions say of it is
// not known. Those that go, as skip says, are none. What could not be read is noted as unread.
func (a *Asker) Deniers(operation string, skip func(types.UID) bool) func(graph.Node) string {
	var asked []func(graph.Node) bool
	var names []string
	bindings, _ := a.evidence.List(PolicyBindings, "")
	for i := range bindings {
		b := &bindings[i]
		actions, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
		policy, err := a.evidence.Get(evidence.AdmissionPolicies, "", evidence.Nested(b, "spec", "policyName"))
		if err == nil && slices.Contains(actions, "Deny") && !skip(b.GetUID()) && !skip(policy.GetUID()) {
			asked, names = append(asked, a.PolicyAsked(policy, b, operation)), append(names, policy.GetName())
		}
	}
	return func(n graph.Node) string {
		if at := slices.IndexFunc(asked, func(is func(graph.Node) bool) bool { return is(n) }); at >= 0 {
			return names[at]
		}
		return ""
	}
}

// Judges reports whether the API server asks the policy about updates of an object by the
// binding. certain is false where conditions or selectors of the binding decide.
func (p *Param) Judges(a *Asker, n graph.Node) (judges, certain bool) {
	conditions, _, _ := unstructured.NestedSlice(p.policy.Object, "spec", "matchConditions")
	_, limited, _ := unstructured.NestedMap(p.binding.Object, "spec", "matchResources")
	return a.policyMatches(p.policy, n), len(conditions) == 0 && !limited
}

// In returns the parameters that there are for an object in a namespace that is judged.
func (p *Param) In(a *Asker, namespace string) []graph.Node {
	namespace = p.within(namespace)
	if p.Name != "" {
		return a.evidence.Named(p.Resource.GroupResource(), namespace, p.Name)
	}
	var found []graph.Node
	for _, n := range a.evidence.Within(p.Resource.GroupResource(), namespace) {
		if Selects(p.Selector, n.Object().Labels) {
			found = append(found, n)
		}
	}
	return found
}

// Listed reports whether those are all.
func (p *Param) Listed(a *Asker, namespace string) bool {
	return a.evidence.Covers(p.Resource.GroupResource(), p.within(namespace), p.Name)
}

// Says names what parameters are meant for an object in a namespace.
func (p *Param) Says(namespace string) string {
	namespace = p.within(namespace)
	if p.Name == "" {
		said := p.Kind + " with " + metav1.FormatLabelSelector(p.Selector)
		if namespace != "" {
			said += " in namespace " + namespace
		}
		return said
	}
	return graph.Identity{Resource: graph.Resource{Kind: p.Kind}, Namespace: namespace, Name: p.Name}.String()
}

// within is the namespace of the parameters for an object in one.
func (p *Param) within(namespace string) string {
	if p.Near {
		return namespace
	}
	return p.Namespace
}
