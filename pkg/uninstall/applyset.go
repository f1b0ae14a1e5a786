// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ApplySet is what `kubectl apply --prune --applyset=PARENT` does when no manifest is left: it deletes the objects that bear the parent's label,
// as far as the parent names their types and namespaces, in the background and in no fixed order
// (k8s.io/kubectl/pkg/cmd/apply/applyset.go and applyset_pruner.go). The parent stays.
func ApplySet(w *World, parent *unstructured.Unstructured) *Plan {
	labels, annotations := parent.GetLabels(), parent.GetAnnotations()
	id := labels["applyset.kubernetes.io/id"]
	p := &Plan{
		Tool: "applyset", Order: "any order", Namespace: parent.GetNamespace(), Name: parent.GetName(), Policy: metav1.DeletePropagationBackground,
		Marks: map[string]string{},
	}
	if id == "" {
		p.Halt = &Open{Cause: NoParent}
		return p
	}
	kinds, resources := sets.New[string](), sets.New[string]()
	for text, into := range map[string]sets.Set[string]{
		annotations["applyset.kubernetes.io/contains-group-kinds"]: kinds, annotations["applyset.kubernetes.io/contains-group-resources"]: resources,
	} {
		for name := range strings.SplitSeq(text, ",") {
			into.Insert(strings.TrimSpace(name))
		}
	}
	namespaces := sets.New(strings.Split(annotations["applyset.kubernetes.io/additional-namespaces"], ",")...).Insert(parent.GetNamespace(), "")
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

// itemOf is a live object as an item.
func itemOf(n graph.Node) Item {
	return Item{GroupVersionKind: n.Resource().GroupVersionKind(), Namespace: n.Namespace(), Name: n.Name(), Document: n.Resource().Kind}
}

// kindOf is an item of which an inventory has the kind.
func kindOf(group, version, kind, namespace, name string) Item {
	return Item{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespace: namespace, Name: name, Document: kind}
}
