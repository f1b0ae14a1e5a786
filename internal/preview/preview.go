// SPDX-License-Identifier: Apache-2.0

// Package preview says what a deletion will do: which writes it sends, what becomes
// of every object that it concerns, what cannot be told, and what consent to it
// covers. It runs the deletion's own algorithm on a simulation of what was read. It
// reaches no cluster and asks nobody.
package preview

import (
	"context"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// Job is one deletion or one pass of collection.
type Job struct {
	// Policy and Targets are empty for a pass of collection.
	Policy  metav1.DeletionPropagation
	Targets []graph.Identity
	// Namespace is the one that is collected, empty for all.
	Namespace string
	// Waves are the objects that are deleted one after the other, when the order is
	// to be safe; Targets are among them.
	Waves []Wave
	// Barriers are the targets in the order of another tool, nil when the job has none.
	Barriers []Barrier
	// Needs are what the controllers of targets' finalizers need beside what is theirs, by the target.
	Needs map[types.UID][]Need
	// Versions are those of the API in which another tool deletes targets, where it need not be the server's preferred one.
	Versions map[types.UID]string
	// Choose returns a target as a Collector takes it; nil stands for one that was named.
	Choose func(graph.Identity) gc.Target
	// GracePeriodSeconds is that of the targets, nil for their own.
	GracePeriodSeconds *int64
	// Why the targets are deleted, empty when the user has named them.
	Why string
}

// Barrier are targets that another tool deletes at the same time.
type Barrier struct {
	Objects []graph.Identity
	// After are barriers, counted from 0 and before this one: the answers to all their deletes have come when it begins. It is in no order
	// with those before it that it does not come after, itself or by another.
	After []int
	// Awaited: what comes after it begins only when all of it has gone.
	Awaited bool
	// Retried: a controller tries the deletes that are refused again and again.
	Retried bool
	// Wave is with which others it is played, counted from 0.
	Wave int
}

// Before has, of so many barriers, those that one certainly comes after, by what each comes after itself.
func Before(count, barrier int, after func(barrier int) []int) []bool {
	before := make([]bool, count)
	for _, sooner := range after(barrier) {
		before[sooner] = true
	}
	for i := barrier - 1; i >= 0; i-- {
		for _, sooner := range after(i) {
			before[sooner] = before[sooner] || before[i]
		}
	}
	return before
}

// Need is an object without which a controller cannot do what a finalizer is there for. It is not certain of one of several that may do.
type Need struct {
	Object  graph.Identity
	Certain bool
	// Absent: it does not exist, so in no order is the finalizer removed.
	Absent bool
}

// InWaves returns the barriers as waves, nil when they are one.
func (j *Job) InWaves() []Wave {
	var waves []Wave
	known := map[types.UID]bool{} // the first deletion of an object counts
	for _, b := range j.Barriers {
		for len(waves) <= b.Wave {
			waves = append(waves, Wave{})
		}
		for _, id := range b.Objects {
			if !known[id.UID] {
				known[id.UID], waves[b.Wave].Objects = true, append(waves[b.Wave].Objects, id)
			}
		}
	}
	if len(waves) == 1 {
		return nil
	}
	return waves
}

// Wave is deleted when all before it have gone.
type Wave struct {
	Objects []graph.Identity
	// Why says what it has to be over for.
	Why string
	// Silent are the names of webhooks that nothing answers, in configurations of this wave:
	// until it is over, they may refuse what follows.
	Silent []string
}

// Do does the job. g is of what there is; next returns a Collector for each wave, or for all of a job without
// waves, as gc.InWaves has it.
func (j *Job) Do(ctx context.Context, g *graph.Graph, next func(ctx context.Context, wave int) (*gc.Collector, error)) (*gc.Report, error) {
	if len(j.Targets) > 0 {
		return gc.InWaves(ctx, g, j.waves(), gc.DeleteOptions{Policy: j.Policy, GracePeriodSeconds: j.GracePeriodSeconds, Reason: j.Why}, next)
	}
	c, err := next(ctx, 0)
	if err != nil {
		return nil, err
	}
	return c.Collect(ctx, j.Namespace)
}

// waves returns the waves in which the targets are deleted: one if there is no order.
func (j *Job) waves() []gc.Wave {
	named := map[types.UID]bool{}
	for _, id := range j.Targets {
		named[id.UID] = true
	}
	ordered := j.Waves
	if len(ordered) == 0 {
		ordered = []Wave{{Objects: j.Targets}}
	}
	waves := make([]gc.Wave, len(ordered))
	for i := range ordered {
		for _, id := range ordered[i].Objects {
			switch {
			case len(j.Waves) > 0 && !named[id.UID]: // it would go with a target
				waves[i].Ahead = append(waves[i].Ahead, id)
			case j.Choose != nil:
				waves[i].Targets = append(waves[i].Targets, j.Choose(id))
			default:
				waves[i].Targets = append(waves[i].Targets, gc.Target{Identity: id})
			}
		}
	}
	return waves
}

// Concerned returns the objects that the job may change, as far as the graph tells.
func (j *Job) Concerned(g *graph.Graph) iter.Seq[graph.Node] {
	nodes := g.Nodes()
	if len(j.Targets) > 0 {
		nodes = gc.Concerned(g, uidsOf(j.Targets)).All()
	}
	return func(yield func(graph.Node) bool) {
		for n := range nodes {
			outside := j.Namespace != "" && n.Namespace() != j.Namespace && !n.BeingDeleted()
			if !n.Virtual() && !outside && !yield(n) {
				return
			}
		}
	}
}

// Decisive returns those of the concerned objects of which the preview may have to know
// more than metadata: what the job deletes, or others meanwhile. Of a collection these are
// the objects that are being deleted or whose references are not all solid, with all that
// goes with them, and pods that own something: these may be deleted because their node is
// gone. When it may delete a node that holds for every pod.
func (j *Job) Decisive(g *graph.Graph) iter.Seq[graph.Node] {
	if len(j.Targets) > 0 {
		return j.Concerned(g)
	}
	var roots []types.UID
	for n := range g.Nodes() {
		if !n.Virtual() && (n.BeingDeleted() || !n.AllSolid()) {
			roots = append(roots, n.UID())
		}
	}
	going, nodeGoes := gc.Concerned(g, roots), false
	for n := range going.All() {
		nodeGoes = nodeGoes || n.Resource().IsNode()
	}
	return func(yield func(graph.Node) bool) {
		for n := range j.Concerned(g) {
			mayGo := going.Has(n) || n.Resource().IsPod() && (nodeGoes || n.HasDependents())
			if mayGo && !yield(n) {
				return
			}
		}
	}
}

func uidsOf(ids []graph.Identity) []types.UID {
	uids := make([]types.UID, len(ids))
	for i := range ids {
		uids[i] = ids[i].UID
	}
	return uids
}

// World is in which the job is done.
type World struct {
	// Graph is of what was read, with the facts of its snapshot.
	Graph *graph.Graph
	// Now is the API server's time.
	Now time.Time
	// ControllerManager: kube-controller-manager is known to work.
	ControllerManager bool
	// Server is what is known of the API server.
	Server answer.Server
	// Serves says who removes a finalizer that is none of Kubernetes' own from an
	// object, as simulator.Actors has it. nil stands for Unknown.
	Serves func(o *graph.Object, finalizer string) (simulator.Actor, say.Text)
}

// Plan is a job as it would be done now.
type Plan struct {
	Job   *Job
	Graph *graph.Graph
	// Report has the writes in the order of one worker, and the outcomes with what
	// the simulation is not sure of.
	Report *gc.Report
	// Digest is the same as long as the same writes would be made to the same
	// versions of the same objects, and the same objects would go.
	Digest string
	// Takes is how long the job has to wait for others: grace periods, the namespace
	// controller, pod garbage collection.
	Takes time.Duration
	// Expected are objects that go if the controllers of their finalizers, which work
	// now, do their part.
	Expected map[types.UID]bool
	// ComeBack is of objects that go who makes them again.
	ComeBack map[types.UID]simulator.Maker
	// followers are objects that the job does not reach, and that go with their
	// owners if these, which remain by the plan, go after all.
	followers map[types.UID]bool
	// lost and ensuing are those of Lose.
	lost, ensuing []graph.Identity
	// anew makes a server like the one that the job was done on.
	anew func(simulator.Options) *simulator.Server
}

// Make makes the plan of a job. The error is that of the context, or of the job.
func Make(ctx context.Context, j *Job, w World) (*Plan, error) {
	return makeOn(ctx, j, w, simulator.New(w.Graph.Snapshot(), w.Options()))
}

// Options are those of a simulation of it.
func (w *World) Options() simulator.Options {
	return simulator.Options{
		Now: w.Now, Server: w.Server,
		Actors: simulator.Actors{
			NamespaceController: w.ControllerManager, PodGC: w.ControllerManager, Kubelets: true,
			Finalizer: w.actor,
		},
	}
}

// makeOn makes the plan of a job by doing it on a server.
func makeOn(ctx context.Context, j *Job, w World, server *simulator.Server) (*Plan, error) {
	report, err := j.Do(ctx, w.Graph, func(_ context.Context, wave int) (*gc.Collector, error) {
		g := w.Graph
		if wave > 0 {
			g = graph.New(server.Snapshot())
		}
		// What another tool deletes the cluster's own garbage collector collects.
		return gc.New(server, g, gc.Options{SeesAll: w.ControllerManager && len(j.Barriers) > 0}), nil
	})
	if err != nil {
		return nil, err
	}
	p := &Plan{Job: j, Graph: w.Graph, Report: report, Takes: server.Now().Sub(w.Now), anew: server.Anew()}
	p.foretell(server)
	p.follow()
	p.Digest = p.digest()
	return p, nil
}

// Again makes the plan of a job for which another was made before, when more is known
// of who removes finalizers, or in which order it is best done. What the user consents to
// is what the first says that the job may take away, whatever is known of controllers,
// and the order.
func Again(ctx context.Context, first *Plan, j *Job, w World) (*Plan, error) {
	hoped := hopes{}
	w.Serves = hoped.serve(j.Waves, w.Serves)
	p, err := makeOn(ctx, j, w, first.anew(w.Options()))
	if err != nil {
		return nil, err
	}
	before := map[types.UID]*gc.Outcome{}
	for i := range first.Report.Outcomes {
		before[first.Report.Outcomes[i].Object.UID] = &first.Report.Outcomes[i]
	}
	p.Expected = map[types.UID]bool{}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		switch was := before[o.Object.UID]; {
		case o.Result == gc.Deleted && (was == nil || was.Result != gc.Deleted):
			p.Expected[o.Object.UID] = true
		case stays(o) && was != nil && was.Result == gc.Unknown && first.followers[o.Object.UID] && p.followers[o.Object.UID]:
			o.Result, o.Reason = was.Result, was.Reason // whoever frees its owner takes it along
		}
	}
	p.doubt(hoped)
	p.Digest = inOrder(first.Digest, j.Waves)
	return p, nil
}

// Nothing returns the plan of a job without anything to do.
func Nothing(g *graph.Graph) *Plan {
	p := &Plan{Job: &Job{}, Graph: g, Report: &gc.Report{}}
	p.Digest = p.digest()
	return p
}

// Version returns the resourceVersion that a write of the plan finds, empty when an
// earlier one changes it.
func (p *Plan) Version(step *gc.Step) string {
	if version, ok := p.Graph.Snapshot().ResourceVersion(step.Object.UID); ok && version == step.Object.ResourceVersion {
		return version
	}
	return ""
}
