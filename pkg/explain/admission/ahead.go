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

// removal is what TryRemoval asks about.
type removal struct {
	uid       types.UID
	finalizer string
}

// early is a probe that may be sent before it is asked for.
type early struct {
	reply func() Reply // sends it, the first time
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
func (a *Asker) Expect(removals iter.Seq2[graph.Node, string]) (done func()) {
	if a.prober == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	var queue []*early
	kinds := map[string]int{}
	for n, finalizer := range removals {
		kind, key := kindOf("PATCH", n, alikeRemovals(finalizer)), removal{n.UID(), finalizer}
		if !graph.BuiltinGroup(n.Resource().Group) || kinds[kind] == probesAlike || a.early[key] != nil {
			continue
		}
		if kinds[kind]++; len(queue) == maxProbes {
			break
		}
		e := &early{reply: sync.OnceValue(a.removal(ctx, n, finalizer))}
		a.early[key] = e
		queue = append(queue, e)
	}
	var group sync.WaitGroup
	group.Go(func() { a.sendAhead(ctx, &group, queue) })
	return func() {
		cancel()
		group.Wait()
		clear(a.early)
	}
}

// sendAhead sends probes, as long as not too many wait for somebody to ask for them.
func (a *Asker) sendAhead(ctx context.Context, group *sync.WaitGroup, queue []*early) {
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
		group.Go(func() { e.reply() })
	}
}

// claim reports whether the caller is the one to send it.
func (e *early) claim() bool { return e.claimed.CompareAndSwap(false, true) }

// take returns how a removal is asked about, by waiting for the answer if it was sent ahead.
func (a *Asker) take(n graph.Node, finalizer string) func() Reply {
	key := removal{n.UID(), finalizer}
	e := a.early[key]
	if e == nil {
		return a.removal(a.ctx, n, finalizer)
	}
	return func() Reply {
		delete(a.early, key) // who asks again wants to know again
		if !e.claim() {
			<-a.ahead
		}
		return e.reply()
	}
}
