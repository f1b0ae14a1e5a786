// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Return is an object that comes back after the plan.
type Return struct {
	Object graph.Identity
	// Why is who makes it again.
	Why                   say.Text
	kind, namespace, name string // of what delivered it
	// Certain is unset where it takes somebody's next action, or depends on settings.
	Certain bool
	// Told: the outcome of the object says so, too.
	Told bool
	// upgraded: a HelmRelease recreates it only when it upgrades its release, or installs that.
	upgraded bool
	release  delivery.Mark
}

// Reinstalled says that a HelmRelease that stays installs an object again, where the release by which that was delivered is uninstalled.
func (r *Return) Reinstalled(uninstalled func(release delivery.Mark) bool) {
	if r.upgraded && uninstalled(r.release) {
		r.Why, r.Certain = say.Of(byToolsObject, evidence.Named(r.kind, r.namespace, r.name)), true
	}
}

// Deliverer returns what delivered it from Git or as a release, and will again, as far as that is known. It is zero when something else
// makes it again.
func (r *Return) Deliverer() delivery.Mark {
	return delivery.Mark{Kind: r.kind, Namespace: r.namespace, Name: r.name}
}

// returning is what comes back. It is read from the scene, and nothing of it is kept.
type returning struct{ *scene }

// returns finds what comes back: what the plan itself knows of controllers that stay, and
// what is kept in Git or a release.
func (l *returning) returns() []Return {
	all := comeBack(l.Plan, l.node)
	targets := l.Plan.Job.Targets
	if len(targets) > maxRead {
		l.now.evidence.NoteUnread(evidence.Gap{What: say.Of(returnsUnread, len(targets), maxRead)})
		targets = targets[:maxRead]
	}
	for _, id := range targets {
		if n, ok := l.node(id.UID); ok {
			if r, is := l.delivered(n); is {
				all = append(all, r)
			} else if ref := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences}); ref != nil &&
				len(n.Finalizers()) > 0 {
				// of what has none the plan says it
				_, told := l.Plan.ComeBack[id.UID]
				if by, there := l.node(ref.UID); there && !told && !by.BeingDeleted() && !l.going[ref.UID] {
					all = append(all, Return{Object: n.Identity(), Why: say.Of(byController, by.Identity())})
				}
			}
		}
	}
	for uid := range l.going {
		if n, ok := l.node(uid); ok && n.Resource().GroupResource() == evidence.Claims.GroupResource() {
			all = append(all, l.ofSet(n)...)
		}
	}
	if !l.Safe {
		for uid := range l.aggregated() {
			if n, ok := l.node(uid); ok {
				all = append(all, Return{Object: n.Identity(), Why: say.Of(aggregatedAgain)})
			}
		}
	}
	definitions := l.definitions() // without which nothing can be recreated
	all = slices.DeleteFunc(all, func(r Return) bool { return definitions[r.Object.Resource.GroupResource()] })
	graph.SortByIdentity(all, func(r *Return) graph.Identity { return r.Object })
	return all
}

// ofSet is a claim that a StatefulSet makes again.
func (l *returning) ofSet(n graph.Node) []Return {
	for _, set := range l.now.evidence.Within(evidence.StatefulSets.GroupResource(), n.Namespace()) {
		if whole, err := l.now.evidence.Whole(set); err == nil && !l.going[set.UID()] && !set.BeingDeleted() &&
			evidence.WantsClaim(whole, n.Name()) {
			return []Return{{Object: n.Identity(), Why: say.Of(claimAgain, set.Identity())}}
		}
	}
	return nil
}

// comeBack is what the plan itself knows.
func comeBack(p *preview.Plan, node func(types.UID) (graph.Node, bool)) (all []Return) {
	for uid, by := range p.ComeBack {
		if n, ok := node(uid); ok {
			all = append(all, Return{Object: n.Identity(), Why: say.Plain(by.Says), Certain: by.Certain, Told: true})
		}
	}
	return all
}

// Plain is what a plan tells by itself, of which nothing needs to be found out; nil for nothing.
func Plain(p *preview.Plan) *Forecast {
	returns := comeBack(p, p.Graph.Node)
	if len(returns) == 0 {
		return nil
	}
	graph.SortByIdentity(returns, func(r *Return) graph.Identity { return r.Object })
	return &Forecast{Returns: returns}
}

// maxRead is the number of targets of which is read who delivered them.
const maxRead = 50

// delivered says who delivered an object from Git, or with a release, and makes it again, by what it bears (internal/delivery).
func (l *returning) delivered(n graph.Node) (Return, bool) {
	o, err := l.now.evidence.Whole(n)
	if err != nil {
		return Return{}, false
	}
	r := Return{Object: n.Identity()}
	csvs := delivery.ClusterServiceVersions
	if from := o.GetLabels()["olm.copiedFrom"]; from != "" && n.Resource().GroupResource() == csvs {
		// operator-lifecycle-manager/pkg/controller/operators/olm/operator.go, ensureCSVsInNamespaces
		r.Why, r.Certain = say.Of(copyOf, evidence.Named("ClusterServiceVersion", from, n.Name())), true
		return r, l.exists(csvs, from, n.Name())
	}
	for _, m := range delivery.Marks(o) {
		if all := l.called(m); len(all) > 0 {
			if _, claims := l.then.evidence.Claimant(all, n, o, m); !claims {
				continue // it was left
			}
		}
		if by, is := l.by(r, m, o); is {
			return by, true
		}
	}
	return r, false
}

// by says what recreates an object that bears the mark.
func (l *returning) by(r Return, m delivery.Mark, o *unstructured.Unstructured) (Return, bool) {
	switch {
	case m.Kind == "ApplySet", m.Kind == "Release" && o.GetLabels()["app.kubernetes.io/managed-by"] != "Helm":
		return r, false
	case m.Usual: // that says something only when there is such an Application
		r.Why, r.kind, r.namespace, r.name = say.Of(argoByLabel, m.Name), "Application", m.Namespace, m.Name
		return r, l.exists(m.Resource, m.Namespace, m.Name)
	case m.Resource == delivery.Applications:
		return l.byArgo(r, m)
	case m.Kind == "Release":
		return l.byHelm(r, m.Namespace, m.Name)
	}
	return l.byObject(r, m, o)
}

// called are the tool's own objects that a mark may name, and that stay.
func (l *returning) called(m delivery.Mark) []graph.Node {
	if m.Resource.Empty() {
		return nil
	}
	return l.then.evidence.Called(m.Resource, m.Namespace, m.Name)
}

// byHelm is an object of a release of Helm: with its last record the release is gone.
func (l *returning) byHelm(r Return, namespace, release string) (Return, bool) {
	r.Why, r.kind, r.namespace, r.name = say.Of(byRelease, namespace, release), "Release", namespace, release
	of := l.then.evidence
	return r, namespace == "" || !of.RecordsListed(namespace) || len(of.Installed(namespace, release)) > 0
}

func (l *returning) byArgo(r Return, m delivery.Mark) (Return, bool) {
	r.Why, r.kind, r.namespace, r.name = say.Of(argoTracks, m.Name), "Application", m.Namespace, m.Name
	if !l.exists(delivery.Applications, m.Namespace, m.Name) {
		r.Why = say.Of(argoElsewhere, m.Name)
	}
	return r, true
}

// ignoresDrift reports whether a label or an annotation has helm-controller leave it to upgrades what becomes of an object.
func ignoresDrift(o *unstructured.Unstructured) bool {
	const key = "helm.toolkit.fluxcd.io/driftDetection"
	return strings.EqualFold(o.GetLabels()[key], "disabled") || strings.EqualFold(o.GetAnnotations()[key], "disabled")
}

func (l *returning) byObject(r Return, m delivery.Mark, delivered *unstructured.Unstructured) (Return, bool) {
	r.kind, r.namespace, r.name = m.Kind, m.Namespace, m.Name
	by := evidence.Named(m.Kind, m.Namespace, m.Name)
	r.Why, r.Certain = say.Of(byToolsObject, by), true
	if found := l.then.evidence.Called(m.Resource, m.Namespace, m.Name); len(found) > 0 {
		o, err := l.now.evidence.Whole(found[0])
		if err != nil {
			r.Certain = false // it is noted as unread
			return r, true
		}
		suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
		// github.com/fluxcd/helm-controller/api/v2/helmrelease_types.go, DriftDetection, and DriftDetectionMetadataKey
		drifts := evidence.Nested(o, "spec", "driftDetection", "mode") == "enabled" && !ignoresDrift(delivered)
		r.upgraded = !suspended && m.Resource == delivery.HelmReleases && !drifts
		r.release = delivery.Release(delivered)
		switch {
		case suspended:
			r.Why, r.Certain = r.Why.And(onceResumed), false
		case r.upgraded:
			r.Why, r.Certain = say.Of(byItsUpgrade, by), false
		}
	} else {
		if l.graph.Snapshot().Covers(m.Resource, m.Namespace, m.Name) {
			return r, false // a label that was left
		}
		r.Why, r.Certain = r.Why.And(ifItExists), false
	}
	return r, true
}

// exists reports whether an object of that name stays. An empty namespace stands for any.
func (l *returning) exists(resource schema.GroupResource, namespace, name string) bool {
	return len(l.then.evidence.Called(resource, namespace, name)) > 0
}
