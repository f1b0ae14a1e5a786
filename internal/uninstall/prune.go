// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Prune is what a prune does with the objects of one set of manifests that another does not have any more: it deletes them in the
// background. In which order differs from tool to tool, and with kubectl from run to run (k8s.io/kubectl/pkg/cmd/apply/prune.go and
// applyset_pruner.go go over maps), so that none is assumed.
//
// Who prunes is named as kind/namespace/name, or NoPruner; without names it is who has all of the old objects, and a *WhoPrunesError if
// that does not say it.
func Prune(w *World, before, after []Item, by []string) (*Plan, error) {
	p := &Plan{Tool: "prune", Order: "any order", Namespace: w.Namespace, Policy: metav1.DeletePropagationBackground}
	type key struct {
		schema.GroupKind
		namespace, name string
	}
	known := map[key]bool{}
	all, removed := w.find(before), []found(nil)
	wants, old := w.find(after), map[types.UID]*Item{}
	for i := range all {
		if all[i].state == present {
			old[all[i].node.UID()] = &all[i].Item
		}
	}
	for _, f := range wants {
		known[key{f.GroupVersionKind.GroupKind(), f.Namespace, f.Name}] = f.state != unnamed
		if f.state == present {
			p.wanted = append(p.wanted, wanted{object: f.id(), why: say.Of(inNewManifests)})
		}
		if f.state == absent || f.state == present && !w.applied(old[f.node.UID()], &f) {
			p.changes = append(p.changes, f)
		}
	}
	for i := range all {
		f := &all[i]
		if k := (key{f.GroupVersionKind.GroupKind(), f.Namespace, f.Name}); !known[k] {
			known[k] = f.state != unnamed // once
			removed = append(removed, *f)
		}
	}
	var err error
	if p.By, err = w.pruners(all, by); err != nil {
		return nil, err
	}
	if len(p.By) > 0 {
		p.Order += ", by " + p.By.String()
	}
	deleted := removed[:0]
	for i, live := range w.whole(removed) {
		if f := &removed[i]; !p.leaves(w, f, live) {
			deleted = append(deleted, *f)
		}
	}
	p.atOnce(deleted)
	for i := range wants {
		if p.takes(&wants[i]) {
			p.Open = append(p.Open, Open{Cause: Wanted, Item: wants[i].Item, Detail: say.Of(inNewManifests)})
		}
	}
	return p, nil
}

// applied reports whether a new manifest is as the old one, or a live object is as it says: that has all of it, and nothing of what it has
// removed. An object that could not be read is noted as unread.
func (w *World) applied(old *Item, f *found) bool {
	before, now := old.content(), f.content()
	if reflect.DeepEqual(before, now) {
		return true
	}
	o, err := w.Evidence.Whole(f.node)
	return err == nil && within(now, o.Object) && !removes(before, now, o.Object)
}

// content is what a manifest says of an object, but for its identity, with the types of numbers that live objects have; nil for a Secret.
func (i *Item) content() (all map[string]any) {
	if i == nil || i.text == nil || utiljson.Unmarshal(i.text, &all) != nil {
		return nil
	}
	for _, identity := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		unstructured.RemoveNestedField(all, identity...)
	}
	return all
}

// removes reports whether an old value has something that a new one has not, and a third one still has.
func removes(old, now, has any) bool {
	switch old := old.(type) {
	case map[string]any:
		now, _ := now.(map[string]any)
		all, _ := has.(map[string]any)
		for key, value := range old {
			if _, stays := now[key]; !stays && all[key] != nil || stays && removes(value, now[key], all[key]) {
				return true
			}
		}
	case []any:
		now, _ := now.([]any)
		all, _ := has.([]any)
		for i := range old[:min(len(old), len(now), len(all))] {
			if removes(old[i], now[i], all[i]) {
				return true
			}
		}
	}
	return false
}

// within reports whether a value has all that another one says. What the server has added is no matter.
func within(said, has any) bool {
	switch said := said.(type) {
	case map[string]any:
		all, is := has.(map[string]any)
		for key, value := range said {
			is = is && within(value, all[key])
		}
		return is
	case []any:
		all, is := has.([]any)
		is = is && len(all) == len(said)
		for i := range said {
			is = is && within(said[i], all[i])
		}
		return is
	}
	return said == has
}

// takes reports whether an object that does not exist yet would go with its namespace or its definition as soon as it does.
func (p *Plan) takes(f *found) bool {
	return f.state == absent && slices.ContainsFunc(p.Targets(), func(id graph.Identity) bool {
		return id.Resource.IsNamespace() && id.Name == f.Namespace || id.Resource.IsCRD() && id.Name == f.resource.GroupResource().String()
	})
}

// atOnce deletes the objects in no order that one could rely on.
func (p *Plan) atOnce(all []found) {
	var b Barrier
	for i := range all {
		p.Items = append(p.Items, all[i].Item)
		if p.reaches(&all[i]) {
			b.Objects = append(b.Objects, all[i].id())
		}
	}
	if len(b.Objects) > 0 {
		p.Barriers = []Barrier{b}
	}
}
