// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// pruner is who might apply a set of manifests, and prune what they do not have any more.
type pruner struct {
	Deliverer
	mark delivery.Mark
	// own are the tool's own objects of the name, if those say what they have.
	own []*unstructured.Unstructured
}

// member is an object of manifests that exists.
type member struct {
	*found
	object *unstructured.Unstructured // nil: it could not be read
}

// pruners are who has most of what stays, or something of it that nobody else lists, and lists nothing but what is in the manifests: these
// are theirs. Whoever has less may share it, and have taken over what goes. Where nothing stays it is who has all of the old manifests.
// Namespaces do not count: many share them.
func (w *World) pruners(before, after []found) (all Deliverers) {
	old, stay := w.members(before), w.members(after)
	candidates := w.candidates(slices.Concat(stay, old))
	known := sets.New[delivery.Entry]()
	for _, f := range slices.Concat(before, after) {
		known.Insert(evidence.EntryOf(f.id()))
	}
	for i := range candidates {
		c := &candidates[i]
		has, alone := 0, false
		for _, m := range stay {
			if c.has(m) {
				has++
				alone = alone || !slices.ContainsFunc(candidates, func(other pruner) bool {
					return other.Deliverer != c.Deliverer && len(other.own) > 0 && other.has(m)
				})
			}
		}
		switch {
		case len(stay) == 0 && !slices.ContainsFunc(old, func(m member) bool { return !c.has(m) && !c.ignores(m) }),
			2*has > len(stay), alone && c.within(known):
			all = append(all, c.Deliverer)
		}
	}
	return all
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

// candidates are all whose marks objects bear, and who is not known to be absent.
func (w *World) candidates(of []member) (all []pruner) {
	for _, m := range of {
		if m.object == nil {
			continue
		}
		for _, mark := range heeded(m.object, delivery.Marks(m.object)) {
			c := pruner{Deliverer: Deliverer{Kind: mark.Kind, Namespace: mark.Namespace, Name: mark.Name}, mark: mark}
			if slices.ContainsFunc(all, func(other pruner) bool { return other.Deliverer == c.Deliverer }) {
				continue
			}
			if delivery.Deploys(mark.Resource) {
				for _, n := range w.called(&mark) {
					if o, err := w.Evidence.Whole(n); err == nil { // else it is noted as unread
						c.own = append(c.own, o)
					}
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// has reports whether it has an object: its own one lists that, or where there is none that says what it has, the object bears its mark.
func (c *pruner) has(m member) bool {
	if m.object == nil {
		return false
	}
	entry := evidence.EntryOf(m.id())
	marked := slices.ContainsFunc(heeded(m.object, delivery.Marks(m.object)), func(mark delivery.Mark) bool {
		return !mark.Usual && Deliverers{c.Deliverer}.have(mark)
	})
	for _, o := range c.own {
		if delivery.Lists(c.mark.Resource, o, entry) || marked && delivery.Claims(o, m.object, c.mark, entry) {
			return true
		}
	}
	return marked && len(c.own) == 0
}

// within reports whether it lists something, and nothing but what is known and namespaces.
func (c *pruner) within(known sets.Set[delivery.Entry]) bool {
	for _, o := range c.own {
		for _, e := range delivery.Inventory(c.mark.Resource, o) {
			e.Version = ""
			if !known.Has(e) && (e.Group != "" || e.Kind != "Namespace") {
				return false
			}
		}
	}
	return len(c.own) > 0
}

// ignores reports whether it deploys an object without having it: hooks, and definitions in a chart's directory crds.
func (c *pruner) ignores(m member) bool {
	_, hook := m.Annotations["helm.sh/hook"]
	helms := c.Kind == "Release" || c.mark.Resource == delivery.HelmReleases
	return hook || helms && m.resource.IsCRD()
}
