// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// aheadOf is how many probes are on their way, or answered, that nobody has asked for yet. The
// last of a run are not sent ahead, so that it sends no more of them than count.
const aheadOf = 8

// write is what TryRemoval asks about, or TryDelete: then it has no finalizer.
type write struct {
	uid       types.UID
	finalizer string
}

// early is a probe that may be sent before it is asked for.
type early struct {
	ask func() Reply
	// reply is the answer when done is closed. Whoever claimed it asks.
	reply Reply
	done  chan struct{}
	// claimed: it is sent, ahead or because it was asked for.
	claimed atomic.Bool
}

// Expect begins to send, beside what else is done, the probes of TryRemoval that are about to
// be asked for, in this order: the API server takes its time for each, and asks webhooks, which
// take theirs. What is asked, and what the answers are, does not depend on it: a probe counts
// when its answer is asked for. Only those are sent ahead that are sent in any case, if
// TryRemoval is called for all: as many of a kind as must be asked before one answer is taken
// for all of them, and of types that can only be the API server's own. Done takes back what
// nobody has asked for.
func (a *Reviewer) Expect(removals iter.Seq2[graph.Node, string]) (done func()) {
	if a.prober == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	var keys []write
	kinds := map[string]int{}
	for n, finalizer := range removals {
		kind, key := kindOf("PATCH", n, alikeRemovals(finalizer)), write{n.UID(), finalizer}
		if !graph.BuiltinGroup(n.Resource().Group) || kinds[kind] == probesAlike || a.early[key] != nil {
			continue
		}
		if kinds[kind]++; len(keys) == maxProbes {
			break
		}
		a.early[key] = newEarly(a.removal(ctx, n, finalizer))
		keys = append(keys, key)
	}
	return a.send(ctx, cancel, keys)
}

// ExpectDelete begins to ask about the deletion of objects as Expect does: of the first of
// them, that is, as many as must be asked before a webhook that does not answer is not waited
// for any more.
func (a *Reviewer) ExpectDelete(nodes []graph.Node) (done func()) {
	if a.prober == nil || len(a.probed.slow) > 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	var keys []write
	for _, n := range nodes[:min(len(nodes), probesAlike)] {
		if key := (write{n.UID(), ""}); graph.BuiltinGroup(n.Resource().Group) && a.early[key] == nil {
			a.early[key] = newEarly(a.deletion(ctx, n))
			keys = append(keys, key)
		}
	}
	return a.send(ctx, cancel, keys)
}

// send begins to send the early probes of the keys. What it returns takes back those that
// nobody has asked for.
func (a *Reviewer) send(ctx context.Context, cancel func(), keys []write) (done func()) {
	var queue []*early
	for _, key := range keys {
		queue = append(queue, a.early[key])
	}
	var group sync.WaitGroup
	group.Go(func() { a.sendAhead(ctx, &group, queue) })
	return func() {
		cancel()
		group.Wait()
		for _, key := range keys {
			if e := a.early[key]; e != nil && e.claimed.Load() {
				<-a.ahead
			}
			delete(a.early, key)
		}
	}
}

// sendAhead sends probes, as long as not too many wait for somebody to ask for them.
func (a *Reviewer) sendAhead(ctx context.Context, group *sync.WaitGroup, queue []*early) {
	for _, e := range queue {
		select {
		case <-ctx.Done():
			return
		case a.ahead <- struct{}{}:
		}
		if a.probed.sent.Load()+int64(len(a.ahead)) > maxProbes-aheadOf { // this one is among them
			return
		}
		if !e.claim() {
			<-a.ahead
			continue
		}
		group.Go(e.send)
	}
}

func newEarly(ask func() Reply) *early { return &early{ask: ask, done: make(chan struct{})} }

// send asks, for whoever claimed it.
func (e *early) send() {
	e.reply = e.ask()
	close(e.done)
}

// claim reports whether the caller is the one to send it.
func (e *early) claim() bool { return e.claimed.CompareAndSwap(false, true) }

// take returns how a write is asked about, by waiting for the answer if it was sent ahead,
// and by ask if not.
func (a *Reviewer) take(key write, ask func() Reply) func() Reply {
	e := a.early[key]
	if e == nil {
		return ask
	}
	return func() Reply {
		delete(a.early, key) // who asks again wants to know again
		if e.claim() {
			e.send()
		} else {
			<-a.ahead
		}
		<-e.done
		return e.reply
	}
}
