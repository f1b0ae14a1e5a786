// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// called words of a kind are in the keys under which others name its objects, where that is not the kind itself.
var called = map[string]string{"PersistentVolumeClaim": "claim", "PersistentVolume": "volume"}

// mentions reports whether an object names another by its kind: {kind: Secret, name: x}, secretName: x, secretRef: {name: x}, secrets: [{name: x}]. It
// takes too much for a name rather than too little.
func mentions(o *unstructured.Unstructured, of graph.Identity) bool {
	word := called[of.Resource.Kind]
	if word == "" {
		word = strings.ToLower(of.Resource.Kind)
	}
	for key, value := range o.Object {
		if key != "metadata" && mentionedIn(value, key, word, &of) {
			return true
		}
	}
	return false
}

// mentionedIn looks for the name in a value, which is below the key.
func mentionedIn(value any, key, word string, of *graph.Identity) bool {
	key = strings.ToLower(key)
	about := strings.Contains(key, word) && (word != "service" || !strings.Contains(key, "serviceaccount"))
	switch v := value.(type) {
	case string:
		return about && v == of.Name
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return mentionedIn(each, key, word, of) })
	case map[string]any:
		kind, namespace := evidence.Text(v["kind"]), evidence.Text(v["namespace"])
		named := v["name"] == of.Name && (kind == of.Resource.Kind || about && kind == "")
		if named && (namespace == "" || namespace == of.Namespace) {
			return true
		}
		for key, each := range v {
			if mentionedIn(each, key, word, of) {
				return true
			}
		}
	}
	return false
}

// wordless are types of which the objects name no others, or are not read: what a Secret has, nobody reads, and texts of ConfigMaps are no names.
var wordless = sets.New(
	schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "events"}, schema.GroupResource{Resource: "endpoints"},
	schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
	schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, evidence.Leases.GroupResource(),
)

// users are objects that name others: of each, and what could not be read that may name it.
type users struct {
	of     map[graph.Identity][]graph.Identity
	unread map[graph.Identity]string
}

// usersOf looks for objects that name one of the identities: in its namespace, and among those that have none. Pods that have ended name nothing.
func (w *World) usersOf(ids []graph.Identity) users {
	found := users{map[graph.Identity][]graph.Identity{}, map[graph.Identity]string{}}
	namespaces := sets.New[string]()
	for _, id := range ids {
		namespaces.Insert(id.Namespace)
	}
	type list struct {
		resource  schema.GroupVersionResource
		namespace string
	}
	seen := sets.New[list]()
	for n := range w.Graph.Nodes() {
		if n.Virtual() {
			break // they follow all others
		}
		if wordless.Has(n.Resource().GroupResource()) {
			continue
		}
		for _, namespace := range []string{"", n.Namespace()} {
			at := list{n.Resource().GroupVersionResource, namespace}
			if wanted := n.Namespace() == "" || namespaces.Has(namespace); wanted && !seen.Has(at) {
				seen.Insert(at)
				w.naming(&found, n.Resource(), namespace, ids)
			}
		}
	}
	owned := func(id graph.Identity) int { // what owns them says more
		if n, known := w.Graph.Node(id.UID); known && n.HasOwners() {
			return 1
		}
		return 0
	}
	for _, all := range found.of {
		slices.SortFunc(all, func(a, b graph.Identity) int { return cmp.Or(cmp.Compare(owned(a), owned(b)), a.Compare(b)) })
	}
	return found
}

// naming adds the objects of a type, in a namespace or everywhere, that name one of the identities.
func (w *World) naming(found *users, r *graph.Resource, namespace string, ids []graph.Identity) {
	var names []string
	ids = slices.DeleteFunc(slices.Clone(ids), func(id graph.Identity) bool {
		elsewhere := r.Namespaced && id.Namespace != namespace
		return elsewhere || isRole(id) && r.Group != id.Resource.Group // which bindings alone name
	})
	for _, id := range ids {
		names = append(names, id.Name)
	}
	if len(names) == 0 {
		return
	}
	items, err := w.Evidence.Mentioning(r.GroupVersionResource, namespace, names...)
	for i := range items {
		o := &items[i]
		if r.IsPod() && evidence.PodEnded(o) {
			continue
		}
		if r.IsPod() || r.Group == "apps" { // lists do not have what containers are given (pkg/cluster/reduce.go)
			whole, failed := w.Evidence.Anew(r.GroupVersionResource, o.GetNamespace(), o.GetName())
			if apierrors.IsNotFound(failed) {
				continue
			}
			if o = whole; failed != nil {
				err = failed
				continue
			}
		}
		user := evidence.IdentityOf(r.GroupVersionResource, r.Kind, o)
		for _, id := range ids {
			if user.UID != id.UID && mentions(o, id) {
				found.of[id] = append(found.of[id], user)
			}
		}
	}
	if err != nil {
		for _, id := range ids {
			found.unread[id] = r.GroupResource().String()
		}
	}
}

func isRole(id graph.Identity) bool {
	return id.Resource.Group == evidence.ClusterRoleBindings.Group
}
