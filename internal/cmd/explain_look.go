// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/lease"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// look is one explanation, with what it was made from.
type look struct {
	session  *session
	snapshot *graph.Snapshot
	graph    *graph.Graph
	report   *explain.Report
	// managerHeld: a kube-controller-manager holds its lease, if that was asked for.
	managerHeld bool
	// failed are the errors about what was named: objects that do not exist, and
	// what is not in the report.
	failed error
	// unresolved are the messages of the latter.
	unresolved []evidence.Gap
	// moments are the past of the objects, where a ticket is to tell it.
	moments []render.Moment
}

// look reads the cluster and explains what was asked for: parts of the cluster as long as an
// answer from all of it would be the same.
func (o *explainOptions) look(ctx context.Context) (*look, error) {
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return nil, err
	}
	q := inquiry{session: s, workloads: controllers.NewWorkloads(ctx, s.reader)}
	if o.given() {
		q.found, q.failed = o.resolve(ctx, s)
		o.failed, q.failed = unreadableObjects(q.failed)
		q.found = append(q.found, o.readOtherwise(ctx, s)...)
		if missing, others := missingObjects(q.failed); len(q.found)+len(o.failed) == 0 &&
			(len(missing) == 0 || others != nil) && q.failed != nil {
			return nil, q.failed
		}
	}
	for i := range q.found {
		if q.found[i].BeingDeleted() && foresight.Foreign(q.found[i].Finalizers) {
			q.workloads.Want()
		}
	}
	parts := o.parts(ctx, &q)
	if len(o.widened) > 0 { // what an earlier look has found out about what has to be read
		parts = parts.With(o.widened...)
	}
	return o.widening(ctx, &q, parts)
}

// widening explains by parts of the cluster, and by more of them until the answer would be the same from all of it.
func (o *explainOptions) widening(ctx context.Context, q *inquiry, parts graph.Parts) (*look, error) {
	for looks := 1; ; looks++ {
		l, err := o.lookAt(ctx, q, parts)
		if err != nil {
			return l, err
		}
		missed := l.report.Missed
		q.earlier, l.report.Read = l.report.Read, nil
		if o.besides != nil && len(missed) == 0 {
			missed = slices.DeleteFunc(o.besides(l), parts.Contain)
		}
		if len(missed) == 0 {
			if o.besides != nil {
				o.widened = parts
			}
			return l, nil
		}
		parts = explain.Wider(parts, missed, looks)
	}
}

// inquiry is what is asked, of which cluster.
type inquiry struct {
	session   *session
	workloads *controllers.Workloads
	// found are the objects that were named, failed what is wrong with others.
	found  []graph.Object
	failed error
	// kept are the lists of the looks before, earlier is what else they have read, and now when.
	kept    cluster.Kept
	earlier *evidence.Reader
	now     time.Time
}

// parts are what of the cluster is read first. Without a controller manager, what it has not done
// is looked for anywhere, so that nearly all answers about a namespace take all.
func (o *explainOptions) parts(ctx context.Context, q *inquiry) graph.Parts {
	switch {
	case !o.given() && o.allNamespaces:
		return nil
	case o.given():
		return explain.PartsOf(q.found)
	case managerGone(ctx, q.session):
		return nil
	}
	return explain.PartsIn(q.session.namespace)
}

// managerGone reports whether the lease of the controller manager shows that none works, by the local clock or that of a file: that
// decides what is read, and nothing that is said.
func managerGone(ctx context.Context, s *session) bool {
	l, err := s.reader.Read(ctx, evidence.Leases, metav1.NamespaceSystem, "kube-controller-manager")
	return apierrors.IsNotFound(err) || err == nil && lease.Of(l.Object).Judge(s.now()) != lease.Held
}

// lookAt reads parts of the cluster and explains what was asked for.
func (o *explainOptions) lookAt(ctx context.Context, q *inquiry, parts graph.Parts) (*look, error) {
	s := q.session
	snapshot, absent, err := o.read(ctx, q, parts)
	if errors.Is(err, errTakesAll) {
		return &look{session: s, report: &explain.Report{Missed: []graph.Part{{}}}}, nil
	}
	if err != nil {
		return nil, err
	}
	l := &look{session: s, snapshot: snapshot, graph: graph.New(snapshot), failed: q.failed}
	selected := o.selected(s, l.graph, q.found)
	if parts != nil && explain.PartsOf(objectsOf(snapshot, selected)) == nil {
		l.report = &explain.Report{Missed: []graph.Part{{}}}
		return l, nil
	}
	if q.workloads.Wanted() {
		q.workloads.ReadAhead()
	}
	if l.report, err = o.explain(ctx, q, l.graph, selected); err != nil {
		return nil, err
	}
	for _, id := range absent {
		l.report.Objects = append(l.report.Objects, explain.Explanation{Object: id, Verdict: explain.NotFound})
	}
	if _, others := missingObjects(q.failed); others != nil {
		for _, err := range flatten(others) {
			l.unresolved = append(l.unresolved, evidence.Gap{What: say.Plain(message(err))})
		}
	}
	if o.output.name == "prometheus" {
		l.managerHeld = s.reader.ControllerManagerAlive(ctx, l.report.Now)
	}
	return l, nil
}

// errTakesAll is why parts of the cluster are not read to their end: an object in them is only explained by all of it.
var errTakesAll = errors.New("the answer takes all of the cluster")

// read reads parts of the cluster, with what was named, and returns what of that does not exist.
func (o *explainOptions) read(ctx context.Context, q *inquiry, parts graph.Parts) (*graph.Snapshot, []graph.Identity, error) {
	scope := cluster.Scope{Parts: parts}
	if parts != nil {
		scope.Kept = &q.kept
	}
	if o.besides != nil {
		scope.OwnersOf = evidence.Claims.GroupResource()
	}
	alongside(&scope, q.workloads, func(object *graph.Object) bool { return !o.given() && o.isHere(q.session, object.Identity()) })
	wants := scope.Terminating
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	scope.Terminating = func(object *graph.Object) {
		wants(object)
		if parts != nil && !o.given() && o.isHere(q.session, object.Identity()) && explain.PartsOf([]graph.Object{*object}) == nil {
			stop(errTakesAll)
		}
	}
	snapshot, err := q.session.reader.Snapshot(ctx, scope)
	if err != nil {
		return nil, nil, cmp.Or(context.Cause(ctx), err)
	}
	absent, _ := missingObjects(q.failed)
	for i := range q.found {
		f := &q.found[i]
		if _, listed := snapshot.Object(f.UID); listed {
			continue
		}
		if snapshot.Covers(f.Resource.GroupResource(), f.Namespace, f.Name) {
			absent = append(absent, f.Identity()) // it went meanwhile
		} else {
			snapshot.Add(*f)
		}
	}
	return snapshot, absent, nil
}

// objectsOf returns the objects with the UIDs.
func objectsOf(snapshot *graph.Snapshot, uids []types.UID) []graph.Object {
	var objects []graph.Object
	for _, uid := range uids {
		if object, known := snapshot.Object(uid); known {
			objects = append(objects, object)
		}
	}
	return objects
}
