// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// barriers are in which order another tool sends its deletes, as preview.Job has it. They are counted from 0.
type barriers struct {
	*scene
	// of has the barriers in which each target is deleted.
	of map[types.UID][]int
	// sooner has of each barrier those that it certainly comes after.
	sooner []moment
	// begun are the barriers in which deletions begin, as far as that was asked.
	begun map[types.UID][]int
	// views are the cluster at moments, and when what an object does not await has gone, as far as that was asked.
	views map[string]view
}

// moment are the barriers of which all deletes have certainly been answered: a + for each that is among them.
type moment string

func (m moment) has(barrier int) bool { return m[barrier] == '+' }

func newBarriers(l *scene) *barriers {
	b := &barriers{scene: l, of: map[types.UID][]int{}, begun: map[types.UID][]int{}, views: map[string]view{}}
	all := l.Plan.Job.Barriers
	for i := range all {
		sooner := []byte(strings.Repeat("-", len(all)))
		for k, before := range preview.Before(len(all), i, func(k int) []int { return all[k].After }) {
			if before {
				sooner[k] = '+'
			}
		}
		b.sooner = append(b.sooner, moment(sooner))
		for _, id := range all[i].Objects {
			b.of[id.UID] = append(b.of[id.UID], i)
		}
	}
	return b
}

// known reports whether there is an order.
func (b *barriers) known() bool { return len(b.of) > 0 }

// beginsIn returns the barriers in one of which the deletion of an object begins: its own, those of the namespace in which or the
// definition of which it is, and those of its owners.
func (b *barriers) beginsIn(uid types.UID) []int {
	if known, asked := b.begun[uid]; asked {
		return known
	}
	b.begun[uid] = nil // owners may be in a cycle
	all := slices.Clone(b.of[uid])
	if n, ok := b.node(uid); ok && b.going[uid] {
		for _, name := range []string{"Namespace/" + n.Namespace(), "CustomResourceDefinition/" + n.Resource().GroupResource().String()} {
			if id, goes := b.named[name]; goes {
				all = append(all, b.beginsIn(id.UID)...)
			}
		}
		for _, ref := range n.Unlabelled().OwnerReferences {
			all = append(all, b.beginsIn(ref.UID)...)
		}
	}
	slices.Sort(all)
	b.begun[uid] = slices.Compact(all)
	return b.begun[uid]
}

// first is the first moment at which one of some barriers may begin, the last one of all if there is none.
func (b *barriers) first(in []int) moment {
	first := []byte(strings.Repeat("+", len(b.sooner)))
	for _, barrier := range in {
		for i := range first {
			if !b.sooner[barrier].has(i) {
				first[i] = '-'
			}
		}
	}
	return moment(first)
}

// begins returns the first moment at which the deletion of an object may begin.
func (b *barriers) begins(uid types.UID) (m moment, begins bool) {
	in := b.beginsIn(uid)
	return b.first(in), len(in) > 0
}

// awaited reports whether a barrier in which an object's deletion begins has been awaited at a moment.
func (b *barriers) awaited(uid types.UID, m moment) bool {
	return slices.ContainsFunc(b.beginsIn(uid), func(barrier int) bool { return m.has(barrier) && b.Plan.Job.Barriers[barrier].Awaited })
}

// gone reports whether something has certainly gone at a moment: a target that the API server removes while it answers, and what was
// awaited.
func (b *barriers) gone(uid types.UID, m moment) bool {
	n, ok := b.node(uid)
	answered := ok && slices.ContainsFunc(b.of[uid], m.has)
	return b.awaited(uid, m) || answered && len(n.Finalizers()) == 0 && !n.Resource().IsPod() &&
		!n.Resource().IsNamespace() && !n.Resource().IsCRD()
}

// spares reports whether something that goes is there as long as an object is: its barrier awaits that the object has gone.
func (b *barriers) spares(uid, object types.UID) bool {
	m, begins := b.begins(uid)
	return begins && b.awaited(object, m)
}

// step is the number, counted from 1, of the first barrier in which a target is deleted, 0 if there is none.
func (b *barriers) step(uid types.UID) int {
	if in := b.of[uid]; len(in) > 0 {
		return in[0] + 1
	}
	return 0
}

// afterwards is the cluster without what goes and may do so before an object has gone.
func (b *barriers) afterwards(n graph.Node) view {
	in := b.beginsIn(n.UID())
	if !slices.ContainsFunc(in, func(barrier int) bool { return b.Plan.Job.Barriers[barrier].Awaited }) {
		return b.then
	}
	return b.without(fmt.Sprint(in), func(uid types.UID) bool {
		return b.going[uid] && len(b.beginsIn(uid)) > 0 && !b.spares(uid, n.UID())
	})
}

// at is the cluster as it certainly is at least at a moment.
func (b *barriers) at(m moment) view {
	return b.without(string(m), func(uid types.UID) bool { return b.gone(uid, m) })
}

func (b *barriers) without(key string, gone func(types.UID) bool) view {
	v, made := b.views[key]
	if !made {
		v = newView(b.ctx, b.now.evidence.Without(gone), &b.Input)
		b.views[key] = v
	}
	return v
}

// lost returns what of a controller has certainly gone before the deletion of an object begins.
func (b *barriers) lost(n graph.Node, w *controllers.Workload, grants func() []graph.Identity) deprivation {
	m, begins := b.begins(n.UID())
	if !begins || n.BeingDeleted() {
		return deprivation{}
	}
	if b.going[w.ID().UID] && b.awaited(w.ID().UID, m) {
		return deprivation{kind: ofItself, step: b.beginsIn(w.ID().UID)[0] + 1}
	}
	if id, goes := b.named[w.Account().ID().String()]; goes && b.gone(id.UID, m) {
		return deprivation{kind: ofObject, what: []graph.Identity{id}, step: b.step(id.UID)}
	}
	if b.now.finder.MayNotChange(w, n) || !b.at(m).finder.MayNotChange(w, n) {
		return deprivation{}
	}
	lost := slices.DeleteFunc(grants(), func(id graph.Identity) bool { return !b.gone(id.UID, m) })
	return deprivation{kind: ofRights, what: lost}
}

// retried reports whether something that refuses the deletion of an object certainly goes, and does not await that, while a controller
// tries until it succeeds: the tool's, or one of Kubernetes what the tool does not delete itself, and what has begun.
func (b *barriers) retried(object, refuses types.UID, begun bool) bool {
	once := func(barrier int) bool { return !b.Plan.Job.Barriers[barrier].Retried }
	return (begun || !slices.ContainsFunc(b.of[object], once)) && b.gone(refuses, b.first(nil)) && !b.spares(refuses, object)
}

// denies reports whether a policy or a binding may still deny the deletion of an object, or when that has begun the end of it, and whether
// that is certain: the API server forgets one a second after it has gone (k8s.io/apiserver/pkg/admission/plugin/policy/generic,
// policySource).
func (b *barriers) denies(uid types.UID, n graph.Node, begun bool) (denies, certain bool) {
	m, _ := b.begins(n.UID())
	later, goes := b.begins(uid)
	return !b.awaited(uid, m) && !b.retried(n.UID(), uid, begun), !goes || slices.ContainsFunc(b.beginsIn(n.UID()), later.has)
}

// refusal is what one webhook means for the deletion of an object in this order; passing as in refusal.
func (b *barriers) refusal(h *admission.Webhook, n graph.Node, begun bool) (is Outlook, passing bool) {
	m, _ := b.begins(n.UID())
	at := h.ClientConfig.Service
	switch {
	case b.gone(h.Config.UID, m), b.retried(n.UID(), h.Config.UID, begun):
		return Expected, false
	case b.now.reviewer.ServingOf(h).Dead:
		return Stuck, false
	case b.at(m).reviewer.Serving(at.Namespace, at.Name).Dead:
		return Stuck, true
	}
	silenced, sure := b.silenced(at.Namespace, at.Name)
	switch {
	case !silenced || slices.ContainsFunc(b.beginsIn(n.UID()), b.answers(at.Namespace, at.Name).has):
		return Expected, false
	case !sure:
		return Unclear, true
	}
	return Racing, true
}

// answers returns the first moment at which something may go that answers at a service.
func (b *barriers) answers(namespace, name string) moment {
	var in []int
	if id, goes := b.named["Service/"+namespace+"/"+name]; goes {
		in = slices.Clone(b.beginsIn(id.UID))
	}
	for _, pod := range b.now.reviewer.Behind(namespace, name) {
		in = append(in, b.beginsIn(pod)...)
	}
	return b.first(in)
}
