// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The types that are known by name.
var (
	pods              = evidence.Pods
	nodes             = evidence.Nodes
	services          = evidence.Services
	namespaces        = evidence.Namespaces
	claims            = evidence.Claims
	leases            = evidence.Leases
	apis              = evidence.APIServices
	serviceAccounts   = evidence.ServiceAccounts
	crds              = evidence.CRDs
	admissionPolicies = evidence.AdmissionPolicies
)

// gone is a hold by an object that was deleted during the analysis.
func gone() []hold { return []hold{{because: deletedByNow}} }

// whole reads an object that is to be judged. Without it, the holds say why it could not be read.
func (w *walker) whole(n graph.Node, because, what string) (*unstructured.Unstructured, []hold) {
	full, err := w.evidence.Whole(n)
	switch {
	case apierrors.IsNotFound(err):
		return nil, gone()
	case err != nil:
		return nil, w.unread(n, because, what, err)
	}
	return full, nil
}

// unread is the cause of an object of which something that decides could not be read.
func (b *book) unread(n graph.Node, because, what string, err error) []hold {
	return []hold{{because: because, cause: b.cause(finding.NotRead, n.Identity(), what, func(c *Cause) {
		c.Summary = fmt.Sprintf(unreadBlocker, what)
		c.Evidence = []Evidence{{Source: what, Value: err.Error()}}
	})}}
}
