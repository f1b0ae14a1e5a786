// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"maps"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// guardsThatGo returns what is asked about changes of objects and goes: webhooks, and bindings of policies, with what reports whether it is.
func (l *losses) guardsThatGo() map[graph.Identity]func(graph.Node) bool {
	all := map[graph.Identity]func(graph.Node) bool{}
	if !l.goes("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings") {
		return all
	}
	for _, h := range l.now.asker.Webhooks() {
		before := all[h.Config]
		if l.going[h.Config.UID] {
			all[h.Config] = func(n graph.Node) bool {
				asked, _ := l.now.asker.Matches(h, "UPDATE", "", n)
				return asked || before != nil && before(n)
			}
		}
	}
	bindings, _ := l.now.evidence.List(admission.PolicyBindings, "") // what cannot be read is noted
	for i := range bindings {
		b := &bindings[i]
		policy, err := l.now.evidence.Get(evidence.AdmissionPolicies, "", evidence.Nested(b, "spec", "policyName"))
		if err == nil && (l.going[b.GetUID()] || l.going[policy.GetUID()]) {
			all[evidence.IdentityOf(admission.PolicyBindings, "ValidatingAdmissionPolicyBinding", b)] = l.now.asker.PolicyAsked(policy, b, "UPDATE")
		}
	}
	return all
}

// unguarded says what becomes of the volumes of claims that are being deleted, where what may refuse the end of that goes.
func (l *losses) unguarded() []Loss {
	guards := l.guardsThatGo()
	if len(guards) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(guards), graph.Identity.Compare)
	var all []Loss
	for n := range l.now.evidence.Instances(evidence.Claims.GroupResource()) {
		for _, id := range ids {
			if !n.BeingDeleted() || l.going[n.UID()] || !guards[id](n) {
				continue
			}
			for _, loss := range l.volumeOf(n) {
				if loss.Volume != "" {
					loss.Why, loss.Certain = say.Of(withGuard, id, loss.Why), false
					all = append(all, loss)
				}
			}
		}
	}
	graph.SortByIdentity(all, func(loss *Loss) graph.Identity { return loss.Object })
	return all
}
