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

// pruners are who has something of what stays that nobody else lists, all of the manifests that nobody else has, and all that stays, or
// lists nothing but what is in the manifests: these are theirs. Whoever has less may share it, and have taken over what goes. Where nothing
// stays it is who has all of the old manifests. Namespaces do not count: many share them.
func (w *World) pruners(before, after []found) (all Deliverers) {
	old, stay := w.members(before), w.members(after)
	candidates, known := w.candidates(slices.Concat(stay, old)), sets.New[delivery.Entry]()
	for _, f := range slices.Concat(before, after) {
		known.Insert(evidence.EntryOf(f.id()))
	}
	for i := range candidates {
		c := &candidates[i]
		lacks := func(m member) bool { return !c.has(m) && !c.ignores(m) }
		others := func(m member, list bool) bool {
			return slices.ContainsFunc(candidates, func(o pruner) bool { return o.Deliverer != c.Deliverer && (!list || o.lists()) && o.has(m) })
		}
		foreign := func(m member) bool { return lacks(m) && !others(m, false) }
		alone := slices.ContainsFunc(stay, func(m member) bool { return c.has(m) && !others(m, true) })
		whole := !slices.ContainsFunc(stay, lacks) || !c.lists() && c.most(stay)
		if len(stay) == 0 && !slices.ContainsFunc(old, lacks) ||
			alone && (whole || c.within(known)) && !slices.ContainsFunc(slices.Concat(stay, old), foreign) {
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
			if slices.ContainsFunc(all, func(other pruner) bool { return Deliverers{other.Deliverer}.have(mark) }) {
				continue
			}
			if delivery.Deploys(mark.Resource) {
				for _, n := range w.called(&mark) {
					c.Namespace = n.Namespace() // which marks of Argo CD do not say
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
	return marked && !c.lists()
}

// lists reports whether its own object says what it has.
func (c *pruner) lists() bool { return len(c.own) > 0 }

// most reports whether it has most of what it does not ignore.
func (c *pruner) most(all []member) bool {
	count := 0
	for _, m := range all {
		switch {
		case c.has(m):
			count++
		case !c.ignores(m):
			count--
		}
	}
	return count > 0
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
	return c.lists()
}

// ignores reports whether it deploys an object without having it: hooks, and definitions in a chart's directory crds.
func (c *pruner) ignores(m member) bool {
	_, hook := m.Annotations["helm.sh/hook"]
	helms := c.Kind == "Release" || c.mark.Resource == delivery.HelmReleases
	return hook || helms && m.resource.IsCRD()
}
