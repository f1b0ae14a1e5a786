// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ApplySet is what `kubectl apply --prune --applyset=PARENT` does when no manifest is left: it deletes the objects that bear the parent's
// label, as far as the parent names their types and namespaces, in the background and in no fixed order
// (k8s.io/kubectl/pkg/cmd/apply/applyset.go and applyset_pruner.go). The parent stays.
func ApplySet(w *World, n graph.Node, parent *unstructured.Unstructured) *Plan {
	labels, annotations := parent.GetLabels(), parent.GetAnnotations()
	id := labels["applyset.kubernetes.io/id"]
	p := &Plan{
		Tool: "applyset", Order: "any order", Namespace: parent.GetNamespace(), Name: parent.GetName(),
		Policy: metav1.DeletePropagationBackground,
		Of:     Deliverers{{Kind: "ApplySet", Name: id}}, Marks: map[string]string{},
	}
	setOf := func(name string) (set sets.Set[string], stated bool) {
		text, stated := annotations["applyset.kubernetes.io/"+name]
		if text == "" {
			return sets.New[string](), stated
		}
		return sets.New(strings.Split(text, ",")...), stated
	}
	kinds, byKind := setOf("contains-group-kinds")
	resources, _ := setOf("contains-group-resources")
	namespaces, _ := setOf("additional-namespaces")
	namespaces.Insert(parent.GetNamespace(), "")
	tool, _, _ := strings.Cut(annotations["applyset.kubernetes.io/tooling"], "/")
	if id != setID(n.Identity()) || tool != "kubectl" || !byKind && len(resources) == 0 || !w.mayBeParent(n.Resource()) {
		p.Halt = &Open{Cause: NoParent}
		return p
	}
	if byKind {
		resources = nil // which are those of older versions
	}
	if p.Halt = w.lacksOne(kinds, resources); p.Halt != nil {
		return p
	}
	within := func(n graph.Node) bool {
		r := n.Resource()
		listed := kinds.Has(r.GroupVersionKind().GroupKind().String()) || resources.Has(r.GroupResource().String())
		return listed && namespaces.Has(n.Namespace())
	}
	var members []found
	for n := range w.Graph.Nodes() {
		if n.Virtual() || n.Object().Labels["applyset.kubernetes.io/part-of"] != id {
			continue
		}
		f := found{Item: itemOf(n), state: present, node: n}
		if within(n) {
			members = append(members, f)
		} else {
			p.keep(&f, OutOfScope, "")
		}
	}
	p.atOnce(members)
	return p
}

// mayBeParent reports whether kubectl takes an object of a type for a parent (ParentRef.Validate).
func (w *World) mayBeParent(r *graph.Resource) bool {
	if of := r.GroupResource(); of == evidence.Secrets.GroupResource() || of == evidence.ConfigMaps.GroupResource() {
		return true
	}
	return slices.ContainsFunc(w.Evidence.Named(evidence.CRDs.GroupResource(), "", r.GroupResource().String()), func(n graph.Node) bool {
		return n.Object().Labels["applyset.kubernetes.io/is-parent-type"] == "true"
	})
}

// setID is the ID of the apply set of a parent, which one that was copied under another name does not have in its label (ApplySet.ID).
func setID(parent graph.Identity) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{parent.Name, parent.Namespace, parent.Resource.Kind, parent.Resource.Group}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// lacksOne is a type of an annotation that the server does not have: then kubectl prunes nothing (parseKindAnnotation and
// parseResourcesAnnotation).
func (w *World) lacksOne(kinds, resources sets.Set[string]) *Open {
	var items []Item
	for _, name := range sets.List(kinds) {
		kind := schema.ParseGroupKind(name)
		items = append(items, kindOf(kind.Group, "", kind.Kind, "", ""))
	}
	for _, f := range w.find(items) {
		if f.state == unserved {
			return &Open{Cause: NoSuchKind, Item: f.Item}
		}
	}
	for _, name := range sets.List(resources) {
		resource := schema.ParseGroupResource(name)
		if _, err := w.Graph.Snapshot().Mapper.ResourceFor(resource.WithVersion("")); meta.IsNoMatchError(err) {
			return &Open{Cause: NoSuchKind, Item: kindOf(resource.Group, "", resource.Resource, "", "")}
		}
	}
	return nil
}

// itemOf is a live object as an item.
func itemOf(n graph.Node) Item {
	return Item{GroupVersionKind: n.Resource().GroupVersionKind(), Namespace: n.Namespace(), Name: n.Name(), Document: n.Resource().Kind}
}

// kindOf is an item of which an inventory has the kind.
func kindOf(group, version, kind, namespace, name string) Item {
	return Item{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespace: namespace,
		Name: name, Document: kind}
}
