// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// ValidatingAdmissionPolicies that reject a write.

// byPolicy is a ValidatingAdmissionPolicy that rejects the write.
func (f refusedWrite) byPolicy() *Cause {
	r := f.r
	at := evidence.Identity(evidence.AdmissionPolicies, "", r.Name)
	policy, err := f.evidence.Get(evidence.AdmissionPolicies, "", r.Name)
	if err == nil {
		at = evidence.IdentityOf(evidence.AdmissionPolicies, at.Resource.Kind, policy)
	}
	c := f.shared(r.Name+" "+r.Binding, finding.AdmVapDeny, at, func(c *Cause) {
		c.Verdict, c.Evidence = Stuck, []Evidence{r.Fact()}
		if misconfigured(r) {
			c.Summary = fmt.Sprintf(bindingUnusable, r.Binding)
			if missing := missingParam(f.asker, f.n, r.Binding); missing != "" {
				c.Summary = fmt.Sprintf(parametersMissing, missing, r.Binding)
			}
			c.Evidence = append(c.Evidence, paramOf(f.evidence, r.Binding)...)
			c.Remedies = []Remedy{{
				Risk: Safe, Action: shows("%s get validatingadmissionpolicybinding %s -o yaml", f.Kubectl, shell.Quote(r.Binding)),
				Effect: f.repairBinding(),
			}}
			return
		}
		c.Summary = policyRejects
		if cannotJudge(r) {
			c.Summary = expressionFails
		}
		if static(r.Name) {
			c.Summary += inFile
		}
		if err != nil || admission.JudgesUsers(specText(policy)) {
			c.Verdict = Unknown
			f.onlyCaller(c)
		}
		if static(r.Name) {
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
			return
		}
		c.Evidence = append(c.Evidence, Evidence{Source: "ValidatingAdmissionPolicyBinding/" + r.Binding, Path: "spec.policyName", Value: r.Name})
		c.Remedies = []Remedy{{Risk: Safe, Action: yaml(f.Kubectl, at), Effect: f.satisfy(policy)}}
	})
	f.met(c)
	f.bindingException(c, f.n, r.Binding)
	return c
}

// satisfy says what has to be changed so that a policy allows a write.
func (f refusedWrite) satisfy(policy *unstructured.Unstructured) string {
	switch {
	case cannotJudge(f.r) && f.r.Write == "DELETE":
		return correctExpression + objectIsNull
	case cannotJudge(f.r):
		return correctExpression
	}
	bound, err := f.evidence.Get(admission.PolicyBindings, "", f.r.Binding)
	if policy == nil || err != nil || admission.JudgesObject(policy, bound) {
		return changeObject
	}
	return changePolicy
}

// cannotJudge reports whether a policy refuses because one of its expressions cannot be evaluated
// (k8s.io/apiserver/pkg/admission/plugin/cel/activation.go).
func cannotJudge(r admission.Reply) bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "' resulted in error: ")
}

// missingParam names the parameters of a binding for an object that provably do not exist, empty
// when that is not so.
func missingParam(asker *admission.Asker, n graph.Node, binding string) string {
	for _, p := range asker.Params() {
		if p.Binding.Name == binding && len(p.In(asker, n.Namespace())) == 0 && p.Listed(asker, n.Namespace()) {
			return p.Says(n.Namespace())
		}
	}
	return ""
}

// repairBinding says how a binding is repaired whose parameters the API server does not find.
func (f refusedWrite) repairBinding() string {
	namespace := f.n.Namespace()
	for _, p := range f.asker.Params() {
		switch {
		case p.Binding.Name != f.r.Binding:
		case len(p.In(f.asker, namespace)) > 0:
			return fmt.Sprintf(paramsExist, p.Says(namespace))
		case p.Near && f.evidence.Ending(namespace):
			return fmt.Sprintf(paramsImpossible, p.Says(namespace))
		}
	}
	return recreateParams
}

// misconfigured reports whether a policy refuses because its binding cannot be used,
// as when the object with its parameters is gone: who asks, and for what, does not
// matter then (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
func misconfigured(r admission.Reply) bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "failed to configure binding: ")
}

// paramOf is where a binding has its parameters.
func paramOf(facts *evidence.Reader, binding string) []Evidence {
	o, err := facts.Get(admission.PolicyBindings, "", binding)
	if err != nil {
		return nil
	}
	return []Evidence{{
		Source: "ValidatingAdmissionPolicyBinding/" + binding, Path: "spec.paramRef",
		Value: fmt.Sprintf(paramPlace, cmp.Or(evidence.Nested(o, "spec", "paramRef", "name"), bySelector), cmp.Or(evidence.Nested(o, "spec", "paramRef", "namespace"), ofObject)),
	}}
}

func specText(o *unstructured.Unstructured) string {
	data, _ := json.Marshal(o.Object["spec"]) // it came as JSON
	return string(data)
}

// bindingException adds a way to exempt the object's namespace from the binding
// of a policy.
func (w *walker) bindingException(c *Cause, n graph.Node, name string) {
	namespace := n.Namespace()
	binding, err := w.evidence.Get(admission.PolicyBindings, "", name)
	if err != nil {
		return
	}
	at := evidence.IdentityOf(admission.PolicyBindings, "ValidatingAdmissionPolicyBinding", binding)
	if namespace == "" {
		w.offerOnce(c, Remedy{
			Risk: Disruptive, Action: w.change(at, binding, remedy.Replace("/spec/validationActions", []string{"Audit"})),
			Effect: onlyAudit, Loss: unguards("policy", fromNowOn),
		})
		return
	}
	w.except(c, name, namespace, "policy", func(namespaces []string) Action {
		return w.change(at, binding, defaulted(excludeNamespaces(binding, []string{"spec", "matchResources", "namespaceSelector"}, namespaces))...)
	})
}

// defaulted states in a matchResources that is added what the API server would add to it, so that
// the undo finds what was added (kubernetes/pkg/apis/admissionregistration/v1/defaults.go,
// SetDefaults_MatchResources).
func defaulted(operations []remedy.Step) []remedy.Step {
	for i := range operations {
		if value, ok := operations[i].Value.(map[string]any); ok && operations[i].Path == "/spec/matchResources" {
			value["matchPolicy"], value["objectSelector"] = "Equivalent", map[string]any{}
		}
	}
	return operations
}

// excludeNamespaces are the operations that add "none of these namespaces" to the
// namespace selector at the path of an object. The selector's parents must
// exist up to the given depth of the path.
func excludeNamespaces(o *unstructured.Unstructured, path []string, namespaces []string) []remedy.Step {
	var names []any
	for _, namespace := range namespaces {
		names = append(names, namespace)
	}
	condition := map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}
	var value any = condition
	full := append(slices.Clone(path), "matchExpressions", "-")
	for depth := len(full) - 1; depth > 0; depth-- {
		if exists(o.Object, full[:depth]) {
			return []remedy.Step{remedy.Add("/"+strings.Join(full[:depth+1], "/"), value)}
		}
		if key := full[depth]; key == "-" {
			value = []any{value}
		} else {
			value = map[string]any{key: value}
		}
	}
	return nil
}

// exists reports whether there is an object or a list at the path, in which
// numbers are indexes.
func exists(value any, path []string) bool {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i < 0 || i >= len(v) {
				return false
			}
			value = v[i]
		default:
			return false
		}
	}
	return value != nil
}
