// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// refusal says why an object of the plan may not be deleted.
type refusal struct {
	id      graph.Identity
	outlook Outlook
	why     say.Text
	// passing: it is so when the plan has taken away what answers, and not before.
	passing bool
	// by is the configuration of the webhook, without a name for a policy.
	by graph.Identity
	// begun: its deletion begins, and what is refused is the end of that, which a controller of Kubernetes tries again and again.
	begun bool
}

// needAnswers notes of an object that goes early that what answers at a webhook has to be there
// as long as it is, and reports whether it does.
func (l *forecaster) needAnswers(s *Forecast, n graph.Node, h *admission.Webhook) bool {
	early := false
	for _, service := range s.of[n.UID()] {
		if service.DeleteFirst {
			service.needs, early = append(service.needs, l.now.reviewer.Behind(h.ClientConfig.Service.Namespace, h.ClientConfig.Service.Name)...),
				true
		}
	}
	return early
}

// refusals finds what a webhook has to allow the deletion of that nothing answers for, now
// or when the plan takes that away: the namespace controller deletes one object after the
// other, and what answers is among them.
//
// In a safe order what goes early goes while its webhooks are answered: what answers is among
// its needs, so this is before the waves.
func (l *forecaster) refusals(s *Forecast) map[types.UID]refusal {
	refused := map[types.UID]refusal{}
	without := l.unasked()
	for _, h := range l.now.reviewer.Webhooks() {
		if h.FailurePolicy != "Ignore" && h.ClientConfig.Service == nil && l.asksAbout(h) {
			l.now.evidence.NoteOpen(say.Of(urlUnread, h.Config))
		}
		if !h.FailsClosed() || !h.Asked("DELETE") && !h.Asked("UPDATE") {
			continue
		}
		for uid := range l.going {
			n, ok := l.node(uid)
			if !ok || n.BeingDeleted() || without[uid] == never {
				continue
			}
			r := l.refusal(h, n, without[uid] == racing)
			if r.passing && l.needAnswers(s, n, h) && l.Safe {
				continue
			}
			if r.outlook > refused[uid].outlook {
				refused[uid] = r
			}
		}
	}
	l.judgedDeletions(refused, without)
	return refused
}

// asksAbout reports whether the API server asks a webhook about one of the deletions, or may.
func (l *forecaster) asksAbout(h *admission.Webhook) bool {
	for uid := range l.going {
		if n, ok := l.node(uid); ok && !n.BeingDeleted() {
			if asked, _ := l.now.reviewer.Matches(h, "DELETE", "", n); asked {
				return true
			}
		}
	}
	return false
}

// judgedDeletions adds what a ValidatingAdmissionPolicy may deny that stays: the deletion, or the end of it.
func (l *forecaster) judgedDeletions(refused map[types.UID]refusal, without map[types.UID]unasked) {
	if l.now.evidence.NoneOf(admission.PolicyBindings.GroupResource()) {
		return
	}
	deniers := map[string]func(graph.Node) (string, bool){}
	for _, part := range []string{"", "status", "finalize"} {
		deniers[part] = l.now.reviewer.Deniers("UPDATE", part, l.stands(true))
	}
	deletion := l.now.reviewer.Deniers("DELETE", "", l.stands(false))
	for uid := range l.going {
		n, ok := l.node(uid)
		if !ok || n.BeingDeleted() || without[uid] == never || refused[uid].outlook >= Unclear {
			continue
		}
		policy, certain := deletion(n)
		denied, judged, begun := deletionDenied, deletionJudged, policy == ""
		for _, part := range endOf(n) {
			if policy == "" {
				policy, certain = deniers[part](n)
				denied, judged = removalDenied, removalJudged
			}
			if part == "" && !certain && begun { // mostly it judges what is stated of it, which is the same at the end
				policy = ""
			}
		}
		if policy == "" {
			continue
		}
		by, r := evidence.Identity(evidence.AdmissionPolicies, "", policy), refusal{id: n.Identity(), begun: begun}
		switch {
		case certain && without[uid] != racing:
			r.outlook, r.why = Stuck, say.Of(StuckBy, say.Of(denied, by))
		case certain:
			r.outlook, r.why = Racing, say.Of(MayStick, say.Of(denied, by))
		default:
			r.outlook, r.why = Unclear, say.Of(MayStick, say.Of(judged, by))
		}
		refused[uid] = r
	}
}

// stands returns what reports whether something that denies the deletion of an object, or when that has begun the end of it, is there by
// then, and whether that is certain.
func (l *forecaster) stands(begun bool) func(types.UID, graph.Node) (stands, certain bool) {
	return func(uid types.UID, n graph.Node) (stands, certain bool) {
		if l.order.known() {
			return l.order.denies(uid, n, begun)
		}
		return !l.going[uid], true
	}
}

// endOf are the parts of an object, the empty one for itself, that controllers of Kubernetes change at the end of its deletion.
func endOf(n graph.Node) []string {
	parts := admission.PartsOf(n.Resource())
	if protected(n) {
		parts = append(parts, "")
	}
	return parts
}

// definitions are the types whose definitions go.
func (l *scene) definitions() map[schema.GroupResource]bool {
	types := map[schema.GroupResource]bool{}
	for uid := range l.going {
		if n, ok := l.node(uid); ok && n.Resource().IsCRD() {
			types[schema.ParseGroupResource(n.Name())] = true
		}
	}
	return types
}

// unasked says of an object whether admission is asked about its deletion.
type unasked int

const (
	always unasked = iota
	// racing: only if the tool's delete comes before the object is gone with its definition.
	racing
	never
)

// unasked are the objects whose definitions go: the API server deletes them by itself, and asks no admission
// (apiextensions-apiserver/pkg/controller/finalizer, deleteInstances), unless another tool deletes them, too.
func (l *forecaster) unasked() map[types.UID]unasked {
	definitions, without := l.definitions(), map[types.UID]unasked{}
	for uid := range l.going {
		if n, ok := l.node(uid); ok && definitions[n.Resource().GroupResource()] {
			without[uid] = never
		}
	}
	for _, id := range l.Plan.Job.Targets {
		if without[id.UID] == never && l.order.known() {
			without[id.UID] = racing
		}
	}
	return without
}

// refusal is what one webhook means for the deletion of an object.
func (l *forecaster) refusal(h *admission.Webhook, n graph.Node, races bool) refusal {
	asked, certain := l.now.reviewer.Matches(h, "DELETE", "", n)
	now, later, begun := deletionRefused, refusedByPlan, !asked
	for _, part := range endOf(n) {
		if !asked {
			asked, certain = l.now.reviewer.Matches(h, "UPDATE", part, n)
			now, later = removalRefused, removalRefusedByPlan
		}
	}
	at, goes := h.ClientConfig.Service, l.going[h.Config.UID]
	if !asked || begun && goes && !l.order.known() {
		return refusal{}
	}
	service := evidence.Identity(evidence.Services, at.Namespace, at.Name)
	outlook, passing := Expected, false
	if l.order.known() {
		outlook, passing = l.order.refusal(h, n, begun)
	} else if l.now.reviewer.ServingOf(h).Dead {
		switch {
		case goes && l.Safe:
			return refusal{} // it goes first
		case goes:
			outlook = Racing
		default:
			outlook = Stuck
		}
	} else if silenced, sure := l.silenced(at.Namespace, at.Name); silenced && !goes {
		passing = true
		switch {
		case !sure:
			outlook = Unclear
		case l.Server.PodsFirst() && n.Namespace() == at.Namespace && !n.Resource().IsPod() && l.onlyNamespaces() &&
			l.podsGo(at.Namespace, at.Name):
			outlook = Stuck
		default:
			outlook = Racing
		}
	}
	if races {
		outlook = min(outlook, Racing)
	}
	if !certain {
		outlook = min(outlook, Unclear)
	}
	refuses := say.Of(now, h.Config, service)
	if passing {
		refuses = say.Of(later, h.Config, service)
	}
	why := say.Of(MayStick, refuses)
	if outlook == Stuck {
		why = say.Of(StuckBy, refuses)
	}
	return refusal{n.Identity(), outlook, why, passing, h.Config, begun}
}

// protected reports whether an object has a finalizer that a controller of kube-controller-manager removes, by a change of the object.
func protected(n graph.Node) bool {
	return slices.ContainsFunc(n.Finalizers(),
		func(finalizer string) bool { return !graph.IsCollectorFinalizer(finalizer) && !isForeign(finalizer) })
}

// podsGo reports whether all go that answers at a service, which are pods.
func (l *forecaster) podsGo(namespace, name string) bool {
	behind := l.now.reviewer.Behind(namespace, name)
	return len(behind) > 0 && !slices.ContainsFunc(behind, func(pod types.UID) bool { return !l.going[pod] })
}

// tellRefused says of what may not be deleted, and of the namespaces in which that is, that
// they stay or may stay.
func (s *Forecast) tellRefused(p *preview.Plan) {
	inside := map[string]*gc.Outcome{}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		r, is := s.refused[o.Object.UID]
		// In the order of another tool a refusal comes before all that would keep the object when it is being deleted.
		before := o.Result != gc.Untouched && r.outlook == Stuck && len(p.Job.Barriers) > 0
		if !is || o.Result != gc.Deleted && !before {
			continue
		}
		o.Reason, o.Result = r.why, gc.Unknown
		if r.outlook == Stuck {
			o.Result = gc.Remaining
		}
		if !r.begun {
			o.WaitingFor = nil
		}
		delete(p.Expected, o.Object.UID)
		if before := inside[o.Object.Namespace]; before == nil || before.Result == gc.Unknown && o.Result == gc.Remaining {
			inside[o.Object.Namespace] = o
		}
	}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if in := inside[o.Object.Name]; in != nil && o.Object.Resource.IsNamespace() && o.Result == gc.Deleted {
			o.Result, o.Reason = in.Result, say.Of(contentFirst).And(because, in.Object.Identity())
			delete(p.Expected, o.Object.UID)
		}
	}
	s.tellKept(p)
}

// tellKept says of what goes only with something that may not be deleted, as what is in a
// namespace or depends on an owner, that it stays or may stay.
func (s *Forecast) tellKept(p *preview.Plan) {
	if len(s.refused) == 0 {
		return
	}
	k := s.keeping(p)
	for again := true; again; {
		again = false
		for i := range p.Report.Outcomes {
			o := &p.Report.Outcomes[i]
			if by := k.keeper(o); by != nil {
				o.Result, o.Reason, o.WaitingFor = by.Result, say.Of(onlyWith, by.Object.Identity()), nil
				k.kept[o.Object.UID], again = by, true
				delete(p.Expected, o.Object.UID)
			}
		}
	}
}

// keeping is how what may not be deleted keeps others.
type keeping struct {
	graph *graph.Graph
	// kept are the outcomes of what stays, or may, and with keeps what it contains; goes is
	// what the plan deletes whatever becomes of its owners.
	kept, contents map[types.UID]*gc.Outcome
	// certain are those of which the deletion is certainly refused.
	goes, certain map[types.UID]bool
}

func (s *Forecast) keeping(p *preview.Plan) *keeping {
	k := &keeping{graph: p.Graph, kept: map[types.UID]*gc.Outcome{}, contents: map[types.UID]*gc.Outcome{}, goes: map[types.UID]bool{},
		certain: map[types.UID]bool{}}
	for i := range p.Report.Outcomes {
		if o := &p.Report.Outcomes[i]; !s.refused[o.Object.UID].why.IsZero() {
			k.kept[o.Object.UID] = o
		}
	}
	for _, uid := range s.Refused() {
		k.certain[uid] = true
	}
	for _, id := range p.Job.Targets {
		n, known := p.Graph.Node(id.UID)
		if !known {
			continue
		}
		refused := k.kept[id.UID]
		k.goes[id.UID] = true
		for _, inside := range graph.Contents(p.Graph, n) {
			if refused == nil || s.refused[id.UID].begun {
				k.goes[inside.UID()] = true
			} else {
				k.contents[inside.UID()] = refused
			}
		}
	}
	return k
}

// keeper returns what keeps an object that was said to go, nil for nothing.
func (k *keeping) keeper(o *gc.Outcome) *gc.Outcome {
	uid := o.Object.UID
	n, known := k.graph.Node(uid)
	if o.Result == gc.Untouched || k.kept[uid] != nil || k.goes[uid] || !known {
		return nil
	}
	if by := k.contents[uid]; by != nil && (o.Result == gc.Deleted || k.certain[by.Object.UID]) {
		return by
	}
	for _, owner := range n.Owners() {
		if by := k.kept[owner.UID]; by != nil && o.Result == gc.Deleted {
			return by
		}
	}
	return nil
}

// Sticks reports whether something gets stuck, or may, by the order in which the plan is
// carried out.
func (s *Forecast) Sticks(safe bool) bool {
	if !s.blind.IsZero() && (s.blinds != Racing || !safe) {
		return true
	}
	for _, r := range s.refused {
		if r.outlook >= Racing {
			return true
		}
	}
	return slices.ContainsFunc(s.Services, func(service FinalizerForecast) bool { return service.outlook(safe) >= Racing })
}

// Refused returns the objects of which the API server will certainly refuse the deletion.
func (s *Forecast) Refused() []types.UID {
	var refused []types.UID
	for uid := range s.refused {
		if s.Refusal(uid) == Stuck && !s.refused[uid].begun {
			refused = append(refused, uid)
		}
	}
	return refused
}

// Refusal is whether the API server refuses the deletion of an object: Stuck when it certainly does.
func (s *Forecast) Refusal(uid types.UID) Outlook { return s.refused[uid].outlook }

// RefusedLater reports whether the API server refuses the deletion of an object, or may, only when the plan has taken away what answers.
func (s *Forecast) RefusedLater(uid types.UID) bool {
	return s.Refusal(uid) > Expected && s.refused[uid].passing
}

// Refusers returns the configurations of webhooks that nothing answers by then, and that certainly refuse a deletion, in the order of their
// identities.
func (s *Forecast) Refusers() []graph.Identity {
	var all []graph.Identity
	for _, r := range s.refused {
		if r.outlook == Stuck && r.passing {
			all = append(all, r.by)
		}
	}
	slices.SortFunc(all, graph.Identity.Compare)
	return slices.Compact(all)
}

// Unserved reports whether the controller of a finalizer of an object does not work, or is not there, whatever else goes.
func (s *Forecast) Unserved(uid types.UID) bool {
	return slices.ContainsFunc(s.of[uid],
		func(service *FinalizerForecast) bool { return service.Outlook == Stuck && !service.LosesController })
}

// Outlook is the worst one of an object's finalizers.
func (s *Forecast) Outlook(uid types.UID) Outlook {
	worst := Expected
	for _, service := range s.of[uid] {
		worst = max(worst, service.outlook(s.safe))
	}
	return worst
}

// Instead says what is deleted before all else for the sake of an object: itself, or another one. It is false when that is not to be.
type Instead func(graph.Identity) (graph.Identity, bool)

// Saved returns what is deleted before all else for the sake of the objects that get stuck, or may, in the order of the plan, and do not
// then, in the order of the identities.
func (s *Forecast) Saved(by Instead) []graph.Identity {
	stuck, saved := map[types.UID]graph.Identity{}, map[types.UID]graph.Identity{}
	for i := range s.Services {
		service := &s.Services[i]
		if service.outlook(false) >= Racing && service.outlook(true) == Expected {
			stuck[service.Object.UID] = service.Object
		}
	}
	for uid, r := range s.refused {
		if r.passing && r.outlook >= Racing {
			stuck[uid] = r.id
		}
	}
	for _, id := range stuck {
		if first := map[types.UID]graph.Identity{}; s.freed(id, first, by) {
			for _, id := range first {
				saved[id.UID] = id
			}
		}
	}
	return slices.SortedFunc(maps.Values(saved), graph.Identity.Compare)
}

// freed reports whether all finalizers are removed of an object, of what is deleted for its sake, and of what uses these, which has to go
// with them, for a controller waits until nothing does; and notes for each what is deleted first.
func (s *Forecast) freed(id graph.Identity, first map[types.UID]graph.Identity, by Instead) bool {
	if _, seen := first[id.UID]; seen {
		return true
	}
	instead, may := by(id)
	if first[id.UID] = instead; !may || !s.freed(instead, first, by) {
		return false
	}
	return !slices.ContainsFunc(s.of[id.UID], func(service *FinalizerForecast) bool {
		return service.outlook(true) > Expected ||
			slices.ContainsFunc(service.users, func(user graph.Identity) bool { return !s.freed(user, first, by) })
	})
}

// CertainlyBreaks reports whether something outside the plan stops working with it, for certain.
func (s *Forecast) CertainlyBreaks() bool {
	return slices.ContainsFunc(s.Breaks, func(b Break) bool { return b.Certain })
}

// Helps reports whether a safe order is better than the usual one for anything.
func (s *Forecast) Helps() bool {
	early := slices.ContainsFunc(s.Services, func(service FinalizerForecast) bool { return service.DeleteFirst })
	return len(s.Waves) > 0 &&
		(!early || slices.ContainsFunc(s.Services, func(service FinalizerForecast) bool { return service.DeleteFirst && !service.cyclic }))
}
