// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Wave is one of several deletions in a row. Each is an ordinary one, of a Collector of its
// own, and begins when all of the one before has gone.
type Wave struct {
	// Targets are those of the wave that the user named.
	Targets []Target
	// Ahead are objects that the user did not name and that go with the targets of this
	// wave or later ones. Each is decided about by Classify and Decide, as if these targets
	// had gone, in the moment in which it is deleted.
	Ahead []graph.Identity
}

// uids returns those of all objects of the wave.
func (w *Wave) uids() []types.UID {
	var uids []types.UID
	for i := range w.Targets {
		uids = append(uids, w.Targets[i].UID)
	}
	for i := range w.Ahead {
		uids = append(uids, w.Ahead[i].UID)
	}
	return uids
}

// InWaves deletes wave by wave. Before each, next returns a Collector of what there is by
// then; its error is why this wave and the rest are held back, which then is their reason
// in the report. g is of what there was when the waves were made. The report is of all
// waves, and never nil; the error is that of the context or as of Collector.Delete.
func InWaves(ctx context.Context, g *graph.Graph, waves []Wave, options DeleteOptions, next func(ctx context.Context, wave int) (*Collector,
	error)) (*Report, error) {
	r := &joined{graph: g, outcomes: map[types.UID]*Outcome{}}
	for i := range waves {
		c, why := next(ctx, i)
		if ctx.Err() != nil {
			return r.hold(waves[i:], say.Of(notReached)), ctx.Err()
		}
		if why != nil {
			return r.hold(waves[i:], say.Plain(why)), nil
		}
		if len(waves) == 1 && len(waves[i].Ahead) == 0 {
			return c.Delete(ctx, waves[i].Targets, options)
		}
		options.Ahead, options.For = waves[i].Ahead, nil
		for j := range waves[i:] {
			options.For = append(options.For, waves[i+j].Targets...)
		}
		report, err := c.Delete(ctx, waves[i].Targets, options)
		r.add(report)
		r.addGone(&waves[i], c.snapshot)
		switch left := r.left(&waves[i]); {
		case err != nil:
			return r.hold(waves[i+1:], say.Of(notReached)), err
		case left != nil:
			return r.hold(waves[i+1:], say.Of(EarlierWave, left.Object.Identity())), nil
		}
	}
	return r.report(), nil
}

// joined is the report of several waves.
type joined struct {
	graph    *graph.Graph
	steps    []Step
	outcomes map[types.UID]*Outcome
	nameless []Outcome
}

// add adds the report of a wave. What it says of an object counts, but that nothing was done
// to one does not undo what was done before.
func (r *joined) add(report *Report) {
	r.steps = append(r.steps, report.Steps...)
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		if o.Object.UID == "" {
			r.nameless = append(r.nameless, *o)
			continue
		}
		_, known := r.graph.Node(o.Object.UID)
		o.Appeared = !known
		if before := r.outcomes[o.Object.UID]; before == nil || o.Result != Untouched || before.Result == Remaining {
			r.outcomes[o.Object.UID] = o
		}
	}
}

// addGone adds the objects of a wave that no list had any more when it began: they are gone since the waves were
// made, and another object may have their name.
func (r *joined) addGone(w *Wave, now *graph.Snapshot) {
	for _, uid := range w.uids() {
		n, known := r.graph.Node(uid)
		if r.outcomes[uid] == nil && known && !n.Virtual() && now.ListedIn(n.Resource().GroupResource(), n.Namespace()) {
			r.outcomes[uid] = &Outcome{Object: n.Unlabelled(), Result: Deleted}
		}
	}
}

// left returns an object of the wave that has not gone.
func (r *joined) left(w *Wave) *Outcome {
	for _, uid := range w.uids() {
		if o := r.outcomes[uid]; o != nil && o.Result != Deleted {
			return o
		}
	}
	return nil
}

// hold says of what waves concern that are not begun why that is so.
func (r *joined) hold(waves []Wave, why say.Text) *Report {
	held := map[types.UID]bool{}
	var uids []types.UID
	for i := range waves {
		uids = append(uids, waves[i].uids()...)
	}
	for _, uid := range uids {
		held[uid] = true
	}
	for n := range Concerned(r.graph, uids).All() {
		o := Outcome{Object: n.Unlabelled(), Result: Untouched}
		known := r.outcomes[o.Object.UID]
		switch {
		case n.Virtual() || !n.HasUID(), known != nil && (known.Result == Deleted || known.Object.BeingDeleted() || !held[o.Object.UID]):
			continue
		case held[o.Object.UID]:
			o.Result, o.Reason = Remaining, why
		default:
			o.Reason = r.ownerOf(n)
		}
		r.outcomes[o.Object.UID] = &o
	}
	return r.report()
}

// ownerOf says which owner keeps an object that was not reached.
func (r *joined) ownerOf(n graph.Node) say.Text {
	for _, ref := range n.Owners() {
		if o := r.outcomes[ref.UID]; !ref.Owner.Virtual() && (o == nil || o.Result != Deleted) {
			return say.Of(ownerExists, ref.Kind, ref.Name)
		}
	}
	return say.Text{}
}

func (r *joined) report() *Report {
	report := &Report{Steps: r.steps, Outcomes: r.nameless}
	for _, o := range r.outcomes {
		report.Outcomes = append(report.Outcomes, *o)
	}
	graph.SortByIdentity(report.Outcomes, func(o *Outcome) graph.Identity { return o.Object.Identity() })
	return report
}
