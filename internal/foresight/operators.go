// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// operating are the types of workloads of which clusters have many, and few are operators.
// Others have foresight always (serving).
var operating = sets.New(schema.GroupResource{Group: "apps", Resource: "deployments"},
	schema.GroupResource{Group: "apps", Resource: "daemonsets"})

// mostRead is the number of workloads up to which each is read by itself.
const mostRead = 10

// takesOperators reports whether a plan takes away a workload that may be the controller of
// something: its account may change other things. That costs a look at the workloads, and four
// lists of RBAC. Who may not read these is told nothing: there would be nothing to tell.
func takesOperators(ctx context.Context, source evidence.Source, reader *evidence.Reader, p *preview.Plan) bool {
	going := map[schema.GroupVersionResource][]*gc.Outcome{}
	for i := range p.Report.Outcomes {
		if o := &p.Report.Outcomes[i]; o.Result == gc.Deleted && operating.Has(o.Object.Resource.GroupResource()) {
			going[o.Object.Resource.GroupVersionResource] = append(going[o.Object.Resource.GroupVersionResource], o)
		}
	}
	if len(going) == 0 {
		return false
	}
	finder := controllers.New(reader, controllers.NewWorkloads(ctx, source.Cluster), nil, func() []evidence.Fact { return nil })
	for resource, outcomes := range going {
		if slices.ContainsFunc(accountsOf(reader, resource, outcomes), finder.MayServe) {
			return true
		}
	}
	return false
}

// takesBackend reports whether a plan takes away pods or endpoints of a namespace in which a webhook or an aggregated API is served. That
// costs three lists.
func takesBackend(ctx context.Context, reader *evidence.Reader, p *preview.Plan) bool {
	namespaces := sets.New[string]()
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if o.Result == gc.Deleted && ensuing.Backends.Has(o.Object.Resource.Resource) {
			namespaces.Insert(o.Object.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return false
	}
	for _, h := range admission.New(ctx, nil, reader, nil).Webhooks() {
		if service := h.ClientConfig.Service; service != nil && namespaces.Has(service.Namespace) {
			return true
		}
	}
	registered, _ := reader.List(evidence.APIServices, "") // what cannot be read is noted
	return slices.ContainsFunc(registered, func(o unstructured.Unstructured) bool {
		return namespaces.Has(evidence.Nested(&o, "spec", "service", "namespace"))
	})
}

// takesPods reports whether a plan takes away pods after which others end: of a namespace that is being deleted, the rest of which is
// deleted after its pods, of a Job that may fail, or of a StatefulSet that was made smaller. That costs an object for each of these.
func takesPods(reader *evidence.Reader, p *preview.Plan) bool {
	going, pods, namespaces := p.Going(), map[graph.Node]int64{}, sets.New[string]()
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if o.Result == gc.Untouched || !o.Object.Resource.IsPod() {
			continue
		}
		namespaces.Insert(o.Object.Namespace)
		if n, known := p.Graph.Node(o.Object.UID); known {
			for _, ref := range n.Owners() {
				if !ref.Owner.Virtual() && !going[ref.Owner.UID()] {
					pods[ref.Owner]++
				}
			}
		}
	}
	for name := range namespaces {
		if namespace, err := reader.Get(evidence.Namespaces, "", name); err == nil && namespace.GetDeletionTimestamp() != nil {
			return true
		}
	}
	for owner, gone := range pods {
		of := owner.Resource().GroupResource()
		if of != evidence.StatefulSets.GroupResource() && of != ensuing.Jobs {
			continue
		}
		whole, err := reader.Whole(owner)
		if err != nil {
			return true
		}
		fails, expires := ensuing.MayEnd(whole, gone)
		if of == ensuing.Jobs && (fails || expires) || of != ensuing.Jobs && len(evidence.Condemned(whole, owner, p.Graph.Nodes())) > 0 {
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
		accounts.Insert(controllers.Account{Namespace: o.GetNamespace(),
			Name: cmp.Or(evidence.Nested(o, "spec", "template", "spec", "serviceAccountName"), "default")})
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

// Takes reports whether a plan takes away something that others need, of which neither the plan nor the types in it tell, or that could not
// be found out.
func Takes(ctx context.Context, source evidence.Source, p *preview.Plan) bool {
	reader := evidence.New(ctx, source)
	if takesPods(reader, p) || takesParameter(ctx, reader, p) || takesBackend(ctx, reader, p) || len(reader.Unread()) > 0 {
		return true
	}
	return takesOperators(ctx, source, reader, p)
}
