// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
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
	if !foresight.Needed(p) && d.order != orderSafe {
		return p, nil, nil
	}
	s := j.session
	whole := j.whole
	if whole == nil {
		snapshot, err := s.reader.Snapshot(ctx, cluster.Scope{})
		if err != nil {
			return nil, nil, err
		}
		whole = graph.New(snapshot)
	}
	sight := foresight.Look(ctx, foresight.Input{
		Plan: p, Server: world.Server, Safe: d.order == orderSafe, Workloads: j.workloads,
		Source: evidence.Source{Cluster: s.reader, Graph: whole, Events: s.reader.Events, Now: world.Now, Server: world.Server, Wait: wait},
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

// acceptable asks the API server, before the first wave is deleted, whether it would
// accept the deletes of the targets that come later: what goes first goes for their sake.
// What cannot be asked is taken to be accepted, and so is what a webhook of the first wave
// refuses because nothing answers it: it will be gone. It is asked by UID, since a target may have
// changed since the preview; when it has gone, or another has its name, there is nothing to refuse.
func (d *deletion) acceptable(ctx context.Context, j *job, p *preview.Plan) error {
	if len(j.Waves) == 0 {
		return nil
	}
	server, err := j.session.dryRunner()
	if err != nil {
		return err
	}
	for _, step := range p.Report.Steps {
		named := slices.ContainsFunc(j.Targets, func(id graph.Identity) bool { return id.UID == step.Object.UID })
		if step.Action != gc.ActionDelete || !named {
			continue
		}
		step.Options.Preconditions = metav1.NewUIDPreconditions(string(step.Object.UID))
		err := server.Ask(ctx, step, j.snapshot)
		replaced := apierrors.IsConflict(err) && len(answer.Named(err.Error())) == 0
		if err != nil && !errors.As(err, new(cluster.NotAskedError)) && !apierrors.IsNotFound(err) && !replaced && !refusedBy(j.Waves[0].Silent, err) {
			return hintedError{
				fmt.Errorf("deleting %s: the API server would not accept that: %w", step.Object.Identity(), err),
				"nothing was changed: what has to go before it is deleted only when it can go itself",
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
