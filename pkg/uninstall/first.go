// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// First returns what had better be deleted before the tool begins, of what is foreseen of its deletes: the custom resources that get stuck, or
// may, in its order, and would not while all of it is there. There is none ahead of a hook: it may keep these objects, free them, or refuse the
// uninstallation.
func (p *Plan) First(s *foresight.Sight) []graph.Identity {
	if s == nil || p.Hook() != nil {
		return nil
	}
	certain := p.certain(s)
	return s.Saved(func(id graph.Identity) bool { return !p.notFirst(id, certain).IsZero() })
}

// WhyNotFirst says why nothing had better be deleted before the tool begins, although something gets stuck.
func (p *Plan) WhyNotFirst(s *foresight.Sight) say.Text {
	if hook := p.Hook(); hook != nil {
		return say.Of(notBeforeHook, hook.Item.Identity())
	}
	if s == nil {
		return say.Of(noEarlier)
	}
	certain, ofKubernetes := p.certain(s), say.Text{}
	for _, id := range s.Saved(func(graph.Identity) bool { return false }) {
		why := p.notFirst(id, certain)
		if why.IsZero() || graph.BuiltinGroup(id.Resource.Group) {
			ofKubernetes = why
			continue
		}
		return why
	}
	if later := slices.DeleteFunc(s.Refusers(), func(id graph.Identity) bool { return len(p.in(id.UID)) == 0 }); len(later) > 0 {
		return say.Of(refuserFirst, someOf(later))
	}
	if !ofKubernetes.IsZero() {
		return ofKubernetes
	}
	if len(s.Unread) > 0 || len(p.graph.Snapshot().Unlisted()) > 0 {
		return say.Of(notAllRead)
	}
	return say.Of(noEarlier)
}

// notFirst is why one of the objects that would be saved is not deleted before the tool begins, zero when it is. The deletion of a tool's own object
// deletes more than that: it is the uninstallation, or another one. The controllers of Kubernetes' own types may let them go only after the object
// for which they are there, as Actions Runner Controller does with RoleBindings, Secrets and accounts
// (github.com/actions/actions-runner-controller/controllers/actions.github.com/autoscalingrunnerset_controller.go).
func (p *Plan) notFirst(id graph.Identity, certain graph.Set) say.Text {
	n, known := p.graph.Node(id.UID)
	switch {
	case p.owners[id.UID]:
		return say.Of(isUninstallation, id)
	case controlled(id.Resource.GroupResource()) != nil:
		return say.Of(deletesMore, id, argument(id))
	case slices.ContainsFunc(p.wanted, func(stays wanted) bool { return stays.object.UID == id.UID }):
		return say.Of(isToStay, id)
	case !known || !certain.Has(n):
		return say.Of(notCertain, id)
	case graph.BuiltinGroup(id.Resource.Group):
		return say.Of(kubernetesOwn, id)
	}
	return say.Text{}
}

// certain is what goes with what the tool certainly deletes, when it gets that far.
func (p *Plan) certain(s *foresight.Sight) graph.Set {
	var uids []types.UID
	for _, b := range p.Barriers {
		if b.By.UID != "" && s.Outlook(b.By.UID) != foresight.Expected {
			continue
		}
		for _, id := range b.Objects {
			if p.doubts[id.UID].IsZero() && p.openOf(id) == nil {
				uids = append(uids, id.UID)
			}
		}
	}
	return gc.Concerned(p.graph, uids)
}
