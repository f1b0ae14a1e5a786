// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// actor says who removes a finalizer: a controller of kube-controller-manager, if that
// is known to run and handles the kind, or one of which something may be known.
func (w *World) actor(o *graph.Object, finalizer string) (simulator.Actor, say.Text) {
	known := finalizers.Builtin().Find(finalizer, o.Resource.GroupVersionKind().GroupKind())
	switch {
	case len(known) > 0 && known[0].Builtin == finalizers.ControllerManager && known[0].KindFits:
		if w.ControllerManager {
			return simulator.Acts, say.Text{}
		}
	case w.Serves != nil:
		return w.Serves(o, finalizer)
	}
	return simulator.Unknown, say.Text{}
}

// foretell adds to the outcomes what the simulation says beside the engine, and is not sure of. What waits
// for things that may come, such as a finalizer whose controller is not known,
// is Unknown, and so is what waits for nothing but that.
func (p *Plan) foretell(server *simulator.Server) {
	report, unsure := p.Report, map[types.UID]bool{}
	p.ComeBack = map[types.UID]simulator.Maker{}
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		_, fate := server.Object(o.Object.UID)
		if o.Result == gc.Remaining && len(o.WaitingFor) == 0 && o.GoesWith == nil {
			addReasons(o, fate.Unknown)
			unsure[o.Object.UID] = mayEnd(fate)
		}
		if fate.ComesBack.Says != "" {
			p.ComeBack[o.Object.UID] = fate.ComesBack
		}
		addReasons(o, fate.Notes)
	}
	for changed := true; changed; {
		changed = false
		for i := range report.Outcomes {
			o := &report.Outcomes[i]
			if o.Result == gc.Remaining && !unsure[o.Object.UID] && len(o.WaitingFor) > 0 && len(o.Finalizers) == 0 {
				unsure[o.Object.UID] = !slices.ContainsFunc(o.WaitingFor, func(id graph.Identity) bool { return !unsure[id.UID] })
				changed = changed || unsure[o.Object.UID]
			}
		}
	}
	for i := range report.Outcomes {
		if o := &report.Outcomes[i]; unsure[o.Object.UID] {
			o.Result = gc.Unknown
		}
	}
}

// mayEnd reports whether everything that an object waits for may come although
// it does not in the simulation, because nothing is known of who works there. A
// kubelet that is known not to report is taken to stay away.
func mayEnd(fate simulator.Fate) bool {
	for _, wait := range fate.Waits {
		if wait.Kind == simulator.ForKubelet && wait.NodeState != simulator.NodeUnread || wait.Unknown.IsZero() {
			return false
		}
	}
	return len(fate.Waits) > 0
}

func addReasons(o *gc.Outcome, reasons []say.Text) {
	if len(reasons) == 0 {
		return
	}
	o.Reason = say.Join("; ", append([]say.Text{o.Reason}, reasons...)...)
}

// follow finds the objects that go with what they are in, or with owners that remain for
// the time being: what holds these may end while the job is done, or later. That the simulation
// did not get to what is in a Namespace, because something is held or it is not known who acts,
// keeps none of it. When it is not even sure that an owner remains, it is not sure that they do.
func (p *Plan) follow() {
	p.followers = map[types.UID]bool{}
	going, unsure := make(map[types.UID]bool, len(p.Report.Outcomes)), map[types.UID]bool{}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		held := o.Object.BeingDeleted() && (o.Result == gc.Remaining || o.Result == gc.Unknown)
		if o.Result == gc.Deleted || held && !o.Object.HasFinalizer(metav1.FinalizerOrphanDependents) {
			going[o.Object.UID] = true
		}
		if held && o.Result == gc.Unknown {
			unsure[o.Object.UID] = true
		}
		if o.GoesWith != nil {
			p.followers[o.Object.UID], going[o.Object.UID], unsure[o.Object.UID] = true, true, true
			o.Result = gc.Unknown
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range p.Report.Outcomes {
			o := &p.Report.Outcomes[i]
			owners := o.Object.OwnerReferences
			stays := func(ref metav1.OwnerReference) bool { return !going[ref.UID] }
			if o.Result != gc.Untouched || going[o.Object.UID] || len(owners) == 0 || slices.ContainsFunc(owners, stays) {
				continue
			}
			p.followers[o.Object.UID], going[o.Object.UID], changed = true, true, true
			if i := slices.IndexFunc(owners, func(ref metav1.OwnerReference) bool { return unsure[ref.UID] }); i >= 0 {
				unsure[o.Object.UID] = true
				o.Result, o.Reason = gc.Unknown, say.Of(ifOwnerGoes, owners[i].Kind, owners[i].Name)
			}
		}
	}
}
