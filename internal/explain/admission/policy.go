// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Bound is a policy with one of its bindings.
type Bound struct {
	Binding         graph.Identity
	policy, binding *unstructured.Unstructured
}

// Policies names both, for who asks whether one of them goes.
func (b *Bound) Policies() []types.UID { return []types.UID{b.policy.GetUID(), b.binding.GetUID()} }

// Waits returns what reports whether an object's removal may wait for the policy by the binding.
func (b *Bound) Waits(a *Reviewer) func(graph.Node) bool { return a.WaitsBound(b.policy, b.binding) }

// The kinds of policies.
const (
	Validating = "ValidatingAdmissionPolicy"
	Mutating   = "MutatingAdmissionPolicy"
)

// Bindings returns the bindings of the policies of a kind that could be read, with these.
func (a *Reviewer) Bindings(kind string) []Bound {
	of := func(plural string) (schema.GroupVersionResource, bool) {
		return a.evidence.Served(schema.GroupResource{Group: admissionGroup, Resource: strings.ToLower(plural)})
	}
	policies, served := of(strings.TrimSuffix(kind, "y") + "ies")
	resource, bound := of(kind + "Bindings")
	if !served || !bound || a.evidence.NoneOf(resource.GroupResource()) {
		return nil
	}
	bindings, _ := a.evidence.List(resource, "") // what cannot be read is noted, as below
	var all []Bound
	for i := range bindings {
		if policy, err := a.evidence.Get(policies, "", evidence.Nested(&bindings[i], "spec", "policyName")); err == nil {
			all = append(all, Bound{evidence.IdentityOf(resource, kind+"Binding", &bindings[i]), policy, &bindings[i]})
		}
	}
	return all
}

// Param is an object without which a policy refuses, or allows, whatever one of its bindings has it judge
// (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
type Param struct {
	Bound
	Policy   string
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is empty for an object that has none, and for the namespace of the object
	// that is judged if Near is set.
	Namespace, Name string
	Near            bool
	// Selector stands for a name: any object that it selects will do.
	Selector *metav1.LabelSelector
	// Allows: without it nothing is refused.
	Allows bool
}

// Params returns what the bindings of policies of the kinds name that could be read.
func (a *Reviewer) Params(kinds ...string) []Param {
	var params []Param
	for _, kind := range kinds {
		for _, b := range a.Bindings(kind) {
			if p, needs := a.paramOf(b); needs {
				params = append(params, p)
			}
		}
	}
	return params
}

func (a *Reviewer) paramOf(b Bound) (Param, bool) {
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
	if !evidence.Decode(b.binding, &view) || view.Spec.ParamRef == nil {
		return Param{}, false
	}
	allows := view.Spec.ParamRef.ParameterNotFoundAction != "Deny" || evidence.Nested(b.policy, "spec", "failurePolicy") == "Ignore"
	kind := schema.FromAPIVersionAndKind(evidence.Nested(b.policy, "spec", "paramKind", "apiVersion"),
		evidence.Nested(b.policy, "spec", "paramKind", "kind"))
	resource, namespaced, served := a.evidence.ServedKind(kind)
	if !served {
		return Param{}, false
	}
	p := Param{
		Bound: b, Policy: b.policy.GetName(),
		Resource: resource, Kind: kind.Kind, Name: view.Spec.ParamRef.Name, Selector: view.Spec.ParamRef.Selector, Allows: allows,
	}
	if namespaced {
		p.Namespace = view.Spec.ParamRef.Namespace
		p.Near = p.Namespace == ""
	}
	return p, true
}

// Deniers returns, by their names, the policies that may deny an operation on an object, or on a subresource of it, by one of their
// bindings, and whether one certainly does: mostly what their expressions say of it is not known. stands says whether a policy or a binding
// is there when it is asked about an object. What could not be read is noted as unread.
func (a *Reviewer) Deniers(operation, subresource string,
	stands func(types.UID, graph.Node) (stands, certain bool)) func(graph.Node) (policy string, certain bool) {
	var asked []func(graph.Node) bool
	var bound []Bound
	for _, b := range a.Bindings(Validating) {
		actions, _, _ := unstructured.NestedStringSlice(b.binding.Object, "spec", "validationActions")
		if slices.Contains(actions, "Deny") {
			asked, bound = append(asked, a.PolicyAsked(b.policy, b.binding, operation, subresource)), append(bound, b)
		}
	}
	return func(n graph.Node) (policy string, certain bool) {
		for i, is := range asked {
			if certain || !is(n) {
				continue
			}
			b, there, sure := &bound[i], true, true
			for _, uid := range b.Policies() {
				is, always := stands(uid, n)
				there, sure = there && is, sure && always
			}
			if there {
				policy, certain = b.policy.GetName(), sure && b.deniesAll()
			}
		}
		return policy, certain
	}
}

// deniesAll reports whether it certainly denies all that PolicyAsked has it asked about.
func (b *Bound) deniesAll() bool {
	for _, limit := range [][]string{{"matchConditions"}, {"paramKind"}, {"matchConstraints", "excludeResourceRules"},
		{"matchResources", "excludeResourceRules"}} {
		for _, o := range []*unstructured.Unstructured{b.policy, b.binding} {
			if _, limited, _ := unstructured.NestedFieldNoCopy(o.Object, append([]string{"spec"}, limit...)...); limited {
				return false
			}
		}
	}
	rules, _, _ := unstructured.NestedSlice(b.policy.Object, "spec", "matchConstraints", "resourceRules")
	bound, _, _ := unstructured.NestedSlice(b.binding.Object, "spec", "matchResources", "resourceRules")
	for _, each := range slices.Concat(rules, bound) {
		if rule, _ := each.(map[string]any); rule["resourceNames"] != nil { // which PolicyAsked does not look at
			return false
		}
	}
	validations, _, _ := unstructured.NestedSlice(b.policy.Object, "spec", "validations")
	return slices.ContainsFunc(validations, func(each any) bool {
		validation, _ := each.(map[string]any)
		return strings.TrimSpace(evidence.Text(validation["expression"])) == "false"
	})
}

// Judges reports whether the API server asks the policy about updates of an object by the
// binding. certain is false where conditions or selectors of the binding decide.
func (p *Param) Judges(a *Reviewer, n graph.Node) (judges, certain bool) {
	conditions, _, _ := unstructured.NestedSlice(p.policy.Object, "spec", "matchConditions")
	_, limited, _ := unstructured.NestedMap(p.binding.Object, "spec", "matchResources")
	return a.policyMatches(p.policy, n), len(conditions) == 0 && !limited
}

// Names reports whether an object may be the parameter.
func (p *Param) Names(id graph.Identity) bool {
	return p.Resource.GroupResource() == id.Resource.GroupResource() && (p.Name == "" || p.Name == id.Name) &&
		(p.Near || p.Namespace == id.Namespace)
}

// In returns the parameters that there are for an object in a namespace that is judged.
func (p *Param) In(a *Reviewer, namespace string) []graph.Node {
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
func (p *Param) Listed(a *Reviewer, namespace string) bool {
	return a.evidence.Covers(p.Resource.GroupResource(), p.within(namespace), p.Name)
}

// Says names what parameters are meant for an object in a namespace.
func (p *Param) Says(namespace string) say.Text {
	namespace = p.within(namespace)
	switch {
	case p.Name != "":
		return say.Plain(evidence.Named(p.Kind, namespace, p.Name))
	case namespace != "":
		return say.Of(selectedIn, p.Kind, metav1.FormatLabelSelector(p.Selector), namespace)
	}
	return say.Of(selected, p.Kind, metav1.FormatLabelSelector(p.Selector))
}

// within is the namespace of the parameters for an object in one.
func (p *Param) within(namespace string) string {
	if p.Near {
		return namespace
	}
	return p.Namespace
}
