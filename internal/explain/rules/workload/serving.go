// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Hopeless ends the summary of a cause with why the service cannot be made to answer again where it is; it is empty when
// that is possible.
func Hopeless(s *admission.Serving) say.Text {
	if !s.Ending {
		return say.Text{}
	}
	return say.Of(Irreparable, s.Namespace)
}

// Repair is the way to make a service answer again, with what follows: none in a namespace that is being deleted.
func Repair(r *evidence.Reader, s *admission.Serving, effect say.Text) []finding.Way {
	list := remedy.Look{Words: "get service,endpointslices,pods,deployments", Of: graph.Identity{Namespace: s.Namespace}}
	var way finding.Way
	switch {
	case s.Ending:
		return nil
	case s.Uninstalled:
		way.Effect = say.Of(InstallAgain, evidence.Identity(evidence.Services, s.Namespace, s.Name), effect)
	case s.Idle != nil:
		way = ScaleUp(r, s.Idle.ID(), say.Of(ScaleUpBackend, s.Idle.ID(), effect))
	default:
		way = finding.See(list, RepairBackend, s.Name, effect)
	}
	return []finding.Way{way}
}
