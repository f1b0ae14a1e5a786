// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// collects reports whether a way out is to do the garbage collector's work.
func collects(r *explain.Remedy) bool {
	return r.Operation != nil && r.Operation.Verb == remedy.Collect
}

// NeedsCollection reports whether a way out of a cause is to do the garbage collector's work, for which a Look needs what is Pending.
func NeedsCollection(c *explain.Cause) bool {
	return slices.ContainsFunc(c.Remedies, func(r explain.Remedy) bool { return collects(&r) })
}

// pending are the writes that the garbage collector has left undone for what a cause blocks: those that can be made now, and those
// that follow when the next looks have found what came of these.
func (l *Look) pending(c *explain.Cause) (now, later []*explain.Remedy) {
	concerned, touched := l.concerned(c), sets.New[types.UID]()
	for i := range l.Pending {
		step := &l.Pending[i]
		n, known := l.Graph.Node(step.Object.UID)
		if !known || !concerned.Has(n) {
			continue
		}
		effect := say.Of(wouldCollect)
		if step.Reason != "" {
			effect = effect.And(collectedFor, step.Reason)
		}
		r := &explain.Remedy{Risk: explain.Safe, Effect: effect, Action: l.action(step.Op())}
		if l.follows(n, touched) {
			later = append(later, r)
		} else {
			now = append(now, r)
		}
		touched.Insert(n.UID())
	}
	return now, later
}

// concerned are the objects that a cause blocks, those on the way to it, and their dependents.
func (l *Look) concerned(c *explain.Cause) graph.Set {
	var nodes []graph.Node
	add := func(uid types.UID, wanted func(graph.Node) bool) {
		if n, known := l.Graph.Node(uid); known && wanted(n) {
			nodes = append(nodes, n)
		}
	}
	every := func(graph.Node) bool { return true }
	marked := func(n graph.Node) bool { return slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer) }
	for o := range l.Report.Blocked(c) {
		add(o.Object.UID, every)
		for _, f := range o.Findings {
			if f.Cause != c {
				continue
			}
			for _, link := range f.Chain {
				add(link.Object.UID, marked)
			}
		}
	}
	return graph.Descendants(nodes...)
}

// follows reports whether a write before it is to the object, one of its owners or one of its dependents: what comes of that decides.
func (l *Look) follows(n graph.Node, touched sets.Set[types.UID]) bool {
	if touched.Has(n.UID()) {
		return true
	}
	for _, ref := range n.Owners() {
		if touched.Has(ref.UID) {
			return true
		}
	}
	for _, d := range n.Dependents() {
		if touched.Has(d.UID()) {
			return true
		}
	}
	return false
}

// collect has the garbage collector's work done to the objects, and by the actions, that were agreed to, now or as what follows. What comes
// up besides is left to the next look.
func (r *run) collect(ctx context.Context, writes []Write) error {
	agreed := map[string]Write{}
	for i := range writes {
		w := writes[i]
		for _, each := range append([]Write{w}, w.Follow()...) {
			each.Frees, each.Collected = w.Frees, true
			agreed[workOf(&each.Op)] = each
		}
	}
	var records []Record
	err := r.Collect(ctx, func(action gc.Action, o graph.Object) bool {
		_, is := agreed[workKey(action, o.UID)]
		return is
	}, func(s gc.Step) {
		rec := Record{Time: r.Now(), Write: agreed[workKey(s.Action, s.Object.UID)], Result: change.StatusOf(s.Err), Err: s.Err}
		rec.Write.Op = s.Op()
		records = append(records, rec)
	})
	for i := range records {
		r.record(records[i])
	}
	for i := range writes { // what is still to be done when it is looked at again failed, and is not tried for ever
		if r.skips[writes[i].Op.Key()]++; r.skips[writes[i].Op.Key()] >= mostSkips {
			r.done.Insert(writes[i].Op.Key())
		}
	}
	return cmp.Or(journalError(records), err)
}

// workKey tells the garbage collector's writes apart, and workOf is that of a change.
func workKey(action gc.Action, uid types.UID) string { return string(action) + " " + string(uid) }

func workOf(op *remedy.Op) string {
	action := gc.ActionDelete
	for _, step := range op.Patch {
		switch {
		case strings.HasPrefix(step.Path, "/metadata/finalizers/"):
			action = gc.ActionRemoveFinalizer
		case step.Op == "replace":
			action = gc.ActionUnblockOwnerReferences
		case step.Op == "remove":
			action = gc.ActionRemoveOwnerReferences
		}
	}
	return workKey(action, op.Object.UID)
}
