// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// derived are types of which Kubernetes makes the objects to tell what others are like.
var derived = sets.New(
	schema.GroupResource{Group: "networking.k8s.io", Resource: "ipaddresses"},
	schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
	schema.GroupResource{Resource: "endpoints"},
	schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
	schema.GroupResource{Group: "apps", Resource: "controllerrevisions"},
)

// use is an object that names another, or may.
type use struct {
	by   graph.Identity
	at   string
	sure mention.Sure
}

// users are objects that name others: of each, the surest first, and what could not be read that may name it.
type users struct {
	of     map[graph.Identity][]use
	unread map[graph.Identity]string
}

// usersOf looks for objects that name one of the identities, in all that was listed. Who is made by the controller of another object stands
// for that, and is no user of it.
func (w *World) usersOf(ids []graph.Identity) users {
	found := users{map[graph.Identity][]use{}, map[graph.Identity]string{}}
	if len(ids) == 0 {
		return found
	}
	namespaces := sets.New[string]()
	for _, id := range ids {
		namespaces.Insert(id.Namespace)
	}
	namespaces.Delete("")
	seen := sets.New[schema.GroupVersionResource]()
	for n := range w.Graph.Nodes() {
		if n.Virtual() {
			break // they follow all others
		}
		r := n.Resource()
		if derived.Has(r.GroupResource()) || r.GroupResource() == evidence.Leases.GroupResource() || seen.Has(r.GroupVersionResource) {
			continue
		}
		seen.Insert(r.GroupVersionResource)
		if !r.Namespaced || w.Graph.Snapshot().ListedIn(r.GroupResource(), "") {
			w.naming(&found, r, "", ids)
			continue
		}
		for _, namespace := range sets.List(namespaces) { // others are said to be unread
			w.naming(&found, r, namespace, ids)
		}
	}
	for _, all := range found.of {
		slices.SortFunc(all, func(a, b use) int { return cmp.Or(cmp.Compare(b.sure, a.sure), a.by.Compare(b.by)) })
	}
	return found
}

// naming adds the objects of a type, in a namespace or everywhere, that name one of the identities. Pods that have ended name nothing.
func (w *World) naming(found *users, r *graph.Resource, namespace string, ids []graph.Identity) {
	var texts []string
	var targets []*mention.Target
	for _, id := range ids {
		texts, targets = append(texts, id.Name), append(targets, mention.To(id))
	}
	var uses map[graph.Identity][]use
	var reader mention.Reader
	err := w.Evidence.EachNaming(r.GroupVersionResource, namespace, texts, func() { uses = map[graph.Identity][]use{} },
		func(o *unstructured.Unstructured) {
			if r.IsPod() && evidence.PodEnded(o) {
				return
			}
			all := slices.Collect(reader.In(o))
			for _, t := range targets {
				least := mention.Text
				if rules := evidence.ClusterRoleBindings.Group; t.Resource.Group == rules && r.Group != rules {
					least = mention.Near // roles are called as what they are for
				}
				if n, sure := t.Surest(slices.Values(all)); sure >= least {
					uses[t.Identity] = append(uses[t.Identity], use{evidence.IdentityOf(r.GroupVersionResource, r.Kind, o), n.Path, sure})
				}
			}
		})
	for id, all := range uses {
		for _, u := range all {
			// a volume names its claim, and objects of Kubernetes say in which namespace another one is; that is no use
			claimed := r.GroupResource() == evidence.Volumes.GroupResource() && id.Resource.GroupResource() == evidence.Claims.GroupResource()
			within := graph.BuiltinGroup(r.Group) && id.Resource.IsNamespace() && strings.HasSuffix(u.at, ".namespace")
			if !claimed && !within {
				found.add(id, u, makers(w.Graph, u.by))
			}
		}
	}
	for _, id := range ids {
		if err != nil {
			found.unread[id] = r.GroupResource().String()
		}
	}
}

// add notes a use by the last of the makers, once.
func (u *users) add(of graph.Identity, by use, makers []graph.Identity) {
	if slices.ContainsFunc(makers, func(id graph.Identity) bool { return id.UID == of.UID }) {
		return
	}
	by.by = makers[len(makers)-1]
	at := slices.IndexFunc(u.of[of], func(known use) bool { return known.by == by.by })
	switch {
	case at < 0:
		u.of[of] = append(u.of[of], by)
	case by.sure > u.of[of][at].sure:
		u.of[of][at] = by
	}
}

// mostMakers is how many objects may make one another; owners may be in a cycle.
const mostMakers = 8

// makers are an object, the one whose controller has made it, and so on.
func makers(g *graph.Graph, id graph.Identity) []graph.Identity {
	all := []graph.Identity{id}
	n, known := g.Node(id.UID)
	for known && len(all) < mostMakers {
		if n, known = makerOf(n); known {
			all = append(all, n.Identity())
		}
	}
	return all
}

// makerOf is the object whose controller has made another.
func makerOf(n graph.Node) (graph.Node, bool) {
	for _, ref := range n.Owners() {
		if ref.Controller != nil && *ref.Controller && !ref.Owner.Virtual() && ref.State == graph.Solid {
			return ref.Owner, true
		}
	}
	return graph.Node{}, false
}

// madeBy is the UID of the first maker of an object, that of itself if it has none.
func (w *World) madeBy(n graph.Node) types.UID {
	makers := makers(w.Graph, n.Identity())
	return makers[len(makers)-1].UID
}

// replaceable reports whether Kubernetes itself has made an object from its owner: it goes with it, and is no use of it.
func replaceable(n, owner graph.Node) bool {
	maker, made := makerOf(n)
	return made && maker.UID() == owner.UID() && graph.BuiltinGroup(n.Resource().Group) && graph.BuiltinGroup(owner.Resource().Group)
}
