// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// hopeless ends the summary of a cause with why the service cannot be made to
// answer again where it is; it is empty when that is possible.
func hopeless(s *admission.Serving) string {
	if !s.Ending {
		return ""
	}
	return irreparable(s)
}

// repair is the way to make a service answer again: none in a namespace that is being deleted.
func (d commands) repair(s *admission.Serving, effect string) []Remedy {
	way := Remedy{Risk: Safe, Effect: repairing(s, effect)}
	switch {
	case s.Ending:
		return nil
	case s.Homeless:
		way.Action = d.create(evidence.Identity(namespaces, "", s.Namespace))
	case !s.Uninstalled && s.Idle != nil:
		way.Action = d.scaleUp(s.Idle.ID())
	default:
		way.Action = shows("%s get service,endpointslices,pods,deployments", shell.In(d.programs.Kubectl, s.Namespace))
	}
	return []Remedy{way}
}
