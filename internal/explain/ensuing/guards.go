// SPDX-License-Identifier: Apache-2.0

package ensuing

import (
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Guard is what may deny the end of objects: a webhook, or a policy by its binding.
type Guard struct {
	ID graph.Identity
	// Without are the objects without which it denies nothing: itself, its policy, its parameters, or what answers for it.
	Without graph.Set
	waits   []func(graph.Node) bool
}

// Waits reports whether an object's removal may wait for it.
func (g *Guard) Waits(n graph.Node) bool {
	return slices.ContainsFunc(g.waits, func(waits func(graph.Node) bool) bool { return waits(n) })
}

// guards are those that are found, by their identities.
type guards map[graph.Identity]*Guard

func (all guards) add(id graph.Identity, waits func(graph.Node) bool, without ...graph.Node) {
	if all[id] == nil {
		all[id] = &Guard{ID: id}
	}
	all[id].waits = append(all[id].waits, waits)
	all[id].Without.AddAll(graph.NewSet(without...))
}

// Backends are the types without which nothing answers at a service.
var Backends = sets.New("services", "pods", "namespaces", "endpointslices")

// Guards returns those that go with objects, or let everything pass without them: webhooks, those that are passed over without their
// backend, policies, their bindings, and parameters without which nothing is denied. What could not be read is noted by the reader.
func (f *Finder) Guards(going graph.Set) []*Guard {
	all := guards{}
	f.webhooks(all, going)
	for _, kind := range []string{admission.Validating, admission.Mutating} {
		f.policies(all, kind, going)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *Guard) int { return a.ID.Compare(b.ID) })
}

func (f *Finder) webhooks(all guards, going graph.Set) {
	configs, answering := map[types.UID]graph.Node{}, map[string][]graph.Node{}
	for n := range going.All() {
		switch of := n.Resource().GroupResource(); {
		case n.Virtual():
		case of == evidence.ValidatingWebhooks.GroupResource() || of == evidence.MutatingWebhooks.GroupResource():
			configs[n.UID()] = n
		case n.Resource().IsNamespace():
			answering[n.Name()] = append(answering[n.Name()], n)
		case Backends.Has(of.Resource):
			answering[n.Namespace()] = append(answering[n.Namespace()], n)
		}
	}
	if len(configs)+len(answering) == 0 {
		return
	}
	var then *admission.Reviewer
	for _, h := range f.reviewer.Webhooks() {
		if config, goes := configs[h.Config.UID]; goes {
			all.add(h.Config, f.reviewer.Waits(h), config)
			continue
		}
		service := h.ClientConfig.Service
		if h.FailsClosed() || service == nil || len(answering[service.Namespace]) == 0 {
			continue
		}
		if then == nil {
			then = admission.New(f.ctx, nil, f.reader.Without(f.without(going)), nil)
		}
		if silenced, _ := Silenced(f.reviewer, then, service.Namespace, service.Name, identities(answering[service.Namespace])); silenced {
			all.add(h.Config, f.reviewer.Waits(h), answering[service.Namespace]...)
		}
	}
}

// policies adds the bindings of policies of a kind that go, whose policies do, or whose parameters, where nothing is denied without these.
func (f *Finder) policies(all guards, kind string, going graph.Set) {
	for _, b := range f.reviewer.Bindings(kind) {
		for _, uid := range b.Policies() {
			if n, known := f.graph.Node(uid); known && going.Has(n) {
				all.add(b.Binding, b.Waits(f.reviewer), n)
			}
		}
	}
	for _, p := range f.reviewer.Params(kind) {
		params := slices.DeleteFunc(p.In(f.reviewer, ""), func(n graph.Node) bool { return !going.Has(n) })
		if p.Allows && len(params) > 0 {
			all.add(p.Binding, p.Waits(f.reviewer), params...)
		}
	}
}

// without is for a reader to which objects that go count as gone, but for those that are made again.
func (f *Finder) without(going graph.Set) func(types.UID) bool {
	goes := func(uid types.UID) bool {
		n, known := f.graph.Node(uid)
		return known && going.Has(n)
	}
	return func(uid types.UID) bool {
		n, known := f.graph.Node(uid)
		return known && going.Has(n) && !Remade(n, goes)
	}
}

// Remade reports whether something that goes comes back at once: a pod whose maker stays. A definition stays as long as it has instances.
func Remade(n graph.Node, goes func(types.UID) bool) bool {
	if n.Resource().IsCRD() {
		return true
	}
	return n.Resource().IsPod() && slices.ContainsFunc(n.Object().OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Controller != nil && *ref.Controller && !goes(ref.UID)
	})
}

// Silenced reports whether what answers at a service now does not without what goes. Where that could not be read it may, when anything of
// the namespace goes that could be it, and certainly does when all of it goes.
func Silenced(now, then *admission.Reviewer, namespace, name string, going iter.Seq[graph.Identity]) (silenced, certain bool) {
	serving := then.Serving(namespace, name)
	if serving.Dead {
		return !now.Serving(namespace, name).Dead, true
	}
	if !serving.Unread {
		return false, true
	}
	for id := range going {
		switch {
		case id.Resource.IsNamespace() && id.Name == namespace:
			return true, true
		case id.Namespace == namespace && Backends.Has(id.Resource.Resource):
			silenced = true
		}
	}
	return silenced, !silenced
}

func identities(nodes []graph.Node) iter.Seq[graph.Identity] {
	return func(yield func(graph.Identity) bool) {
		for _, n := range nodes {
			if !yield(n.Identity()) {
				return
			}
		}
	}
}
