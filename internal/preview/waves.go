// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// hopes are objects of waves before the last that may or may not go, with what is open. The
// simulation lets them go, or nothing of the later waves would be seen.
type hopes map[types.UID]say.Text

// serve answers for them as if somebody acted.
func (h hopes) serve(waves []Wave, serves func(*graph.Object, string) (simulator.Actor,
	say.Text)) func(*graph.Object, string) (simulator.Actor, say.Text) {
	if len(waves) == 0 || serves == nil {
		return serves
	}
	early := map[types.UID]bool{}
	for _, wave := range waves[:len(waves)-1] {
		for _, id := range wave.Objects {
			early[id.UID] = true
		}
	}
	return func(o *graph.Object, finalizer string) (simulator.Actor, say.Text) {
		who, why := serves(o, finalizer)
		if who == simulator.Unknown && early[o.UID] {
			h[o.UID] = why
			return simulator.Acts, say.Text{}
		}
		return who, why
	}
}

// doubt makes Unknown what was hoped, and all that waits for it.
func (p *Plan) doubt(hoped hopes) {
	if len(hoped) == 0 {
		return
	}
	first, before := p.firstOf(hoped)
	certain := gc.Concerned(p.Graph, before)
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		n, known := p.Graph.Node(o.Object.UID)
		switch why, is := hoped[o.Object.UID]; {
		case o.Result != gc.Deleted:
			continue
		case is:
			o.Reason = why
		case known && certain.Has(n):
			continue
		default:
			o.Reason = say.Of(afterEarlier, first)
		}
		o.Result, p.followers[o.Object.UID] = gc.Unknown, true
		delete(p.Expected, o.Object.UID)
	}
}

// firstOf returns the first object that is only hoped for, and all of the waves up to its own.
func (p *Plan) firstOf(hoped hopes) (first graph.Identity, upTo []types.UID) {
	for _, wave := range p.Job.Waves {
		upTo = append(upTo, uidsOf(wave.Objects)...)
		for _, id := range wave.Objects {
			if _, is := hoped[id.UID]; is {
				return id, upTo
			}
		}
	}
	return first, upTo
}
