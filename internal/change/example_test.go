// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// A program deletes an object and what depends on it if somebody agrees.
func Example() {
	remove := func(ctx context.Context, config *rest.Config, id graph.Identity, asker change.Asker) (*gc.Report, error) {
		readOnly, stats := cluster.ReadOnly(config)
		reader, err := cluster.NewReader(ctx, readOnly, stats, cluster.Options{})
		if err != nil {
			return nil, err
		}
		var look func(context.Context) (*change.Job, error)
		look = func(ctx context.Context) (*change.Job, error) {
			snapshot, err := reader.Snapshot(ctx, cluster.Scope{})
			if err != nil {
				return nil, err
			}
			j := &change.Job{Cluster: change.Live(reader, config, "example"), Graph: graph.New(snapshot), Again: look}
			j.Whole, j.Job = j.Graph, preview.Job{Policy: metav1.DeletePropagationForeground}
			if _, there := snapshot.Object(id.UID); there {
				j.Targets = []graph.Identity{id}
			}
			return j, nil
		}
		job, err := look(ctx)
		if err != nil {
			return nil, err
		}
		plan, err := change.Make(ctx, job, change.Options{Asker: asker, Concurrency: 16})
		if err != nil {
			return nil, err
		}
		consent, err := plan.Consent(ctx)
		if err != nil || consent.Gone || len(consent.Plan.Report.Steps) == 0 {
			return nil, err
		}
		result, err := consent.Run(ctx)
		if result == nil {
			return nil, err
		}
		return result.Report, err
	}
	_ = remove
}
