// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// gather is how long a tree waits for further changes after one: they come in
// groups. A tree is not drawn again as long as drawing it would take more than one part
// in lookShare of the time.
const gather = 200 * time.Millisecond

// follow draws the tree, and again when the watches tell of a change of what it shows or
// of what would belong to it, until the context ends or what was named is gone.
func (o *treeOptions) follow(ctx context.Context) error {
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return err
	}
	began, on := time.Now(), o.newScreen(true)
	defer on.close()
	drawn, err := o.draw(ctx, s, on, "")
	if err != nil {
		return err
	}
	// The watches read, and nothing else: their client refuses writes.
	server, err := cluster.NewServer(s.reader, s.config, cluster.ServerOptions{})
	if err != nil {
		return err
	}
	watches, stop := context.WithCancel(ctx)
	defer stop()
	server.Watch(watches, drawn.graph.Snapshot(), o.watched(s, drawn.graph.Snapshot()))
	for ctx.Err() == nil {
		took := time.Since(began)
		if err := o.await(ctx, server, drawn); err != nil {
			return err
		}
		wait(ctx, max(gather, lookShare*took))
		began = time.Now()
		again, err := o.draw(ctx, s, on, drawn.text)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case o.named() && apierrors.IsNotFound(err):
			fmt.Fprintf(o.ErrOut, "Nothing is left to watch: %s\n", render.Line(message(err)))
			return nil
		case err != nil:
			fmt.Fprintf(o.ErrOut, "warning: could not look again: %s\n", render.Line(message(err)))
			on.draw()
		default:
			drawn = again
		}
	}
	return ctx.Err()
}

// watched returns the types that were listed.
func (o *treeOptions) watched(s *session, snapshot *graph.Snapshot) []*graph.Resource {
	var resources []*graph.Resource
	for _, resource := range s.reader.Resources() {
		if len(snapshot.Listed(resource.GroupResource())) > 0 {
			resources = append(resources, resource)
		}
	}
	return resources
}

// drawing is a tree that was drawn.
type drawing struct {
	graph *graph.Graph
	// shown are the objects and missing owners in it, types those of what was asked
	// for, when that was not objects by their names.
	shown sets.Set[types.UID]
	types sets.Set[string]
	text  string
}

// draw reads the cluster and draws the tree: on a screen over the one before,
// elsewhere after it, and only if it is another. An object that was named and does not
// exist is a NotFound.
func (o *treeOptions) draw(ctx context.Context, s *session, on *liveScreen, before string) (*drawing, error) {
	var found []graph.Object
	if o.given() {
		var failed error
		if found, failed = o.resolve(ctx, s); failed != nil {
			return nil, firstOf(failed)
		}
	}
	g, err := o.read(ctx, s, found)
	if err != nil {
		return nil, err
	}
	selection, err := o.selection(s, g, found)
	if err != nil {
		return nil, err
	}
	d := &drawing{graph: g, shown: sets.New[types.UID](), types: sets.New[string]()}
	for n := range selection.Nodes.All() {
		d.shown.Insert(n.UID())
	}
	for i := range found {
		d.types.Insert(found[i].Resource.GroupResource().String())
	}
	answer := &treeAnswer{ctx, s, g, selection, selection.Forest()}
	if on != nil {
		err = o.onScreen(on, answer, before)
		d.text = "on the screen"
		return d, err
	}
	return d, o.inLines(d, answer, before)
}

// onScreen draws a tree over the one before.
func (o *treeOptions) onScreen(on *liveScreen, a *treeAnswer, before string) error {
	style, err := on.begin()
	if err != nil {
		return err
	}
	lines, err := o.liveLines(style, a)
	if err != nil {
		return err
	}
	switch {
	case before == "":
		err = o.finish(a.session, a.graph.Snapshot())
	case on.noted():
		err = o.warn(a.session, a.graph.Snapshot())
	}
	on.show(lines)
	return err
}

// liveLines returns the lines of a tree, those of a table with the keys of their objects.
func (o *treeOptions) liveLines(style render.Style, a *treeAnswer) ([]render.LiveLine, error) {
	if o.output.isText() && len(a.forest.Roots) > 0 {
		return o.table(o.output.name == "wide", style, a).Lines(a.forest)
	}
	var text bytes.Buffer
	err := o.output.own().write(&text, style, a)
	return render.LiveLines(text.String()), err
}

// inLines writes a tree after the one before, if it is another.
func (o *treeOptions) inLines(d *drawing, a *treeAnswer, before string) error {
	style, err := o.style(o.Out)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := o.output.own().write(&text, style, a); err != nil {
		return err
	}
	d.text = render.Ageless(text.String())
	if d.text == before {
		return nil
	}
	if before != "" {
		fmt.Fprintf(o.Out, "\nat %s:\n", time.Now().UTC().Format(time.RFC3339))
	}
	if _, err := o.Out.Write(text.Bytes()); err != nil {
		return err
	}
	if before == "" {
		return o.finish(a.session, a.graph.Snapshot())
	}
	return nil
}

// firstOf is the first of several errors, which may be one.
func firstOf(err error) error {
	for _, e := range flatten(err) {
		return e
	}
	return err
}

// await returns when the watches tell of a change that matters to the tree.
func (o *treeOptions) await(ctx context.Context, server *cluster.Server, d *drawing) error {
	for {
		events, err := server.Events(ctx, true)
		switch {
		case errors.Is(err, gc.ErrAtRest):
			continue // nothing has moved for a while
		case err != nil:
			return err
		}
		for i := range events {
			if o.concerns(d, &events[i].Object) {
				return nil
			}
		}
	}
}

// concerns reports whether a change of an object may change the tree: it is in it,
// depends on what is in it, or may belong to what was asked for.
func (o *treeOptions) concerns(d *drawing, object *graph.Object) bool {
	if d.shown.Has(object.UID) {
		return true
	}
	for _, ref := range object.OwnerReferences {
		if d.shown.Has(ref.UID) {
			return true
		}
	}
	switch {
	case o.named() || o.fromFiles():
		return false
	case o.given():
		return d.types.Has(object.Resource.GroupResource().String()) || d.types.Len() == 0
	}
	return len(object.OwnerReferences) > 0 || o.isolated || o.selector != ""
}
