// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Crossplane's objects that others use: crossplane-runtime
// pkg/reconciler/providerconfig, crossplane internal/controller/protection/usage.

// providerConfigLabel is on the usages of a ProviderConfig, with its name.
const providerConfigLabel = "crossplane.io/provider-config"

// providerConfig is a ProviderConfig: the managed resources that use it must be deleted first. Each
// owns a ProviderConfigUsage that names it.
func (w *walker) providerConfig(n graph.Node) ([]hold, bool) {
	var holds []hold
	for _, usage := range w.evidence.OfTypes(func(r *graph.Resource) bool {
		return r.Group == n.Resource().Group && strings.HasSuffix(r.Kind, "ProviderConfigUsage")
	}) {
		if usage.Object().Labels[providerConfigLabel] != n.Name() {
			continue
		}
		for _, ref := range w.evidence.Owners(usage) {
			if user, known := w.Graph.Node(ref.UID); known && !user.Virtual() && ref.State != graph.Dangling {
				holds = append(holds, w.inUse(n, user, evidence.Field(usage, "metadata.labels["+providerConfigLabel+"]", n.Name())))
			}
		}
	}
	return holds, len(holds) > 0
}

// usage is a Usage: the object that uses the other one must be deleted first.
func (w *walker) usage(n graph.Node) ([]hold, bool) {
	full, err := w.evidence.Whole(n)
	if err != nil {
		return nil, false
	}
	name := evidence.Nested(full, "spec", "by", "resourceRef", "name")
	gv, err := schema.ParseGroupVersion(evidence.Nested(full, "spec", "by", "apiVersion"))
	if name == "" || err != nil {
		return nil, false
	}
	mapping, err := w.Graph.Snapshot().Mapper.RESTMapping(gv.WithKind(evidence.Nested(full, "spec", "by", "kind")).GroupKind(), gv.Version)
	if err != nil {
		return nil, false
	}
	namespace := ""
	if mapping.Scope.Name() == "namespace" {
		namespace = n.Namespace()
	}
	o, err := w.evidence.Get(mapping.Resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false
	case err != nil:
		return w.unread(n, userFirst, mapping.Resource.GroupResource().String(), err), true
	}
	user, known := w.evidence.Node(mapping.Resource.GroupResource(), namespace, o.GetUID())
	if !known {
		return nil, false
	}
	return []hold{w.inUse(n, user, evidence.Field(n, "spec.by", user.Identity().String()))}, true
}

// inUse is an object that another uses, which must be deleted first.
func (w *walker) inUse(n, user graph.Node, says Evidence) hold {
	id := user.Identity()
	because := fmt.Sprintf(waitsForUser, id)
	if user.BeingDeleted() {
		return hold{because: because, next: &user}
	}
	return hold{because: because, cause: w.cause(finding.FinFailing, id, n.Identity().String(), func(c *Cause) {
		c.Verdict, c.Summary = Stuck, fmt.Sprintf(usedBy, n.Identity())
		c.Evidence = []Evidence{says, evidence.Field(user, "metadata.deletionTimestamp", "not set")}
		c.Remedies = []Remedy{previewDelete(w.Plugin, id, deleteUser)}
	})}
}
