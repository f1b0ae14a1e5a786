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
	going, unsure, left := make(map[types.UID]bool, len(p.Report.Outcomes)), map[types.UID]bool{}, map[types.UID]bool{}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if stays(o) {
			left[o.Object.UID] = true
		}
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
			if !stays(o) || going[o.Object.UID] || len(o.Object.OwnerReferences) == 0 {
				continue
			}
			owners, all := p.ending(&o.Object, going, left)
			if !all {
				continue
			}
			p.followers[o.Object.UID], going[o.Object.UID], changed = true, true, true
			doubtful := func(ref graph.Reference) bool { return unsure[ref.UID] || !going[ref.UID] }
			if i := slices.IndexFunc(owners, doubtful); i >= 0 || o.Result != gc.Untouched {
				ref := owners[max(i, 0)]
				unsure[o.Object.UID], o.Result, o.Reason = true, gc.Unknown, say.Of(ifOwnerGoes, ref.Kind, ref.Name)
				if ref.State == graph.Dangling {
					o.Undecided, o.Reason = true, say.Of(garbageThen, ref.Kind, ref.Name)
				}
			}
		}
	}
}

// stays reports whether an outcome is that the job leaves an object to its other owners, or to nobody.
func stays(o *gc.Outcome) bool {
	return o.Result == gc.Untouched || o.Result == gc.OwnerReferenceRemoved || o.Result == gc.Orphaned
}

// ending are the references that an object has by then, and whether all of their owners go, or are gone: besides those that are known to,
// what is being deleted, does not exist, or has nothing but such owners itself.
func (p *Plan) ending(o *graph.Object, going, left map[types.UID]bool) (owners []graph.Reference, all bool) {
	n, ok := p.Graph.Node(o.UID)
	if !ok || n.Virtual() {
		return nil, false
	}
	owners = slices.DeleteFunc(n.Owners(), func(ref graph.Reference) bool {
		return !slices.ContainsFunc(o.OwnerReferences, func(now metav1.OwnerReference) bool { return now.UID == ref.UID })
	})
	return owners, endAll(owners, going, left, map[types.UID]bool{})
}

// endAll reports whether there are owners, and none keeps its dependents, as those that are left do. met are others that were asked about.
func endAll(owners []graph.Reference, going, left, met map[types.UID]bool) bool {
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(ref graph.Reference) bool {
		keeps, asked := met[ref.UID]
		switch {
		case going[ref.UID] || ref.State == graph.Dangling || ref.State == graph.WaitingForDependentsDeletion:
			return false
		case ref.State != graph.Solid || left[ref.UID] || ref.Owner.Virtual():
			return true
		case ref.Owner.BeingDeleted():
			return ref.Owner.OrphaningDependents()
		case asked:
			return keeps
		}
		met[ref.UID] = true // of a ring each keeps the next
		met[ref.UID] = !endAll(ref.Owner.Owners(), going, left, met)
		return met[ref.UID]
	})
}
