// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/differential/delay"
)

// Stale returns the graph of a play and a server of another, which is how the first is by now, with as much of
// the same scenario. The server's events begin with what has changed between them.
func (w *World) Stale(before, after gctest.Play) (*graph.Graph, gc.Server) {
	old, now := before.(*play), after.(*play)
	old.finish()
	now.finish()
	g := graph.New(old.snapshot(collected, ""))
	was := map[types.UID]graph.Object{}
	for _, o := range old.objects {
		was[o.UID] = o
	}
	var news []gc.Event
	for i := range now.objects {
		o := &now.objects[i]
		version := o.ResourceVersion
		if o.ResourceVersion = was[o.UID].ResourceVersion; equality.Semantic.DeepEqual(*o, was[o.UID]) {
			continue
		}
		o.ResourceVersion = "1" + strconv.Itoa(i) + version // later than all of before
		news = append(news, gc.Event{Object: *o})
	}
	for _, o := range old.objects {
		if !slices.ContainsFunc(now.objects, func(other graph.Object) bool { return other.UID == o.UID }) {
			news = append(news, gc.Event{Object: o, Removed: true})
		}
	}
	return g, delay.New(&beginning{Server: now.simulate(), news: news}, w.Delays, w.Late)
}

// beginning is a server whose events begin with others.
type beginning struct {
	gc.Server
	news []gc.Event
}

// Events implements gc.Server.
func (b *beginning) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	if news := b.news; len(news) > 0 {
		b.news = nil
		return news, nil
	}
	return b.Server.Events(ctx, wait)
}
