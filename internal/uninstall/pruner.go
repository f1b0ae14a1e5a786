// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// pruner is who might apply a set of manifests, and prune what they do not have any more.
type pruner struct {
	Deliverer
	mark delivery.Mark
	// own is the tool's own object, nil where that does not say what it has: then its marks do.
	own *unstructured.Unstructured
	// has are objects of the manifests.
	has sets.Set[types.UID]
}

// member is an object of manifests that exists.
type member struct {
	*found
	object *unstructured.Unstructured // nil: it could not be read
}

// pruners are who has most of the manifests, all of the old ones that no other has, and something that stays and no other has: the
// manifests are theirs. Whoever has less may share what stays, and have taken over what goes. Where nothing stays it is who has all of the
// old manifests. Namespaces do not count: many share them.
func (w *World) pruners(before, after []found) (all Deliverers) {
	old, stay := w.members(before), w.members(after)
	every := slices.Concat(stay, slices.DeleteFunc(slices.Clone(old), func(m member) bool {
		return slices.ContainsFunc(stay, func(s member) bool { return s.node.UID() == m.node.UID() })
	}))
	candidates := w.candidates(every)
	for i := range candidates {
		c := &candidates[i]
		lacks := func(m member) bool { return !c.has.Has(m.node.UID()) && !c.ignores(m) }
		other := func(m member) bool {
			return slices.ContainsFunc(candidates, func(o pruner) bool {
				return o.Deliverer != c.Deliverer && o.has.Has(m.node.UID()) && !c.covers(&o)
			})
		}
		alone := slices.ContainsFunc(stay, func(m member) bool { return c.has.Has(m.node.UID()) && !other(m) })
		foreign := slices.ContainsFunc(old, func(m member) bool { return lacks(m) && !other(m) })
		rest := len(slices.DeleteFunc(slices.Clone(every), func(m member) bool { return !lacks(m) }))
		if alone && !foreign && len(c.has) > rest || len(stay) == 0 && !slices.ContainsFunc(old, lacks) {
			all = append(all, c.Deliverer)
		}
	}
	return all
}

// covers reports whether it has all that another one has, and more; or as much, but by its own list, or as the same by another mark.
func (c *pruner) covers(other *pruner) bool {
	more := len(c.has) > len(other.has) || other.own == nil
	return more && c.has.IsSuperset(other.has)
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

// candidates are all whose marks objects bear, and what they have of these.
func (w *World) candidates(of []member) (all []pruner) {
	for _, m := range of {
		if m.object == nil {
			continue
		}
		for _, mark := range heeded(m.object, delivery.Marks(m.object)) {
			if slices.ContainsFunc(all, func(other pruner) bool { return Deliverers{other.Deliverer}.have(mark) }) {
				continue
			}
			by := Deliverer{Kind: mark.Kind, Namespace: mark.Namespace, Name: mark.Name}
			found := w.called(&mark)
			if !delivery.Deploys(mark.Resource) || len(found) == 0 {
				all = append(all, pruner{Deliverer: by, mark: mark})
				continue
			}
			for _, n := range found {
				by.Namespace = n.Namespace()                   // which marks of Argo CD do not say
				if o, err := w.Evidence.Whole(n); err == nil { // else it is noted as unread
					all = append(all, pruner{Deliverer: by, mark: mark, own: o})
				}
			}
		}
	}
	for i := range all {
		all[i].has = sets.New[types.UID]()
		for _, m := range of {
			if all[i].claims(m) {
				all[i].has.Insert(m.node.UID())
			}
		}
	}
	return all
}

// claims reports whether it has an object: its own one lists that, or the object bears its mark, and that was not left.
func (c *pruner) claims(m member) bool {
	if m.object == nil {
		return false
	}
	entry := evidence.EntryOf(m.id())
	if c.own != nil && delivery.Lists(c.mark.Resource, c.own, entry) {
		return true
	}
	return slices.ContainsFunc(heeded(m.object, delivery.Marks(m.object)), func(mark delivery.Mark) bool {
		return !mark.Usual && Deliverers{c.Deliverer}.have(mark) && (c.own == nil || delivery.Claims(c.own, m.object, mark, entry))
	})
}

// ignores reports whether it may deploy an object without having it: hooks, definitions in a chart's directory crds, and tools' own
// objects, by which a user begins.
func (c *pruner) ignores(m member) bool {
	_, hook := m.Annotations["helm.sh/hook"]
	helms := c.Kind == "Release" || c.mark.Resource == delivery.HelmReleases
	return hook || helms && m.resource.IsCRD() || controlled(m.resource.GroupResource()) != nil
}
