// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// barriers are in which order another tool sends its deletes, as preview.Job has it. They are counted from 0.
type barriers struct {
	*scene
	// of has the barrier in which each target is deleted.
	of map[types.UID]int
	// begun are the barriers in which deletions begin, as far as that was asked.
	begun map[types.UID]int
	// before has the cluster as it is when a barrier begins.
	before map[int]view
}

// never is the barrier of what is not deleted.
const never = math.MaxInt

func newBarriers(l *scene) *barriers {
	b := &barriers{scene: l, of: map[types.UID]int{}, begun: map[types.UID]int{}, before: map[int]view{}}
	for i, ids := range l.Plan.Job.Barriers {
		for _, id := range ids {
			b.of[id.UID] = i
		}
	}
	return b
}

// known reports whether there is an order.
func (b *barriers) known() bool { return len(b.of) > 0 }

// begins returns the first barrier in which the deletion of an object may begin: its own, that of the namespace in which or the
// definition of which it is, or that of an owner.
func (b *barriers) begins(uid types.UID) int {
	if known, asked := b.begun[uid]; asked {
		return known
	}
	b.begun[uid] = never // owners may be in a cycle
	first, own := b.of[uid]
	if !own {
		first = never
	}
	if n, ok := b.node(uid); ok && b.going[uid] {
		for _, name := range []string{"Namespace/" + n.Namespace(), "CustomResourceDefinition/" + n.Resource().GroupResource().String()} {
			if id, goes := b.named[name]; goes {
				first = min(first, b.begins(id.UID))
			}
		}
		for _, ref := range n.Unlabelled().OwnerReferences {
			first = min(first, b.begins(ref.UID))
		}
	}
	b.begun[uid] = first
	return first
}

// gone reports whether a target has certainly gone when a barrier begins: the API server removes it while it answers.
func (b *barriers) gone(uid types.UID, barrier int) bool {
	own, target := b.of[uid]
	n, ok := b.node(uid)
	if b.Plan.Job.Awaits {
		return b.begins(uid) < barrier
	}
	return target && own < barrier && ok && len(n.Finalizers()) == 0 && !n.Resource().IsPod() && !n.Resource().IsNamespace() && !n.Resource().IsCRD()
}

// spares reports whether something that goes is there as long as an object is: its barrier awaits that the object has gone.
func (b *barriers) spares(uid, object types.UID) bool {
	return b.Plan.Job.Awaits && b.begins(uid) > b.begins(object)
}

// afterwards is the cluster without what goes and may do so before an object has gone.
func (b *barriers) afterwards(n graph.Node) view {
	if !b.Plan.Job.Awaits || b.begins(n.UID()) == never {
		return b.then
	}
	return b.at(b.begins(n.UID()) + 1)
}

// at is the cluster as it certainly is at least when a barrier begins.
func (b *barriers) at(barrier int) view {
	v, made := b.before[barrier]
	if !made {
		gone := func(uid types.UID) bool { return b.gone(uid, barrier) }
		v = newView(b.ctx, b.now.evidence.Without(gone), &b.Input)
		b.before[barrier] = v
	}
	return v
}

// lost returns what of a controller has certainly gone before the deletion of an object begins.
func (b *barriers) lost(n graph.Node, w *controllers.Workload, grants func() []string) deprivation {
	if !b.known() || n.BeingDeleted() {
		return deprivation{}
	}
	barrier := b.begins(n.UID())
	if barrier == never {
		return deprivation{}
	}
	if b.Plan.Job.Awaits && b.going[w.ID().UID] && b.gone(w.ID().UID, barrier) {
		return deprivation{kind: ofItself, step: b.begins(w.ID().UID) + 1}
	}
	account := w.Account().String()
	if id, goes := b.named[account]; goes && b.gone(id.UID, barrier) {
		return deprivation{kind: ofObject, what: account, step: b.of[id.UID] + 1}
	}
	if b.now.finder.MayNotChange(w, n) || !b.at(barrier).finder.MayNotChange(w, n) {
		return deprivation{}
	}
	var names []string
	for _, name := range grants() {
		if id, goes := b.named[name]; goes && b.gone(id.UID, barrier) {
			names = append(names, name)
		}
	}
	return deprivation{kind: ofRights, what: strings.Join(names, ", ")}
}

// refusal is what one webhook means for the deletion of an object in this order; passing as in refusal.
func (b *barriers) refusal(h *admission.Webhook, n graph.Node) (is Outlook, passing bool) {
	barrier, at := b.begins(n.UID()), h.ClientConfig.Service
	switch {
	case b.gone(h.Config.UID, barrier):
		return Expected, false
	case b.now.asker.ServingOf(h).Dead:
		return Stuck, false
	case b.at(barrier).asker.Serving(at.Namespace, at.Name).Dead:
		return Stuck, true
	}
	silenced, sure := b.silenced(at.Namespace, at.Name)
	switch {
	case !silenced || b.answers(at.Namespace, at.Name) > barrier:
		return Expected, false
	case !sure:
		return Unclear, true
	}
	return Racing, true
}

// answers returns the first barrier in which something goes that answers at a service.
func (b *barriers) answers(namespace, name string) int {
	first := never
	if id, goes := b.named["Service/"+namespace+"/"+name]; goes {
		first = b.begins(id.UID)
	}
	for _, pod := range b.now.asker.Behind(namespace, name) {
		first = min(first, b.begins(pod))
	}
	return first
}
