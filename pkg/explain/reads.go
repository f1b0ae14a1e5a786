// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The types that are known by name.
var (
	pods              = evidence.Pods
	namespaces        = evidence.Namespaces
	leases            = evidence.Leases
	apis              = evidence.APIServices
	serviceAccounts   = evidence.ServiceAccounts
	crds              = evidence.CRDs
	admissionPolicies = evidence.AdmissionPolicies
)

// gone is a hold by an object that was deleted during the analysis.
func gone() []hold { return []hold{{because: deletedByNow}} }

// unread is the cause of an object of which something that decides could not be read.
func (b *book) unread(n graph.Node, because, what string, err error) []hold {
	return []hold{{because: because, cause: b.cause(finding.NotRead, n.Identity(), what, func(c *Cause) {
		c.Summary = fmt.Sprintf(unreadBlocker, what)
		c.Evidence = []Evidence{{Source: what, Value: err.Error()}}
	})}}
}
