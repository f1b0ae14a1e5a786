// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// fluxFirst and fluxLast are the kinds that Flux applies first and last, and so deletes in the opposite order; others are between, by group
// and kind (github.com/fluxcd/pkg/ssa/sort.go, ReconcileOrder).
var (
	fluxFirst = []string{
		"CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterClass", "RuntimeClass", "PriorityClass",
		"StorageClass", "VolumeSnapshotClass",
		"IngressClass", "GatewayClass", "ClusterRoleBinding", "ResourceQuota", "ServiceAccount", "Role", "RoleBinding",
		"ConfigMap", "Secret", "Service",
		"LimitRange", "Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
	}
	fluxLast = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
)

// Kustomization is what kustomize-controller does when a Kustomization is deleted
// (github.com/fluxcd/kustomize-controller/internal/controller/kustomization_controller.go, finalize): unless it is suspended or says
// otherwise, it deletes its inventory one object after the other, in the background, but for objects that do not bear its labels or are
// marked to be left alone (deleteObjects, and github.com/fluxcd/pkg/ssa/manager_delete.go).
func Kustomization(w *World, n graph.Node, o *unstructured.Unstructured) *Plan {
	p := fluxPlan(n, "kustomization", "Kustomization")
	if p.elsewhere(o) {
		return p
	}
	p.Marks = map[string]string{"kustomize.toolkit.fluxcd.io/name": n.Name()}
	all := w.find(inventory(delivery.Kustomizations, o))
	for i := range all {
		p.Items = append(p.Items, all[i].Item)
	}
	if why := keepsInventory(o); why != "" {
		for i := range all {
			if all[i].state != absent {
				p.keep(&all[i], why, evidence.Nested(o, "spec", "deletionPolicy"))
			}
		}
		return p
	}
	var deleted []found
	for i, live := range w.whole(all) {
		f := &all[i]
		switch {
		case f.elsewhere:
			p.cannotReach(f)
		case f.state == present && live == nil:
			p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
			deleted = append(deleted, *f)
		case f.state != present:
			deleted = append(deleted, *f)
		case !p.markedByFlux(p.Of, f, live):
			deleted = append(deleted, *f)
		}
	}
	slices.SortStableFunc(deleted, func(a, b found) int { return -byFlux(&a, &b) })
	p.byKind(deleted)
	return p
}

// cannotReach notes an object whose type the server does not have in the version of the inventory: Flux does not look for another version,
// and tries again for ever after it has deleted the others (github.com/fluxcd/pkg/ssa/manager_delete.go, Delete: query failed).
func (p *Plan) cannotReach(f *found) {
	open := Open{Cause: NoSuchKind, Item: f.Item}
	p.Open = append(p.Open, open)
	p.doubt(p.Own.UID, say.Of(foresight.MayStick, open.Says()))
	if f.state == present {
		p.keep(f, Undone, "")
	}
}

// fluxPlan is of a deletion of an object of Flux, which begins with that.
func fluxPlan(n graph.Node, word, kind string) *Plan {
	return &Plan{
		Tool: "flux", Order: "Flux", Namespace: n.Namespace(), Name: n.Name(), Policy: metav1.DeletePropagationBackground,
		Of:      Deliverers{{Kind: kind, Namespace: n.Namespace(), Name: n.Name()}},
		Command: []string{"flux", "delete", word, n.Name(), "-n", n.Namespace()}, Barriers: []Barrier{barrierOf(n.Identity())}, Own: n.Identity(),
	}
}

// elsewhere reports whether what an object of Flux has deployed is in another cluster, and notes it.
func (p *Plan) elsewhere(o *unstructured.Unstructured) bool {
	_, remote, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig")
	if remote {
		p.Open = append(p.Open, Open{Cause: Elsewhere, Detail: say.Plain("spec.kubeConfig")})
	}
	return remote
}

// keepsInventory is why a Kustomization deletes nothing of its inventory, empty when it does (finalizerShouldDeleteResources).
func keepsInventory(o *unstructured.Unstructured) Reason {
	if len(o.GetFinalizers()) == 0 { // with any, kustomize-controller sees that it is being deleted
		return NoFinalizer
	}
	why := prunesNothing(o)
	switch policy := cmp.Or(evidence.Nested(o, "spec", "deletionPolicy"), "MirrorPrune"); {
	case why == Suspended, policy == "MirrorPrune":
		return why
	case policy == "Delete", policy == "WaitForTermination":
		return ""
	}
	return DeletionPolicy
}

// prunesNothing is why a Kustomization prunes nothing, empty when it does (reconcile, prune).
func prunesNothing(o *unstructured.Unstructured) Reason {
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		return Suspended
	}
	if prunes, _, _ := unstructured.NestedBool(o.Object, "spec", "prune"); !prunes {
		return NoPrune
	}
	return ""
}

// markedByFlux reports whether a Kustomization leaves a live object alone for what that is marked with, and notes why.
func (p *Plan) markedByFlux(by Deliverers, f *found, live *unstructured.Unstructured) bool {
	switch off := markedOff(live); {
	case !slices.ContainsFunc(delivery.Marks(live), by.have):
		p.keep(f, NotLabelled, "")
	case off != "":
		p.keep(f, MarkedOff, off)
	default:
		return false
	}
	return true
}

// fluxMarks is in the labels and annotations of markedOff.
const fluxMarks = "kustomize.toolkit.fluxcd.io/"

// markedOff is the mark by which Flux leaves an object alone, a label or an annotation (github.com/fluxcd/pkg/ssa/utils/meta.go,
// AnyInMetadata).
func markedOff(o *unstructured.Unstructured) string {
	for _, mark := range []struct{ key, value string }{{"prune", "disabled"}, {"reconcile", "disabled"}, {"ssa", "ignore"}} {
		key := fluxMarks + mark.key
		if strings.EqualFold(o.GetLabels()[key], mark.value) || strings.EqualFold(o.GetAnnotations()[key], mark.value) {
			return key + ": " + mark.value
		}
	}
	return ""
}

// byFlux compares objects in the order in which Flux applies them (github.com/fluxcd/pkg/ssa/sort.go, less).
func byFlux(a, b *found) int {
	rank := func(f *found) int {
		if at := slices.Index(fluxFirst, f.Kind); at >= 0 {
			return at - len(fluxFirst)
		}
		return slices.Index(fluxLast, f.Kind) + 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// HelmReleaseOf returns where the release of a HelmRelease is, by its status or else by its spec
// (github.com/fluxcd/helm-controller/api/v2/helmrelease_types.go, GetReleaseName): its name, its namespace, and that of its record.
func HelmReleaseOf(o *unstructured.Unstructured) (name, namespace, storage string) {
	target := evidence.Nested(o, "spec", "targetNamespace")
	name, namespace = o.GetName(), cmp.Or(target, o.GetNamespace())
	if target != "" {
		name = target + "-" + name
	}
	name = cmp.Or(evidence.Nested(o, "spec", "releaseName"), name)
	history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	if len(history) > 0 {
		latest, _ := history[0].(map[string]any)
		name, namespace = cmp.Or(evidence.Text(latest["name"]), name), cmp.Or(evidence.Text(latest["namespace"]), namespace)
	}
	return name, namespace, cmp.Or(evidence.Nested(o, "status", "storageNamespace"), evidence.Nested(o, "spec", "storageNamespace"),
		o.GetNamespace())
}

// installed reports whether a HelmRelease has a release by its status (reconcileReleaseDeletion; internal/reconcile/uninstall.go,
// Reconcile).
func installed(o *unstructured.Unstructured) bool {
	history, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	return len(history) > 0 && evidence.Nested(o, "status", "storageNamespace") != ""
}

// HelmReleaseBy is HelmRelease with the release that the world reads. A release without a record is taken for uninstalled
// (internal/reconcile/uninstall.go, Reconcile). With another error the plan is of the HelmRelease alone.
func HelmReleaseBy(w *World, n graph.Node, o *unstructured.Unstructured) (*Plan, error) {
	p := HelmRelease(w, n, o, nil, 0)
	if len(p.Open) > 0 { // it uninstalls nothing
		return p, nil
	}
	name, namespace, storage := HelmReleaseOf(o)
	release, err := w.release(storage, name)
	if errors.As(err, new(NoReleaseError)) {
		p.Open = append(p.Open, Open{Cause: Unrecorded})
		return p, nil
	}
	if err != nil {
		return p, err
	}
	within := *w
	release.Namespace, within.Namespace, release.Storage = namespace, namespace, storage
	return HelmRelease(&within, n, o, release, w.VersionOf(release)), nil
}

// HelmRelease is what helm-controller does when a HelmRelease is deleted
// (github.com/fluxcd/helm-controller/internal/controller/helmrelease_controller.go, reconcileDelete): it uninstalls the release as Helm
// does, unless it is suspended. release is nil when that is not read.
func HelmRelease(w *World, n graph.Node, o *unstructured.Unstructured, release *Release, version int) *Plan {
	p := fluxPlan(n, "helmrelease", "HelmRelease")
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	switch {
	case p.elsewhere(o):
		return p
	case suspended:
		p.Open = append(p.Open, Open{Cause: ReleaseStays})
		return p
	case len(o.GetFinalizers()) == 0:
		p.Open = append(p.Open, Open{Cause: Unfinalized})
		return p
	case !installed(o):
		p.Open = append(p.Open, Open{Cause: NotInstalled})
		return p
	case release == nil:
		name, namespace, storage := HelmReleaseOf(o)
		p.Of = append(p.Of, Deliverer{Kind: "Release", Namespace: namespace, Name: name, Records: storage})
		return p
	}
	if off, _, _ := unstructured.NestedBool(o.Object, "spec", "uninstall", "disableHooks"); off {
		for i := range release.Hooks {
			release.Hooks[i].Events = nil
		}
	}
	helm := Helm(w, release, version)
	switch evidence.Nested(o, "spec", "uninstall", "deletionPropagation") {
	case "foreground":
		p.Policy = metav1.DeletePropagationForeground
	case "orphan":
		p.Policy = metav1.DeletePropagationOrphan
	}
	p.Order, p.Of, p.Marks, p.Items = "Flux with "+helm.Order, append(p.Of, helm.Of...), helm.Marks, helm.Items
	p.Kept, p.Absent, p.Open, p.Halt = helm.Kept, helm.Absent, append(p.Open, helm.Open...), helm.Halt
	p.Barriers = append(p.Barriers, helm.Barriers...)
	if refused := p.first(Refused); refused != nil { // as below
		p.doubt(n.UID(), say.Of(foresight.MayStick, refused.Says()))
	}
	switch {
	case p.Halt == nil:
	case p.Halt.Cause == Uninstalled: // helm-controller ends then
		p.Open, p.Halt = append(p.Open, *p.Halt), nil
	default: // it tries again for ever (internal/reconcile/uninstall.go)
		p.doubt(n.UID(), p.Halt.Says())
	}
	return p
}
