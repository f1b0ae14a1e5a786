// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// Input is what foresight is about, and with what it looks.
type Input struct {
	// Plan was made with nothing known of who removes finalizers.
	Plan *preview.Plan
	// Source reads the cluster. Its graph is of everything that may be read.
	Source evidence.Source
	// Workloads are those of the cluster; nil stands for reading them when they are needed.
	Workloads *controllers.Workloads
	// Catalogue is the built-in one when it is nil.
	Catalogue *finalizers.Catalogue
	// Server is what is known of the API server.
	Server answer.Server
	// Safe: what needs a controller that goes is deleted before that.
	Safe bool
}

// Forecast is what is foreseen of a plan.
type Forecast struct {
	// Services are the finalizers of others on what goes, in the order of the objects.
	Services []FinalizerForecast
	// Breaks is what stops working outside the plan, Lost what is lost with it or stays
	// of it, Returns what comes back.
	Breaks  []Break
	Lost    []Loss
	Returns []Return
	// Waves are in which order to delete, when some order is better than any. When
	// it was asked for they are those of the plan.
	Waves []preview.Wave
	// Unread says what could not be read, sorted.
	Unread []evidence.Gap

	of map[types.UID][]*FinalizerForecast
	// ensues are the objects that go, or may, because of the plan, and are not part of it.
	ensues []ensued
	// stuck is why of what is being deleted already and stuck, whatever the plan does.
	stuck map[types.UID]say.Text
	safe  bool
	// blind is why no namespace can be emptied when the plan is carried out, zero when they
	// can; blinds is how that comes out.
	blind  say.Text
	blinds Outlook
	// refused are the objects that may not be deleted.
	refused map[types.UID]refusal
}

// scene is the cluster now, and as it will be. All that is foreseen is read from it. It changes nothing, and owns what it
// has counted.
type scene struct {
	Input
	ctx   context.Context // of the run
	graph *graph.Graph
	going map[types.UID]bool
	// named are those of going that Kubernetes defines, by their names.
	named map[string]graph.Identity
	now   view
	then  view
	after *ensuing.Finder
}

// forecaster foresees who serves finalizers and who does not, and what stops working. It owns what it knows of policies.
type forecaster struct {
	*scene
	// order is that of another tool.
	order *barriers
	// parameters are those of policies, nil until they are asked.
	parameters []admission.Param
}

// view is the cluster at one time.
type view struct {
	evidence *evidence.Reader
	finder   *controllers.Finder
	reviewer *admission.Reviewer
}

func newView(ctx context.Context, reader *evidence.Reader, in *Input) view {
	v := view{evidence: reader}
	v.finder = controllers.New(v.evidence, in.Workloads, in.Catalogue, func() []evidence.Fact { return nil })
	v.reviewer = admission.New(ctx, nil, v.evidence, v.finder)
	v.reviewer.Versions = in.Plan.Job.Versions
	return v
}

// Needed reports whether there is anything in a plan that foresight has more to say
// about than the plan itself.
func Needed(p *preview.Plan) bool {
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i].Object
		if slices.Contains(serving, o.Resource.GroupResource()) || isNamed(o.Resource.GroupResource()) || Foreign(o.Finalizers) {
			return true
		}
		if slices.ContainsFunc(evidence.Copies, func(c evidence.Copy) bool { return c.Has(o.Resource.GroupResource()) }) {
			return true
		}
		if n, ok := p.Graph.Node(o.UID); ok && explained(n) {
			return true
		}
	}
	return freesClaims(p)
}

// freesClaims reports whether a plan deletes a pod that uses a claim which is being deleted, or was not read: with
// it that goes, and its volume may.
func freesClaims(p *preview.Plan) bool {
	claims, ending, snapshot := evidence.Claims.GroupResource(), map[string]bool{}, p.Graph.Snapshot()
	for n := range p.Graph.Nodes() {
		if n.BeingDeleted() && n.Resource().GroupResource() == claims {
			ending[n.Namespace()+"/"+n.Name()] = true
		}
	}
	return slices.ContainsFunc(p.Report.Outcomes, func(o gc.Outcome) bool {
		return o.Result != gc.Untouched && slices.ContainsFunc(snapshot.Facts.Pods[o.Object.UID].Claims, func(name string) bool {
			return ending[o.Object.Namespace+"/"+name] || !snapshot.Covers(claims, o.Object.Namespace, name)
		})
	})
}

// serving are the types of which an object may keep others from their end when it goes,
// or take something with it that is not in the cluster.
var serving = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "nodes"}, {Resource: "services"}, {Resource: "serviceaccounts"}, {Resource: "persistentvolumeclaims"},
	{Resource: "persistentvolumes"}, {Group: "storage.k8s.io", Resource: "volumeattachments"}, {Group: "apps", Resource: "statefulsets"},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}, {Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, {Group: "apiregistration.k8s.io", Resource: "apiservices"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"},
	delivery.ClusterServiceVersions,
}

// isForeign reports whether a finalizer is of a controller that somebody installed.
func isForeign(finalizer string) bool {
	if known, asked := foreign.Load(finalizer); asked {
		return known.(bool)
	}
	known := finalizers.Builtin().Find(finalizer, schema.GroupKind{})
	is := !graph.IsCollectorFinalizer(finalizer) && (len(known) == 0 || known[0].Builtin == "" ||
		known[0].Builtin == finalizers.CloudControllerManager)
	foreign.Store(finalizer, is)
	return is
}

// foreign has what isForeign has answered: a million objects have a few finalizers.
var foreign sync.Map

// Foreign reports whether one of the finalizers is of a controller that somebody installed.
func Foreign(finalizers []string) bool { return slices.ContainsFunc(finalizers, isForeign) }

// Look finds out what a plan does not tell by itself. What cannot be read makes things
// uncertain, and is no error.
func Look(ctx context.Context, in Input) *Forecast {
	if in.Catalogue == nil {
		in.Catalogue = finalizers.Builtin()
	}
	if in.Workloads == nil {
		in.Workloads = controllers.NewWorkloads(ctx, in.Source.Cluster)
	}
	going := in.Plan.Going()
	in.Source.Graph = whole(&in, going)
	l := &forecaster{scene: &scene{Input: in, ctx: ctx, graph: in.Source.Graph, going: going, named: map[string]graph.Identity{}}}
	for uid := range l.going {
		if n, ok := l.node(uid); ok && graph.BuiltinGroup(n.Resource().Group) { // others have kinds of the same names
			l.named[n.Identity().String()] = n.Identity()
		}
	}
	now := evidence.New(ctx, in.Source)
	then := now.Without(func(uid types.UID) bool { return l.going[uid] && !l.remade(uid) })
	l.now, l.then = newView(ctx, now, &in), newView(ctx, then, &in)
	l.now.evidence.Announce(l.looksAt())
	l.after = ensuing.New(ctx, in.Source, now, l.now.reviewer)
	l.order = newBarriers(l.scene)
	s := &Forecast{of: map[types.UID][]*FinalizerForecast{}, stuck: map[types.UID]say.Text{}, safe: in.Safe}
	s.Services = l.services()
	for i := range s.Services {
		service := &s.Services[i]
		s.of[service.Object.UID] = append(s.of[service.Object.UID], service)
	}
	l.ending(s)
	silent := l.silent()
	s.blind, s.blinds = l.blinded(silent)
	s.refused = l.refusals(s)
	s.Waves, s.Breaks = (&order{l.scene, s}).waves(), l.breaks(silent)
	s.Returns = (&returning{l.scene}).returns()
	s.Lost, s.ensues = (&losses{forecaster: l, told: map[types.UID]*explain.Explanation{}}).lost()
	s.Unread = l.now.evidence.Unread() // also what was read for then
	return s
}

// looksAt are the objects of the plan of which the whole is looked at.
func (l *scene) looksAt() []graph.Node {
	var nodes []graph.Node
	for uid := range l.going {
		n, ok := l.graph.Node(uid)
		if !ok || n.Virtual() {
			continue
		}
		holds := n.Resource().GroupResource() == evidence.Claims.GroupResource() ||
			n.Resource().GroupResource() == evidence.StatefulSets.GroupResource()
		if holds || explained(n) || Foreign(n.Finalizers()) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// whole is the graph of everything, with those objects of the plan that are not in it: they have gone since, or could not be read again.
func whole(in *Input, going map[types.UID]bool) *graph.Graph {
	all := in.Source.Graph
	var missing []graph.Object
	for uid := range going {
		if n, ok := all.Node(uid); ok && !n.Virtual() {
			continue
		}
		if n, ok := in.Plan.Graph.Node(uid); ok && !n.Virtual() {
			missing = append(missing, *n.Object())
		}
	}
	if len(missing) == 0 {
		return all
	}
	return graph.New(all.Snapshot().Holding(slices.Values(slices.AppendSeq(missing, all.Snapshot().Objects()))))
}

// node finds an object.
func (l *scene) node(uid types.UID) (graph.Node, bool) {
	n, ok := l.graph.Node(uid)
	return n, ok && !n.Virtual()
}

// remade reports whether something that goes comes back at once.
func (l *scene) remade(uid types.UID) bool {
	n, ok := l.node(uid)
	return ok && ensuing.Remade(n, func(uid types.UID) bool { return l.going[uid] })
}

// Serves says who removes a finalizer from an object, as preview.World asks.
func (s *Forecast) Serves(o *graph.Object, finalizer string) (who simulator.Actor, why say.Text) {
	for _, service := range s.of[o.UID] {
		if service.Finalizer != finalizer {
			continue
		}
		switch service.outlook(s.safe) {
		case Expected:
			return simulator.Acts, say.Text{}
		case Stuck:
			return simulator.Nobody, say.Text{}
		}
		return simulator.Unknown, service.why(s.safe)
	}
	return simulator.Unknown, say.Text{}
}

// Annotate adds to the outcomes of a plan, which was made with what Serves says, why.
func (s *Forecast) Annotate(p *preview.Plan) {
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if o.Object.Resource.IsNamespace() && o.Result == gc.Deleted && !s.blind.IsZero() && !(s.safe && s.blinds == Racing) {
			o.Result, o.Reason = s.blinded()
			delete(p.Expected, o.Object.UID)
			continue
		}
		services := s.of[o.Object.UID]
		named := len(o.Finalizers) == 1 &&
			slices.ContainsFunc(services, func(s *FinalizerForecast) bool { return s.Finalizer == o.Finalizers[0] })
		if at, _ := o.Reason.Find(gc.OfFinalizers); at == 0 && named && o.Reason.Len() > 1 { // the words of foresight name it
			o.Reason = o.Reason.Splice(0, 2, say.Text{}) // with the separator
		}
		if len(services) == 0 || o.Result != gc.Deleted && o.Result != gc.Remaining {
			continue
		}
		var worst *FinalizerForecast
		for _, service := range services {
			if worst == nil || service.outlook(s.safe) > worst.outlook(s.safe) {
				worst = service
			}
		}
		switch outlook := worst.outlook(s.safe); {
		case outlook == Expected && o.Result == gc.Deleted:
			o.Reason = say.Join("; ", o.Reason, worst.why(s.safe))
		case outlook == Stuck && o.Result == gc.Remaining:
			o.Reason = worst.why(s.safe)
		}
	}
	s.tellStuck(p)
	s.tellRefused(p)
}

// blinded is what becomes of a namespace that cannot be emptied.
func (s *Forecast) blinded() (gc.Result, say.Text) {
	switch s.blinds {
	case Stuck:
		return gc.Remaining, say.Of(StuckBy, s.blind)
	case Racing:
		return gc.Unknown, say.Of(UnlessFirst, s.blind)
	}
	return gc.Unknown, say.Of(MayStick, s.blind)
}
