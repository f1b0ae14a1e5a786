// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// A service that does not answer.
const (
	Irreparable    finding.Word = "irreparable"
	RecreateFirst  finding.Word = "recreate first"
	InstallAgain   finding.Word = "install again"
	ScaleUpBackend finding.Word = "scale up backend"
	RepairBackend  finding.Word = "repair backend"
)

// Hopeless ends the summary of a cause with why the service cannot be made to answer again where it is; it is empty when
// that is possible.
func Hopeless(s *admission.Serving) finding.Text {
	if !s.Ending {
		return nil
	}
	return finding.Say(Irreparable, s.Namespace)
}

// Repair is the way to make a service answer again, with what follows: none in a namespace that is being deleted.
func Repair(r *evidence.Reader, s *admission.Serving, effect finding.Text) []finding.Way {
	list := remedy.Look{Words: "get service,endpointslices,pods,deployments", Of: graph.Identity{Namespace: s.Namespace}}
	var way finding.Way
	switch {
	case s.Ending:
		return nil
	case s.Homeless:
		way = finding.Does(remedy.Op{Verb: remedy.Create, Object: evidence.Identity(evidence.Namespaces, "", s.Namespace)}, RecreateFirst, s.Name, effect)
		way.Partial = true
	case s.Uninstalled:
		way = finding.See(list, InstallAgain, s.Name, effect)
	case s.Idle != nil:
		way = ScaleUp(r, s.Idle.ID(), finding.Say(ScaleUpBackend, s.Idle.ID(), effect))
	default:
		way = finding.See(list, RepairBackend, s.Name, effect)
	}
	return []finding.Way{way}
}
