// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// hopeless ends the summary of a cause with why the service cannot be made to
// answer again where it is; it is empty when that is possible.
func hopeless(s *admission.Serving) string {
	if !s.Ending {
		return ""
	}
	return fmt.Sprintf(irreparable, s.Namespace)
}

// repair is the way to make a service answer again: none in a namespace that is being deleted.
func (d commands) repair(s *admission.Serving, effect string) []Remedy {
	const list = "%s get service,endpointslices,pods,deployments"
	switch {
	case s.Ending:
		return nil
	case s.Homeless:
		return []Remedy{{Risk: Safe, Effect: fmt.Sprintf(recreateFirst, s.Name, effect), Action: d.create(evidence.Identity(namespaces, "", s.Namespace)), Partial: true}}
	case s.Uninstalled:
		return []Remedy{see(fmt.Sprintf(installAgain, s.Name, effect), list, shell.In(d.programs.Kubectl, s.Namespace))}
	case s.Idle != nil:
		return d.remedies([]finding.Way{workload.ScaleUp(d.reader, s.Idle.ID(), finding.Plain(fmt.Sprintf(scaleUpBackend, s.Idle.ID(), effect)))})
	}
	return []Remedy{see(fmt.Sprintf(repairBackend, s.Name, effect), list, shell.In(d.programs.Kubectl, s.Namespace))}
}
