// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// argoFinalizers are those by which Argo CD deletes what an Application has deployed, each with its policy
// (github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1/application_defaults.go).
var argoFinalizers = map[string]metav1.DeletionPropagation{
	"resources-finalizer.argocd.argoproj.io":            metav1.DeletePropagationForeground,
	"resources-finalizer.argocd.argoproj.io/foreground": metav1.DeletePropagationForeground,
	"resources-finalizer.argocd.argoproj.io/background": metav1.DeletePropagationBackground,
}

// Application is what Argo CD does when an Application is deleted (github.com/argoproj/argo-cd/v3/controller/appcontroller.go,
// finalizeApplicationDeletion): with a finalizer of its own it deletes what it tracks, the last sync wave first, and waits until each is
// gone (controller/sort_delete.go); without one, nothing.
func Application(w *World, n graph.Node, o *unstructured.Unstructured) *Plan {
	p := &Plan{
		Tool: "argocd", Order: "Argo CD", Namespace: n.Namespace(), Name: n.Name(), Policy: metav1.DeletePropagationForeground,
		Of:      Deliverers{{Kind: "Application", Namespace: n.Namespace(), Name: n.Name()}},
		Command: []string{"kubectl", "delete", delivery.Applications.String(), n.Name(), "-n", n.Namespace()}, Own: n.Identity(), Awaits: true,
	}
	own := barrierOf(n.Identity())
	all := w.find(inventory(delivery.Applications, o))
	a := &application{p, o, w.whole(all), nil}
	namespace, certain := w.argoNamespace(n, o)
	p.Of[0].Qualified = namespace != "" && namespace != n.Namespace() // argo-cd/v3/pkg/apis/application/v1alpha1/types.go, InstanceName
	projects := w.Evidence.Named(appProjects.GroupResource(), namespace, projectName(o))
	for _, project := range projects {
		a.project, _ = w.Evidence.Whole(project)
	}
	remote := a.remote()
	if remote && !slices.ContainsFunc(a.live, a.tracks) {
		p.Open, p.Barriers = append(p.Open, Open{Cause: Elsewhere, Detail: say.Plain("spec.destination")}), []Barrier{own}
		return p
	}
	for i := range all {
		p.Items = append(p.Items, all[i].Item)
	}
	if why := a.keeps(); why != "" {
		for i := range all {
			if all[i].state != absent {
				p.keep(&all[i], why, "")
			}
		}
		p.Barriers = []Barrier{own}
		return p
	}
	if a.hasFinalizer("pre-delete-finalizer.argocd.argoproj.io") {
		p.Open = append(p.Open, Open{Cause: HookRuns, Item: itemOf(n)})
	}
	if a.hasFinalizer("post-delete-finalizer.argocd.argoproj.io") {
		p.Open = append(p.Open, Open{Cause: HookRunsAfter, Item: itemOf(n)})
	}
	a.waves(all)
	p.Barriers = append(p.Barriers, own)
	if a.project == nil && (len(projects) > 0 || !w.Graph.Snapshot().Covers(appProjects.GroupResource(), namespace, projectName(o))) {
		p.Open = append(p.Open,
			Open{Cause: Unread, Item: kindOf(appProjects.Group, appProjects.Version, "AppProject", namespace, projectName(o))})
		p.doubtAll(say.Of(projectUnread, projectName(o)))
	}
	if remote {
		p.doubtAll(say.Of(onlyIfHere, evidence.Nested(o, "spec", "destination", "name")+evidence.Nested(o, "spec", "destination", "server")))
	}
	if p.first(Unconfirmed) != nil {
		p.doubtAll(say.Of(notConfirmed))
	}
	if namespace != n.Namespace() && !certain {
		p.doubtAll(say.Of(argoElsewhere, namespace))
	}
	return p
}

// application is one with its plan, and what it tracks, nil where that does not exist or could not be read.
type application struct {
	*Plan
	object *unstructured.Unstructured
	live   []*unstructured.Unstructured
	// project is its AppProject, nil when that was not read.
	project *unstructured.Unstructured
}

// remote reports whether an Application names another cluster than that in which it is; it may be the same one under another name.
func (a *application) remote() bool {
	server, name := evidence.Nested(a.object, "spec", "destination", "server"), evidence.Nested(a.object, "spec", "destination", "name")
	return (server == "") != (name == "") && strings.TrimRight(server, "/") != "https://kubernetes.default.svc" && name != "in-cluster"
}

// keeps is why Argo CD deletes nothing of what it tracks, empty when it does. A destination that is not one cluster has it forget its
// finalizers (util/argo/argo.go, GetDestinationServer).
func (a *application) keeps() Reason {
	policies := slices.DeleteFunc(slices.Clone(a.object.GetFinalizers()), func(f string) bool { return argoFinalizers[f] == "" })
	server, name := evidence.Nested(a.object, "spec", "destination", "server"), evidence.Nested(a.object, "spec", "destination", "name")
	switch {
	case len(policies) == 0:
		return NoFinalizer
	case (server == "") == (name == ""):
		return NoDestination
	}
	a.Policy = argoFinalizers[policies[0]]
	return ""
}

func (a *application) hasFinalizer(name string) bool {
	return slices.ContainsFunc(a.object.GetFinalizers(), func(f string) bool { before, _, _ := strings.Cut(f, "/"); return before == name })
}

// argoNamespace is the namespace of the application controller for an Application, and whether it is certain that it reconciles that
// (isAppNamespaceAllowed): by its status, or because it is the Application's own. Controllers are known by their usual name.
func (w *World) argoNamespace(n graph.Node, o *unstructured.Unstructured) (namespace string, certain bool) {
	if namespace := evidence.Nested(o, "status", "controllerNamespace"); namespace != "" {
		return namespace, true
	}
	namespaces := sets.New[string]()
	for _, resource := range workloads {
		for m := range w.Evidence.Instances(resource) {
			if strings.HasSuffix(m.Name(), "application-controller") {
				namespaces.Insert(m.Namespace())
			}
		}
	}
	if len(namespaces) == 0 || namespaces.Has(n.Namespace()) {
		return n.Namespace(), len(namespaces) > 0
	}
	return sets.List(namespaces)[0], false
}

// waves puts what Argo CD deletes into its waves, the last first, and notes what it keeps. What it tracks and is being deleted comes before
// all: Argo CD awaits that, even if it would keep it.
func (a *application) waves(all []found) {
	waves := map[int][]found{}
	var ending Barrier
	for i, live := range a.live {
		f := &all[i]
		if f.state == present && live == nil {
			a.Open = append(a.Open, Open{Cause: Unread, Item: f.Item})
		}
		switch {
		case f.state == present && f.node.UID() == a.Own.UID: // isSelfReferencedApp
		case f.state != present || live == nil:
			waves[0] = append(waves[0], *f)
		case live.GetDeletionTimestamp() != nil:
			ending.Kind, ending.Objects = "deleted before", append(ending.Objects, f.id())
		case a.spares(f, live):
		default:
			a.question(f, live)
			wave := waveOf(live)
			waves[wave] = append(waves[wave], *f)
		}
	}
	if len(ending.Objects) > 0 {
		a.Barriers = append(a.Barriers, ending)
	}
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(waves))) {
		b := Barrier{Kind: "wave " + strconv.Itoa(number)}
		for i := range waves[number] {
			if f := &waves[number][i]; a.reaches(f) {
				b.Objects = append(b.Objects, f.id())
			}
		}
		if len(b.Objects) > 0 {
			a.Barriers = append(a.Barriers, b)
		}
	}
}

// spares reports whether Argo CD keeps an object, and notes why (shouldBeDeleted; gitops-engine, pkg/cache/cluster.go, GetManagedLiveObjs).
func (a *application) spares(f *found, live *unstructured.Unstructured) bool {
	switch {
	case f.Kind == "CustomResourceDefinition":
		a.keep(f, Definition, "")
	case hasOption(live, syncOptions, "Delete=false"):
		a.keep(f, MarkedOff, syncOptions+": Delete=false")
	case hasOption(live, policyAnnotation, "keep"):
		a.keep(f, ResourcePolicy, "")
	case f.node.HasOwners():
		a.keep(f, OwnedByOther, "")
	default:
		return false
	}
	return true
}

const syncOptions = "argocd.argoproj.io/sync-options"

// question notes of an object what keeps Argo CD from deleting it, or may.
func (a *application) question(f *found, live *unstructured.Unstructured) {
	if !a.tracks(live) {
		a.Open = append(a.Open, Open{Cause: Untracked, Item: f.Item})
	}
	options, _, _ := unstructured.NestedStringSlice(a.object.Object, "spec", "syncPolicy", "syncOptions")
	says := func(option string) bool {
		own := strings.Contains(live.GetAnnotations()[syncOptions], "Delete=")
		return hasOption(live, syncOptions, option) || !own && slices.Contains(options, option)
	}
	entries, _, _ := unstructured.NestedSlice(a.object.Object, "status", "resources")
	flagged := slices.ContainsFunc(entries, func(each any) bool {
		entry, _ := each.(map[string]any)
		return entry["requiresDeletionConfirmation"] == true && entry["kind"] == f.Kind && entry["name"] == f.Name &&
			evidence.Text(entry["namespace"]) == f.Namespace
	})
	if flagged || says("Delete=confirm") {
		a.Open = append(a.Open, Open{Cause: Unconfirmed, Item: f.Item})
	}
	if says("Delete=false") { // of the object itself it was looked at before
		a.Open = append(a.Open, Open{Cause: MayKeep, Item: f.Item})
	}
	if !a.permits(f) {
		a.Open = append(a.Open, Open{Cause: MayKeep, Item: f.Item, Detail: say.Of(notPermitted, projectName(a.object))})
	}
}

// permits reports whether the AppProject permits a live object: Argo CD keeps what it does not (getPermittedAppLiveObjects, and
// pkg/apis/application/v1alpha1/app_project_types.go, IsResourcePermitted), unless a global project does, of which a setting tells. So does
// another of the names of clusters: any counts. Old snapshots have no spec.
func (a *application) permits(f *found) bool {
	if a.project == nil || a.project.Object["spec"] == nil {
		return true
	}
	entries := func(name string) []any {
		all, _, _ := unstructured.NestedSlice(a.project.Object, "spec", name)
		return all
	}
	in := func(name string) bool {
		return slices.ContainsFunc(entries(name), func(e any) bool {
			return like(e, "kind", f.Kind) && like(e, "group", f.Group) && like(e, "name", f.Name)
		})
	}
	if f.Namespace == "" {
		return in("clusterResourceWhitelist") && !in("clusterResourceBlacklist")
	}
	permits := func(e any) bool { return like(e, "namespace", f.Namespace) }
	denies := func(e any) bool { return !permits(e) && like(e, "namespace", "") }
	_, limited, _ := unstructured.NestedSlice(a.project.Object, "spec", "namespaceResourceWhitelist")
	return (!limited || in("namespaceResourceWhitelist")) && !in("namespaceResourceBlacklist") &&
		slices.ContainsFunc(entries("destinations"), permits) && !slices.ContainsFunc(entries("destinations"), denies)
}

// like reports whether a text is as a field of an entry has it. Few have names. Only what is denied, of what a text is not, is like an
// empty one.
func like(entry any, name, text string) bool {
	fields, _ := entry.(map[string]any)
	pattern, not := strings.CutPrefix(evidence.Text(fields[name]), "!")
	is, err := path.Match(pattern, text)
	return (is || err != nil || strings.Contains(pattern, "{") || name == "name" && pattern == "") != not
}

// hasOption reports whether an annotation lists an option (argo-cd/v3/gitops-engine, pkg/sync/resource/annotations.go,
// HasAnnotationOption).
func hasOption(o *unstructured.Unstructured, annotation, option string) bool {
	for text := range strings.SplitSeq(o.GetAnnotations()[annotation], ",") {
		if strings.TrimSpace(text) == option {
			return true
		}
	}
	return false
}

// tracks reports whether a live object bears the Application's name in the usual annotation, or, without that, in a usual label. By which
// Argo CD goes is one of its settings.
func (p *Plan) tracks(o *unstructured.Unstructured) bool {
	if o == nil {
		return false
	}
	for _, m := range delivery.Marks(o) {
		if m.Resource == delivery.Applications {
			return p.Of.have(m)
		}
	}
	return false
}

// waveOf is the sync wave of a live object (gitops-engine, pkg/sync/syncwaves/waves.go).
func waveOf(o *unstructured.Unstructured) int {
	for _, key := range []string{"argocd.argoproj.io/sync-wave", "helm.sh/hook-weight"} {
		if wave, err := strconv.Atoi(o.GetAnnotations()[key]); err == nil {
			return wave
		}
	}
	return 0
}
