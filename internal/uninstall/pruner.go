// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
)

// NoPruner is the name of nobody: who prunes leaves no marks, as kubectl does.
const NoPruner = "none"

// member is an object of manifests that exists.
type member struct {
	*found
	object *unstructured.Unstructured // nil: it could not be read
}

// WhoPrunesError says that it is not known who prunes.
type WhoPrunesError struct {
	// Named is who was said to prune and has none of the objects, empty when nobody was.
	Named string
	// Existing is how many of the objects exist, and Has who has some of these, who has most first.
	Existing int
	Has      []Share
}

// Share is how many objects somebody has.
type Share struct {
	By      Deliverer
	Objects int
}

// pruners are who prunes: who is named, or without names who has all old objects that exist. If somebody has some of them, but nobody all,
// or two have, it is nowhere written who. Of namespaces it takes none, unless there is nothing else: many share them.
func (w *World) pruners(old []found, names []string) (by Deliverers, err error) {
	all := w.members(old)
	counted := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return m.resource.IsNamespace() })
	if len(counted) == 0 {
		counted = all
	}
	has, releases := w.having(all)
	unknown, having := &WhoPrunesError{Existing: len(all)}, []Deliverer(nil)
	for d := range has {
		unknown.Has = append(unknown.Has, Share{By: d, Objects: len(has[d])})
		is := func(m member) bool { return has[d].Has(m.node.UID()) }
		if slices.ContainsFunc(counted, is) && !slices.ContainsFunc(counted, func(m member) bool { return !is(m) && !d.ignores(m) }) {
			having = append(having, d)
		}
	}
	slices.SortFunc(unknown.Has, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.By.String(), b.By.String()))
	})
	if len(names) == 0 && len(has) > 0 && len(having) != 1 {
		return nil, unknown
	}
	if len(names) > 0 {
		having = nil
	}
	for _, name := range names {
		is := func(d Deliverer) bool { return strings.EqualFold(d.String(), name) }
		i := slices.IndexFunc(unknown.Has, func(s Share) bool { return is(s.By) || is(releases[s.By]) })
		if i >= 0 {
			having = append(having, unknown.Has[i].By)
		} else if name != NoPruner {
			unknown.Named = name
			return nil, unknown
		}
	}
	for _, d := range having {
		if by = append(by, d); releases[d] != (Deliverer{}) {
			by = append(by, releases[d])
		}
	}
	return by, nil
}

// members are the objects that exist.
func (w *World) members(all []found) (members []member) {
	for i, o := range w.whole(all) {
		if all[i].state == present {
			members = append(members, member{&all[i], o})
		}
	}
	return members
}

// having are who has objects, and which: who lists them, if only until it prunes them, and who exists and has left a mark on them that
// still counts. With a HelmRelease its release counts, which is in releases.
func (w *World) having(of []member) (all map[Deliverer]sets.Set[types.UID], releases map[Deliverer]Deliverer) {
	all, lists, parents := map[Deliverer]sets.Set[types.UID]{}, w.listed(nil, delivery.Inventory), w.idsIn("id")
	has := func(kind, namespace, name string, m member) {
		by := Deliverer{Kind: kind, Namespace: namespace, Name: name}
		if all[by] == nil {
			all[by] = sets.New[types.UID]()
		}
		all[by].Insert(m.node.UID())
	}
	for _, m := range of {
		for _, n := range lists[evidence.EntryOf(m.id())] {
			has(n.Resource().Kind, n.Namespace(), n.Name(), m)
		}
		if m.object == nil {
			continue
		}
		for _, mark := range heeded(m.object, delivery.Marks(m.object)) {
			if there := w.called(&mark); len(there) > 0 && delivery.Deploys(mark.Resource) {
				if n, claims := w.Evidence.Claimant(there, m.node, m.object, mark); claims {
					has(mark.Kind, n.Namespace(), n.Name(), m)
				}
			} else if !mark.Usual && w.exists(&mark, parents) {
				has(mark.Kind, mark.Namespace, mark.Name, m)
			}
		}
	}
	releases = map[Deliverer]Deliverer{}
	for d := range all {
		for _, n := range w.Evidence.Called(delivery.HelmReleases, d.Namespace, d.Name) {
			o, err := w.Evidence.Whole(n)
			if d.Kind != n.Resource().Kind || err != nil {
				continue
			}
			name, namespace, _ := HelmReleaseOf(o)
			release := Deliverer{Kind: "Release", Namespace: namespace, Name: name}
			all[d], releases[d] = all[d].Union(all[release]), release
			delete(all, release)
		}
	}
	return all, releases
}

// ignores reports whether one may deploy an object without having it: hooks, definitions in a chart's directory crds, and itself, by which
// a user begins.
func (d Deliverer) ignores(m member) bool {
	_, hook := m.Annotations["helm.sh/hook"]
	_, argos := m.Annotations["argocd.argoproj.io/hook"]
	helms := d.Kind == "Release" || d.Kind == "HelmRelease"
	return hook || argos || helms && m.resource.IsCRD() || m.id().String() == evidence.Named(d.Kind, d.Namespace, d.Name).String()
}

// leaves reports whether who prunes leaves an old object alone, and notes why. Where it might, or the object was not read, that is open.
func (p *Plan) leaves(w *World, f *found, live *unstructured.Unstructured) bool {
	if f.state == present && live == nil && len(p.By) > 0 {
		p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
	}
	return live != nil && slices.ContainsFunc(p.By, func(d Deliverer) bool {
		switch d.Kind {
		case "Kustomization":
			return p.unpruned(w, d, f, live)
		case "Release":
			return p.notUpgraded(f, live)
		case "Application":
			if _, hook := f.Annotations["argocd.argoproj.io/hook"]; hook {
				p.keep(f, Hook, "")
				return true
			}
			if hasOption(live, syncOptions, "Prune=false") { // gitops-engine, pkg/sync/sync_context.go, pruneObject
				p.keep(f, MarkedOff, syncOptions+": Prune=false")
				return true
			}
		}
		return false
	})
}

// unpruned is leaves of a Kustomization (kustomization_controller.go, prune). One that could not be read might prune.
func (p *Plan) unpruned(w *World, d Deliverer, f *found, live *unstructured.Unstructured) bool {
	for _, n := range w.Evidence.Called(delivery.Kustomizations, d.Namespace, d.Name) {
		o, err := w.Evidence.Whole(n)
		if err != nil {
			p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
			return false
		}
		if why := prunesNothing(o); why != "" {
			p.keep(f, why, "")
			return true
		}
	}
	return p.markedByFlux(Deliverers{d}, f, live)
}

// notUpgraded is leaves of a release, also by a HelmRelease: an upgrade keeps what the live object says
// (helm.sh/helm/v3/pkg/kube/client.go, Update), and hooks and the directory crds/ are no part of it, of which manifests do not tell.
func (p *Plan) notUpgraded(f *found, live *unstructured.Unstructured) bool {
	_, hook := f.Annotations["helm.sh/hook"]
	switch {
	case hook:
		p.keep(f, Hook, "")
	case live.GetAnnotations()[policyAnnotation] == "keep":
		p.keep(f, ResourcePolicy, "")
	default:
		if f.resource.IsCRD() {
			p.Open = append(p.Open, Open{Cause: MayKeep, Item: f.Item, Detail: say.Of(maybeOfCRDs)})
		}
		return false
	}
	return true
}
