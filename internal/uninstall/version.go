// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// asked notes in which version the tool deletes each of its targets, which is that of the manifest, and doubts the deletion of what the API
// server stores in another one, where the webhook does not answer by then that converts it: the server can neither hand it out nor delete it
// in that version (apiextensions-apiserver/pkg/apiserver/conversion).
func (f *following) asked() {
	definitions, _ := f.Evidence.List(evidence.CRDs, "") // an error is noted as unread
	converted := map[schema.GroupResource]*unstructured.Unstructured{}
	for i := range definitions {
		if d := &definitions[i]; evidence.Nested(d, "spec", "conversion", "strategy") == "Webhook" {
			converted[schema.ParseGroupResource(d.GetName())] = d
		}
	}
	f.plan.versions = map[types.UID]string{}
	for _, item := range f.find(f.plan.Items) {
		if item.state != present || item.Version == "" || len(f.plan.in(item.node.UID())) == 0 {
			continue
		}
		f.plan.versions[item.node.UID()] = item.Version
		if d := converted[item.resource.GroupResource()]; d != nil {
			f.convert(d, &item)
		}
	}
}

// convert looks at what converts an object of a definition that the tool deletes.
func (f *following) convert(definition *unstructured.Unstructured, item *found) {
	if stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions"); len(stored) == 1 && stored[0] == item.Version {
		return
	}
	client, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
	namespace, name := evidence.ServiceOf(client)
	if name == "" {
		f.Evidence.NoteUnread(fmt.Sprintf(conversionUnread, "CustomResourceDefinition/"+definition.GetName()))
		return
	}
	if at := f.plan.in(item.node.UID())[0]; f.dead(at, namespace, name) {
		f.plan.doubt(item.node.UID(), say.Of(unconverted, f.plan.Order, item.Version, evidence.Identity(evidence.Services, namespace, name)))
		if !f.dead(0, namespace, name) {
			f.plan.early = append(f.plan.early, item.id())
		}
	}
}

// dead reports whether a service certainly does not answer when a barrier begins.
func (f *following) dead(barrier int, namespace, name string) bool {
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
	return reviewer.Serving(namespace, name).Dead
}
