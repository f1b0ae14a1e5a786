// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/finalizer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// foreign is a finalizer, in one of the lists, of a controller outside this program. Behind it may be what refuses the pods
// of one that does not run.
func (w *walker) foreign(m rules.Mark, list finalizers.Field) []hold {
	blockers, down := finalizer.Foreign(w.rules, m, list)
	holds := w.holdsOf(m.Node, blockers)
	if down == nil {
		return holds
	}
	unmade := hold{because: podsCannotBeMade}.of(blockers[0])
	for _, root := range w.podsRefused(down) {
		unmade.cause = root
		holds = append(holds, unmade)
	}
	return holds
}

// podsRefused are the webhooks that keep the pods of a workload from being created: the one
// that the API server names, if it is known which, and all others that must allow them
// and cannot be reached.
func (w *walker) podsRefused(l *controllers.Workload) []*Cause {
	message, id := w.finder.StateOf(l).Obstacle, l.ID()
	r := admission.Reply{Refusal: answer.ToWrite(errors.New(message)), About: id}
	if message == "" || r.Kind != answer.WebhookFailed {
		return nil
	}
	n, known := w.evidence.Node(id.Resource.GroupResource(), id.Namespace, id.UID)
	if !known {
		return nil
	}
	fact := Evidence{Source: id.String(), Path: "status.conditions[ReplicaFailure]", Value: message}
	var all []*Cause
	if suspects := w.asker.WebhooksNamed(n, r, "CREATE"); len(suspects) == 1 {
		all = append(all, w.webhookDead(n, suspects[0], w.asker.ServingOf(suspects[0]), fact, message))
	}
	for h, s := range w.asker.DeadForPods(n) {
		must := Evidence{Source: id.String(), Value: coversPods}
		if c := w.webhookDead(n, h, s, must, ""); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}
