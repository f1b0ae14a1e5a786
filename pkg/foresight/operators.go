// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
)

// operating are the types of workloads of which clusters have many, and few are operators.
// Others have foresight always (serving).
var operating = sets.New(schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupResource{Group: "apps", Resource: "daemonsets"})

// mostRead is the number of workloads up to which each is read by itself.
const mostRead = 10

// TakesOperators reports whether a plan takes away a workload that may be the controller of
// something: its account may change other things. That costs a look at the workloads, and four
// lists of RBAC. Who may not read these is told nothing: there would be nothing to tell.
func TakesOperators(ctx context.Context, source evidence.Source, p *preview.Plan) bool {
	going := map[schema.GroupVersionResource][]*gc.Outcome{}
	for i := range p.Report.Outcomes {
		if o := &p.Report.Outcomes[i]; o.Result == gc.Deleted && operating.Has(o.Object.Resource.GroupResource()) {
			going[o.Object.Resource.GroupVersionResource] = append(going[o.Object.Resource.GroupVersionResource], o)
		}
	}
	if len(going) == 0 {
		return false
	}
	reader := evidence.New(ctx, source)
	finder := controllers.New(reader, controllers.NewWorkloads(ctx, source.Cluster), nil, func() []evidence.Fact { return nil })
	for resource, outcomes := range going {
		if slices.ContainsFunc(accountsOf(reader, resource, outcomes), finder.MayServe) {
			return true
		}
	}
	return false
}

// accountsOf returns the accounts of workloads of a type. Where there are many, those of
// others in their namespaces are among them.
func accountsOf(reader *evidence.Reader, resource schema.GroupVersionResource, outcomes []*gc.Outcome) []controllers.Account {
	accounts := sets.New[controllers.Account]()
	add := func(o *unstructured.Unstructured) {
		accounts.Insert(controllers.Account{Namespace: o.GetNamespace(), Name: cmp.Or(evidence.Nested(o, "spec", "template", "spec", "serviceAccountName"), "default")})
	}
	for _, o := range outcomes {
		if len(outcomes) <= mostRead {
			if whole, err := reader.Get(resource, o.Object.Namespace, o.Object.Name); err == nil {
				add(whole)
			}
			continue
		}
		items, err := reader.List(resource, o.Object.Namespace) // which it reads once
		for i := range items {
			if err == nil {
				add(&items[i])
			}
		}
	}
	return accounts.UnsortedList()
}
