// SPDX-License-Identifier: Apache-2.0

// Package usage has the rules of objects that wait until others, which use them, are deleted.
package usage

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Crossplane's objects that others use: crossplane-runtime
// pkg/reconciler/providerconfig, crossplane internal/controller/protection/usage.

// providerConfigLabel is on the usages of a ProviderConfig, with its name.
const providerConfigLabel = "crossplane.io/provider-config"

// ProviderConfig is a ProviderConfig: the managed resources that use it must be deleted first. Each
// owns a ProviderConfigUsage that names it.
func ProviderConfig(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	var blockers []finding.Blocker
	for _, usage := range f.OfTypes(func(r *graph.Resource) bool {
		return r.Group == n.Resource().Group && strings.HasSuffix(r.Kind, "ProviderConfigUsage")
	}) {
		if usage.Object().Labels[providerConfigLabel] != n.Name() {
			continue
		}
		for _, ref := range f.Owners(usage) {
			if user, known := f.Graph.Node(ref.UID); known && !user.Virtual() && ref.State != graph.Dangling {
				blockers = append(blockers, InUse(n.Node, user, evidence.Field(usage, "metadata.labels["+providerConfigLabel+"]", n.Name())))
			}
		}
	}
	return blockers, len(blockers) > 0
}

// Usage is a Usage: the object that uses the other one must be deleted first.
func Usage(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	full, err := f.Whole(n.Node)
	if err != nil {
		return nil, false
	}
	name := evidence.Nested(full, "spec", "by", "resourceRef", "name")
	gv, err := schema.ParseGroupVersion(evidence.Nested(full, "spec", "by", "apiVersion"))
	if name == "" || err != nil {
		return nil, false
	}
	mapping, err := f.Graph.Snapshot().Mapper.RESTMapping(gv.WithKind(evidence.Nested(full, "spec", "by", "kind")).GroupKind(), gv.Version)
	if err != nil {
		return nil, false
	}
	namespace := ""
	if mapping.Scope.Name() == "namespace" {
		namespace = n.Namespace()
	}
	o, err := f.Get(mapping.Resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false
	case err != nil:
		return rules.Unread(n.Node, say.Of(UserFirst), mapping.Resource.GroupResource().String(), err), true
	}
	user, known := f.Node(mapping.Resource.GroupResource(), namespace, o.GetUID())
	if !known {
		return nil, false
	}
	return []finding.Blocker{InUse(n.Node, user, evidence.Field(n.Node, "spec.by", user.Identity().String()))}, true
}

// InUse is an object that another uses, which must be deleted first.
func InUse(n, user graph.Node, says evidence.Fact) finding.Blocker {
	id := user.Identity()
	b := finding.Blocker{Because: say.Of(WaitsForUser, id)}
	if user.BeingDeleted() {
		b.Next = &user
		return b
	}
	b.Cause = &finding.Cause{
		Kind: finding.FinFailing, At: id, Key: n.Identity().String(), Verdict: finding.Stuck, Summary: say.Of(UsedBy, n.Identity()),
		Evidence: append(finding.Facts(says), finding.Field(user, "metadata.deletionTimestamp", evidence.NotSet)),
		Ways:     []finding.Way{finding.See(remedy.Preview(id), DeleteUser)},
	}
	return b
}
