// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// errNotAgreed says why the garbage collector's work is not done to an object.
var errNotAgreed = errors.New("it is not among the changes that were agreed to")

// CollectOnly does the garbage collector's work as far as that was allowed, by the object and the action. It rests on what the job has
// read, on watches that have caught up, and on what it reads before it finishes an owner, as every collection does. told is told each write
// with the answer. The error is that of the context, or says why it could not begin or go on.
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
	if journal != nil {
		options.Keep = journal.step
	}
	server, err := j.Cluster.Server(options)
	if err != nil {
		return nil, nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	server.Concern(awaited(j))
	server.Watch(watching, j.Graph.Snapshot(), watched(j))
	server.AwaitWatches(ctx, watchesTake)
	return server, stop, nil
}
