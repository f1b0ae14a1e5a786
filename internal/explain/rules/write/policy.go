// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// byPolicy is a ValidatingAdmissionPolicy that rejects the write.
func (f refused) byPolicy() *finding.Cause {
	r := f.r
	policy, at, err := policyOf(f.Facts, r.Name)
	c := f.met(f.Once(finding.AdmVapDeny, r.Name+" "+r.Binding, func(c *finding.Cause) {
		c.At, c.Verdict, c.Evidence = at, finding.Stuck, finding.Facts(r.Fact())
		if r.Misconfigured() {
			f.unusable(c)
			return
		}
		c.Summary = say.Of(PolicyRejects, f.rejected())
		if cannotJudge(r) {
			c.Summary = say.Of(ExpressionFails, f.rejected())
		}
		if static(r.Name) {
			c.Summary, c.Ways = c.Summary.And(InFile), []finding.Way{{Effect: say.Of(FromFile)}}
		} else {
			c.Evidence = append(c.Evidence, finding.At(bound(r.Binding), "spec.policyName", r.Name))
			c.Ways = []finding.Way{f.satisfy(policy, at)}
		}
		if err != nil || admission.JudgesUsers(specText(policy)) {
			c.Verdict, c.Summary = finding.Unknown, c.Summary.And(AnswerToYou)
		}
	}))
	if !r.Misconfigured() {
		f.example(c)
	}
	exemptBound(f.Facts, c, f.n, !r.Misconfigured() && !cannotJudge(r), r.Binding)
	return c
}

// bound names a binding as evidence.
func bound(name string) graph.Identity {
	return evidence.Named("ValidatingAdmissionPolicyBinding", "", name)
}

// policyOf reads a policy, with its identity as far as that is known.
func policyOf(f *rules.Facts, name string) (*unstructured.Unstructured, graph.Identity, error) {
	at := evidence.Identity(evidence.AdmissionPolicies, "", name)
	policy, err := f.Get(evidence.AdmissionPolicies, "", name)
	if err == nil {
		at = evidence.IdentityOf(evidence.AdmissionPolicies, at.Resource.Kind, policy)
	}
	return policy, at, err
}

// unusable is a binding of which the API server does not find the parameters, or which it cannot use for another reason.
func (f refused) unusable(c *finding.Cause) {
	binding, namespace := f.r.Binding, f.n.Namespace()
	look := remedy.Look{Words: "get validatingadmissionpolicybinding", Args: []string{binding}, Flags: " -o yaml"}
	repair := say.Of(RecreateParams)
	c.Summary = say.Of(BindingUnusable, binding)
	all := f.Admission.Params(admission.Validating)
	if i := slices.IndexFunc(all, func(p admission.Param) bool { return p.Binding.Name == binding }); i >= 0 {
		p := &all[i]
		there := len(p.In(f.Admission, namespace)) > 0
		if !there && p.Listed(f.Admission, namespace) {
			c.Summary = say.Of(ParametersMissing, p.Says(namespace), binding)
		}
		switch {
		case there:
			repair = say.Of(ParamsExist, p.Says(namespace))
		case p.Near && f.Ending(namespace):
			repair = say.Of(ParamsImpossible, p.Says(namespace))
		}
	}
	if o, err := f.Get(admission.PolicyBindings, "", binding); err == nil {
		c.Evidence = append(c.Evidence, finding.AtSays(bound(binding), "spec.paramRef", ParamPlace,
			cmp.Or(evidence.Nested(o, "spec", "paramRef", "name"), BySelector),
			cmp.Or(evidence.Nested(o, "spec", "paramRef", "namespace"), OfObject)))
	}
	c.Ways = []finding.Way{{Effect: repair, Look: &look}}
}

// satisfy is what has to be changed so that a policy, nil for one that could not be read, allows a write.
func (f refused) satisfy(policy *unstructured.Unstructured, at graph.Identity) finding.Way {
	see := remedy.YAML(at)
	bound, err := f.Get(admission.PolicyBindings, "", f.r.Binding)
	switch {
	case cannotJudge(f.r) && f.r.Write == "DELETE":
		return finding.Way{Effect: say.Of(CorrectExpression).And(ObjectIsNull), Look: &see}
	case cannotJudge(f.r):
		return finding.See(see, CorrectExpression)
	case policy == nil || err != nil || admission.JudgesObject(policy, bound):
		return finding.See(see, ChangeObject)
	}
	return finding.See(see, ChangePolicy)
}

// static reports whether an admission configuration comes from a file of the API server, by its name
// (k8s.io/apiserver/pkg/admission/plugin/manifest, StaticConfigSuffix).
func static(name string) bool { return strings.HasSuffix(name, ".static.k8s.io") }

// cannotJudge reports whether a policy refuses because one of its expressions cannot be evaluated
// (k8s.io/apiserver/pkg/admission/plugin/cel/activation.go).
func cannotJudge(r admission.Reply) bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "' resulted in error: ")
}

func specText(o *unstructured.Unstructured) string {
	data, _ := json.Marshal(o.Object["spec"]) // it came as JSON
	return string(data)
}
