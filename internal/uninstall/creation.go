// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// creation is that of the object of a hook, at an event.
type creation struct {
	*World
	plan  *Plan
	hook  *hookRun
	event string
	// made reports whether hooks have made an object by then.
	made func(graph.Identity) bool
	// then is the cluster as it certainly is, thenAsks asks its webhooks, and nowAsks the policies of the cluster as it is; they send nothing.
	then              *evidence.Reader
	thenAsks, nowAsks *admission.Reviewer
	// unmade: it fails, and the object does not come to be; otherwise its pods do not.
	unmade bool
}

func (w *World) creation(p *Plan, h *hookRun, event string, made func(graph.Identity) bool) *creation {
	then := w.Evidence.Without(func(uid types.UID) bool {
		n, known := w.Graph.Node(uid)
		slow := known && (len(n.Finalizers()) > 0 || n.Resource().IsPod() || n.Resource().IsNamespace() || n.Resource().IsCRD())
		return known && !slow && len(p.in(uid)) > 0 && !made(n.Identity())
	})
	return &creation{
		World: w, plan: p, hook: h, event: event, made: made, then: then,
		thenAsks: admission.New(context.Background(), nil, then, nil), nowAsks: admission.New(context.Background(), nil, w.Evidence, nil),
	}
}

// fails returns why the hook fails because its object, or the pods of its Job, cannot be created, nil where nothing is known of that; as
// unsure, why it may. updated: the object is there, and is changed. removed: it is deleted later.
func (c *creation) fails(updated, removed bool) *Open {
	h := c.hook
	if lack := c.lacking(); lack.Name != "" {
		c.unmade = lack.Resource.IsNamespace() || lack.Resource.IsCRD() || h.Kind == "Pod" && !slices.Contains(mounted, lack.Resource.Kind)
		return &Open{Cause: HookLacks, Item: h.live.Item, Detail: say.Plain(lack)}
	}
	var why say.Text
	var certain bool
	asks := func(of *graph.Resource, labels map[string]string, operation string, what say.Text) {
		if denied, sure := c.denied(of, labels, operation, what); !certain && (sure || why.IsZero()) {
			why, certain = denied, sure
		}
	}
	if h.live.resource.Resource != "" {
		operation := "CREATE"
		if updated {
			operation = "UPDATE"
		}
		asks(&h.live.resource, h.Labels, operation, say.Of(creationItself))
		c.unmade = certain
	}
	if h.Kind == "Job" {
		asks(&graph.Resource{GroupVersionResource: evidence.Pods, Kind: "Pod", Namespaced: true}, h.PodLabels, "CREATE", say.Of(creationOfPods))
	}
	if removed && h.live.resource.Resource != "" {
		asks(&h.live.resource, h.Labels, "DELETE", say.Of(laterDeletion))
	}
	if by := c.rewritten(); updated && why.IsZero() && by != "" {
		why = say.Of(hookConflicts, by)
	}
	switch {
	case certain:
		return &Open{Cause: HookDenied, Item: h.live.Item, Detail: why}
	case why.IsZero() && removed && foresight.Foreign(h.Finalizers):
		return c.unsure(say.Of(hookFinalizers, strings.Join(h.Finalizers, ", ")))
	case why.IsZero():
		return nil
	}
	return c.unsure(why)
}

// rewritten is who else than Helm has written the object of a hook that exists: Helm 4 applies it, and does not force its fields
// (helm.sh/helm/v4/pkg/action/hooks.go).
func (c *creation) rewritten() string {
	h := c.hook
	if h.live.state != present || c.made(h.live.id()) {
		return ""
	}
	o, err := c.Evidence.Whole(h.live.node)
	if err != nil {
		return "" // it is noted as unread
	}
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && !strings.HasPrefix(e.Manager, "helm") {
			return e.Manager
		}
	}
	return ""
}

func (c *creation) unsure(why say.Text) *Open {
	open := Open{Cause: HookUnsure, Item: c.hook.live.Item, Detail: why.And(mayFail)}
	if c.event == postDelete {
		open.Cause = HookUnsureAfter
	}
	return &open
}

// mounted are the kinds of what a pod waits for that exists already.
var mounted = []string{"ConfigMap", "Secret", "PersistentVolumeClaim"}

// lacking returns what a hook needs that certainly does not exist by then, or is being deleted, so that it or its pods cannot be created or
// started: its namespace, its definition, the account and the classes of its pods (plugin/pkg/admission), and what these mount or read. A
// namespace, a definition and a claim take nothing new as soon as they are being deleted.
func (c *creation) lacking() graph.Identity {
	h, needs := c.hook, []graph.Identity{}
	if h.live.Namespace != "" {
		needs = append(needs, evidence.Identity(evidence.Namespaces, "", h.live.Namespace))
	}
	if definition := h.live.resource.GroupResource().String(); len(c.Evidence.Named(evidence.CRDs.GroupResource(), "", definition)) > 0 {
		needs = append(needs, evidence.Identity(evidence.CRDs, "", definition))
	}
	for _, need := range h.Needs {
		if !strings.HasSuffix(need.Resource.Kind, "Class") {
			need.Namespace = h.live.Namespace
		}
		needs = append(needs, need)
	}
	for _, id := range needs {
		resource := id.Resource.GroupResource()
		gone := c.Graph.Snapshot().Covers(resource, id.Namespace, id.Name)
		for _, n := range c.then.Named(resource, id.Namespace, id.Name) {
			closes := n.Resource().IsNamespace() || n.Resource().IsCRD() || resource == evidence.Claims.GroupResource()
			gone = closes && (n.BeingDeleted() || len(c.plan.in(n.UID())) > 0)
		}
		if gone && !c.made(id) {
			return id
		}
	}
	return graph.Identity{}
}

// denied returns who refuses, or might, an operation on an object of a type: a webhook that nothing answers, a policy, or a quota.
func (c *creation) denied(of *graph.Resource, labels map[string]string, operation string, what say.Text) (why say.Text, certain bool) {
	alone := &graph.Snapshot{Mapper: c.Graph.Snapshot().Mapper}
	alone.Add(graph.Object{Resource: of, Namespace: c.hook.live.Namespace, Name: c.hook.live.Name, Labels: labels})
	n := graph.New(alone).At(0)
	why, certain = c.refused(n, operation, what)
	if quota, limit := c.full(of.GroupResource(), n.Namespace()); quota.Name != "" && operation == "CREATE" && !certain {
		emptied := slices.ContainsFunc(c.plan.Targets(), func(id graph.Identity) bool { return id.Namespace == n.Namespace() })
		return say.Of(hookOverQuota, quota, limit), !emptied
	}
	return why, certain
}

// refused returns who refuses, or might, an operation on an object: a webhook that nothing answers, or a policy. The API server forgets one
// a second after it has gone (k8s.io/apiserver/pkg/admission/plugin/policy/generic, policySource).
func (c *creation) refused(n graph.Node, operation string, what say.Text) (why say.Text, certain bool) {
	for h, sure := range c.thenAsks.Refusing(n, operation, "") {
		if at := h.ClientConfig.Service; !certain && c.thenAsks.ServingOf(h).Dead {
			service := evidence.Identity(evidence.Services, at.Namespace, at.Name)
			if why = say.Of(hookMayRefuse, h.Config, what, service); sure {
				why, certain = say.Of(hookRefused, h.Config, what, service), true
			}
		}
	}
	stands := func(uid types.UID, _ graph.Node) (stands, certain bool) {
		gone := c.then.IsGone(uid)
		return !gone || c.event == postDelete, !gone
	}
	switch policy, sure := c.nowAsks.Deniers(operation, "", stands)(n); {
	case sure && !certain:
		return say.Of(hookDenied, evidence.Identity(evidence.AdmissionPolicies, "", policy), what), true
	case policy != "" && why.IsZero():
		why = say.Of(hookJudged, evidence.Identity(evidence.AdmissionPolicies, "", policy), what)
	}
	return why, certain
}

// full returns a quota of a namespace that has no room for one more object of a type (pkg/quota/v1/evaluator), and what it limits.
func (c *creation) full(of schema.GroupResource, namespace string) (quota graph.Identity, limit string) {
	quotas, err := c.then.List(evidence.ResourceQuotas, namespace)
	if err != nil || namespace == "" {
		return graph.Identity{}, "" // it is noted as unread
	}
	for i := range quotas {
		var q corev1.ResourceQuota
		if !evidence.Decode(&quotas[i], &q) || !c.scoped(&q.Spec, of) {
			continue
		}
		for _, name := range []string{of.Resource, "count/" + of.String()} {
			hard, limits := q.Status.Hard[corev1.ResourceName(name)]
			if used := q.Status.Used[corev1.ResourceName(name)]; limits && used.Cmp(hard) >= 0 {
				return evidence.Identity(evidence.ResourceQuotas, namespace, q.Name), name + ": " + used.String() + " of " + hard.String()
			}
		}
	}
	return graph.Identity{}, ""
}

// scoped reports whether a quota is about the hook, or about its pods: the scopes of one are about pods alone.
func (c *creation) scoped(q *corev1.ResourceQuotaSpec, of schema.GroupResource) bool {
	var selector metav1.LabelSelector
	add := func(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: string(scope),
			Operator: metav1.LabelSelectorOperator(operator), Values: values})
	}
	for _, scope := range q.Scopes {
		add(scope, corev1.ScopeSelectorOpExists)
	}
	if q.ScopeSelector != nil {
		for _, e := range q.ScopeSelector.MatchExpressions {
			add(e.ScopeName, e.Operator, e.Values...)
		}
	}
	return len(selector.MatchExpressions) == 0 || of == evidence.Pods.GroupResource() && admission.Selects(&selector, c.hook.Scopes)
}
