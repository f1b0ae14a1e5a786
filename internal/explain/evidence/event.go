// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Event is what is needed of an Event, of either API.
type Event struct {
	// About has a kind and a name alone.
	About                 graph.Identity
	Type, Reason, Message string
	Reporter              string // the component
	First, Last           time.Time
	Count                 int64
}

// NewEvent takes what is needed out of an Event.
func NewEvent(o *unstructured.Unstructured) Event {
	e := Event{Type: Nested(o, "type"), Reason: Nested(o, "reason"), Message: Nested(o, "message"), Count: 1}
	e.About = Named(Nested(o, "involvedObject", "kind"), "", Nested(o, "involvedObject", "name"))
	e.Reporter = cmp.Or(Nested(o, "reportingComponent"), Nested(o, "source", "component"))
	for _, path := range [][]string{{"firstTimestamp"}, {"eventTime"}, {"lastTimestamp"}, {"series", "lastObservedTime"}} {
		t, err := time.Parse(time.RFC3339Nano, Nested(o, path...))
		if err != nil {
			continue
		}
		if e.First.IsZero() {
			e.First = t
		}
		e.Last = Latest(e.Last, t)
	}
	for _, path := range [][]string{{"count"}, {"series", "count"}} {
		if n, ok, _ := unstructured.NestedInt64(o.Object, path...); ok && n > e.Count {
			e.Count = n
		}
	}
	return e
}

// Fact is the event as it was read.
func (e Event) Fact() Fact {
	return At(say.Of(eventAbout, e.About), "message", e.words())
}

// Repeats reports whether the event came more than once, or for that long.
func (e Event) Repeats(long time.Duration) bool { return e.Count > 1 || e.Last.Sub(e.First) >= long }
