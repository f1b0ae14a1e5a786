// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// asked notes in which version the tool deletes each of its targets, which is that of the manifest, and doubts the deletion of what the API
// server stores in another one, where the webhook does not answer by then that converts it: the server can neither hand it out nor delete
// it in that version (apiextensions-apiserver/pkg/apiserver/conversion).
func (f *following) asked() {
	definitions, _ := f.Evidence.List(evidence.CRDs, "") // an error is noted as unread
	converted := map[schema.GroupResource]*unstructured.Unstructured{}
	for i := range definitions {
		if d := &definitions[i]; evidence.Nested(d, "spec", "conversion", "strategy") == "Webhook" {
			converted[schema.ParseGroupResource(d.GetName())] = d
		}
	}
	f.plan.versions = map[types.UID]string{}
	reviewers := map[int]*admission.Reviewer{}
	for _, item := range f.find(f.plan.Items) {
		if item.state != present || item.Version == "" || len(f.plan.in(item.node.UID())) == 0 {
			continue
		}
		f.plan.versions[item.node.UID()] = item.Version
		if d := converted[item.resource.GroupResource()]; d != nil {
			f.convert(d, &item, reviewers)
		}
	}
}

// convert looks at what converts an object of a definition that the tool deletes. The reviewers are those by barriers that were needed so
// far.
func (f *following) convert(definition *unstructured.Unstructured, item *found, reviewers map[int]*admission.Reviewer) {
	if stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions"); len(stored) == 1 &&
		stored[0] == item.Version {
		return
	}
	namespace, name := evidence.Converter(definition)
	if name == "" {
		f.Evidence.NoteOpen(say.Of(conversionUnread, "CustomResourceDefinition/"+definition.GetName()))
		return
	}
	dead := func(barrier int) bool {
		if reviewers[barrier] == nil {
			reviewers[barrier] = f.before(barrier)
		}
		return reviewers[barrier].Serving(namespace, name).Dead
	}
	if dead(f.plan.in(item.node.UID())[0]) {
		in := f.plan.Barriers[f.plan.in(item.node.UID())[0]]
		if tool := cmp.Or(in.By.UID, f.plan.Own.UID); tool != "" { // whose controller tries for ever
			f.plan.doubt(tool, say.Of(foresight.MayStick, say.Of(waitsFor, item.id())))
		}
		f.plan.doubt(item.node.UID(), say.Of(unconverted, f.plan.Order, item.Version, evidence.Identity(evidence.Services, namespace, name)))
		if !dead(0) {
			f.plan.early = append(f.plan.early, item.id())
		}
	}
}

// before judges who answers when a barrier begins, of what is certainly left then. It sends nothing.
func (f *following) before(barrier int) *admission.Reviewer {
	var uids []types.UID
	for i, before := range f.plan.before(barrier) {
		for _, id := range f.plan.Barriers[i].Objects {
			if before {
				uids = append(uids, id.UID)
			}
		}
	}
	gone := gc.Concerned(f.Graph, uids)
	return admission.New(context.Background(), nil, f.Evidence.Without(func(uid types.UID) bool {
		n, known := f.Graph.Node(uid)
		return known && gone.Has(n)
	}), nil)
}
