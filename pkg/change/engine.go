// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// journaled is a Server whose writes are kept in a journal before they are sent.
type journaled struct {
	Server
	journal *Journal
}

// Delete implements gc.Server.
func (s journaled) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	op := remedy.Op{Verb: remedy.Delete, Object: id, Options: &options}
	return s.keep(&op, nil, func() error { return s.Server.Delete(ctx, id, options) })
}

// Patch implements gc.Server.
func (s journaled) Patch(ctx context.Context, base graph.Object, p gc.Patch) (now graph.Object, err error) {
	op := OpOf(&gc.Step{Object: base, Patch: p})
	err = s.keep(&op, &base, func() error {
		now, err = s.Server.Patch(ctx, base, p)
		return err
	})
	return now, err
}

func (s journaled) keep(op *remedy.Op, before *graph.Object, send func() error) error {
	finish, err := s.journal.beginStep(op, before)
	if err != nil {
		return &JournalError{err}
	}
	err = send()
	if failed := finish(StatusOf(err)); failed != nil {
		err = errors.Join(err, &JournalError{failed})
	}
	return err
}

// OpOf is a write of the garbage collector as a change with its guards.
func OpOf(step *gc.Step) remedy.Op {
	id := step.Object.Identity()
	if step.Action == gc.ActionDelete {
		return remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: step.Options.PropagationPolicy})
	}
	var steps []remedy.Step
	for i, finalizer := range slices.Backward(step.Object.Finalizers) {
		if finalizer == step.Patch.RemoveFinalizer {
			at := fmt.Sprintf("/metadata/finalizers/%d", i)
			steps = append(steps, remedy.Test(at, finalizer), remedy.Remove(at))
		}
	}
	for i, ref := range slices.Backward(step.Object.OwnerReferences) {
		at := fmt.Sprintf("/metadata/ownerReferences/%d", i)
		switch {
		case slices.Contains(step.Patch.RemoveOwners, ref.UID):
			steps = append(steps, remedy.Test(at+"/uid", ref.UID), remedy.Remove(at))
		case step.Patch.Unblock && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion:
			steps = append(steps, remedy.Test(at+"/uid", ref.UID), remedy.Replace(at+"/blockOwnerDeletion", false))
		}
	}
	return remedy.PatchOf(id, steps...)
}

// errNotAgreed says why the garbage collector's work is not done to an object.
var errNotAgreed = errors.New("it is not among the changes that were agreed to")

// CollectOnly does the garbage collector's work as far as that was allowed, by the object and the action. It rests on what the job has read,
// on watches that have caught up, and on what it reads before it finishes an owner, as every collection does. told is told each write with the answer.
// The error is that of the context, or says why it could not begin or go on.
func (j *Job) CollectOnly(ctx context.Context, journal *Journal, allowed func(gc.Action, graph.Object) bool, told func(gc.Step)) error {
	guard := func(action gc.Action, o graph.Object) error {
		if !allowed(action, o) {
			return errNotAgreed
		}
		return nil
	}
	server, stop, err := j.server(ctx, cluster.ServerOptions{Settle: time.Second, IgnoreGrace: true}, journal)
	if err != nil {
		return err
	}
	defer stop()
	_, err = j.Do(ctx, j.Graph, func(context.Context, int) (*gc.Collector, error) {
		return gc.New(server, j.Graph, gc.Options{Workers: 16, Guard: guard, Observer: told}), nil
	})
	return err
}

// server returns what sends the writes of a job, with watches that have caught up. The watches last until stop.
func (j *Job) server(ctx context.Context, options cluster.ServerOptions, journal *Journal) (gc.Server, func(), error) {
	server, err := j.Cluster.Server(options)
	if err != nil {
		return nil, nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	server.Concern(awaited(j))
	server.Watch(watching, j.Graph.Snapshot(), watched(j))
	server.AwaitWatches(ctx, watchesTake)
	if journal == nil {
		return server, stop, nil
	}
	return journaled{server, journal}, stop, nil
}
