// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Clocks that differ.
const (
	InTheFuture    finding.Word = "in the future"
	RequestedAhead finding.Word = "requested ahead"
	SyncClocks     finding.Word = "sync clocks"
)

// skew is how far clocks may differ without a mention.
const skew = time.Minute

// Future is an object that was deleted in the future: only pods have a grace period, so clocks differ, and no age can be
// trusted.
func (f *Facts) Future(n graph.Node) []finding.Blocker {
	ahead := evidence.Requested(n.Object()).Sub(f.Now)
	if ahead <= skew {
		return nil
	}
	return []finding.Blocker{{Because: finding.Say(InTheFuture), Cause: &finding.Cause{
		Kind: finding.ClockSkew, At: n.Identity(), Shared: true, Verdict: finding.Unknown, Summary: finding.Say(RequestedAhead, duration.HumanDuration(ahead)),
		Evidence: []finding.Fact{
			finding.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			finding.At("the API server", "Date", f.Now.UTC().Format(time.RFC3339)),
		},
		Ways: []finding.Way{{Effect: finding.Say(SyncClocks)}},
	}}}
}
