// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// earlier is what a second look needs to know of the first.
type earlier struct {
	report   *check.Report
	about    []graph.Identity
	unlisted []graph.Unlisted
	failed   error
}

// settled is a look, or a second one where something is wrong in the first, which is not kept.
func (o *checkOptions) settled(ctx context.Context, l *checked) (*checked, error) {
	if first, _ := o.filtered(l); o.settle == 0 || l.session.files != nil || !wrong(first) {
		return l, nil
	}
	return o.lookAgain(ctx, &earlier{l.report, l.report.About(l.graph), l.graph.Snapshot().Unlisted(), l.failed})
}

// lookAgain lets time pass, so that the garbage collector can do what it is
// about to do, and returns what is wrong in both looks. What one of them could
// not read makes the answer incomplete.
func (o *checkOptions) lookAgain(ctx context.Context, first *earlier) (*checked, error) {
	if isTerminal(o.ErrOut) {
		fmt.Fprintf(o.ErrOut, "Something is wrong; looking again in %s ...\n", o.settle)
	}
	wait(ctx, o.settle)
	if still, err := o.lookAtWrong(ctx, first); still != nil || err != nil {
		return still, err
	}
	second, err := o.look(ctx, false)
	if err != nil {
		return nil, err
	}
	second.report = second.report.Confirmed(first.report, second.graph, o.gone(second))
	carryOver(second.graph.Snapshot(), first.unlisted)
	if first.failed != nil {
		second.failed = first.failed
	}
	return second, nil
}

// maxWrong is the number of objects up to which those that were found wrong are read one by one.
const maxWrong = 200

// lookAtWrong reads what was found wrong, and its owners, once more, each object by itself, and returns what
// still is. It is nil when these are too many, something could not be read, or is wrong in another way by now:
// then everything is read again.
func (o *checkOptions) lookAtWrong(ctx context.Context, first *earlier) (*checked, error) {
	if o.given() || len(first.about) > maxWrong {
		return nil, nil
	}
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return nil, err
	}
	objects, absent, err := readEach(ctx, s.reader, first.about)
	if err != nil {
		return nil, ctx.Err()
	}
	snapshot, err := s.reader.Snapshot(ctx, cluster.Scope{OwnersOnly: true, Labels: []string{}}, objects...)
	if err != nil || !snapshot.Complete() {
		return nil, ctx.Err()
	}
	for _, id := range absent {
		snapshot.MarkAbsent(id.Resource.GroupResource(), id.Namespace, id.Name)
	}
	g := graph.New(snapshot)
	report, ok := first.report.Still(check.Check(g, check.Options{Partial: true, WithoutRemedies: true}))
	if !ok {
		return nil, nil
	}
	carryOver(snapshot, first.unlisted)
	l := &checked{session: s, graph: g, report: report, failed: first.failed}
	if o.olderThan > 0 || o.output.name == "prometheus" {
		l.now = s.reader.Now(ctx)
	}
	return l, nil
}

// readEach reads objects one by one, a few at a time, without those that are others by now, and returns which
// are not there. Any other error is returned.
func readEach(ctx context.Context, r *cluster.Reader, ids []graph.Identity) (objects []graph.Object, absent []graph.Identity, err error) {
	read, gone := make([]*graph.Object, len(ids)), make([]bool, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, id := range ids {
		group.Go(func() error {
			o, err := r.Get(ctx, id.Resource, id.Namespace, id.Name)
			switch {
			case answer.NoSuchObject(err, id.Resource.GroupResource(), id.Name):
				gone[i] = true
			case err != nil:
				return err
			case o.UID == id.UID:
				read[i] = &o
			}
			return nil
		})
	}
	err = group.Wait()
	for i, o := range read {
		if o != nil {
			objects = append(objects, *o)
		} else if gone[i] {
			absent = append(absent, ids[i])
		}
	}
	return objects, absent, err
}

// atOnce is the number of objects that are read at a time.
const atOnce = 8

// gone tells whether an object that was not read does not exist any more, or is
// not among those asked for.
func (o *checkOptions) gone(l *checked) func(graph.Identity) bool {
	snapshot, handled := l.graph.Snapshot(), handledBy(l.session.reader.Resources())
	return func(id graph.Identity) bool {
		return o.given() && l.failed == nil && handled(&id.Resource) ||
			snapshot.Covers(id.Resource.GroupResource(), id.Namespace, id.Name)
	}
}

// carryOver marks as unread what an earlier look could not read.
func carryOver(s *graph.Snapshot, unlisted []graph.Unlisted) {
	known := s.Unlisted()
	for _, u := range unlisted {
		same := func(v graph.Unlisted) bool {
			return u.GroupVersionResource == v.GroupVersionResource && u.Namespace == v.Namespace && u.Name == v.Name
		}
		if !slices.ContainsFunc(known, same) {
			s.MarkUnlisted(u)
		}
	}
}
