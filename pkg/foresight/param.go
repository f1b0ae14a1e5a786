// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
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
		why := func(is say.Word) say.Text { return say.Of(parameterMissing, p.Policy, p.Says(n.Namespace()), is) }
		outlook := Stuck
		if !certain {
			outlook = Unclear
		}
		found := p.In(l.now.asker, n.Namespace())
		switch {
		case len(found) > 0 && l.allGo(found):
			s.Doomed, s.Early = true, true
			for _, param := range found {
				s.needs = append(s.needs, param.UID())
			}
			s.worsen(min(outlook, Racing), say.Of(UnlessFirst, why(parameterGoes)))
		case len(found) > 0:
		case !p.Listed(l.now.asker, n.Namespace()):
			s.whenever(Unclear, say.Of(MayStick, why(parameterUnread)))
		default:
			s.whenever(outlook, say.Of(StuckBy, why(parameterAbsent)))
		}
	}
}

func (l *scene) allGo(nodes []graph.Node) bool {
	return !slices.ContainsFunc(nodes, func(n graph.Node) bool { return !l.going[n.UID()] })
}

// policies are the bindings of policies that stay without their parameters. Where these
// are in the namespace of what is judged, they go with it, or are of one namespace.
func (l *looker) policies() []Break {
	var all []Break
	for _, p := range l.params() {
		if p.Near || l.going[p.Binding.UID] {
			continue
		}
		if found := p.In(l.now.asker, ""); len(found) > 0 && l.allGo(found) {
			all = append(all, Break{Object: p.Binding, Why: say.Of(parametersGo, p.Says(""), p.Policy), Certain: true})
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
