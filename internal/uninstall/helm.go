// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The major versions of Helm, whose rules differ.
const (
	Helm3 = 3
	Helm4 = 4
)

// helm3Order are the kinds in the order in which Helm 3 deletes them (helm.sh/helm/v3/pkg/releaseutil/kind_sorter.go,
// UninstallOrder). Kinds that it does not know come last, by alphabet (lessByKind).
var helm3Order = []string{
	"APIService", "Ingress", "IngressClass", "Service", "CronJob", "Job", "StatefulSet", "HorizontalPodAutoscaler", "Deployment",
	"ReplicaSet", "ReplicationController", "Pod", "DaemonSet", "RoleBindingList", "RoleBinding", "RoleList", "Role",
	"ClusterRoleBindingList", "ClusterRoleBinding", "ClusterRoleList", "ClusterRole", "CustomResourceDefinition",
	"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "ConfigMap", "SecretList", "Secret", "ServiceAccount",
	"PodDisruptionBudget", "PodSecurityPolicy", "LimitRange", "ResourceQuota", "NetworkPolicy", "Namespace", "PriorityClass",
}

// helm4Order is that of Helm 4: webhook configurations come first (helm.sh/helm/v4/pkg/release/v1/util/kind_sorter.go).
var helm4Order = slices.Concat([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, helm3Order)

// Release is a release of Helm, or what somebody says that it is.
type Release struct {
	Name, Namespace string
	// Storage is the namespace of its records when that is another.
	Storage string
	// Items are the objects of its manifest, Hooks those of its hooks, CRDs those of the chart's directory crds/.
	Items, CRDs []Item
	Hooks       []HelmHook
	// HooksUnread: none was found where there need not be all. Uninstalled: it is kept as history alone.
	HooksUnread bool
	Uninstalled bool
	// Version is the major version of the Helm that made it, as far as it shows.
	Version int
}

const policyAnnotation = "helm.sh/resource-policy"

// NewRelease makes a release of the objects of a manifest with its hooks, as `helm get manifest` and `helm get hooks` print
// them. What is a hook its annotation says (helm.sh/helm/v3/pkg/releaseutil/manifest_sorter.go).
func NewRelease(namespace, name string, items []Item) *Release {
	r := &Release{Name: name, Namespace: namespace, Version: Helm3}
	for _, item := range items {
		events, is := item.Annotations[hookAnnotation]
		if !is {
			r.Items = append(r.Items, item)
			continue
		}
		r.Hooks = append(r.Hooks, HelmHook{Item: item, Events: listOf(events)})
	}
	return r
}

// Helm is what `helm uninstall` does (helm.sh/helm/v3/pkg/action/uninstall.go): the hooks of pre-delete run, each kind is deleted in
// its turn, all objects of one at a time (pkg/kube/client.go, batchPerform), in the background and without waiting for any; then
// the hooks of post-delete run.
func Helm(w *World, r *Release, version int) *Plan {
	p := &Plan{
		Tool: "helm", Order: "Helm 3", Namespace: cmp.Or(r.Storage, r.Namespace), Name: r.Name, Policy: metav1.DeletePropagationBackground,
		Of:      Deliverers{{Kind: "Release", Namespace: r.Namespace, Name: r.Name, Records: cmp.Or(r.Storage, r.Namespace)}},
		Command: []string{"helm", "uninstall", r.Name, "-n", cmp.Or(r.Storage, r.Namespace)},
		Marks:   map[string]string{"app.kubernetes.io/instance": r.Name}, Items: r.Items,
	}
	if version == Helm4 {
		p.Order = "Helm 4"
	}
	all := w.find(r.all())
	items, hooks, crds := all[:len(r.Items)], all[len(r.Items):len(r.Items)+len(r.Hooks)], all[len(r.Items)+len(r.Hooks):]
	run := runsOf(r.Hooks, hooks)
	p.hooks(run)
	if r.HooksUnread {
		p.Open = append(p.Open, Open{Cause: HooksUnread})
	}
	for i := range crds {
		if crds[i].state == present {
			p.keep(&crds[i], ChartCRD, "")
		}
	}
	if r.Uninstalled {
		p.Halt = &Open{Cause: Uninstalled}
		return p
	}
	if p.Halt = w.replaces(p, run, preDelete, version); p.Halt != nil {
		return p
	}
	var deleted []found
	for i := range items {
		policy, has := items[i].Annotations[policyAnnotation]
		switch {
		case !has:
			deleted = append(deleted, items[i])
		case items[i].state != absent:
			p.keepByPolicy(&items[i], policy)
		}
	}
	for i := range deleted {
		if deleted[i].state == unserved || deleted[i].elsewhere { // none of them can be built (pkg/kube/client.go, Build)
			p.Halt = &Open{Cause: NoSuchKind, Item: deleted[i].Item, Detail: say.Of(unlessCached)}
			return p
		}
	}
	if version == Helm4 {
		deleted = p.owned(w, r, deleted)
	}
	p.Kept = slices.DeleteFunc(p.Kept, func(k Kept) bool { // the hook makes what is deleted then
		return k.Reason == HookMade && version == Helm3 && slices.ContainsFunc(deleted, func(f found) bool { return alike(f.id(), k.Object) })
	})
	p.inOrder(deleted, version)
	if fails := w.replaces(p, run, postDelete, version); fails != nil {
		p.Open = append(p.Open, *fails)
	}
	w.purges(p, r)
	return p
}

// purges adds why Helm cannot delete the records of a release, which it does last, or might not be able to.
func (w *World) purges(p *Plan, r *Release) {
	c := w.creation(p, nil, postDelete, func(graph.Identity) bool { return false })
	for _, n := range w.Evidence.Records(cmp.Or(r.Storage, r.Namespace), r.Name) {
		why, certain := c.refused(n, "DELETE", say.Of(purge))
		open := Open{Cause: MayRefuse, Item: itemOf(n), Detail: why.And(purgeMayFail)}
		if certain {
			open.Cause, open.Detail = Refused, why.And(purgeFails)
		}
		if !why.IsZero() {
			p.Open = append(p.Open, open)
			return
		}
	}
}

// all returns the objects of the release, of its hooks and of the chart's crds/, in this order.
func (r *Release) all() []Item {
	items := slices.Clone(r.Items)
	for i := range r.Hooks {
		items = append(items, r.Hooks[i].Item)
	}
	return append(items, r.CRDs...)
}

// keepByPolicy keeps an object with a resource policy, whatever that is: with keep Helm says so, and with any other value it
// neither deletes the object nor says so (helm.sh/helm/v3/pkg/action/resource_policy.go, filterManifestsToKeep). What the live object
// is annotated with plays no part.
func (p *Plan) keepByPolicy(f *found, policy string) {
	if strings.ToLower(strings.TrimSpace(policy)) == "keep" {
		p.keep(f, ResourcePolicy, "")
		return
	}
	p.keep(f, UnknownPolicy, policy)
}

// owned returns those of the objects that Helm 4 takes for the release's by the marks of the live object
// (helm.sh/helm/v4/pkg/action/validate.go, checkOwnership). Helm 3 deletes all.
func (p *Plan) owned(w *World, r *Release, all []found) []found {
	var owned []found
	for i, o := range w.whole(all) {
		f := all[i]
		switch {
		case f.state != present:
			owned = append(owned, f)
		case o == nil:
			p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
			owned = append(owned, f)
		case byHelm(o.GetLabels()) && delivery.Release(o).Path() == r.Namespace+"/"+r.Name:
			owned = append(owned, f)
		default:
			p.keep(&f, NotOwned, delivery.Release(o).Path())
		}
	}
	return owned
}

// inOrder puts the objects that exist into the order of Helm.
func (p *Plan) inOrder(all []found, version int) {
	order := helm3Order
	if version == Helm4 {
		order = helm4Order
	}
	rank := func(f *found) int {
		if at := slices.Index(order, f.Document); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b found) int {
		if by := cmp.Compare(rank(&a), rank(&b)); by != 0 || rank(&a) < len(order) {
			return by
		}
		return strings.Compare(a.Document, b.Document)
	})
	p.byKind(all)
}
