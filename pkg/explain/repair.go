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
	return "; it cannot be repaired where it was: the namespace " + s.Namespace + " is being deleted, so nothing can be created in it"
}

// repair are the ways to make a service answer again: none in a namespace that
// is being deleted.
func (w *walker) repair(s *admission.Serving, effect string) []Remedy {
	switch {
	case s.Ending:
		return nil
	case s.Homeless:
		return []Remedy{{
			Risk: Safe, Action: w.create(evidence.Identity(namespaces, "", s.Namespace)), Partial: true,
			Effect: "make the namespace again, which comes first: then install the service " + s.Name + " and its pods in it, and " + effect,
		}}
	case s.Uninstalled:
		return []Remedy{{
			Risk: Safe, Action: shows("%s get service,endpointslices,pods,deployments", shell.In(w.Kubectl, s.Namespace)),
			Effect: "see what is left beside it: install the service " + s.Name + " and its pods again, and " + effect,
		}}
	case s.Idle != nil:
		return []Remedy{{
			Risk: Safe, Action: w.scaleUp(s.Idle.ID()),
			Effect: "start what serves it, which is scaled to nothing; " + effect,
		}}
	default:
		return []Remedy{{
			Risk: Safe, Action: shows("%s get service,endpointslices,pods,deployments", shell.In(w.Kubectl, s.Namespace)),
			Effect: "see what serves it: make the service " + s.Name + " and its pods work, and " + effect,
		}}
	}
}
