// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// First returns what had better be deleted before the tool begins, of what is foreseen of its deletes: the custom resources that get stuck,
// or may, in its order, and would not while all of it is there. There is none ahead of a hook, or of hooks that were
// not read: they may keep these objects, free them, or refuse the uninstallation.
func (p *Plan) First(s *foresight.Forecast) []graph.Identity {
	if s == nil || p.Hook() != nil || p.first(HooksUnread) != nil {
		return nil
	}
	certain := p.certain(s)
	return s.Saved(func(id graph.Identity) (graph.Identity, bool) {
		id = p.maker(id, certain)
		return id, p.notFirst(id, certain).IsZero()
	})
}

// WhyNotFirst says why nothing had better be deleted before the tool begins, although something gets stuck.
func (p *Plan) WhyNotFirst(s *foresight.Forecast) say.Text {
	switch hook := p.Hook(); {
	case s == nil:
		return p.noneEarlier(nil)
	case hook != nil && hook.Cause == HookUnsure:
		return say.Of(noEarlier)
	case hook != nil:
		return say.Of(notBeforeHook, hook.Item.Identity())
	case p.first(HooksUnread) != nil:
		return say.Of(notBeforeUnread)
	}
	certain, ofKubernetes := p.certain(s), say.Text{}
	for _, id := range s.Saved(func(id graph.Identity) (graph.Identity, bool) { return p.maker(id, certain), true }) {
		why := p.notFirst(id, certain)
		if why.IsZero() || graph.BuiltinGroup(id.Resource.Group) {
			ofKubernetes = why
			continue
		}
		return why
	}
	if all := s.Refusers(); len(all) > 0 {
		later := slices.DeleteFunc(slices.Clone(all), func(id graph.Identity) bool { return len(p.in(id.UID)) == 0 })
		if len(later) == 0 {
			return say.Of(refuserStays, someOf(all))
		}
		return say.Of(refuserFirst, someOf(later))
	}
	if !ofKubernetes.IsZero() {
		return ofKubernetes
	}
	if len(p.early) > 0 {
		return say.Of(convertedFirst, someOf(p.early))
	}
	if spoilt := cmp.Or(p.first(TakenOver), p.Spoils()); spoilt != nil {
		return toStay(spoilt.Item.Identity(), spoilt.Cause, spoilt.Detail)
	}
	return p.noneEarlier(s.Unread)
}

// toStay says why an object is not deleted first that is to stay, or might be, for a cause.
func toStay(id graph.Identity, cause Cause, why say.Text) say.Text {
	switch {
	case why.Has(whoUnread):
		return say.Of(notAllRead)
	case cause == TakenOver:
		return say.Of(isTakenOver, id, why)
	}
	return say.Of(isToStay, id)
}

// noneEarlier says that nothing is known to help, or not everything could be read.
func (p *Plan) noneEarlier(unread []evidence.Gap) say.Text {
	if len(unread) > 0 || len(p.graph.Snapshot().Unlisted()) > 0 {
		return say.Of(notAllRead)
	}
	return say.Of(noEarlier)
}

// maker is what goes by the plan and has made an object, or its maker, and so on, the first of all: as long as that is there, its
// controller makes again what is deleted. It is the object itself when nothing has made it, or nothing of the plan.
func (p *Plan) maker(id graph.Identity, certain func(graph.Node) bool) graph.Identity {
	for _, maker := range makers(p.graph, id) {
		n, known := p.graph.Node(maker.UID)
		if !known || n.BeingDeleted() || !certain(n) && len(p.in(maker.UID)) == 0 {
			break
		}
		id = maker
	}
	return id
}

// notFirst is why one of the objects that would be saved is not deleted before the tool begins, zero when it is. What goes with it counts:
// the deletion of a tool's own object deletes more than that: it is the uninstallation, or another one. The controllers of Kubernetes' own
// types may let them go only after the object for which they are there, as Actions Runner Controller does with RoleBindings, Secrets and
// accounts (github.com/actions/actions-runner-controller/controllers/actions.github.com/autoscalingrunnerset_controller.go).
func (p *Plan) notFirst(id graph.Identity, certain func(graph.Node) bool) say.Text {
	n, known := p.graph.Node(id.UID)
	if !known {
		return say.Of(notCertain, id)
	}
	for _, n := range graph.Descendants(n).Sorted() {
		switch with := n.Identity(); {
		case with.UID == p.Own.UID:
			return say.Of(isUninstallation, id)
		case controlled(n.Resource().GroupResource()) != nil:
			return say.Of(deletesMore, with, argument(with))
		}
		for _, stays := range p.wanted {
			if stays.object.UID == n.UID() {
				return toStay(n.Identity(), stays.cause, stays.why)
			}
		}
	}
	switch {
	case !certain(n):
		return say.Of(notCertain, id)
	case graph.BuiltinGroup(id.Resource.Group):
		return say.Of(kubernetesOwn, id)
	}
	return say.Text{}
}

// certain reports whether an object goes with what the tool certainly deletes, and is not to stay, nor is what deletes it in its turn, when
// it gets that far: nothing of that may be refused. What is refused only because the tool has deleted what answers counts itself, and not
// what goes with it.
func (p *Plan) certain(s *foresight.Forecast) func(graph.Node) bool {
	var uids []types.UID
	passing, stays := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range p.wanted {
		stays[p.wanted[i].object.UID] = true
	}
	own := s.Refusal(p.Own.UID) == foresight.Expected
	for i, b := range p.Barriers {
		for _, id := range b.Objects {
			stays[id.UID] = stays[id.UID] || stays[b.By.UID] // with who deletes it, whose objects come in later barriers
			if !own || stays[id.UID] || p.unsure(i, s).Name != "" || !p.doubts[id.UID].IsZero() || p.openOf(id) != nil {
				continue
			}
			if passing[id.UID] = s.RefusedLater(id.UID); s.Refusal(id.UID) == foresight.Expected {
				uids = append(uids, id.UID)
			}
		}
	}
	goes := gc.Concerned(p.graph, uids)
	return func(n graph.Node) bool { return passing[n.UID()] || goes.Has(n) }
}
