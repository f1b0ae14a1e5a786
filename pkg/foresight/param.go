// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// judged looks at the policies that have to allow that the finalizer is removed: one whose
// parameters are missing refuses it.
func (l *looker) judged(s *Service, n graph.Node) {
	for _, p := range l.params() {
		judges, certain := p.Judges(l.now.asker, n)
		if !judges || l.going[p.Binding.UID] {
			continue
		}
		param := evidence.Identity(p.Resource, p.For(n), p.Name)
		param.Resource.Kind = p.Kind
		why := func(which string) string {
			return fmt.Sprintf("ValidatingAdmissionPolicy/%s judges every change of it by %s, %s, and refuses it without", p.Policy, param, which)
		}
		outlook := Stuck
		if !certain {
			outlook = Unclear
		}
		switch found := l.now.evidence.Named(p.Resource.GroupResource(), param.Namespace, p.Name); {
		case len(found) > 0 && l.going[found[0].UID()]:
			s.Doomed, s.Early, s.needs = true, true, append(s.needs, found[0].UID())
			s.worsen(min(outlook, Racing), unlessFirst+why("which goes"))
		case len(found) > 0:
		case !l.now.evidence.Covers(p.Resource.GroupResource(), param.Namespace, p.Name):
			s.whenever(Unclear, "may get stuck: "+why("which could not be read"))
		default:
			s.whenever(outlook, "stuck: "+why("which does not exist"))
		}
	}
}

// policies are the bindings of policies that stay without their parameters. Where these
// are in the namespace of what is judged, they go with it, or are of one namespace.
func (l *looker) policies() []Break {
	var all []Break
	for _, p := range l.params() {
		if p.Near || l.going[p.Binding.UID] {
			continue
		}
		for _, n := range l.now.evidence.Named(p.Resource.GroupResource(), p.Namespace, p.Name) {
			if l.going[n.UID()] {
				all = append(all, Break{p.Binding, fmt.Sprintf(
					"stays, and the parameters of its policy, %s, go: from then on all that ValidatingAdmissionPolicy/%s is about is refused", n.Identity(), p.Policy), true})
			}
		}
	}
	return all
}

// params are the parameters that bindings name.
func (l *looker) params() []admission.Param {
	if l.parameters == nil {
		l.parameters = append([]admission.Param{}, l.now.asker.Params()...)
	}
	return l.parameters
}
