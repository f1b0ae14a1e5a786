// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// converted doubts the deletion of what a manifest has in another version than the API server stores, where the webhook does not answer by
// then that converts it: the server can neither hand it out nor delete it in that version
// (apiextensions-apiserver/pkg/apiserver/conversion).
func (f *following) converted() {
	definitions, err := f.Evidence.List(evidence.CRDs, "")
	if err != nil {
		return // it is noted as unread
	}
	byName, groups := map[string]*unstructured.Unstructured{}, sets.New[string]()
	for i := range definitions {
		if d := &definitions[i]; evidence.Nested(d, "spec", "conversion", "strategy") == "Webhook" {
			byName[d.GetName()] = d
			groups.Insert(evidence.Nested(d, "spec", "group"))
		}
	}
	for _, item := range f.find(slices.DeleteFunc(slices.Clone(f.plan.Items), func(item Item) bool { return !groups.Has(item.Group) })) {
		d, at := byName[item.resource.GroupResource().String()], f.plan.in(item.node.UID())
		if d == nil || item.state != present || len(at) == 0 || f.converts(d, at[0]) {
			continue
		}
		if stored, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions"); len(stored) != 1 || stored[0] != item.Version {
			services, _ := servicesOf(d)
			f.plan.doubt(item.node.UID(), say.Of(unconverted, f.plan.Order, item.Version, "Service/"+services[0]))
		}
	}
}

// converts reports whether the webhook of a definition answers when a barrier begins, or may.
func (f *following) converts(definition *unstructured.Unstructured, barrier int) bool {
	var uids []types.UID
	for i, before := range f.plan.before(barrier) {
		for _, id := range f.plan.Barriers[i].Objects {
			if before {
				uids = append(uids, id.UID)
			}
		}
	}
	gone := gc.Concerned(f.Graph, uids)
	reviewer := admission.New(context.Background(), nil, f.Evidence.Without(func(uid types.UID) bool { // it sends nothing
		n, known := f.Graph.Node(uid)
		return known && gone.Has(n)
	}), nil)
	client, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
	namespace, name := evidence.ServiceOf(client)
	return name == "" || !reviewer.Serving(namespace, name).Dead
}
