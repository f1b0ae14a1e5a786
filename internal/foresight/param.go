// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// judged looks at the policies that have to allow that the finalizer is removed: one whose
// parameters are missing refuses it.
func (l *forecaster) judged(s *FinalizerForecast, n graph.Node) {
	for _, p := range l.params() {
		judges, certain := p.Judges(l.now.reviewer, n)
		if !judges || p.Allows || l.going[p.Binding.UID] {
			continue
		}
		why := func(is say.Word) say.Text {
			return say.Of(parameterMissing, evidence.Identity(evidence.AdmissionPolicies, "", p.Policy), p.Says(n.Namespace()), is)
		}
		outlook := Stuck
		if !certain {
			outlook = Unclear
		}
		found := p.In(l.now.reviewer, n.Namespace())
		switch {
		case len(found) > 0 && l.allGo(found):
			s.LosesController, s.DeleteFirst = true, true
			for _, param := range found {
				s.needs = append(s.needs, param.UID())
			}
			s.worsen(min(outlook, Racing), say.Of(UnlessFirst, why(parameterGoes)))
		case len(found) > 0:
		case !p.Listed(l.now.reviewer, n.Namespace()):
			s.whenever(Unclear, say.Of(MayStick, why(parameterUnread)))
		default:
			s.whenever(outlook, say.Of(StuckBy, why(parameterAbsent)))
		}
	}
}

// takesParameter reports whether a plan takes away what may be a parameter of a policy. That costs lists of the bindings, where there are
// any.
func takesParameter(ctx context.Context, reader *evidence.Reader, p *preview.Plan) bool {
	var params []admission.Param
	asked := false
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		id := o.Object.Identity()
		if o.Result != gc.Deleted {
			continue
		}
		if !asked {
			asked, params = true, admission.New(ctx, nil, reader, nil).Params(admission.Validating, admission.Mutating)
		}
		if slices.ContainsFunc(params, func(p admission.Param) bool { return p.Names(id) }) {
			return true
		}
	}
	return false
}

func (l *scene) allGo(nodes []graph.Node) bool {
	return !slices.ContainsFunc(nodes, func(n graph.Node) bool { return !l.going[n.UID()] })
}

// policies are the bindings of policies that stay without their parameters. Where these
// are in the namespace of what is judged, they go with it, or are of one namespace.
func (l *forecaster) policies() []Break {
	var all []Break
	for _, p := range l.params() {
		if p.Near || p.Allows || l.going[p.Binding.UID] {
			continue
		}
		if found := p.In(l.now.reviewer, ""); len(found) > 0 && l.allGo(found) {
			all = append(all,
				Break{Object: p.Binding, Why: say.Of(parametersGo, p.Says(""), evidence.Identity(evidence.AdmissionPolicies, "", p.Policy)),
					Certain: true})
		}
	}
	return all
}

// params are the parameters that bindings name.
func (l *forecaster) params() []admission.Param {
	if l.parameters == nil {
		l.parameters = append([]admission.Param{}, l.now.reviewer.Params(admission.Validating, admission.Mutating)...)
	}
	return l.parameters
}
