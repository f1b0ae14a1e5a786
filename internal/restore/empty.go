// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What holds data is made before its owners, which would make another one, empty or with other data, and is linked to them when they are
// there.

// later reports whether an object is made without a reference: it holds data, and its owner comes after it; or it is a claim that a pod of
// a StatefulSet holds, which its controller makes (pkg/controller/statefulset/stateful_set_utils.go, updateClaimOwnerRefForSetAndPod).
func (p *planner) later(i *Item, ref *metav1.OwnerReference) bool {
	if !holds(i) {
		return false
	}
	owner := p.items[ref.UID]
	if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Kind == "Pod" {
		return kindOf(i.Object.Resource) == claim && !isController(ref)
	}
	return owner != nil && stageOf(owner.Object.Resource) > content
}

// late are the links to what was made after them.
func (p *planner) late(items []*Item) (links []*Item) {
	for _, i := range items {
		link := &Item{Saved: i.Saved, Do: Link, Late: true, stage: i.stage, owners: i.owners}
		for _, ref := range i.without {
			if owner := p.items[ref.UID]; i.Do == Make && owner != nil && owner.There() {
				link.needs(owner)
			}
		}
		if link.needy || link.depth > 0 {
			links = append(links, link)
		}
	}
	return links
}

// emptied finds what would start without its data: a StatefulSet, or an owner of claims, whose claims are not made, and a StatefulSet that
// would make a claim for which a volume is retained. What was asked for by name is made nevertheless.
func (p *planner) emptied(i *Item, asked bool) {
	if i.Do != Make && i.Do != Await {
		return
	}
	for _, c := range p.claims {
		owned := slices.ContainsFunc(c.without, func(ref metav1.OwnerReference) bool { return ref.UID == i.Object.UID })
		switch {
		case !owned && !isClaimOf(c.Object, i) || c.Now != nil && c.Do != Refuse:
		case c.There():
			i.Requires = append(i.Requires, c)
		case !asked && c.Reason != NotAsked:
			i.refuse(StartsEmpty, c.Object, nil)
			return
		}
	}
	if kindOf(i.Object.Resource) == statefulSet && !asked {
		p.retained(i)
	}
}

// retained refuses a StatefulSet that would make a claim for which there is a volume with data: nothing of the claim was kept.
func (p *planner) retained(i *Item) {
	volumes, err := p.Volumes()
	if err != nil {
		i.refuse(Unread, graph.Identity{}, err)
		return
	}
	for n := range volumes {
		v := &volumes[n]
		c := evidence.Identity(evidence.Claims, evidence.Nested(v, "spec", "claimRef", "namespace"),
			evidence.Nested(v, "spec", "claimRef", "name"))
		known := slices.ContainsFunc(i.Requires, func(r *Item) bool { return r.Object.Name == c.Name })
		if known || !isClaimOf(c, i) {
			continue
		}
		if now, err := p.Find(c); err != nil || now == nil || now.GetDeletionTimestamp() != nil {
			i.refuse(StartsEmpty, evidence.IdentityOf(evidence.Volumes, "PersistentVolume", v), err)
			return
		}
	}
}

// isClaimOf reports whether a claim is one that a StatefulSet makes.
func isClaimOf(c graph.Identity, set *Item) bool {
	return kindOf(c.Resource) == claim && kindOf(set.Object.Resource) == statefulSet &&
		c.Namespace == set.Object.Namespace && set.Manifest != nil &&
		evidence.ClaimOf(set.Manifest, c.Name)
}

// falls refuses what needs an owner that is refused by now. It reports whether something was.
func (p *planner) falls(items []*Item) (fell bool) {
	for _, i := range items {
		if i.Do != Make && i.Do != Await && (i.Do != Leave || i.Reason != Remade) || len(i.owners) == 0 || kindOf(i.Object.Resource) == claim {
			continue
		}
		refused := 0
		var by graph.Identity
		for _, ref := range i.owners {
			if owner := p.items[ref.UID]; owner != nil && owner.Do == Refuse {
				refused, by = refused+1, owner.Object
			}
		}
		if refused == len(i.owners) {
			i.refuse(Ownerless, by, nil)
			fell = true
		}
	}
	return fell
}
