// SPDX-License-Identifier: Apache-2.0

package deletiontest

import (
	"context"
	"errors"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// manager is the field manager of what a Kit writes.
const manager = "deletiontest"

// settle is how long a round waits for another event before it ends. The next one reads everything anew, so
// what comes late is not lost.
const settle = 50 * time.Millisecond

// longest is how long one round collects: a controller that makes again what is deleted gives it work without end.
const longest = 3 * time.Second

// workers is how many requests the garbage collector of kube-controller-manager makes at once.
const workers = 20

// run makes rounds until the first context ends: one when something has changed, or somebody asks for it.
func (k *Kit) run(ctx, reading context.Context) {
	var before *round
	for ctx.Err() == nil {
		r, err := k.begin(reading, before)
		if err == nil {
			before = r
			err = r.act(ctx)
		}
		k.end(ctx, r, err)
		if err != nil {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		if r.writes == 0 {
			r.listen(ctx)
		}
	}
	if before != nil {
		before.stop()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// round is one look at everything, with what is to be done about it. Its server is heard until the next one
// watches.
type round struct {
	kit    *Kit
	number int
	reader *cluster.Reader
	graph  *graph.Graph
	server *cluster.Server
	stop   context.CancelFunc
	writes int
}

// begin reads the cluster, and follows it from there on.
func (k *Kit) begin(ctx context.Context, before *round) (*round, error) {
	k.mu.Lock()
	k.done.begun++
	r := &round{kit: k, number: k.done.begun}
	k.mu.Unlock()
	select {
	case <-k.kick:
	default:
	}
	var err error
	stats := cluster.NewStats()
	if r.reader, err = cluster.NewReader(ctx, k.config, stats, cluster.Options{}); err != nil {
		return r, err
	}
	snapshot, err := r.reader.Snapshot(ctx, cluster.Scope{})
	if err != nil {
		return r, err
	}
	options := cluster.ServerOptions{Settle: settle, IgnoreGrace: true, FieldManager: manager}
	if r.server, err = cluster.NewServer(r.reader, k.config, options); err != nil {
		return r, err
	}
	watching, stop := context.WithCancel(ctx)
	r.stop = stop
	r.server.Watch(watching, snapshot, r.reader.Resources())
	k.read(snapshot)
	if before != nil { // what it tells may be newer than the snapshot
		events, _ := before.server.Events(ctx, false)
		k.hear(events)
		before.stop()
	}
	r.graph = graph.New(snapshot)
	return r, nil
}

// act does what is due.
func (r *round) act(ctx context.Context) error {
	snapshot, deciding := r.graph.Snapshot(), []graph.Object(nil)
	for n := range r.graph.Nodes() {
		if resource := n.Resource(); !n.Virtual() && (n.BeingDeleted() || resource.IsPod()) {
			deciding = append(deciding, *n.Object())
		}
	}
	if len(deciding) > 0 {
		snapshot.Facts = r.reader.Facts(ctx, snapshot, deciding)
		if err := r.others(ctx, snapshot); err != nil {
			return err
		}
	}
	observer := func(s gc.Step) {
		if s.Err == nil { // what is refused is not done, but asked for again when something has changed
			r.writes++
		}
	}
	collecting, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	server := &tap{r.server, r.kit, r.kit.endedOwners(r.graph)}
	_, err := gc.New(server, r.graph, gc.Options{Workers: workers, Observer: observer}).Collect(collecting, "")
	if errors.Is(err, context.DeadlineExceeded) {
		r.writes++ // there is more to do
		err = nil
	}
	return err
}

// others does what the other controllers would: that of namespaces, kubelets, and those that protect claims and volumes. A pod is
// taken to be on a node that works, unless there is a Node which says that it does not; what its grace period is does not matter.
func (r *round) others(ctx context.Context, snapshot *graph.Snapshot) error {
	for _, pod := range snapshot.Facts.Pods {
		if _, known := snapshot.Facts.Nodes[pod.NodeName]; !known && pod.NodeName != "" {
			snapshot.Facts.Nodes[pod.NodeName] = true
		}
	}
	due := simulator.Due(snapshot, simulator.Options{
		Now: r.reader.Now(ctx), Server: r.reader.Server(ctx),
		Actors: simulator.Actors{NamespaceController: true, Kubelets: true, Finalizer: simulator.OfControllerManager},
	})
	for i := range due {
		if r.kit.sender.Do(ctx, &due[i]) == nil { // what has changed meanwhile is looked at in the next round
			r.writes++
		}
	}
	return ctx.Err()
}

// end says what came of a round.
func (k *Kit) end(ctx context.Context, r *round, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.failure = err
	default:
		k.failure, k.last = nil, r.graph
		if r.writes == 0 {
			k.done.idle = r.number
		}
	}
	close(k.news)
	k.news = make(chan struct{})
}

// listen returns when something has changed, or somebody asks for a round.
func (r *round) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relevant := make(chan struct{})
	go func() {
		defer close(relevant)
		for ctx.Err() == nil {
			events, err := r.server.Events(ctx, true)
			if r.kit.hear(events) || err != nil && err != gc.ErrAtRest {
				return
			}
		}
	}()
	select {
	case <-relevant:
	case <-r.kit.kick:
	case <-ctx.Done():
	}
	cancel()
	<-relevant
}

// tap is the server for a Collector, of which the Kit hears what it tells. It begins with what the Kit has heard before.
type tap struct {
	*cluster.Server
	kit   *Kit
	first []gc.Event
}

// Events implements gc.Server.
func (t *tap) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	if first := t.first; len(first) > 0 {
		t.first = nil
		return first, nil
	}
	events, err := t.Server.Events(ctx, wait)
	t.kit.hear(events)
	return events, err
}
