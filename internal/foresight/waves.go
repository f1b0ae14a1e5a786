// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// order computes a safe deletion order, and marks the finalizers that have none (cyclic).
type order struct {
	*scene
	forecast *Forecast
}

// waves puts what a plan deletes into an order in which nothing goes before what needs
// it: what waits for a controller of the plan, then what would refuse or break requests
// without its backend, then definitions, then the rest. There are none when nothing
// needs anything that goes.
func (l *order) waves() []preview.Wave {
	if len(l.Plan.Job.Targets) == 0 {
		return nil
	}
	first, callers := l.forecast.DeletedFirst(), l.callers()
	dead, silent := l.deadCallers(callers)
	aggregated := l.aggregated()
	if len(first) == 0 && len(dead) == 0 && (l.forecast.blind.IsZero() || len(callers) == 0) && (!l.Safe || len(aggregated) == 0) {
		return nil
	}
	var waves []preview.Wave
	in := map[types.UID]bool{}
	if len(dead) > 0 {
		waves = append(waves, preview.Wave{
			Objects: dead, Why: waveOfSilent, Silent: silent,
		})
	}
	for _, id := range dead {
		in[id.UID] = true
	}
	for _, turn := range l.turns(first) {
		why := waveOfServed
		if more := l.companions(turn, first); len(more) > 0 {
			turn, why = append(turn, more...), waveOfCompanions
		}
		turn = append(l.below(turn, in), turn...)
		waves = append(waves, preview.Wave{Objects: turn, Why: why})
		for _, id := range turn {
			in[id.UID] = true
		}
	}
	take := func(why string, ids []graph.Identity, is func(graph.Identity) bool) {
		var taken []graph.Identity
		for _, id := range ids {
			if is(id) && !in[id.UID] {
				taken, in[id.UID] = append(taken, id), true
			}
		}
		if len(taken) > 0 {
			waves = append(waves, preview.Wave{Objects: taken, Why: why})
		}
	}
	take(waveOfCallers, callers, func(graph.Identity) bool { return true })
	take(waveOfTypes, l.Plan.Job.Targets, func(id graph.Identity) bool { return id.Resource.IsCRD() })
	take(waveOfRest, l.Plan.Job.Targets, func(id graph.Identity) bool { return !aggregated[id.UID] })
	take(waveOfAggregated, l.Plan.Job.Targets, func(graph.Identity) bool { return true })
	return waves
}

// companions returns the objects of the plan that have to go for the sake of those of a turn: a
// controller may take its finalizer off an account or a Secret only when the object of its
// own type is gone for which that is there. So objects of the group of the finalizer's domain
// go with them, unless they have a turn of their own.
func (l *order) companions(turn, first []graph.Identity) []graph.Identity {
	domains, known := map[string]bool{}, map[types.UID]bool{}
	for _, id := range first {
		known[id.UID] = true
	}
	for _, id := range turn {
		for _, service := range l.forecast.of[id.UID] {
			if domain := finalizers.Domain(service.Finalizer); service.DeleteFirst && domain != "" && !related(id.Resource.Group, domain) {
				domains[domain] = true
			}
		}
	}
	if len(domains) == 0 {
		return nil
	}
	var all []graph.Identity
	for uid := range l.going {
		n, ok := l.node(uid)
		if !ok || known[uid] || n.Resource().Group == "" || graph.BuiltinGroup(n.Resource().Group) {
			continue
		}
		for domain := range domains {
			if related(n.Resource().Group, domain) {
				all = append(all, n.Identity())
				break
			}
		}
	}
	slices.SortFunc(all, graph.Identity.Compare)
	return all
}

// related reports whether a group and a finalizer's domain are the same, or one is below the other.
func related(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain) || strings.HasSuffix(domain, "."+group)
}

// below returns the targets that depend on objects of a turn, and so go with it: the user's delete has to
// reach them first, for it may have another policy than the garbage collector's.
func (l *order) below(turn []graph.Identity, in map[types.UID]bool) []graph.Identity {
	taken := map[types.UID]bool{}
	for _, id := range turn {
		maps.Copy(taken, l.takes(id.UID))
	}
	for _, id := range turn {
		delete(taken, id.UID)
	}
	var below []graph.Identity
	for _, id := range l.Plan.Job.Targets {
		if taken[id.UID] && !in[id.UID] {
			below = append(below, id)
		}
	}
	return below
}

// DeletedFirst returns what has to be gone before what serves it, in the order of its identities. Some of it
// may stay in any order: then nothing is destroyed that could still free it. A nil Forecast has none.
func (s *Forecast) DeletedFirst() []graph.Identity {
	if s == nil {
		return nil
	}
	var first []graph.Identity
	for i := range s.Services {
		service := &s.Services[i]
		if known := len(first) > 0 && first[len(first)-1].UID == service.Object.UID; service.DeleteFirst && !known {
			first = append(first, service.Object)
		}
	}
	return first
}

// turns puts what has to go first into an order in which nothing takes away what the
// controller of another one needs. Where there is none, that is noted of the services.
func (l *order) turns(first []graph.Identity) [][]graph.Identity {
	taken := l.takers(first)
	breaks := func(id graph.Identity, service *FinalizerForecast) bool {
		return slices.ContainsFunc(service.needs, func(need types.UID) bool {
			return taken[id.UID][need] && !l.goesAfter(need, service.Object.UID)
		})
	}
	var turns [][]graph.Identity
	left := slices.Clone(first)
	for len(left) > 0 {
		var turn, later []graph.Identity
		for _, id := range left {
			waits := taken[id.UID] != nil && slices.ContainsFunc(left, func(o graph.Identity) bool {
				return o.UID != id.UID &&
					slices.ContainsFunc(l.forecast.of[o.UID], func(service *FinalizerForecast) bool { return service.DeleteFirst && breaks(id, service) })
			})
			if waits {
				later = append(later, id)
			} else {
				turn = append(turn, id)
			}
		}
		if len(turn) == 0 {
			turn, later = left, nil
		}
		for _, id := range turn {
			for _, service := range l.forecast.of[id.UID] {
				service.cyclic = slices.ContainsFunc(turn, func(other graph.Identity) bool { return breaks(other, service) })
			}
		}
		turns, left = append(turns, turn), later
	}
	return turns
}

// takers returns what goes with each of those that take something away which a controller
// needs.
func (l *order) takers(first []graph.Identity) map[types.UID]map[types.UID]bool {
	needed, takers := map[types.UID]bool{}, map[types.UID]map[types.UID]bool{}
	for i := range l.forecast.Services {
		for _, need := range l.forecast.Services[i].needs {
			needed[need] = true
		}
	}
	for _, id := range first {
		taken := l.takes(id.UID)
		for uid := range taken {
			if needed[uid] {
				takers[id.UID] = taken
			}
		}
	}
	return takers
}

// takes returns the objects of the plan that go when one is deleted: itself, and what
// depends on it.
func (l *order) takes(uid types.UID) map[types.UID]bool {
	taken := map[types.UID]bool{uid: true}
	if n, ok := l.graph.Node(uid); ok {
		for d := range graph.Descendants(n).All() {
			if l.going[d.UID()] {
				taken[d.UID()] = true
			}
		}
	}
	return taken
}

// goesAfter reports whether something goes by the plan when an object is gone, and not
// before: it is deleted because its owner, that object or what goes so as well, is absent.
// What a workload that is deleted itself runs goes on until it is gone.
func (l *scene) goesAfter(what, object types.UID) bool {
	if l.Plan.Job.Policy == metav1.DeletePropagationForeground {
		return false
	}
	return l.follows(what, object, map[types.UID]bool{})
}

func (l *scene) follows(what, object types.UID, seen map[types.UID]bool) bool {
	n, ok := l.node(what)
	if !ok || seen[what] || n.DeletingDependents() {
		return false
	}
	seen[what] = true
	if _, goes := l.named["Namespace/"+n.Namespace()]; goes {
		return false
	}
	if what == object {
		return true
	}
	if slices.ContainsFunc(l.Plan.Job.Targets, func(id graph.Identity) bool { return id.UID == what }) {
		return false
	}
	return slices.ContainsFunc(n.Object().OwnerReferences, func(ref metav1.OwnerReference) bool {
		return l.follows(ref.UID, object, seen)
	})
}

// deadCallers returns the webhook configurations among the callers of which a webhook gets
// no answer already: they keep the others from going. With them it returns the names of such
// webhooks, without those that another configuration has as well.
func (l *order) deadCallers(callers []graph.Identity) (dead []graph.Identity, silent []string) {
	hooks := l.now.reviewer.Webhooks()
	isSilent := func(h *admission.Webhook) bool { return h.FailsClosed() && l.now.reviewer.ServingOf(h).Dead }
	going := map[types.UID]bool{}
	for _, id := range callers {
		going[id.UID] = slices.ContainsFunc(hooks, func(h *admission.Webhook) bool { return h.Config.UID == id.UID && isSilent(h) })
		if going[id.UID] {
			dead = append(dead, id)
		}
	}
	for _, h := range hooks {
		lasting := slices.ContainsFunc(hooks, func(other *admission.Webhook) bool { return other.Name == h.Name && !going[other.Config.UID] })
		if !lasting && isSilent(h) {
			silent = append(silent, h.Name)
		}
	}
	return dead, silent
}

// callers returns the webhook configurations and APIServices among the targets whose
// backend goes.
func (l *order) callers() []graph.Identity {
	var callers []graph.Identity
	for _, id := range l.Plan.Job.Targets {
		switch id.Resource.Group {
		case "admissionregistration.k8s.io", "apiregistration.k8s.io":
			callers = append(callers, id)
		}
	}
	return callers
}
