// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Belonging says how it is known that an object belongs to what is removed.
type Belonging string

// How that is known.
const (
	// ByLabel: it bears a label of the tool. Detail is that label.
	ByLabel Belonging = "Label"
	// ByRelease: its annotations name the release, which is Detail, and the latest revision does not have it.
	ByRelease Belonging = "Release"
	// ByService: it calls a service that is deleted, which is Detail.
	ByService Belonging = "Service"
	// ByGroup: its API group, which is Detail, is that of definitions of the same release.
	ByGroup Belonging = "Group"
	// ByClaimTemplate: it is a claim of a StatefulSet that is deleted, which is Detail.
	ByClaimTemplate Belonging = "ClaimTemplate"
	// ByHolder: it is a lease that a pod holds which is deleted, which is Detail.
	ByHolder Belonging = "Holder"
	// ByManager: a program of a workload that is deleted, which is Detail, has made it.
	ByManager Belonging = "Manager"
	// ByNamespace: it is the release's namespace, in which nothing is left but Kubernetes' own, and what is left or kept, which is Detail.
	ByNamespace Belonging = "Namespace"
)

// Left is an object that stays although it belongs to what is removed.
type Left struct {
	Object graph.Identity
	By     Belonging
	Detail string
	// contents are what Detail names for ByNamespace. A saved plan does not have them.
	contents []graph.Identity
	// Instances are those of a definition.
	Instances []graph.Identity
	Version   Version
}

// of is the object that Detail names, which has a namespace.
func (l *Left) of() graph.Identity {
	kind, at, _ := strings.Cut(l.Detail, "/")
	namespace, name, _ := strings.Cut(at, "/")
	return evidence.Named(kind, namespace, name)
}

// Version is that of an object when it was looked at. Generation is 0 for types that have none. Metadata is a digest of the labels, the
// finalizers and who has written anything but the status.
type Version struct {
	Resource   string `json:"resourceVersion,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Metadata   string `json:"metadata,omitempty"`
}

// versionOf is that of a whole object.
func versionOf(o *unstructured.Unstructured) Version {
	writers := sets.New[string]()
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" {
			writers.Insert(string(e.Operation) + " " + e.Manager)
		}
	}
	text, _ := json.Marshal([]any{o.GetLabels(), o.GetFinalizers(), sets.List(writers)}) // of strings
	return Version{o.GetResourceVersion(), o.GetGeneration(), fmt.Sprintf("%.8x", sha256.Sum256(text))}
}

// changedTo reports whether an object is another one than it was, but for its status where the type tells that apart.
func (v Version) changedTo(now Version) bool {
	same := v.Generation != 0 && v.Generation == now.Generation && v.Metadata == now.Metadata
	return v.Resource != "" && v.Resource != now.Resource && !same
}

// leftovers looks for what is left.
type leftovers struct {
	*World
	plan *Plan
	// preview is of the tool's deletes, and going what they take away, whatever holds it.
	preview *preview.Plan
	going   map[types.UID]bool
	// services and pods are those that go, as namespace/name; namespaces are those of what goes that has one.
	services, pods, namespaces sets.Set[string]
	found                      map[types.UID]*Left
}

// Left returns what is left behind by the tool's deletes, of which there is a preview, in the order of its identities, and completes what
// the plan says of the definitions that it keeps. claims are those of StatefulSets that go, by the name of the set.
func (w *World) Left(p *Plan, made *preview.Plan, claims map[string][]graph.Identity) []Left {
	l := &leftovers{
		World: w, plan: p, preview: made, going: made.Going(), services: sets.New[string](), pods: sets.New[string](),
		namespaces: sets.New(p.Namespace),
		found:      map[types.UID]*Left{},
	}
	going := func(uid types.UID) bool { return l.going[uid] }
	for i := range p.Kept {
		p.Kept[i].Instances, p.Kept[i].Owned = w.instances(p.Kept[i].Object, going), w.owned(p.Kept[i].Object, going)
	}
	l.look()
	l.configurations()
	l.definitions()
	for set, ids := range claims {
		for _, id := range ids {
			l.add(id, ByClaimTemplate, set)
		}
	}
	l.leases()
	l.labelled()
	l.made()
	maps.DeleteFunc(l.found, func(uid types.UID, _ *Left) bool {
		n, known := w.Graph.Node(uid)
		return known && l.ofAnother(n)
	})
	l.emptied()
	left := make([]Left, 0, len(l.found))
	for _, each := range l.found {
		each.Instances = w.instances(each.Object, going)
		left = append(left, *each)
	}
	graph.SortByIdentity(left, func(l *Left) graph.Identity { return l.Object })
	var versions []*Version
	var ids []graph.Identity
	for i := range left {
		ids, versions = append(ids, left[i].Object), append(versions, &left[i].Version)
	}
	for i := range p.Kept {
		ids, versions = append(ids, p.Kept[i].Object), append(versions, &p.Kept[i].Version)
	}
	w.versions(ids, versions)
	return left
}

// versions reads the versions of objects, as far as they exist.
func (w *World) versions(ids []graph.Identity, versions []*Version) {
	nodes := map[types.UID]graph.Node{}
	for _, id := range ids {
		if n, known := w.Graph.Node(id.UID); known && !n.Virtual() {
			nodes[id.UID] = n
		}
	}
	w.Evidence.Together(slices.Collect(maps.Values(nodes)))
	for i, id := range ids {
		n, known := nodes[id.UID]
		if !known {
			continue
		}
		versions[i].Resource = n.Unlabelled().ResourceVersion
		if o, err := w.Evidence.Whole(n); err == nil { // otherwise it is noted as unread
			*versions[i] = versionOf(o)
		}
	}
}

// look takes what the others need of the objects that go.
func (l *leftovers) look() {
	for n := range l.Graph.Nodes() {
		if !l.going[n.UID()] || n.Virtual() {
			continue
		}
		if n.Namespace() != "" {
			l.namespaces.Insert(n.Namespace())
		}
		switch at := n.Namespace() + "/" + n.Name(); {
		case n.Resource().GroupResource() == evidence.Services.GroupResource():
			l.services.Insert(at)
		case n.Resource().IsPod():
			l.pods.Insert(at)
		}
	}
	l.namespaces.Delete("")
}

// add notes an object, unless it goes, or is kept, or is known already.
func (l *leftovers) add(id graph.Identity, by Belonging, detail string) {
	kept := slices.ContainsFunc(l.plan.Kept, func(k Kept) bool { return k.Object.UID == id.UID })
	if !l.going[id.UID] && len(l.plan.in(id.UID)) == 0 && !kept && l.found[id.UID] == nil && id.UID != "" {
		l.found[id.UID] = &Left{Object: id, By: by, Detail: detail}
	}
}

// configurations are those of webhooks and aggregated APIs that call a service which goes.
func (l *leftovers) configurations() {
	for resource, kind := range map[schema.GroupVersionResource]string{
		evidence.ValidatingWebhooks: "ValidatingWebhookConfiguration", evidence.MutatingWebhooks: "MutatingWebhookConfiguration",
		evidence.APIServices: "APIService",
	} {
		items, err := l.Evidence.List(resource, "")
		if err != nil {
			continue // it is noted as unread
		}
		for i := range items {
			services, _ := servicesOf(&items[i])
			for _, at := range services {
				if l.services.Has(at) {
					l.add(evidence.IdentityOf(resource, kind, &items[i]), ByService, "Service/"+at)
				}
			}
		}
	}
}

// servicesOf are the services, as namespace/name, that the API server calls for a configuration of webhooks, an APIService or a definition,
// and whether it calls something else.
func servicesOf(o *unstructured.Unstructured) (services []string, outside bool) {
	clients := []map[string]any{}
	if spec, _, _ := unstructured.NestedMap(o.Object, "spec"); spec["groupPriorityMinimum"] != nil {
		clients = append(clients, spec)
	}
	if client, is, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig"); is {
		clients = append(clients, client)
	}
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, each := range hooks {
		hook, _ := each.(map[string]any)
		client, _, _ := unstructured.NestedMap(hook, "clientConfig")
		clients = append(clients, client)
	}
	for _, client := range clients {
		namespace, name := evidence.ServiceOf(client)
		if name == "" { // a URL, or an API of the API server itself
			outside = true
			continue
		}
		services = append(services, namespace+"/"+name)
	}
	return services, outside
}

// definitions are those that a service converts which goes, and those of the API groups of the release's own definitions.
func (l *leftovers) definitions() {
	names := []string{}
	for i := range l.plan.Items {
		if l.plan.Items[i].Kind == "CustomResourceDefinition" {
			names = append(names, l.plan.Items[i].Name)
		}
	}
	for _, k := range l.plan.Kept {
		if k.Object.Resource.Kind == "CustomResourceDefinition" {
			names = append(names, k.Object.Name)
		}
	}
	groups := sets.New[string]()
	for _, name := range names {
		groups.Insert(schema.ParseGroupResource(name).Group)
	}
	items, err := l.Evidence.List(evidence.CRDs, "")
	if err != nil {
		return // it is noted as unread
	}
	for i := range items {
		d := &items[i]
		id := evidence.IdentityOf(evidence.CRDs, "CustomResourceDefinition", d)
		services, _ := servicesOf(d)
		group := evidence.Nested(d, "spec", "group")
		switch {
		case l.services.HasAny(services...):
			l.add(id, ByService, "Service/"+services[0])
		case groups.Has(group):
			l.add(id, ByGroup, group)
		}
	}
}

// instances are those of a definition, if it is one, that do not go, in the order of their identities.
func (w *World) instances(definition graph.Identity, going func(types.UID) bool) []graph.Identity {
	if !definition.Resource.IsCRD() {
		return nil
	}
	var all []graph.Identity
	for n := range w.Evidence.Instances(schema.ParseGroupResource(definition.Name)) {
		if !going(n.UID()) {
			all = append(all, n.Identity())
		}
	}
	slices.SortFunc(all, graph.Identity.Compare)
	return all
}

// owned are what stays because an object does that owns it, in the order of their identities, but for what Kubernetes tells with it.
func (w *World) owned(owner graph.Identity, going func(types.UID) bool) []graph.Identity {
	n, known := w.Graph.Node(owner.UID)
	if !known || owner.UID == "" {
		return nil
	}
	var all []graph.Identity
	for d := range graph.Descendants(n).All() {
		if !d.Virtual() && d.UID() != owner.UID && !going(d.UID()) && !derived.Has(d.Resource().GroupResource()) {
			all = append(all, d.Identity())
		}
	}
	slices.SortFunc(all, graph.Identity.Compare)
	return all
}

// leases are those that pods hold which go.
func (l *leftovers) leases() {
	for _, namespace := range sets.List(l.namespaces) {
		items, err := l.Evidence.List(evidence.Leases, namespace)
		if err != nil {
			continue // it is noted as unread
		}
		for i := range items {
			pod := namespace + "/" + controllers.PodOfHolder(evidence.Nested(&items[i], "spec", "holderIdentity"))
			if l.pods.Has(pod) {
				l.add(evidence.IdentityOf(evidence.Leases, "Lease", &items[i]), ByHolder, "Pod/"+pod)
			}
		}
	}
}

// labelled are what bears a mark of the tool, in the namespaces of what goes or in none, and is owned by nothing and derived from nothing.
// An object that says that it is of another release of Helm is not meant. What an upgrade that failed has not deleted may only have the
// annotations of Helm.
func (l *leftovers) labelled() {
	var released []graph.Node
	releases := l.plan.Of.releases()
	for n := range l.Graph.Nodes() {
		if n.Virtual() || n.HasOwners() || derived.Has(n.Resource().GroupResource()) || n.Namespace() != "" && !l.namespaces.Has(n.Namespace()) {
			continue
		}
		labels := n.Object().Labels
		for _, key := range slices.Sorted(maps.Keys(l.plan.Marks)) {
			if value, has := labels[key]; !has || value != l.plan.Marks[key] {
				continue
			}
			l.add(n.Identity(), ByLabel, key+"="+labels[key])
		}
		_, other := labels["app.kubernetes.io/instance"]
		if len(releases) > 0 && byHelm(labels) && !other && !l.going[n.UID()] {
			released = append(released, n)
		}
	}
	for n, o := range wholes(l.Evidence, released) {
		of := func(d Deliverer) bool { return delivery.Release(o).Path() == d.Namespace+"/"+d.Name }
		if slices.ContainsFunc(releases, of) {
			l.add(n.Identity(), ByRelease, delivery.Release(o).Path())
		}
	}
}

func (l *leftovers) ofAnother(n graph.Node) bool {
	o, err := l.Evidence.Whole(n)
	if err != nil {
		return false
	}
	_, other := l.plan.Of.of(o)
	return !other.IsZero()
}

// emptied is the namespace of a release, which Helm may have made and never deletes, unless it is one that Kubernetes makes, when nothing
// is left in it but what Kubernetes puts into every namespace and what is left behind itself.
func (l *leftovers) emptied() {
	name := l.plan.Namespace
	if l.plan.Tool != "helm" || name == "default" || strings.HasPrefix(name, "kube-") || l.Graph.Snapshot().BlindSpot(name) != "" {
		return
	}
	gone := map[types.UID]bool{}
	for i := range l.preview.Report.Outcomes {
		gone[l.preview.Report.Outcomes[i].Object.UID] = l.preview.Report.Outcomes[i].Result == gc.Deleted
	}
	kept := map[types.UID]bool{}
	for _, k := range l.plan.Kept {
		kept[k.Object.UID] = true
	}
	var stays []graph.Identity
	for _, k := range l.plan.Kept {
		if k.Reason == HookMade && k.Object.Namespace == name {
			stays = append(stays, k.Object)
		}
	}
	for _, m := range l.Evidence.In(name) {
		switch {
		case gone[m.UID()] || l.everywhere(m):
		case kept[m.UID()] || l.found[m.UID()] != nil:
			stays = append(stays, m.Identity())
		case !m.HasOwners():
			return
		}
	}
	for _, n := range l.Evidence.Named(evidence.Namespaces.GroupResource(), "", name) {
		if !n.BeingDeleted() {
			if l.add(n.Identity(), ByNamespace, someOf(stays).String()); l.found[n.UID()] != nil {
				l.found[n.UID()].contents = stays
			}
		}
	}
}

// everywhere reports whether an object is one that Kubernetes puts into every namespace, or a record of the release itself.
func (l *leftovers) everywhere(n graph.Node) bool {
	release, _, is := evidence.RecordOf(n.Name())
	return is && release == l.plan.Name || everywhere(n)
}

// everywhere reports whether an object is one that Kubernetes puts into every namespace.
func everywhere(n graph.Node) bool {
	switch id := n.Identity(); id.Resource.GroupResource() {
	case evidence.ConfigMaps.GroupResource():
		return id.Name == "kube-root-ca.crt"
	case evidence.ServiceAccounts.GroupResource():
		return id.Name == "default"
	case schema.GroupResource{Resource: "endpoints"}, schema.GroupResource{Resource: "events"},
		schema.GroupResource{Group: "events.k8s.io", Resource: "events"}:
		return true
	}
	return false
}
