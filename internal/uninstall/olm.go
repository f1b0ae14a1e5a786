// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// olmOrder are the types of what olm-operator deletes by its labels while a ClusterServiceVersion has its finalizer, in this order
// (operator-lifecycle-manager/pkg/controller/operators/olm/operator.go, processFinalizer), and olmAfter those of what it deletes when that
// is gone: the latter are its copies (handleClusterServiceVersionDeletion).
var (
	olmOrder = []schema.GroupResource{
		evidence.ClusterRoleBindings.GroupResource(), {Group: evidence.ClusterRoleBindings.Group, Resource: "clusterroles"},
		evidence.MutatingWebhooks.GroupResource(), evidence.ValidatingWebhooks.GroupResource(),
	}
	olmAfter = []schema.GroupResource{evidence.APIServices.GroupResource(), delivery.ClusterServiceVersions}
)

// Subscription is what OLM's documentation has users do: they delete the Subscription, so that the operator is not installed again, and the
// ClusterServiceVersion that it has installed, which the Subscription does not take along.
func Subscription(w *World, n graph.Node, o *unstructured.Unstructured) (*Plan, error) {
	name, next := evidence.Nested(o, "status", "installedCSV"), evidence.Nested(o, "status", "currentCSV")
	if name == "" {
		name = next
	}
	manual := evidence.Nested(o, "spec", "installPlanApproval") == "Manual"
	upgrades := next != "" && next != name && (!manual || len(w.Evidence.Named(delivery.ClusterServiceVersions, n.Namespace(), next)) > 0)
	for _, csv := range w.Evidence.Named(delivery.ClusterServiceVersions, n.Namespace(), name) {
		whole, err := w.Evidence.Whole(csv)
		if err != nil {
			return nil, err
		}
		p := ClusterServiceVersion(w, csv, whole)
		p.Name, p.Command = n.Name(), slices.Insert(p.Command, 2, delivery.Subscriptions.String()+"/"+n.Name())
		p.Barriers = slices.Insert(p.Barriers, 0, barrierOf(n.Identity()))
		p.Open = slices.DeleteFunc(p.Open, func(open Open) bool { return open.Cause == Subscribed && open.Item.Name == n.Name() })
		if upgrades {
			p.Open = append(p.Open, Open{Cause: Upgrading, Item: itemOf(n), Detail: say.Plain(next)})
		}
		p.Marks = map[string]string{"operators.coreos.com/" + evidence.Nested(o, "spec", "name") + "." + n.Namespace(): ""}
		return p, nil
	}
	return &Plan{
		Tool: "olm", Order: "OLM", Namespace: n.Namespace(), Name: n.Name(), Policy: metav1.DeletePropagationBackground,
		Barriers: []Barrier{barrierOf(n.Identity())},
		Of:       Deliverers{{Kind: "Subscription", Namespace: n.Namespace(), Name: n.Name()}},
		Command:  []string{"kubectl", "delete", delivery.Subscriptions.String() + "/" + n.Name(), "-n", n.Namespace()},
	}, nil
}

// ClusterServiceVersion is what olm-operator does when one is deleted: it deletes cluster-wide rights and webhook configurations by its
// labels, and takes its finalizer off. Then the garbage collector deletes what has it as owner, and olm-operator its APIServices. No
// definition is deleted, and so no custom resource, unless spec.cleanup says so.
func ClusterServiceVersion(w *World, n graph.Node, o *unstructured.Unstructured) *Plan {
	p := &Plan{
		Tool: "olm", Order: "OLM", Namespace: n.Namespace(), Name: n.Name(), Policy: metav1.DeletePropagationBackground,
		Of:       Deliverers{{Kind: "ClusterServiceVersion", Namespace: n.Namespace(), Name: n.Name()}},
		Command:  []string{"kubectl", "delete", delivery.ClusterServiceVersions.String() + "/" + n.Name(), "-n", n.Namespace()},
		Barriers: []Barrier{barrierOf(n.Identity())}, Own: n.Identity(),
	}
	definitions := w.find(inventory(delivery.ClusterServiceVersions, o))
	for i := range definitions {
		p.Items = append(p.Items, definitions[i].Item)
		if definitions[i].state != absent {
			p.keep(&definitions[i], KeptDefinition, "")
		}
	}
	for group := range w.Evidence.Instances(schema.GroupResource{Group: delivery.ClusterServiceVersions.Group, Resource: "operatorgroups"}) {
		if group.Namespace() == n.Namespace() {
			p.keep(&found{Item: itemOf(group), state: present, node: group}, OfNamespace, "")
		}
	}
	for sub := range w.Evidence.Instances(delivery.Subscriptions) {
		whole, err := w.Evidence.Whole(sub)
		is := func(field string) bool { return evidence.Nested(whole, "status", field) == n.Name() }
		if err == nil && sub.Namespace() == n.Namespace() && (is("installedCSV") || is("currentCSV")) {
			p.Open = append(p.Open, Open{Cause: Subscribed, Item: itemOf(sub)})
		}
	}
	for csv := range w.Evidence.Instances(delivery.ClusterServiceVersions) {
		if csv.Namespace() != n.Namespace() || csv.UID() == n.UID() {
			continue
		}
		if whole, err := w.Evidence.Whole(csv); err == nil && evidence.Nested(whole, "spec", "replaces") == n.Name() {
			p.Open = append(p.Open, Open{Cause: Upgrading, Item: itemOf(n), Detail: say.Plain(csv.Name())})
		}
	}
	if cleanup, _, _ := unstructured.NestedBool(o.Object, "spec", "cleanup", "enabled"); cleanup {
		p.Open = append(p.Open, Open{Cause: CleansUp, Item: itemOf(n)})
	}
	for _, resource := range slices.Concat(olmOrder, olmAfter) {
		b := Barrier{}
		for m := range w.Evidence.Instances(resource) {
			labels := m.Object().Labels
			owned := labels["olm.owner"] == n.Name() && labels["olm.owner.namespace"] == n.Namespace() &&
				labels["olm.owner.kind"] == "ClusterServiceVersion"
			copied := m.Name() == n.Name() && m.Namespace() != n.Namespace() && labels["olm.copiedFrom"] == n.Namespace()
			if owned || copied {
				b.Kind, b.Objects = m.Resource().Kind, append(b.Objects, m.Identity())
			}
		}
		if len(b.Objects) > 0 {
			slices.SortFunc(b.Objects, graph.Identity.Compare)
			p.Barriers = append(p.Barriers, b)
		}
	}
	return p
}
