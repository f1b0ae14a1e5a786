// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Plan is what a job would do now, and what else that means.
type Plan struct {
	*preview.Plan
	Job *Job
	// Forecast is what is foreseen, nil when there is nothing to foresee.
	Forecast *foresight.Forecast
	// Managed: a kube-controller-manager works in the cluster, as far as can be seen.
	Managed bool
	options *Options
}

// Make makes the plan of a job: it reads what there is to know of the concerned objects beyond metadata, and
// changes nothing. The error is that of the context, of the job, or of reading the cluster as a whole. A plan, and
// the consent to it, are for one goroutine at a time.
func Make(ctx context.Context, j *Job, o Options) (*Plan, error) {
	return j.plan(ctx, &o)
}

func (j *Job) plan(ctx context.Context, o *Options) (*Plan, error) {
	reader := j.Cluster.Reader
	if j.Workloads == nil {
		j.Workloads = controllers.NewWorkloads(ctx, reader)
	}
	decisive := slices.Collect(j.Decisive(j.Graph))
	for _, n := range decisive {
		if foresight.Foreign(n.Finalizers()) { // of somebody who is looked for among the workloads
			j.Workloads.ReadAhead()
		}
	}
	world := preview.World{Graph: j.Graph}
	var reads sync.WaitGroup
	reads.Go(func() { j.Graph.Snapshot().Facts = reader.Facts(ctx, j.Graph.Snapshot(), withFacts(j.Graph, decisive)) })
	reads.Go(func() { world.Server = reader.Server(ctx) })
	world.Now = reader.Now(ctx)
	world.ControllerManager = reader.ControllerManagerAlive(ctx, world.Now)
	reads.Wait()
	p, err := preview.Make(ctx, &j.Job, world)
	if err != nil {
		return nil, err
	}
	return j.foresee(ctx, &Plan{Plan: p, Job: j, Managed: world.ControllerManager, options: o}, world)
}

// foresee makes a plan anew with what can be found out about who removes the finalizers
// of what goes, and says what else the deletion means. A plan that goes without saying
// costs nothing, unless a safe order is asked for. What controllers do depends on the whole
// cluster, so that is read, as far as it may be, unless it was.
func (j *Job) foresee(ctx context.Context, p *Plan, world preview.World) (*Plan, error) {
	reader, safe := j.Cluster.Reader, p.options.Safe
	some := evidence.Source{Cluster: reader, Graph: p.Graph, Events: reader.Events, Now: world.Now, Server: world.Server, Wait: evidence.Wait}
	if !safe && len(j.Barriers) == 0 && !foresight.Needed(p.Plan) && !foresight.Takes(ctx, some, p.Plan) {
		p.Forecast = foresight.Plain(p.Plan)
		return p, ctx.Err()
	}
	whole := j.Whole
	if whole == nil {
		snapshot, err := reader.Snapshot(ctx, cluster.Scope{})
		if err != nil {
			return nil, err
		}
		whole = graph.New(snapshot)
	}
	all := some
	all.Graph = whole
	forecast := foresight.Look(ctx, foresight.Input{Plan: p.Plan, Server: world.Server, Safe: safe, Workloads: j.Workloads, Source: all})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if j.Waves = j.InWaves(); safe {
		j.Waves = forecast.Waves
	}
	world.Serves = forecast.Serves
	again, err := preview.Again(ctx, p.Plan, &j.Job, world)
	if err != nil {
		return nil, err
	}
	forecast.Annotate(again)
	again.Lose(forecast.Losing(), forecast.Ensuing())
	p.Plan, p.Forecast = again, forecast
	return p, nil
}

// Sticks reports whether something would remain, or may because its controller goes as well, or
// something else would break for certain.
func (p *Plan) Sticks() bool {
	remains := slices.ContainsFunc(p.Report.Outcomes, func(o gc.Outcome) bool { return o.Result == gc.Remaining })
	return remains || p.Forecast != nil && (p.Forecast.Sticks(p.options.Safe) || p.Forecast.CertainlyBreaks())
}

// withFacts returns those of the decisive objects of which the preview needs to know more
// than metadata, and the pods that may use a PersistentVolumeClaim among them.
func withFacts(g *graph.Graph, decisive []graph.Node) []graph.Object {
	var objects []graph.Object
	claims, known := map[string]bool{}, map[types.UID]bool{}
	for _, n := range decisive {
		if n.HasFinalizer(finalizers.ClaimProtection) {
			claims[n.Namespace()] = true
		}
		if cluster.HasFacts(n.Resource()) {
			objects, known[n.UID()] = append(objects, n.Unlabelled()), true
		}
	}
	if len(claims) == 0 {
		return objects
	}
	for n := range g.Nodes() {
		if !n.Virtual() && n.Resource().IsPod() && claims[n.Namespace()] && !known[n.UID()] {
			objects = append(objects, n.Unlabelled())
		}
	}
	return objects
}

// Answers are what the API server says to a plan, of which it does nothing.
type Answers struct {
	// Steps are the answers to the writes, in their order: nil where it would accept, and a
	// cluster.NotAskedError where it was not asked.
	Steps []error
	// Others is how many deletions others carry out after the steps. Asked are those that the server
	// was asked about, Said what it said to each.
	Others int
	Asked  []graph.Object
	Said   []error
}

const (
	// maxOthers is about how many deletions that others carry out the server is asked, and
	// othersTime how long: namespaces are large, and webhooks slow.
	maxOthers  = 1000
	othersTime = 30 * time.Second
)

// AskServer sends every step with dryRun=All. The error is that of the context, or says why nothing can
// be asked.
func (p *Plan) AskServer(ctx context.Context) (*Answers, error) {
	server, err := p.Job.Cluster.DryRunner()
	if err != nil {
		return nil, err
	}
	a := &Answers{}
	for _, step := range p.Report.Steps {
		err := server.Ask(ctx, step, p.Graph.Snapshot())
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a.Steps = append(a.Steps, err)
	}
	others := byOthers(p.Report, p.Graph.Snapshot())
	others = graph.FirstOfEach(others, func(o graph.Object) typeWithin { return typeWithin{o.Resource.GroupVersionResource, o.Namespace} })
	a.Others, a.Asked = len(others), others[:min(len(others), maxOthers)]
	a.Said = server.AskDeletions(ctx, a.Asked, othersTime)
	return a, ctx.Err()
}

// byOthers returns the objects that are deleted by the namespace controller after the steps of
// the plan. The API server deletes the instances of a CustomResourceDefinition by itself, and
// asks no admission about them.
func byOthers(report *gc.Report, snapshot *graph.Snapshot) []graph.Object {
	stepped, emptied := map[types.UID]bool{}, map[string]bool{}
	for i := range report.Steps {
		if step := &report.Steps[i]; step.Action == gc.ActionDelete {
			stepped[step.Object.UID] = true
			if step.Object.Resource.IsNamespace() {
				emptied[step.Object.Name] = true
			}
		}
	}
	var others []graph.Object
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		if o.Object.Namespace == "" || !emptied[o.Object.Namespace] || o.Result == gc.Untouched || stepped[o.Object.UID] {
			continue
		}
		// An outcome has the object as the plan leaves it.
		if now, known := snapshot.Object(o.Object.UID); known && !now.BeingDeleted() {
			others = append(others, now)
		}
	}
	return others
}

// typeWithin is a type in a namespace: what refuses one object mostly refuses those like it.
type typeWithin struct {
	resource  schema.GroupVersionResource
	namespace string
}
