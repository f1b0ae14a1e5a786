// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// argoFinalizer is that by which Argo CD deletes what an Application has deployed, alone or with a policy
// (github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1/application_defaults.go).
const argoFinalizer = "resources-finalizer.argocd.argoproj.io"

// Application is what Argo CD does when an Application is deleted (github.com/argoproj/argo-cd/v3/controller/appcontroller.go,
// finalizeApplicationDeletion): with a finalizer of its own it deletes what it tracks, the last sync wave first, and waits until each is gone
// (controller/sort_delete.go); without one, nothing.
func Application(w *World, n graph.Node, o *unstructured.Unstructured) *Plan {
	p := &Plan{
		Tool: "argocd", Order: "Argo CD", Namespace: n.Namespace(), Name: n.Name(), Policy: metav1.DeletePropagationForeground, Deliverer: "Application",
		Command: []string{"kubectl", "delete", Applications.String(), n.Name(), "-n", n.Namespace()}, Own: n.Identity(), Awaits: true,
	}
	own := barrierOf(n.Identity())
	if remote(o) {
		p.Open, p.Barriers = append(p.Open, Open{Cause: Elsewhere, Detail: "spec.destination"}), []Barrier{own}
		return p
	}
	all := w.find(resources(o))
	for i := range all {
		p.Items = append(p.Items, all[i].Item)
	}
	at := slices.IndexFunc(o.GetFinalizers(), func(f string) bool { name, _, _ := strings.Cut(f, "/"); return name == argoFinalizer })
	if at < 0 {
		for i := range all {
			if all[i].state != absent {
				p.keep(&all[i], NoFinalizer, "")
			}
		}
		p.Barriers = []Barrier{own}
		return p
	}
	if o.GetFinalizers()[at] == argoFinalizer+"/background" {
		p.Policy = metav1.DeletePropagationBackground
	}
	if slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, "post-delete-finalizer.argocd.argoproj.io") }) {
		p.Open = append(p.Open, Open{Cause: HookRunsAfter, Item: itemOf(n)})
	}
	p.waves(w, all)
	p.Barriers = append(p.Barriers, own)
	return p
}

// remote reports whether an Application is deployed to another cluster than that in which it is.
func remote(o *unstructured.Unstructured) bool {
	server, name := evidence.Nested(o, "spec", "destination", "server"), evidence.Nested(o, "spec", "destination", "name")
	return server != "" && server != "https://kubernetes.default.svc" || name != "" && name != "in-cluster"
}

// resources are the objects of status.resources.
func resources(o *unstructured.Unstructured) []Item {
	var items []Item
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
	for _, each := range entries {
		entry, _ := each.(map[string]any)
		text := func(key string) string { return evidence.Text(entry[key]) }
		items = append(items, kindOf(text("group"), text("version"), text("kind"), text("namespace"), text("name")))
	}
	return items
}

// waves puts what Argo CD deletes into its waves, the last first, and notes what it keeps.
func (p *Plan) waves(w *World, all []found) {
	waves := map[int][]found{}
	for i, live := range w.whole(all) {
		f := &all[i]
		if f.state == present && live == nil {
			p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
		}
		switch {
		case f.state != present || live == nil:
			waves[0] = append(waves[0], *f)
		case f.Kind == "CustomResourceDefinition":
			p.keep(f, Definition, "")
		case hasOption(live, "argocd.argoproj.io/sync-options", "Delete=false"):
			p.keep(f, MarkedOff, "argocd.argoproj.io/sync-options: Delete=false")
		case hasOption(live, policyAnnotation, "keep"):
			p.keep(f, ResourcePolicy, "")
		default:
			if !p.tracks(live) {
				p.Open = append(p.Open, Open{Cause: Untracked, Item: f.Item})
			}
			if hasOption(live, "argocd.argoproj.io/sync-options", "Delete=confirm") {
				p.Open = append(p.Open, Open{Cause: Unconfirmed, Item: f.Item})
			}
			wave := waveOf(live)
			waves[wave] = append(waves[wave], *f)
		}
	}
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(waves))) {
		b := Barrier{Kind: "wave " + strconv.Itoa(number)}
		for i := range waves[number] {
			if f := &waves[number][i]; p.reaches(f) {
				b.Objects = append(b.Objects, f.id())
			}
		}
		if len(b.Objects) > 0 {
			p.Barriers = append(p.Barriers, b)
		}
	}
}

// hasOption reports whether an annotation lists an option (argo-cd/v3/gitops-engine, pkg/sync/resource/annotations.go, HasAnnotationOption).
func hasOption(o *unstructured.Unstructured, annotation, option string) bool {
	for text := range strings.SplitSeq(o.GetAnnotations()[annotation], ",") {
		if strings.TrimSpace(text) == option {
			return true
		}
	}
	return false
}

// tracks reports whether a live object bears the Application's name in the usual label or annotation
// (github.com/argoproj/argo-cd/v3/util/argo/resource_tracking.go).
func (p *Plan) tracks(o *unstructured.Unstructured) bool {
	id, _, _ := strings.Cut(o.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	of := func(name string) bool { return name == p.Name || name == p.Namespace+"_"+p.Name }
	return of(id) || of(o.GetLabels()["app.kubernetes.io/instance"]) || of(o.GetLabels()["argocd.argoproj.io/instance"])
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
