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

// pruners are who prunes: who is named, or without names who has all old objects that exist; a HelmRelease and its release are one. If
// somebody has some of them, but nobody all, or two have, it is nowhere written who. Namespaces do not count: many share them.
func (w *World) pruners(old []found, names []string) (by Deliverers, err error) {
	members := w.members(old)
	unknown, several := &WhoPrunesError{Existing: len(members)}, 0
	for d, has := range w.having(members) {
		unknown.Has = append(unknown.Has, Share{By: d, Objects: len(has)})
		if slices.ContainsFunc(members, func(m member) bool { return !has.Has(m.node.UID()) && !d.ignores(m) }) {
			continue
		}
		if by = append(by, d); d.Kind != "Release" {
			several++
		}
	}
	slices.SortFunc(by, func(a, b Deliverer) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(unknown.Has, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.By.String(), b.By.String()))
	})
	if len(names) == 0 && len(unknown.Has) > 0 && (len(by) == 0 || several > 1) {
		return nil, unknown
	}
	if len(names) > 0 {
		by = nil
	}
	for _, name := range names {
		i := slices.IndexFunc(unknown.Has, func(s Share) bool { return strings.EqualFold(s.By.String(), name) })
		if i >= 0 {
			by = append(by, unknown.Has[i].By)
		} else if name != NoPruner {
			unknown.Named = name
			return nil, unknown
		}
	}
	return by, nil
}

// members are the objects that exist, without namespaces.
func (w *World) members(all []found) (members []member) {
	for i, o := range w.whole(all) {
		if all[i].state == present && !all[i].resource.IsNamespace() {
			members = append(members, member{&all[i], o})
		}
	}
	return members
}

// having are who has objects, and which: who lists them, and whose mark they bear that was not left.
func (w *World) having(of []member) map[Deliverer]sets.Set[types.UID] {
	all, lists := map[Deliverer]sets.Set[types.UID]{}, w.listed(nil)
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
			} else if !mark.Usual {
				has(mark.Kind, mark.Namespace, mark.Name, m)
			}
		}
	}
	return all
}

// ignores reports whether one may deploy an object without having it: hooks, definitions in a chart's directory crds, and tools' own
// objects, by which a user begins.
func (d Deliverer) ignores(m member) bool {
	_, hook := m.Annotations["helm.sh/hook"]
	_, argos := m.Annotations["argocd.argoproj.io/hook"]
	helms := d.Kind == "Release" || d.Kind == "HelmRelease"
	return hook || argos || helms && m.resource.IsCRD() || controlled(m.resource.GroupResource()) != nil
}
