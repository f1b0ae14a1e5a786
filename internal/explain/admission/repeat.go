// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// mostRepeats is how often a write is asked about again when a webhook failed that may work, with a pause before
	// each time. None begins after repeating has taken the time, but for the first.
	mostRepeats   = 3
	repeatPause   = 300 * time.Millisecond
	repeatingTime = 2 * time.Second
)

// tally is how often a webhook was asked, and how often it did not fail.
type tally struct{ asked, passed int }

// repeat asks again about a write for which the call of a webhook failed, unless nothing can answer that: one failure
// of a webhook that may work proves nothing. That is done once for each webhook.
func (a *Reviewer) repeat(r *Reply, n graph.Node, send func() Reply) {
	if r.Kind != answer.WebhookFailed {
		return
	}
	t, known := a.probed.again[r.Name]
	if !known {
		if !a.mayWork(n, *r) {
			return
		}
		t.asked = 1
		start := time.Now()
		for t.asked <= mostRepeats && (t.asked == 1 || time.Since(start) < repeatingTime) && a.probed.sent.Load() < maxProbes {
			select {
			case <-a.ctx.Done():
			case <-time.After(repeatPause):
			}
			if a.ctx.Err() != nil {
				break
			}
			a.probed.sent.Add(1)
			next := send()
			if next.tellsNothing || next.Gone {
				break
			}
			if t.asked++; next.Kind != answer.WebhookFailed || next.Name != r.Name {
				t.passed++
			}
		}
		a.probed.spent += time.Since(start)
		a.probed.again[r.Name] = t
	}
	r.Asked, r.Passed = t.asked, t.passed
}

// mayWork reports whether something may answer a webhook whose call failed: a service that has endpoints, or a URL.
func (a *Reviewer) mayWork(n graph.Node, r Reply) bool {
	named := a.WebhooksNamed(n, r, r.operation())
	return len(named) == 0 || slices.ContainsFunc(named, func(h *Webhook) bool {
		s := a.ServingOf(h)
		return s == nil || !s.Dead
	})
}
