// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// timeoutSlack is by how much an answer may be later than the time that is given to the
// webhook for which it waited.
const timeoutSlack = 2 * time.Second

// Delaying returns the webhooks that may be what a slow answer about the object waited for:
// those that are asked, may be passed over and had all their time; if there are none, all that
// are asked. certain says that the one which is returned is the only one that is asked.
func (a *Reviewer) Delaying(n graph.Node, r Reply) (suspects []*Webhook, certain bool) {
	certain = true
	for _, h := range a.Webhooks() {
		if matches, sure := a.Matches(h, r.operation(), r.Subresource, n); matches {
			suspects = append(suspects, h)
			certain = certain && sure
		}
	}
	certain = certain && len(suspects) == 1
	for _, keep := range []func(*Webhook) bool{
		func(h *Webhook) bool { return h.FailurePolicy == "Ignore" && h.timeout() <= r.Took },
		func(h *Webhook) bool { return r.Took-h.timeout() < timeoutSlack },
		func(h *Webhook) bool {
			s := a.ServingOf(h)
			return s != nil && s.Dead
		},
	} {
		kept := slices.DeleteFunc(slices.Clone(suspects), func(h *Webhook) bool { return !keep(h) })
		if len(kept) > 0 {
			suspects = kept
		}
	}
	return suspects, certain
}

func (h *Webhook) timeout() time.Duration { return time.Duration(h.TimeoutSeconds) * time.Second }

// Seconds returns how many it is given to answer: 10 where the server has put no default in the configuration.
func (h *Webhook) Seconds() int64 { return cmp.Or(h.TimeoutSeconds, 10) }

// noteSlow keeps an answer that took long, if one webhook is to blame.
func (a *Reviewer) noteSlow(r Reply, n graph.Node) {
	if !r.Slow() {
		return
	}
	suspects := a.WebhooksNamed(n, r, r.operation())
	if r.Kind != answer.WebhookFailed {
		suspects, _ = a.Delaying(n, r)
	}
	if len(suspects) == 1 {
		a.probed.slow = append(a.probed.slow, delayed{r, suspects[0]})
	}
}

// waitsToo returns an answer that took long because of a webhook that is certainly asked about
// this write as well, when enough such answers have come.
func (a *Reviewer) waitsToo(r Reply, n graph.Node) (delayed, bool) {
	seen := map[*Webhook]int{}
	for _, late := range a.probed.slow {
		if late.operation() != r.operation() || late.Subresource != r.Subresource {
			continue
		}
		if seen[late.by]++; seen[late.by] < probesAlike {
			continue
		}
		if matches, certain := a.Matches(late.by, r.operation(), r.Subresource, n); matches && certain {
			return late, true
		}
	}
	return delayed{}, false
}
