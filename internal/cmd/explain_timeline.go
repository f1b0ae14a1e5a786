// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mostTold is the number of objects whose past a ticket tells.
const mostTold = 10

// timeline is the past of what was asked for and of what it waits for, as far as it can be read: who wrote an object, when its conditions
// changed, and what events say.
func timeline(ctx context.Context, l *look) []render.Moment {
	var ids []graph.Identity
	told := map[graph.Identity]bool{}
	add := func(id graph.Identity) {
		if !told[id] && len(ids) < mostTold && id.Name != "" {
			told[id], ids = true, append(ids, id)
		}
	}
	for _, c := range l.report.Causes {
		add(c.Object)
	}
	var moments, asked []render.Moment
	for i := range l.report.Objects {
		o := &l.report.Objects[i]
		add(o.Object)
		if told[o.Object] && !o.Since.IsZero() {
			asked = append(asked, render.Moment{Time: o.Since, Object: o.Object, What: "its deletion was requested"})
		}
	}
	for _, id := range ids {
		moments = append(moments, past(ctx, l.session, id)...)
	}
	return append(moments, asked...)
}

// past is what happened to an object.
func past(ctx context.Context, s *session, id graph.Identity) (moments []render.Moment) {
	happened := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			moments = append(moments, render.Moment{Time: at.UTC().Truncate(time.Second), Object: id,
				What: strings.TrimRight(fmt.Sprintf(format, args...), ": ")})
		}
	}
	whole, err := s.reader.Read(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name)
	if err != nil || id.UID != "" && whole.GetUID() != id.UID {
		return nil
	}
	happened(whole.GetCreationTimestamp().Time, "created")
	for _, entry := range whole.GetManagedFields() {
		if entry.Time != nil {
			happened(entry.Time.Time, "%s by %s", strings.TrimSpace("last written "+entry.Subresource), entry.Manager)
		}
	}
	for _, c := range evidence.Conditions(whole) {
		happened(c.Since, "%s is %s: %s", c.Type, c.Status, c.Said())
	}
	events, err := s.reader.Events(ctx, id.Namespace, whole.GetUID())
	if err != nil {
		return moments
	}
	for i := range events {
		e := evidence.NewEvent(&events[i])
		happened(e.Last, "%d x %s of %s: %s", e.Count, e.Reason, e.Reporter, e.Message)
	}
	return moments
}
