// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Break is something outside a plan that stops working with it.
type Break struct {
	// Object is what breaks.
	Object graph.Identity
	// Users are what stays and names Object, which goes; none where that stays and breaks itself.
	Users []graph.Identity
	// Why is what happens then.
	Why     say.Text
	strands *Stranded
	// Certain is unset when it depends on what could not be read, or on who comes first.
	Certain bool
}

// Stranded are objects that stay, and whose controller goes: their deletions will get stuck.
type Stranded struct {
	Kind, Finalizer string
	Count           int
	// Names are the first of them, as namespace/name.
	Names []string
}

// Strands returns what will get stuck later because of it, nil if it is something else that breaks.
func (b *Break) Strands() *Stranded { return b.strands }

// says says that their controller loses something.
func (s *Stranded) says(certain bool, loss deprivation) say.Text {
	does, names := removes, s.Names
	if !certain {
		does = mightRemove
	}
	if s.Count > len(names) {
		names = append(names[:len(names):len(names)], "...")
	}
	return say.Of(finalizerUnserved, does, s.Finalizer, loss.clause(), evidence.Number(s.Count, s.Kind), strings.Join(names, ", "))
}

// breaks finds what stops working outside the plan.
func (l *forecaster) breaks(silent []api) []Break {
	var all []Break
	if l.goes(ensuing.Backends.UnsortedList()...) {
		all = slices.Concat(l.webhooks(), l.apis(silent), l.conversions())
	}
	if l.goes("deployments", "statefulsets", "daemonsets", "pods", "serviceaccounts", "roles", "rolebindings", "clusterroles",
		"clusterrolebindings", "namespaces") {
		all = append(all, l.unserved()...)
	}
	return slices.Concat(all, l.managers(), l.policies(), l.detached(), l.evictions(), l.users())
}

// managers are the roles of controllers of kube-controller-manager, which with --use-service-account-credentials act by these
// (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy, controller_policy.go).
func (l *forecaster) managers() (all []Break) {
	for _, id := range l.named {
		if r := id.Resource.Resource; r != "clusterroles" && r != "clusterrolebindings" {
			continue
		}
		name, is := strings.CutPrefix(id.Name, "system:controller:")
		if is || id.Name == "system:kube-controller-manager" {
			all = append(all, Break{Object: id, Why: say.Of(managerPowerless, cmp.Or(name, id.Name))})
		}
	}
	graph.SortByIdentity(all, func(b *Break) graph.Identity { return b.Object })
	return all
}

// goes reports whether an object of one of the resources goes.
func (l *scene) goes(resources ...string) bool {
	for _, id := range l.named {
		if slices.Contains(resources, id.Resource.Resource) {
			return true
		}
	}
	return false
}

// silenced reports whether what answers at a service goes by the plan, and answers now.
func (l *scene) silenced(namespace, name string) (silenced, certain bool) {
	return ensuing.Silenced(l.now.reviewer, l.then.reviewer, namespace, name, maps.Values(l.named))
}

// webhooks are those that stay, fail closed, and lose what answers them. What is said of one
// is said once of all in its configuration.
func (l *forecaster) webhooks() []Break {
	type group struct {
		config, service graph.Identity
		certain         bool
	}
	hooks := map[group][]*admission.Webhook{}
	var groups []group
	for _, h := range l.then.reviewer.Webhooks() {
		if !h.FailsClosed() {
			continue
		}
		service := h.ClientConfig.Service
		if silenced, certain := l.silenced(service.Namespace, service.Name); silenced {
			g := group{h.Config, evidence.Identity(evidence.Services, service.Namespace, service.Name), certain}
			if hooks[g] == nil {
				groups = append(groups, g)
			}
			hooks[g] = append(hooks[g], h)
		}
	}
	var all []Break
	for _, g := range groups {
		all = append(all, Break{Object: g.config, Why: unanswered(hooks[g], g.service), Certain: g.certain})
	}
	return all
}

// unanswered is what webhooks of one configuration refuse when what answers them goes. What limits that is said of
// the first that is limited, and what people forget of the first that is asked about updates.
func unanswered(hooks []*admission.Webhook, service graph.Identity) say.Text {
	var names, about []string
	limited, updates := false, false
	for _, h := range hooks {
		names = append(names, h.Name)
		if !slices.Contains(about, h.About()) {
			about = append(about, h.About())
		}
		if !limited && !updates {
			limited, updates = h.Limited(), h.Asked("UPDATE")
		}
	}
	said := say.Of(webhooksUnanswered, len(names), firstOf(names, ", "), service, firstOf(about, "; "))
	if len(names) == 1 {
		said = say.Of(webhookUnanswered, names[0], service, about[0])
	}
	if limited {
		said = said.And(asFarAsMatched)
	}
	if updates {
		said = said.And(andRemovals)
	}
	return said
}

// api is an aggregated API whose backend, a service, goes by the plan.
type api struct {
	id, backend graph.Identity
	certain     bool
}

// silent returns the aggregated APIs that are there now, and whose backends go.
func (l *forecaster) silent() []api {
	if !l.goes(ensuing.Backends.UnsortedList()...) {
		return nil
	}
	registered, err := l.now.evidence.List(evidence.APIServices, "")
	if err != nil {
		return nil // it is noted as unread
	}
	var all []api
	for i := range registered {
		namespace, name := evidence.Nested(&registered[i], "spec", "service", "namespace"),
			evidence.Nested(&registered[i], "spec", "service", "name")
		if name == "" {
			continue
		}
		if silenced, certain := l.silenced(namespace, name); silenced {
			all = append(all, api{evidence.IdentityOf(evidence.APIServices, "APIService", &registered[i]),
				evidence.Identity(evidence.Services, namespace, name), certain})
		}
	}
	return all
}

// apis are the aggregated APIs that stay without what serves them.
func (l *forecaster) apis(silent []api) []Break {
	var all []Break
	for _, a := range silent {
		if !l.going[a.id.UID] {
			all = append(all, Break{Object: a.id, Why: say.Of(apiUnserved, a.backend), Certain: a.certain})
		}
	}
	return all
}

// blinded says why no namespace can be emptied when the plan is carried out: an aggregated
// API stays whose backend goes, which is Stuck, or Unclear if that could not be read, or
// both go, which is Racing.
func (l *forecaster) blinded(silent []api) (why say.Text, is Outlook) {
	for _, a := range silent {
		outlook := Stuck
		switch {
		case l.order.known() && l.order.gone(a.id.UID, l.order.answers(a.backend.Namespace, a.backend.Name)):
			continue
		case l.going[a.id.UID]:
			outlook = Racing
		case !a.certain:
			outlook = Unclear
		}
		if why.IsZero() || outlook == Stuck || outlook == Unclear && is == Racing {
			why, is = say.Of(contentUnknown, a.id, a.backend), outlook
		}
	}
	return why, is
}

// conversions are the definitions that stay without what converts their instances.
func (l *forecaster) conversions() []Break {
	var all []Break
	definitions, err := l.then.evidence.List(evidence.CRDs, "")
	if err != nil {
		return nil
	}
	for i := range definitions {
		d := &definitions[i]
		namespace, name := evidence.Converter(d)
		if name == "" || l.going[d.GetUID()] {
			continue
		}
		if silenced, certain := l.silenced(namespace, name); silenced {
			service := evidence.Identity(evidence.Services, namespace, name)
			all = append(all, Break{Object: evidence.IdentityOf(evidence.CRDs, "CustomResourceDefinition", d),
				Why: say.Of(conversionUnserved, service), Certain: certain})
		}
	}
	return all
}

const (
	// maxKinds is the number of kinds of finalizers on what stays that are looked at: a kind is a
	// type and a finalizer.
	maxKinds = 100
	// maxPlaces is the number of places of these: a place is a kind in a namespace.
	maxPlaces = 300
	// samples is the number of objects of a place of which one shows who serves it.
	samples = 3
	// atOnce is the number of objects that are read at a time.
	atOnce = 50
)

// A kind is what one controller serves, or several that share it by namespace.
type kind struct {
	resource  schema.GroupResource
	finalizer string
}

// A place is a kind in a namespace.
type place struct {
	kind
	// of are its first objects, and count is how many it has.
	of    []graph.Node
	count int
	// turn is how many places of the kind come before.
	turn int
}

// unserved are the finalizers on objects that stay whose controllers go.
func (l *forecaster) unserved() []Break {
	places := l.inTurn(l.places())
	if len(places) > maxPlaces {
		l.now.evidence.NoteUnread(evidence.Gap{What: say.Of(placesUnread, len(places), maxPlaces)})
		places = places[:maxPlaces]
	}
	for some := range slices.Chunk(places, atOnce) {
		var nodes []graph.Node
		for _, p := range some {
			nodes = append(nodes, p.of[0])
		}
		l.now.evidence.Together(nodes)
	}
	type loss struct {
		by   graph.Identity
		says string // of what
		kind
		certain bool
	}
	counts, staying, lost := map[loss]int{}, map[loss][]graph.Node{}, map[loss]deprivation{}
	var losses []loss
	for _, p := range places {
		for _, n := range p.of {
			a := l.now.finder.Find(n, p.finalizer, finalizers.Metadata)
			servers, certain := l.servers(n, a)
			certain = certain && !indirect(a) && l.now.finder.Identified(a)
			for _, by := range servers {
				if what := l.loses(n, by); what.kind != ofNothing {
					k := loss{by.ID(), what.clause().String(), p.kind, certain}
					if counts[k] == 0 {
						losses, lost[k] = append(losses, k), what
					}
					counts[k], staying[k] = counts[k]+p.count, append(staying[k], p.of...)
				}
			}
			if len(servers) > 0 {
				break
			}
		}
	}
	var all []Break
	for _, k := range losses {
		strands := &Stranded{Kind: staying[k][0].Resource().Kind, Finalizer: k.finalizer, Count: counts[k]}
		for _, n := range staying[k][:min(len(staying[k]), samples)] {
			id := n.Identity()
			strands.Names = append(strands.Names, strings.TrimPrefix(id.String(), id.Resource.Kind+"/"))
		}
		all = append(all, Break{Object: k.by, Why: strands.says(k.certain, lost[k]), strands: strands, Certain: k.certain})
	}
	return all
}

// indirect reports whether the catalogue has an instance as who removes the finalizer, and others: either may do it without the other.
func indirect(a *controllers.Answer) bool {
	return slices.ContainsFunc(a.Known, func(m finalizers.Match) bool {
		return len(m.Workloads) > 1 && slices.ContainsFunc(m.Workloads, finalizers.Workload.Instance)
	})
}

// servers returns the workloads that serve a finalizer, or may, whatever state they are in:
// what goes need not work at the moment to be missed. Where it is not known who does, nobody is who may not change the object.
func (l *forecaster) servers(n graph.Node, a *controllers.Answer) (all []*controllers.Workload, certain bool) {
	switch {
	case a.By != nil && (a.Is == controllers.Served || a.Is == controllers.Unserved):
		return []*controllers.Workload{a.By.Workload}, true
	case a.Is == controllers.Unclear:
		maybe := a.Maybe()
		if a.By != nil {
			maybe = append(maybe, a.By.Workload)
		}
		for _, w := range maybe {
			if !l.now.finder.MayNotChange(w, n) && !slices.ContainsFunc(all, func(o *controllers.Workload) bool { return o.ID() == w.ID() }) {
				all = append(all, w)
			}
		}
	}
	return all, false
}

// places returns the places of foreign finalizers on objects that stay, in the order of the first
// objects.
func (l *forecaster) places() []*place {
	type key struct {
		kind
		namespace string
	}
	found := map[key]*place{}
	var places []*place
	for n := range l.graph.Nodes() {
		if n.Virtual() || l.going[n.UID()] {
			continue
		}
		for _, finalizer := range n.Object().Finalizers {
			k := key{kind{n.Resource().GroupResource(), finalizer}, n.Namespace()}
			p := found[k]
			if p == nil && !isForeign(finalizer) {
				continue
			}
			if p == nil {
				p = &place{kind: k.kind}
				found[k], places = p, append(places, p)
			}
			if p.count++; len(p.of) < samples {
				p.of = append(p.of, n)
			}
		}
	}
	slices.SortFunc(places, func(a, b *place) int { return a.of[0].Compare(b.of[0]) })
	return places
}

// inTurn returns the places with which something that goes may have to do: the first of each
// kind, then the second of each, so that one that is everywhere leaves room for the others.
func (l *forecaster) inTurn(places []*place) []*place {
	touches, turns := l.touches(), map[kind]int{}
	var chosen []*place
	for _, p := range places {
		if _, known := turns[p.kind]; !known && len(turns) < maxKinds {
			turns[p.kind] = 0
		} else if !known {
			l.now.evidence.NoteUnread(evidence.Gap{What: say.Of(kindsUnread, maxKinds)})
			continue
		}
		if slices.ContainsFunc(l.now.finder.Candidates(p.of[0], p.finalizer), touches) {
			p.turn = turns[p.kind]
			turns[p.kind]++
			chosen = append(chosen, p)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *place) int { return cmp.Compare(a.turn, b.turn) })
	return chosen
}

// touches returns a function that reports whether a workload may lose something by the plan.
func (l *forecaster) touches() func(*controllers.Workload) bool {
	everywhere := l.goes("roles", "rolebindings", "clusterroles", "clusterrolebindings", "nodes")
	in := map[string]bool{}
	for _, id := range l.named {
		in[id.Namespace] = true
	}
	return func(w *controllers.Workload) bool { return everywhere || in[w.ID().Namespace] }
}
