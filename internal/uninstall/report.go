// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Report is what a tool does, and what becomes of that.
type Report struct {
	*Plan
	// Preview is of the tool's deletes, in its order, and Forecast what is foreseen of them, nil when there is nothing to foresee.
	Preview  *preview.Plan
	Forecast *foresight.Forecast
	// Left is what stays behind.
	Left []Left
	// Unread is what could not be read for that.
	Unread []evidence.Gap
	// Cluster is the UID of the namespace kube-system, empty when that could not be read.
	Cluster types.UID
	// Fails: something gets stuck or breaks, or might.
	Fails bool
}

// Player makes the plan of a deletion, and says what is foreseen of it.
type Player func(preview.Job) (*preview.Plan, *foresight.Forecast, error)

// Foretell says what becomes of what a tool does, of which the plan is that of its own rules. The error is that of the player.
func (w *World) Foretell(p *Plan, play Player) (*Report, error) {
	w.Follow(p)
	r := &Report{Plan: p, Preview: preview.Nothing(w.Graph), Cluster: w.ClusterUID()}
	for again := len(p.Targets()) > 0; again; {
		var err error
		if r.Preview, r.Forecast, err = play(p.Job()); err != nil {
			return nil, err
		}
		if again = r.Forecast.Unserved(p.Own.UID) && !p.Stopped(); again {
			p.Stop()
		} else {
			again = p.Settle(r.Preview.Report.Outcomes, r.Forecast)
		}
	}
	if r.Forecast != nil {
		r.foreseen(w)
	}
	r.Fails = r.Fails || r.Sticks()
	r.Unread = w.Evidence.Unread()
	if r.Forecast != nil {
		r.Unread = append(r.Unread, r.Forecast.Unread...)
	}
	r.Unread = evidence.JoinGaps(r.Unread, r.unlisted(w.Graph.Snapshot().Unlisted()))
	return r, nil
}

// later has what breaks not be certain where new manifests change it, which tools apply before they prune: an object is judged by what it
// is now, and who is new among them may take over for a controller that goes.
func (r *Report) later() {
	comes := slices.ContainsFunc(r.changes,
		func(f found) bool { return f.state == absent && slices.Contains(workloads, f.resource.GroupResource()) })
	for i := range r.Forecast.Breaks {
		b := &r.Forecast.Breaks[i]
		stays := func(id graph.Identity) bool {
			return !slices.ContainsFunc(r.changes, func(f found) bool { return f.state == present && f.node.UID() == id.UID })
		}
		users := b.Users
		if users == nil {
			users = []graph.Identity{b.Object}
		}
		b.Certain = b.Certain && slices.ContainsFunc(users, stays) && !(comes && b.Strands() != nil)
	}
}

// unlisted are the types that were not listed, and not said to be unread yet: what has become of their objects, and who needs them, is not
// known.
func (r *Report) unlisted(all []graph.Unlisted) (gaps []evidence.Gap) {
	for _, u := range all {
		if !slices.ContainsFunc(r.Unread, func(g evidence.Gap) bool { return g.Types.Has(u.GroupResource()) }) {
			gaps = append(gaps, evidence.GapOf(u))
		}
	}
	return gaps
}

// foreseen completes a report with what follows from what is foreseen.
func (r *Report) foreseen(w *World) {
	p, s := r.Plan, r.Forecast
	p.Doubt(r.Preview.Report.Outcomes, s)
	if p.Tool == "helm" && slices.ContainsFunc(p.Targets(), func(id graph.Identity) bool { return slices.Contains(s.Refused(), id.UID) }) {
		p.Open = slices.DeleteFunc(p.Open, func(o Open) bool { return o.Cause == Refused || o.Cause == MayRefuse }) // the records stay
		p.Open = append(p.Open, Open{Cause: Refused})
	}
	r.stay()
	r.tokens(w)
	r.unmade()
	going := r.Preview.Going()
	for _, stays := range p.wanted {
		if id := stays.object; going[id.UID] {
			p.Open = append(p.Open, Open{Cause: cmp.Or(stays.cause, Wanted), Item: Item{GroupVersionKind: id.Resource.GroupVersionKind(),
				Namespace: id.Namespace, Name: id.Name}, Detail: stays.why})
		}
	}
	// with its namespace, or its owner
	p.Kept = slices.DeleteFunc(p.Kept, func(k Kept) bool { return k.Object.UID != "" && going[k.Object.UID] })
	// which is what this is about
	s.Lost = slices.DeleteFunc(s.Lost, func(l foresight.Loss) bool { return p.Follows(l.Object.UID) && l.Volume == "" })
	s.Returns = slices.DeleteFunc(s.Returns, func(r foresight.Return) bool { return p.own(r.Deliverer()) })
	for i := range s.Returns {
		s.Returns[i].Reinstalled(p.Of.have)
	}
	r.Left = w.Left(p, r.Preview, s.ClaimsKept())
	r.Fails = p.Spoils() != nil || s.Sticks(false) || len(s.Breaks) > 0
	r.later()
}

// alike reports whether two identities have one name.
func alike(a, b graph.Identity) bool {
	return a.Resource.Kind == b.Resource.Kind && a.Resource.Group == b.Resource.Group && a.Namespace == b.Namespace && a.Name == b.Name
}

// unmade takes out of what is kept what hooks would make, if what has to go before does not, or if its namespace goes.
func (r *Report) unmade() {
	stays, none := map[types.UID]bool{}, false
	for i := range r.Preview.Report.Outcomes {
		o := &r.Preview.Report.Outcomes[i]
		stays[o.Object.UID] = o.Result != gc.Deleted
	}
	var held []graph.Identity
	for _, b := range r.Barriers {
		for _, id := range b.Objects {
			if stays[id.UID] {
				held, none = append(held, id), none || b.Awaited
			}
		}
	}
	emptied := map[string]bool{}
	for _, id := range r.Targets() {
		if id.Resource.IsNamespace() {
			emptied[id.Name] = true
		}
	}
	r.Kept = slices.DeleteFunc(r.Kept, func(k Kept) bool {
		return k.Reason == HookMade && (none || emptied[k.Object.Namespace] ||
			slices.ContainsFunc(held, func(id graph.Identity) bool { return alike(id, k.Object) }))
	})
}

// stay has what is deleted only with an owner that gets stuck just stay, as long as its owner does.
func (r *Report) stay() {
	results, targets := map[types.UID]gc.Result{}, map[types.UID]bool{}
	outcomes := r.Preview.Report.Outcomes
	for i := range outcomes {
		results[outcomes[i].Object.UID] = outcomes[i].Result
	}
	for _, id := range r.Targets() {
		targets[id.UID] = true
	}
	stays := map[types.UID]bool{}
	for again := true; again; {
		again = false
		for i := range outcomes {
			o := &outcomes[i]
			n, known := r.Preview.Graph.Node(o.Object.UID)
			if !known || o.Result != gc.Unknown || targets[n.UID()] {
				continue
			}
			if slices.ContainsFunc(n.Owners(), func(ref graph.Reference) bool {
				return ref.State == graph.Solid && (results[ref.UID] == gc.Remaining || stays[ref.UID])
			}) {
				o.Result, o.Reason, stays[n.UID()], again = gc.Untouched, say.Text{}, true, true
			}
		}
	}
}

// tokens adds the Secrets with tokens of accounts that go, which Kubernetes deletes with these
// (pkg/controller/serviceaccount/tokens_controller.go).
func (r *Report) tokens(w *World) {
	accounts, known := map[types.UID]bool{}, map[types.UID]bool{}
	namespaces := sets.New[string]()
	for i := range r.Preview.Report.Outcomes {
		o := &r.Preview.Report.Outcomes[i]
		known[o.Object.UID] = true
		if o.Result == gc.Deleted && o.Object.Resource.GroupResource() == evidence.ServiceAccounts.GroupResource() {
			accounts[o.Object.UID] = true
			namespaces.Insert(o.Object.Namespace)
		}
	}
	var secrets []graph.Node
	for namespace := range namespaces {
		secrets = append(secrets, w.Evidence.Within(evidence.Secrets.GroupResource(), namespace)...)
	}
	secrets = slices.DeleteFunc(secrets, func(n graph.Node) bool { return known[n.UID()] })
	for n, o := range wholes(w.Evidence, secrets) {
		if accounts[types.UID(o.GetAnnotations()[corev1.ServiceAccountUIDKey])] {
			r.Preview.Report.Outcomes = append(r.Preview.Report.Outcomes, gc.Outcome{Object: *n.Object(), Result: gc.Deleted})
		}
	}
	graph.SortByIdentity(r.Preview.Report.Outcomes, func(o *gc.Outcome) graph.Identity { return o.Object.Identity() })
}

// Sticks reports whether something gets stuck, or is refused, or whether that is not known; but for what is said as not known.
func (r *Report) Sticks() bool {
	return slices.ContainsFunc(r.Preview.Report.Outcomes, func(o gc.Outcome) bool {
		return o.Result == gc.Remaining || o.Result == gc.Unknown && !r.Asked(&o)
	}) || slices.ContainsFunc(r.Open, func(o Open) bool { return o.fails() })
}

// fails reports whether the tool fails for what is open, or whether that is not known because it could not be read.
func (o *Open) fails() bool {
	return o.Fails() || slices.Contains([]Cause{Unread, Nested, Upgrading, HookUnsure, HookUnsureAfter, MayRefuse}, o.Cause)
}

// Fails reports whether the tool certainly reports a failure for what is open: for a kind or a name that is missing only if that is a
// hook's.
func (o *Open) Fails() bool {
	return o.Cause == Refused || o.Cause == HookExists || o.Cause == HookLacks || o.Cause == HookDenied ||
		(o.Cause == Generated || o.Cause == NoSuchKind) && !o.Detail.IsZero()
}

// Asked reports whether what is said of an outcome is said as not known, too.
func (p *Plan) Asked(o *gc.Outcome) bool {
	return slices.ContainsFunc(p.Open, func(open Open) bool { return open.Item.Name == o.Object.Name && o.Reason.Equal(open.Says()) })
}

// Strands reports whether objects stay whose deletion will get stuck later.
func (r *Report) Strands() bool {
	return r.Forecast != nil && slices.ContainsFunc(r.Forecast.Breaks, func(b foresight.Break) bool { return b.Strands() != nil })
}
