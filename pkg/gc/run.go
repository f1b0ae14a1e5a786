// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// lastWords is how long a Collector whose context has ended waits for the events
// of deletes that were accepted.
const lastWords = 2 * time.Second

// run works until the queue is empty and the server has nothing more to tell.
func (c *Collector) run(ctx context.Context) error {
	run := c.runInOrder
	if c.options.Workers > 1 {
		run = c.runParallel
	}
	looked := map[types.UID]bool{}
	for {
		err := run(ctx)
		if ctx.Err() != nil {
			c.hearOut(ctx)
			if err == nil && !c.scheduler.nothingOpen() {
				err = ctx.Err()
			}
			return err
		}
		if err != nil || !c.lookForUnseen(ctx, looked) && !c.lookIntoGone(looked) && (!c.options.Patient || c.scheduler.nothingOpen()) {
			return err
		}
	}
}

// lookForUnseen reads the objects, once each, of which a delete was accepted and no
// event has come: their type cannot be watched. So it does the Endpoints of Services that are gone. It reports whether there were
// any. What cannot be read stays unseen.
func (c *Collector) lookForUnseen(ctx context.Context, looked map[types.UID]bool) bool {
	var group errgroup.Group
	group.SetLimit(max(1, c.options.Workers))
	found := false
	for _, o := range append(c.state.unseen(), c.scope.left()...) {
		if looked[o.UID] {
			continue
		}
		looked[o.UID], found = true, true
		group.Go(func() error {
			switch now, err := c.server.Get(ctx, *o.Resource, o.Namespace, o.Name); {
			case isGone(err, &o), err == nil && now.UID != o.UID:
				c.builder.apply(Event{Object: o, Removed: true})
			case err == nil:
				c.state.linger(c.state.of(o.UID))
				c.builder.apply(Event{Object: now})
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails
	return found
}

// lookIntoGone asks for the proof, once for each, of what became of the contents of a Namespace or
// CustomResourceDefinition that is gone: that they went before it, the events have not told of all.
// It reports whether there is something to hear of.
func (c *Collector) lookIntoGone(looked map[types.UID]bool) bool {
	var gone graph.Containers
	for v := range c.scope.containers {
		if v.gone && !looked[v.object.UID] {
			looked[v.object.UID] = true
			gone.Add(v.object.Identity())
		}
	}
	if gone.Empty() || !slices.ContainsFunc(c.scope.members(), func(n number) bool {
		v, ok := c.state.view(n)
		return ok && !v.gone && !v.lost && gone.Has(v.object.Resource, v.object.Namespace)
	}) {
		return false
	}
	c.scheduler.prove()
	return true
}

// hearOut takes in what became of the deletes that were accepted before the
// context ended, so that the report does not call gone objects remaining.
func (c *Collector) hearOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for c.state.awaitsEvents() && c.drain(ctx, true) == nil {
	}
}

func (c *Collector) runInOrder(ctx context.Context) error {
	for {
		for t, ok := c.scheduler.next(); ok; t, ok = c.scheduler.next() {
			if ctx.Err() != nil {
				c.report.unreached(t.object)
				return ctx.Err()
			}
			c.worker.do(ctx, t)
			c.scheduler.done(t)
			if err := cmp.Or(c.writer.silent(), c.drain(ctx, false)); err != nil {
				return err
			}
		}
		if c.scheduler.ends(false) {
			return nil
		}
		if !c.scheduler.queue.empty() {
			continue
		}
		if err := c.drain(ctx, true); errors.Is(err, ErrAtRest) {
			if c.scheduler.ends(true) {
				return nil
			}
		} else if err != nil {
			return err
		}
	}
}

// drain applies the events that there are, or waits for some.
func (c *Collector) drain(ctx context.Context, wait bool) error {
	events, err := c.server.Events(ctx, wait)
	for _, e := range events {
		if e.CaughtUp > 0 {
			c.scheduler.caughtUp(e)
		} else {
			c.builder.apply(e)
		}
	}
	return err
}

// runParallel keeps up to Workers tasks in flight. Events are applied as they
// come; that the server is at rest counts only if it was asked after the last
// task was done.
func (c *Collector) runParallel(ctx context.Context) error {
	rest, stop := c.startPump(ctx)
	defer stop()
	done, inFlight, wake := make(chan struct{}, c.options.Workers), 0, c.scheduler.queue.wake()
	var failure error
	for {
		for failure == nil && ctx.Err() == nil && inFlight < c.options.Workers {
			t, ok := c.scheduler.next()
			if !ok {
				break
			}
			inFlight++
			go func() {
				c.worker.do(ctx, t)
				c.scheduler.done(t)
				done <- struct{}{}
			}()
		}
		idle := inFlight == 0
		if idle && (failure != nil || ctx.Err() != nil) {
			return cmp.Or(failure, ctx.Err())
		}
		if idle && c.scheduler.ends(false) {
			return nil
		}
		var ended <-chan struct{}
		if idle { // and the pump may have ended without a word
			ended = ctx.Done()
		}
		select {
		case <-ended:
		case <-done:
			inFlight--
			c.finished.Add(1)
			failure = cmp.Or(failure, c.writer.silent())
		case <-wake:
		case v := <-rest:
			if !errors.Is(v.err, ErrAtRest) {
				failure = v.err
			} else if idle && v.done == c.finished.Load() && c.scheduler.ends(true) {
				return nil
			}
		}
	}
}

// verdict is an error of the server's events, with the number of tasks that
// were done when it was asked for them.
type verdict struct {
	err  error
	done int64
}

// startPump starts the pump. The function that it returns ends it, and returns
// when it has ended.
func (c *Collector) startPump(ctx context.Context) (<-chan verdict, func()) {
	ctx, cancel := context.WithCancel(ctx)
	rest, ended := make(chan verdict), make(chan struct{})
	go func() {
		defer close(ended)
		c.pump(ctx, rest)
	}()
	return rest, func() {
		cancel()
		<-ended
	}
}

// pump applies the server's events until the context ends, wakes the queue
// after them, and sends every error of the server to rest.
func (c *Collector) pump(ctx context.Context, rest chan<- verdict) {
	for {
		done := c.finished.Load()
		err := c.drain(ctx, true)
		c.scheduler.queue.notify()
		if err == nil {
			continue
		}
		select {
		case rest <- verdict{err, done}:
		case <-ctx.Done():
			return
		}
		if !errors.Is(err, ErrAtRest) {
			return
		}
	}
}
