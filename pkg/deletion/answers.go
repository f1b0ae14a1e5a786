// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

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
