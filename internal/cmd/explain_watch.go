// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// How often --watch looks. A look may read the whole cluster; between two of them a
// few objects are asked for that decide when the next one is due.
const (
	// watchedObjects are asked for every watchInterval.
	watchedObjects = 10
	watchInterval  = time.Second
	// lookInterval is the longest time between two looks, unless a look takes so
	// long that it would make up more than one part in lookShare of the time.
	lookInterval = 15 * time.Second
	lookShare    = 5
)

// follow explains again and again until nothing that was asked for is being
// deleted any more.
func (o *explainOptions) follow(ctx context.Context) error {
	var first *look
	var on *liveScreen
	if o.output.isText() {
		on = o.newScreen(false)
	}
	defer on.close()
	shown := ""
	for ctx.Err() == nil {
		start := time.Now()
		l, err := o.look(ctx)
		switch {
		case err != nil && (first == nil || ctx.Err() != nil):
			return err
		case err != nil:
			fmt.Fprintf(o.ErrOut, "warning: could not look again: %s\n", render.Line(message(err)))
			on.draw()
			wait(ctx, lookInterval)
			continue
		}
		if first == nil {
			first = l
			if err := o.nothingToExplain(ctx, l); err != nil {
				return errors.Join(err, o.finish(l.session, l.snapshot))
			}
		}
		if shown, err = o.show(l, on, shown); err != nil {
			return err
		}
		if !ends(l.report) {
			o.gone(first.report, l.report)
			return o.end(l, first.failed)
		}
		o.pause(ctx, l, time.Since(start))
	}
	return ctx.Err()
}

// gone says after how long all that was being deleted is gone, if it is.
func (o *explainOptions) gone(before, now *explain.Report) {
	var since time.Time
	for i := range before.Objects {
		if e := &before.Objects[i]; e.BeingDeleted() && (since.IsZero() || e.Since.Before(since)) {
			since = e.Since
		}
	}
	if !since.IsZero() && now.Verdict() == explain.NotFound {
		fmt.Fprintf(o.ErrOut, "Gone after %s.\n", duration.HumanDuration(now.Now.Sub(since)))
	}
}

// ends reports whether anything in the report is being deleted.
func ends(report *explain.Report) bool {
	return slices.ContainsFunc(report.Objects, func(o explain.Explanation) bool { return o.BeingDeleted() })
}

// show prints a look: on a screen over the one before, elsewhere after it and
// only if it says something else. It returns what the look says.
func (o *explainOptions) show(l *look, on *liveScreen, before string) (string, error) {
	says := gist(l.report)
	if on != nil {
		return says, o.onScreen(l, on, before)
	}
	if says == before {
		return says, nil
	}
	switch {
	case o.output.isText() && before != "":
		fmt.Fprintf(o.Out, "\nat %s:\n", l.report.Now.UTC().Format(time.RFC3339))
	case o.output.name == "yaml" && before != "":
		fmt.Fprintln(o.Out, "---")
	}
	if err := o.print(l); err != nil {
		return says, err
	}
	if !ends(l.report) { // conclude does it
		return says, nil
	}
	return says, errors.Join(o.warn(l.session, l.snapshot), render.Unread(o.ErrOut, l.report, o.verbosity > 0))
}

// onScreen draws a look over the one before.
func (o *explainOptions) onScreen(l *look, on *liveScreen, before string) error {
	style, err := on.begin()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := o.output.own().write(&text, style, l); err != nil {
		return err
	}
	if ends(l.report) && (before == "" || on.noted()) { // otherwise conclude does it
		err = errors.Join(o.warn(l.session, l.snapshot), render.Unread(o.ErrOut, l.report, o.verbosity > 0))
	}
	on.show(render.LiveLines(text.String()))
	return err
}

// gist is what a report says, without ages and numbers that change by
// themselves.
func gist(report *explain.Report) string {
	var text strings.Builder
	for _, object := range report.Objects {
		fmt.Fprintf(&text, "%s %s %s\n", object.Object, object.Object.UID, object.Verdict)
		for _, f := range object.Findings {
			fmt.Fprintf(&text, "\t%s %s %s\n", f.Cause.ID, f.Cause.Object, f.Cause.Verdict)
		}
	}
	return text.String() + strings.Join(evidence.Gaps(report.Unread), "\n") + "."
}

// pause returns when an object that the look was about, or one at the root of
// it, has changed, and at the latest when the next look is due.
func (o *explainOptions) pause(ctx context.Context, l *look, took time.Duration) {
	due := time.Now().Add(max(lookInterval, lookShare*took))
	soonest := time.Now().Add(lookShare * took)
	watched := l.watched()
	for ctx.Err() == nil && time.Now().Before(due) {
		wait(ctx, watchInterval)
		if time.Now().After(soonest) && l.changed(ctx, watched) {
			return
		}
	}
}

// watched returns the objects to ask for: those that were asked about, then the
// roots of what holds them.
func (l *look) watched() []graph.Object {
	var watched []graph.Object
	add := func(id graph.Identity) {
		if o, known := l.snapshot.Object(id.UID); known && len(watched) < watchedObjects {
			watched = append(watched, o)
		}
	}
	for i, object := range l.report.Objects {
		if i < watchedObjects/2 {
			add(object.Object)
		}
	}
	for _, c := range l.report.Causes {
		add(c.Object)
	}
	return watched
}

// changed reports whether one of the objects is gone or not as it was. What
// cannot be read has not changed.
func (l *look) changed(ctx context.Context, watched []graph.Object) bool {
	for i := range watched {
		before := &watched[i]
		now, err := l.session.reader.Get(ctx, *before.Resource, before.Namespace, before.Name)
		if apierrors.IsNotFound(err) || err == nil && now.ResourceVersion != before.ResourceVersion {
			return true
		}
	}
	return false
}
