// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// orderSafe is the value of --order with which what needs a controller that goes is
// deleted before that.
const orderSafe = "safe"

// orders are the values of --order.
var orders = []string{"default", orderSafe}

// foresee makes a plan anew with what can be found out about who removes the finalizers
// of what goes, and says what else the deletion means. A plan that goes without saying
// costs nothing, unless a safe order is asked for. What controllers do depends on the whole
// cluster, so that is read, as far as it may be, unless it was.
func (d *deletion) foresee(ctx context.Context, j *job, p *preview.Plan, world preview.World) (*preview.Plan, *foresight.Sight, error) {
	s := j.session
	some := evidence.Source{Cluster: s.reader, Graph: p.Graph, Events: s.reader.Events, Now: world.Now, Server: world.Server, Wait: wait}
	if d.order != orderSafe && !foresight.Needed(p) && !foresight.TakesOperators(ctx, some, p) {
		return p, nil, ctx.Err()
	}
	whole := j.whole
	if whole == nil {
		snapshot, err := s.reader.Snapshot(ctx, cluster.Scope{})
		if err != nil {
			return nil, nil, err
		}
		whole = graph.New(snapshot)
	}
	all := some
	all.Graph = whole
	sight := foresight.Look(ctx, foresight.Input{
		Plan: p, Server: world.Server, Safe: d.order == orderSafe, Workloads: j.workloads, Source: all,
	})
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if d.order == orderSafe {
		j.Waves = sight.Waves
	}
	world.Serves = sight.Serves
	again, err := preview.Again(ctx, p, &j.Job, world)
	if err != nil {
		return nil, nil, err
	}
	sight.Tell(again)
	again.Lose(sight.Losing())
	return again, sight, nil
}

// readAhead begins to read the workloads of the cluster if they will be asked for: one of
// the finalizers is of somebody who is looked for among them.
func readAhead(w *controllers.Workloads, finalizers []string) {
	if foresight.Foreign(finalizers) {
		w.ReadAhead()
	}
}

// alongside has the workloads read along with the scope if they will be asked for, because
// an object in deletion that concerns the command has a finalizer of somebody who is looked
// for among them.
func alongside(scope *cluster.Scope, w *controllers.Workloads, concerns func(*graph.Object) bool) {
	go finalizers.Builtin() // which takes a while the first time, and now the server is waited for
	scope.Terminating = func(o *graph.Object) {
		if concerns(o) && foresight.Foreign(o.Finalizers) {
			w.Want()
		}
	}
	scope.Whole = controllers.WorkloadTypes()
	scope.Taker = func(resource schema.GroupVersionResource) cluster.Taker {
		if t := w.Taking(resource); t != nil {
			return t
		}
		return nil
	}
}

// wholeOf returns the graph of what was read if that is the cluster with all labels, as far
// as the user may read it, and nil if not. What is read with all labels need not be read
// again for foresight, so all that is read of the cluster is.
func wholeOf(scope cluster.Scope, g *graph.Graph) *graph.Graph {
	if scope.Labels == nil && (scope.Namespace == "" || scope.Widened && len(g.Snapshot().Outside()) == 0) {
		return g
	}
	return nil
}

// acceptable asks the API server, before a wave is deleted, whether it would accept the deletes of
// the targets that come later: what goes first goes for their sake. The error is why not; a refusal is one whatever its
// code, but for that of a webhook of the wave that nothing answers: it will be gone. Each is asked about by
// UID, since it may have changed; when it has gone, or another has its name, there is nothing to refuse.
func (d *deletion) acceptable(ctx context.Context, j *job, wave int) error {
	if wave >= len(j.Waves)-1 {
		return nil
	}
	server, err := j.session.dryRunner()
	if err != nil {
		return err
	}
	targets := sets.New(uids(j.Targets)...)
	for _, later := range j.Waves[wave+1:] {
		for _, id := range later.Objects {
			n, known := j.graph.Node(id.UID)
			if !known || n.Virtual() || n.BeingDeleted() || !targets.Has(id.UID) {
				continue
			}
			err := server.AskDelete(ctx, id, j.Policy)
			var notAsked cluster.NotAskedError
			switch {
			case err == nil, isGone(ctx, j.session, id) == nil, refusedBy(j.Waves[wave].Silent, err):
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

// recommend names the command with which nothing of a plan gets stuck that would not have
// to, if there is one.
func (d *deletion) recommend(s *foresight.Sight) {
	if s == nil || d.order == orderSafe || !s.Helps() {
		return
	}
	words := []string{d.name}
	for _, word := range ordered(withoutToken(d.argv), orderSafe) {
		words = append(words, shell.Quote(word))
	}
	fmt.Fprintln(d.ErrOut, "hint: some of this needs what goes with it; this deletes that first: "+strings.Join(words, " "))
}

// ordered returns the words of a command with a value of --order in the place of the one that
// they may have; before a "--", after which there are no flags.
func ordered(words []string, order string) []string {
	const flag = "--order"
	flags, names := words, []string(nil)
	if i := slices.Index(words, "--"); i >= 0 {
		flags, names = words[:i], words[i:]
	}
	var kept []string
	for i, word := range flags {
		itsValue := i > 0 && flags[i-1] == flag
		if word != flag && !itsValue && !strings.HasPrefix(word, flag+"=") {
			kept = append(kept, word)
		}
	}
	return slices.Concat(kept, []string{flag + "=" + order}, names)
}

// withoutToken leaves the value of --token out of a command that is printed: terminals and
// logs are read by others.
func withoutToken(words []string) []string {
	const flag, hidden = "--token", "..."
	shown := slices.Clone(words)
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, flag+"="):
			shown[i] = flag + "=" + hidden
		case i > 0 && words[i-1] == flag:
			shown[i] = hidden
		}
	}
	return shown
}
