// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// mostExempted is the number of namespaces that the words of a way out name.
const mostExempted = 2 * evidence.MaxShown

// unguards is the loss of what webhooks or policies do in all namespaces; in says how long.
func unguards(what, in say.Word) []remedy.Loss {
	return finding.Lost(remedy.Unguards, graph.Identity{}, UnguardedAll, what, in)
}

// exempt adds a way to exempt the namespace that the object is in, or is, from webhooks of one configuration, for which what they are asked
// about waits. denied: the webhook answers, and denies what removes it.
func exempt(f *rules.Facts, c *finding.Cause, n graph.Node, denied bool, hooks ...*admission.Webhook) {
	asked := hooks
	if leftover(f, hooks[0]) { // the configuration is deleted with all of them
		asked = slices.DeleteFunc(slices.Clone(f.Admission.Webhooks()), func(h *admission.Webhook) bool { return h.Config != hooks[0].Config })
	}
	c.Waits = func(m graph.Node) bool {
		return slices.ContainsFunc(asked, func(h *admission.Webhook) bool { return f.Admission.Waits(h)(m) })
	}
	c.Covers = func(m graph.Node) bool {
		return slices.ContainsFunc(asked, func(h *admission.Webhook) bool { return f.Admission.Covers(h)(m) })
	}
	h, what := hooks[0], Webhook
	if len(hooks) > 1 {
		what = Webhooks
	}
	exemption(f, c, n, exempted{keyOf(h), what, len(hooks), denied}, func(condition any) remedy.Op {
		var steps []remedy.Step
		for _, h := range inOrder(hooks) {
			at, test := entry(h)
			steps = append(steps, append(test, adding(h.Whole, at+"/namespaceSelector/matchExpressions/-", condition))...)
		}
		return f.Change(h.Config, h.Whole, steps...)
	})
}

// exemptBound adds a way to exempt the namespace that the object is in, or is, from the binding of a policy, or to make the binding reject
// nothing for any other object, until that is gone.
// denied: the policy can be evaluated, and denies what removes it.
func exemptBound(f *rules.Facts, c *finding.Cause, n graph.Node, denied bool, name string) {
	binding, err := f.Get(admission.PolicyBindings, "", name)
	if err != nil {
		return
	}
	at := evidence.IdentityOf(admission.PolicyBindings, "ValidatingAdmissionPolicyBinding", binding)
	if policy, err := f.Get(evidence.AdmissionPolicies, "", evidence.Nested(binding, "spec", "policyName")); err == nil {
		c.Waits = f.Admission.WaitsBound(policy, binding)
	}
	if n.Identity().Place() == "" {
		way := finding.Does(f.Change(at, binding, remedy.Replace("/spec/validationActions", []any{"Audit"})), OnlyAudit).At(finding.Dangerous)
		way.Slot, way.Loss, way.Temporary = "audit "+name, unguards(Policy, FromNowOn), true
		c.Put(way)
		return
	}
	exemption(f, c, n, exempted{name, Policy, 0, denied}, func(condition any) remedy.Op {
		step := adding(binding, "/spec/matchResources/namespaceSelector/matchExpressions/-", condition)
		// What the API server would add to it is stated, so that the undo finds what was added
		// (kubernetes/pkg/apis/admissionregistration/v1/defaults.go, SetDefaults_MatchResources).
		if added, is := step.Value.(map[string]any); is && step.Path == "/spec/matchResources" {
			added["matchPolicy"], added["objectSelector"] = "Equivalent", map[string]any{}
		}
		return f.Change(at, binding, step)
	})
}

// exempted is what a way out exempts namespaces from: so many webhooks, or a policy, by a key. denied: it denies on purpose what removes
// the object.
type exempted struct {
	key      string
	what     say.Word
	webhooks int
	denied   bool
}

// exemption adds the object's namespace, if it has or is one, to those that a way out exempts. In one that is not being deleted, whatever
// controllers try again and again passes with it, deletions and writes that end in some, and what that is nobody knows. One change is for
// all of them, whatever the causes: each is made for the object as it was read, and a second would undo what the first has done. Nothing is
// exempted for other objects: webhooks and policies are asked about those whatever the namespaces.
func exemption(f *rules.Facts, c *finding.Cause, n graph.Node, from exempted, op func(condition any) remedy.Op) {
	e, namespace := f.Exemptions[from.key], n.Identity().Place()
	if namespace == "" {
		return
	}
	more, guarded := !slices.Contains(e.Namespaces, namespace), from.denied && !slices.Contains(e.Protected, n.Identity())
	if more {
		e.Namespaces = slices.Sorted(slices.Values(append(slices.Clip(e.Namespaces), namespace)))
	}
	if guarded {
		e.Protected = append(slices.Clip(e.Protected), n.Identity())
	}
	if more || guarded || e.Webhooks != from.webhooks {
		effect, in := ExemptOne, InThatOne
		if len(e.Namespaces) > 1 {
			effect, in = ExemptAll, InThose
		}
		change := op(map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": e.Namespaces})
		names := strings.Join(e.Namespaces[:min(len(e.Namespaces), mostExempted)], ", ")
		if more := len(e.Namespaces) - mostExempted; more > 0 {
			names = fmt.Sprintf(AndMore, names, more)
		}
		e.Webhooks, e.Way = from.webhooks, finding.Does(change, effect, names, from.what)
		e.Way.Slot, e.Way.Temporary, e.Way.In = "exempt "+from.key, true, e.Namespaces
		e.Way.Loss = finding.Lost(remedy.Unguards, graph.Identity{}, Unguarded, from.what, in)
		if slices.ContainsFunc(e.Namespaces, func(name string) bool { return !f.Ending(name) }) {
			e.Way.Risk, e.Way.Loss = finding.Dangerous, finding.Lost(remedy.Unguards, graph.Identity{}, UnguardedLive, from.what, in)
		}
		for _, id := range e.Protected[:min(len(e.Protected), mostExempted)] {
			e.Way.Loss = append(e.Way.Loss, finding.Lost(remedy.LosesObject, id, Protects, id, from.what)...)
		}
		if more := len(e.Protected) - mostExempted; more > 0 {
			e.Way.Loss = append(e.Way.Loss, finding.Lost(remedy.LosesObject, graph.Identity{}, ProtectsMore, more, from.what)...)
		}
		f.Exemptions[from.key] = e
	}
	c.Put(e.Way)
}
