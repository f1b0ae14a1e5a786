// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// longest is the longest delay, and tick the pause between two looks at what is
	// due.
	longest = time.Second
	tick    = time.Millisecond
)

// delayed is a gc.Server far away: requests, answers and events take their time.
// The events of a type come in order, as those of a watch do.
type delayed struct {
	gc.Server

	mu       sync.Mutex
	random   *rand.Rand
	inFlight int
	streams  map[schema.GroupResource][]due
}

// due is an event and when it comes.
type due struct {
	at    time.Time
	event gc.Event
}

func newDelayed(server gc.Server, random *rand.Rand) *delayed {
	return &delayed{Server: server, random: random, streams: map[schema.GroupResource][]due{}}
}

// delay is mostly short, and now and then long.
func (d *delayed) delay() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.random.IntN(4) {
	case 0:
		return 0
	case 1:
		return time.Duration(d.random.Int64N(int64(longest)))
	}
	return time.Duration(d.random.Int64N(int64(longest / 20)))
}

// travel makes a request: some time passes before it is carried out, and some
// before its answer is there.
func (d *delayed) travel(request func() error) error {
	d.mu.Lock()
	d.inFlight++
	d.mu.Unlock()
	time.Sleep(d.delay())
	err := request()
	d.send(d.Server.Events(context.Background(), false))
	time.Sleep(d.delay())
	d.mu.Lock()
	d.inFlight--
	d.mu.Unlock()
	return err
}

// send puts events on their way, behind those of the same type. The error is
// that of a server at rest.
func (d *delayed) send(events []gc.Event, _ error) {
	for _, e := range events {
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
func (d *delayed) Get(ctx context.Context, resource graph.Resource, namespace, name string) (o graph.Object, err error) {
	_ = d.travel(func() error {
		o, err = d.Server.Get(ctx, resource, namespace, name)
		return err
	})
	return o, err
}

// Delete implements gc.Server.
func (d *delayed) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	return d.travel(func() error { return d.Server.Delete(ctx, id, options) })
}

// Patch implements gc.Server.
func (d *delayed) Patch(ctx context.Context, base graph.Object, patch gc.Patch) (o graph.Object, err error) {
	_ = d.travel(func() error {
		o, err = d.Server.Patch(ctx, base, patch)
		return err
	})
	return o, err
}

// Events implements gc.Server. The world is at rest when nothing is on its way.
func (d *delayed) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	for {
		events, onTheirWay := d.arrived()
		if len(events) > 0 || !wait {
			return events, nil
		}
		if !onTheirWay {
			events, err := d.Server.Events(ctx, true)
			if err != nil {
				return nil, err
			}
			d.send(events, nil)
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
func (d *delayed) arrived() (events []gc.Event, onTheirWay bool) {
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
	return events, onTheirWay || d.inFlight > 0
}
