// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Tool is one that deletes what it has deployed. A new one is a row of Tools, what internal/delivery knows of its marks and inventory, and
// what internal/offline holds of its own objects.
type Tool struct {
	// Name is its command, and how documents call it.
	Name string
	// Kinds are those of its own objects, the usual one first; none for a tool that has its own way to say what it has deployed.
	Kinds []Kind
}

// Kind is a type of a tool's own objects.
type Kind struct {
	Resource schema.GroupResource
	// Words are how users call it, the usual one first.
	Words []string
	// Plan is what the tool does when such an object is deleted. With an error it is of the object alone, or nil.
	Plan func(w *World, n graph.Node, o *unstructured.Unstructured) (*Plan, error)
	// Alone: its controller deletes nothing with the object; what the tool does is that users delete more.
	Alone bool
}

// Tools returns those that are known, in the order of the help.
func Tools() []Tool {
	return []Tool{
		{Name: "helm"},
		{Name: "flux", Kinds: []Kind{
			{Resource: delivery.Kustomizations, Words: []string{"kustomization", "kustomizations", "ks"}, Plan: always(Kustomization)},
			{Resource: delivery.HelmReleases, Words: []string{"helmrelease", "helmreleases", "hr"}, Plan: HelmReleaseBy},
		}},
		{Name: "argocd", Kinds: []Kind{{Resource: delivery.Applications, Words: []string{"application", "applications", "app"},
			Plan: always(Application)}}},
		{Name: "olm", Kinds: []Kind{
			{Resource: delivery.Subscriptions, Words: []string{"subscription", "subscriptions", "sub"}, Plan: Subscription, Alone: true},
			{Resource: delivery.ClusterServiceVersions, Words: []string{"clusterserviceversion", "clusterserviceversions", "csv"},
				Plan: always(ClusterServiceVersion)},
		}},
		{Name: "applyset"},
		{Name: "prune"},
	}
}

func always(plan func(*World, graph.Node, *unstructured.Unstructured) *Plan) func(*World, graph.Node,
	*unstructured.Unstructured) (*Plan, error) {
	return func(w *World, n graph.Node, o *unstructured.Unstructured) (*Plan, error) { return plan(w, n, o), nil }
}

// toolOf is the tool that has its own objects of a type, and that kind, which is nil for none.
func toolOf(resource schema.GroupResource) (Tool, *Kind) {
	for _, tool := range Tools() {
		for i := range tool.Kinds {
			if k := &tool.Kinds[i]; k.Resource == resource {
				return tool, k
			}
		}
	}
	return Tool{}, nil
}

// controlled is the kind whose controller deletes something with an object of a type, nil for none.
func controlled(resource schema.GroupResource) *Kind {
	if _, k := toolOf(resource); k != nil && !k.Alone {
		return k
	}
	return nil
}

// ofUsers reports whether users delete more with an object of a type, and no controller does.
func ofUsers(resource schema.GroupResource) bool {
	_, k := toolOf(resource)
	return k != nil && k.Alone
}

// argument is what uninstall takes to be about an object of a tool.
func argument(id graph.Identity) string {
	tool, k := toolOf(id.Resource.GroupResource())
	if k == nil {
		return ""
	}
	return tool.Name + " " + k.Words[0] + "/" + id.Name + " -n " + id.Namespace
}

// inventory are the objects that a tool's own one says that it has deployed.
func inventory(resource schema.GroupResource, o *unstructured.Unstructured) []Item {
	var items []Item
	for _, e := range delivery.Inventory(resource, o) {
		items = append(items, kindOf(e.Group, e.Version, e.Kind, e.Namespace, e.Name))
	}
	return items
}

// Deliverer is one of those that delivered what is removed: a tool's own object, a release ("Release") or an apply set ("ApplySet").
type Deliverer struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Records is the namespace of Helm's records of a release, empty for all else.
	Records string `json:"records,omitempty"`
	// Qualified: its marks always have its namespace, as those of Applications outside of Argo CD's own.
	Qualified bool `json:"qualified,omitempty"`
}

// String is kind/namespace/name.
func (d Deliverer) String() string {
	return strings.ToLower(d.Kind) + "/" + strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")
}

// Deliverers say by which marks an object belongs to what is removed.
type Deliverers []Deliverer

// String is all of them, with commas.
func (all Deliverers) String() string {
	var names []string
	for _, d := range all {
		names = append(names, d.String())
	}
	return strings.Join(names, ",")
}

// have reports whether a mark names one of them.
func (all Deliverers) have(m delivery.Mark) bool {
	return slices.ContainsFunc(all, func(d Deliverer) bool {
		return m.Kind == d.Kind && m.Name == d.Name && (m.Namespace == d.Namespace || m.Namespace == "" && !d.Qualified)
	})
}

// apart are marks without those of the HelmRelease whose release is one of them.
func (all Deliverers) apart(marks []delivery.Mark) []delivery.Mark {
	if slices.ContainsFunc(marks, func(m delivery.Mark) bool { return m.Kind == "Release" && all.have(m) }) {
		marks = slices.DeleteFunc(marks, func(m delivery.Mark) bool { return m.Resource == delivery.HelmReleases })
	}
	return marks
}

// of reports whether an object belongs to one of them by its marks, and to what else it does, zero for nothing.
func (all Deliverers) of(o *unstructured.Unstructured) (own bool, other say.Text) {
	if key, value, _ := delivery.Other(o, delivery.Entry{}); key != "" {
		other = say.Plain(key + ": " + value)
	}
	for _, m := range slices.Backward(all.apart(delivery.Marks(o))) {
		switch {
		case m.Usual: // many set it
		case all.have(m):
			own = true
		default:
			other = say.Plain(evidence.Named(m.Kind, m.Namespace, m.Name))
		}
	}
	return own, other
}

// releases are those of Helm among them.
func (all Deliverers) releases() Deliverers {
	return slices.DeleteFunc(slices.Clone(all), func(d Deliverer) bool { return d.Kind != "Release" })
}
