// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
)

// acceptable asks the API server, before a wave is deleted, whether it would accept the deletes of
// the targets that come later: what goes first goes for their sake. The error is why not; a refusal is one whatever its
// code, but for that of a webhook of the wave that nothing answers: it will be gone. Each is asked about by
// UID, since it may have changed; when it has gone, or another has its name, there is nothing to refuse.
func (j *Job) acceptable(ctx context.Context, wave int) error {
	if wave >= len(j.Waves)-1 {
		return nil
	}
	server, err := j.Cluster.DryRunner()
	if err != nil {
		return err
	}
	targets := j.named()
	for _, later := range j.Waves[wave+1:] {
		for _, id := range later.Objects {
			n, known := j.Graph.Node(id.UID)
			if !known || n.Virtual() || n.BeingDeleted() || !targets.Has(id.UID) {
				continue
			}
			err := server.AskDelete(ctx, id, j.Policy)
			var notAsked cluster.NotAskedError
			switch {
			case err == nil, ProveGone(ctx, j.Cluster.Reader, id) == nil, refusedBy(j.Waves[wave].Silent, err):
			case errors.As(err, &notAsked):
				return fmt.Errorf("it is not known whether the API server would accept the delete of %s, for whose sake others go first: %w", id, err)
			default:
				return fmt.Errorf("deleting %s: the API server would not accept that: %w", id, err)
			}
		}
	}
	return nil
}

// refusedBy reports whether a write is refused because one of the webhooks could not be called,
// and for nothing else.
func refusedBy(webhooks []string, err error) bool {
	refusers := answer.Named(err.Error())
	return len(refusers) > 0 && !slices.ContainsFunc(refusers, func(r answer.Refusal) bool {
		return r.Kind != answer.WebhookFailed || !slices.Contains(webhooks, r.Name)
	})
}
