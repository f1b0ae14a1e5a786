// SPDX-License-Identifier: Apache-2.0

// Package delay makes requests, answers and events take their time, whatever
// the gc.Server that they are of.
package delay

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// tick is the pause between two looks at what is due.
const tick = time.Millisecond

// Server is a gc.Server far away: requests, answers and events take their time.
// The events of a type come in order, as those of a watch do. Nobody may ask for
// events twice at once, and nobody but it may ask the server.
type Server struct {
	server  gc.Server
	longest time.Duration

	mu       sync.Mutex
	random   *rand.Rand
	inFlight int
	streams  map[schema.GroupResource][]due
	round    int // of CatchUp, which is to be proved
	proof    due // which is on its way
}

// due is an event and when it comes.
type due struct {
	at    time.Time
	event gc.Event
}

// New returns a Server before the other, with delays up to the longest. The
// random numbers are its own from now on.
func New(server gc.Server, random *rand.Rand, longest time.Duration) *Server {
	return &Server{server: server, longest: longest, random: random, streams: map[schema.GroupResource][]due{}}
}

// Of returns a server for a Collector with a random number of workers, 1 to 32, and
// that number.
func Of(server gc.Server, seed uint64, longest time.Duration) (delayed *Server, workers int) {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // G404: no secret
	workers = 1 + random.IntN(32)
	return New(server, random, longest), workers
}

// delay is mostly short, and now and then long.
func (d *Server) delay() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.random.IntN(4) {
	case 0:
		return 0
	case 1:
		return time.Duration(d.random.Int64N(int64(d.longest)))
	}
	return time.Duration(d.random.Int64N(int64(d.longest / 20)))
}

// travel makes a request: some time passes before it is carried out, and some
// before its answer is there.
func (d *Server) travel(request func() error) error {
	d.mu.Lock()
	d.inFlight++
	d.mu.Unlock()
	time.Sleep(d.delay())
	err := request()
	time.Sleep(d.delay())
	d.mu.Lock()
	d.inFlight--
	d.mu.Unlock()
	return err
}

// partial is what a server says of its watches.
type partial interface {
	Tells(resource schema.GroupResource, namespace string) bool
}

// Tells says what the server says, or what holds for one that says nothing.
func (d *Server) Tells(resource schema.GroupResource, namespace string) bool {
	p, ok := d.server.(partial)
	return !ok || p.Tells(resource, namespace)
}

// CatchUp implements gc.Server: the proof comes behind all that is on its way.
func (d *Server) CatchUp(round int) bool {
	if d.server.CatchUp(round) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.round = round
	}
	return false
}

// prove puts the proof that was asked for on its way. The events of before were sent.
func (d *Server) prove(round int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := time.Now()
	for _, stream := range d.streams {
		if n := len(stream); n > 0 && stream[n-1].at.After(last) {
			last = stream[n-1].at
		}
	}
	d.proof = due{last, gc.Event{CaughtUp: round}}
}

// wanted returns the round that was asked for since the last call, 0 for none.
func (d *Server) wanted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	round := d.round
	d.round = 0
	return round
}

// send puts events on their way, behind those of the same type.
func (d *Server) send(events []gc.Event) {
	for _, e := range events {
		if e.CaughtUp > 0 {
			d.prove(e.CaughtUp)
			continue
		}
		at := time.Now().Add(d.delay())
		d.mu.Lock()
		resource := e.Object.Resource.GroupResource()
		if before := d.streams[resource]; len(before) > 0 && before[len(before)-1].at.After(at) {
			at = before[len(before)-1].at
		}
		d.streams[resource] = append(d.streams[resource], due{at, e})
		d.mu.Unlock()
	}
}

// Get implements gc.Server.
func (d *Server) Get(ctx context.Context, resource graph.Resource, namespace, name string) (o graph.Object, err error) {
	_ = d.travel(func() error {
		o, err = d.server.Get(ctx, resource, namespace, name)
		return err
	})
	return o, err
}

// Delete implements gc.Server.
func (d *Server) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	return d.travel(func() error { return d.server.Delete(ctx, id, options) })
}

// Patch implements gc.Server.
func (d *Server) Patch(ctx context.Context, base graph.Object, patch gc.Patch) (o graph.Object, err error) {
	_ = d.travel(func() error {
		o, err = d.server.Patch(ctx, base, patch)
		return err
	})
	return o, err
}

// Events implements gc.Server. The world is at rest when nothing is on its way.
func (d *Server) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	for rests := false; ; {
		round := d.wanted() // before the events that it is about are taken
		events, err := d.server.Events(ctx, rests && round == 0)
		if err != nil && (rests || !errors.Is(err, gc.ErrAtRest)) {
			return nil, err
		}
		d.send(events)
		if round > 0 {
			d.prove(round)
		}
		events, onTheirWay := d.arrived()
		if len(events) > 0 || !wait {
			return events, nil
		}
		if rests = !onTheirWay; rests {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(tick):
		}
	}
}

// arrived returns the events that are due, and whether there are others, or
// requests.
func (d *Server) arrived() (events []gc.Event, onTheirWay bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for resource, stream := range d.streams {
		for len(stream) > 0 && !stream[0].at.After(time.Now()) {
			events = append(events, stream[0].event)
			stream = stream[1:]
		}
		d.streams[resource] = stream
		onTheirWay = onTheirWay || len(stream) > 0
	}
	if proof := d.proof; proof.event.CaughtUp > 0 && !proof.at.After(time.Now()) {
		events, d.proof = append(events, proof.event), due{}
	}
	return events, onTheirWay || d.inFlight > 0 || d.round > 0 || d.proof.event.CaughtUp > 0
}
