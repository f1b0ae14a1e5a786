// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Approval is what somebody agreed to: which objects go, or may, with which of them
// something is lost, and which writes others get, all by UID. Versions are no part of it:
// that a status changed is no reason to ask again.
type Approval struct {
	goes, lost map[types.UID]bool
	changes    map[change]bool
}

// change is a write to an object that stays.
type change struct {
	uid    types.UID
	action gc.Action
}

// Approve returns what agreeing to the plan means.
func (p *Plan) Approve() *Approval {
	a := &Approval{goes: map[types.UID]bool{}, lost: map[types.UID]bool{}, changes: map[change]bool{}}
	for _, uid := range p.covered() {
		a.goes[uid] = true
	}
	for i := range p.lost {
		a.lost[p.lost[i].UID] = true
	}
	for i := range p.Report.Steps {
		step := &p.Report.Steps[i]
		a.changes[change{step.Object.UID, step.Action}] = true
	}
	return a
}

// Beyond returns the first object, in the order of identities, that a plan goes beyond the approval
// with: it would go, lose a reference or a finalizer, or something would be lost with it, and that was
// not agreed to. What has got less to do is within it. harmless says of an object that nobody has
// agreed to, because it was made since, that it needs no agreement; nil stands for never.
func (a *Approval) Beyond(p *Plan, harmless func(graph.Node) bool) (graph.Identity, bool) {
	var beyond []graph.Identity
	add := func(uid types.UID) {
		if n, ok := p.Graph.Node(uid); ok {
			beyond = append(beyond, n.Identity())
		}
	}
	for _, uid := range p.covered() {
		n, known := p.Graph.Node(uid)
		if !a.goes[uid] && !(known && harmless != nil && a.onlyOwned(n) && harmless(n)) {
			add(uid)
		}
	}
	for i := range p.lost { // of the whole cluster, of which the plan's graph may be a part
		if !a.lost[p.lost[i].UID] {
			beyond = append(beyond, p.lost[i])
		}
	}
	for i := range p.Report.Steps {
		step := &p.Report.Steps[i]
		// What goes may lose a finalizer before, but a reference only when it is to stay.
		agreed := a.changes[change{step.Object.UID, step.Action}] || a.goes[step.Object.UID] && step.Action != gc.ActionRemoveOwnerReferences
		if step.Action != gc.ActionDelete && !agreed {
			add(step.Object.UID)
		}
	}
	if len(beyond) == 0 {
		return graph.Identity{}, false
	}
	return slices.MinFunc(beyond, graph.Identity.Compare), true
}

// onlyOwned reports whether an object has owners, and all of them were agreed to go.
func (a *Approval) onlyOwned(n graph.Node) bool {
	refs := n.Unlabelled().OwnerReferences
	return len(refs) > 0 && !slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return !a.goes[ref.UID] })
}
