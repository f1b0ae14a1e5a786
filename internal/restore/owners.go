// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// owner identifies the owner of an object.
func (p *planner) owner(i *Item, ref *metav1.OwnerReference) graph.Identity {
	if owner := p.items[ref.UID]; owner != nil {
		return owner.Object
	}
	id := graph.Identity{Name: ref.Name, UID: ref.UID}
	id.Resource.Kind = ref.Kind
	if resource, err := p.Resource(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)); err == nil {
		if id.Resource = resource; resource.Namespaced {
			id.Namespace = i.Object.Namespace
		}
	}
	return id
}

// ownerless returns an owner that will not be there, or of which that is not known, if none will be there. References to such are left out.
// Dependents of what is left to a controller are left, too.
func (p *planner) ownerless(i *Item) (leave bool, by graph.Identity, gone bool, err error) {
	stays := false
	for n := range i.owners {
		ref := &i.owners[n]
		if p.later(i, ref) {
			i.without = append(i.without, *ref)
			continue
		}
		owner, id := p.items[ref.UID], p.owner(i, ref)
		if owner == nil {
			now, missing := p.Find(id)
			if missing == nil && now != nil && now.GetUID() == ref.UID && now.GetDeletionTimestamp() == nil {
				stays = true
				continue
			}
			i.without, by, gone, err = append(i.without, *ref), id, true, errors.Join(err, missing)
			continue
		}
		switch p.settle(owner); {
		case owner.There() && owner.stage > content && holds(i): // for what owns that
			i.without = append(i.without, *ref)
			continue
		case owner.Do == Leave:
			leave, by = true, id
		case !owner.There():
			i.without, by, gone = append(i.without, *ref), id, true
			continue
		}
		stays = true
		i.needs(owner)
	}
	return leave, by, err != nil || gone && !stays, err
}

// homeless returns why there is no place for an object: its namespace, or the definition of its type.
func (p *planner) homeless(i *Item) (by graph.Identity, why Reason, _ error) {
	namespace := evidence.Identity(evidence.Namespaces, "", i.Object.Namespace)
	for _, home := range []*Item{p.named[namespace], p.kinds[kindOf(i.Object.Resource)]} {
		if home == nil {
			continue
		}
		if p.settle(home); !home.There() && (home.Now == nil || home.Now.GetDeletionTimestamp() != nil) {
			return home.Object, Homeless, nil
		}
		i.needs(home)
	}
	if namespace.Name == "" || p.named[namespace] != nil {
		return graph.Identity{}, "", nil
	}
	switch now, err := p.Find(namespace); {
	case err != nil:
		return namespace, Unread, err
	case now == nil || now.GetDeletionTimestamp() != nil:
		return namespace, Homeless, nil
	}
	return graph.Identity{}, "", nil
}
