// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ensuing says what becomes of the data of objects that go, or may, because of what goes by the plan, and are not part of it: what waits
// for a guard that goes, the pods of nodes, claims that are kept by these pods and others, and what the garbage collector deletes after all
// that.
func (l *losses) ensuing(going []graph.Node) (all []Loss, ensues []ensued) {
	known, guards := graph.NewSet(going...), map[graph.Identity]bool{}
	var fresh []graph.Node // not asked about yet
	add := func(n graph.Node, certain bool, w say.Word, args ...any) {
		if n.Virtual() || !known.Add(n) {
			return
		}
		certain = certain && len(guards) == 0
		fresh, ensues = append(fresh, n), append(ensues, ensued{n, certain})
		data := l.dataOf(n)
		if len(data) == 0 && w != withNode && w != withAttachment && !n.BeingDeleted() { // of pods of nodes there is more to say
			data = []Loss{{Object: n.Identity(), Why: say.Of(goesToo), Certain: true, bare: true}}
		}
		for _, loss := range data {
			if loss.Stays && w == withGuard {
				continue
			}
			loss.Why, loss.Certain = say.Of(w, append(slices.Clone(args), loss.Why)...), loss.Certain && certain
			all = append(all, loss)
		}
	}
	for fresh = going; len(fresh) > 0; {
		effects, _ := l.after.After(fresh, known) // what could not be read is noted
		fresh = nil
		for _, g := range l.after.Guards(known) {
			if !guards[g.ID] {
				guards[g.ID] = true
				all = append(all, l.unguarded(g, &known, add)...)
			}
		}
		for _, e := range effects {
			if e.By == ensuing.Tool && l.order.known() {
				continue // the plan is what the tool deletes
			}
			for _, n := range e.Nodes {
				add(n, e.Certain, ways[e.By], e.Of.Identity())
			}
		}
		for _, e := range l.released(&known) {
			add(e.node, e.certain, withUser, e.of)
		}
		if len(ensues) == 0 {
			break // what falls with the plan is part of it
		}
		for _, certain := range []bool{true, false} {
			for _, n := range l.fall(known, ensues, certain) {
				add(n, certain, withFall)
			}
		}
	}
	all = append(all, l.covered(known)...)
	graph.SortByIdentity(all, func(loss *Loss) graph.Identity { return loss.Object })
	slices.SortFunc(ensues, func(a, b ensued) int { return a.node.Compare(b.node) })
	return all, ensues
}

// fall are what the garbage collector deletes after what goes, or after what certainly does.
func (l *losses) fall(known graph.Set, ensues []ensued, certain bool) []graph.Node {
	sure := slices.DeleteFunc(slices.Clone(ensues), func(e ensued) bool { return certain && !e.certain })
	after := graph.Fall{Set: graph.NewSet(nodesOf(sure)...)}
	if l.Plan.Job.Policy != metav1.DeletePropagationOrphan {
		unsure := graph.NewSet(nodesOf(ensues)...)
		for n := range known.All() {
			if !certain || !unsure.Has(n) {
				after.Set.Add(n)
			}
		}
	}
	after.Spread()
	return after.Set.Sorted()
}

// ways says how an object goes after another.
var ways = map[ensuing.By]say.Word{
	ensuing.Node: withNode, ensuing.NodeOnly: withNodeOnly, ensuing.Set: withSet, ensuing.Tool: withTool, ensuing.Pod: withLastPod,
	ensuing.Job: withJob, ensuing.TTL: withTTL, ensuing.Owner: withDependent, ensuing.Attachment: withAttachment,
	ensuing.Token: withAccount,
}

// ensued is an object that goes, or may, because of the plan, and is not part of it.
type ensued struct {
	node    graph.Node
	certain bool
}

func nodesOf(all []ensued) []graph.Node {
	nodes := make([]graph.Node, len(all))
	for i := range all {
		nodes[i] = all[i].node
	}
	return nodes
}

// covered says of webhooks that go, and that refuse everything, that they cover live claims, or what is above these: who waits to delete
// that nobody can name.
func (l *losses) covered(known graph.Set) []Loss {
	var all []Loss
	var above *evidence.Above
	told := map[types.UID]bool{}
	for _, h := range l.now.reviewer.Webhooks() {
		s := l.now.reviewer.ServingOf(h)
		if !l.going[h.Config.UID] || told[h.Config.UID] || !h.FailsClosed() || s == nil || !s.Dead {
			continue
		}
		if above == nil {
			above = new(evidence.NewAbove(l.graph))
		}
		covers := l.now.reviewer.Covers(h)
		var claims []graph.Identity
		for n := range l.now.evidence.Instances(evidence.Claims.GroupResource()) {
			if !known.Has(n) && !n.BeingDeleted() && above.Any(n, covers) {
				claims = append(claims, n.Identity())
			}
		}
		if len(claims) > 0 {
			slices.SortFunc(claims, graph.Identity.Compare)
			told[h.Config.UID] = true
			all = append(all, Loss{Object: h.Config, Why: say.Of(coversLive, some(claims))})
		}
	}
	return all
}

// unguarded adds what waits for a guard that goes.
func (l *losses) unguarded(g *ensuing.Guard, known *graph.Set, add func(graph.Node, bool, say.Word, ...any)) []Loss {
	waiting := l.after.Waiting(g)
	l.ask(waiting)
	for _, n := range waiting {
		if !l.used(n, known) {
			add(n, false, withGuard, g.ID)
		}
	}
	return l.held(g)
}

// held says what becomes of volumes and contents of snapshots that wait to be reclaimed, where a guard goes that may refuse that; and that
// claims could not be read of which it may refuse the end.
func (l *losses) held(g *ensuing.Guard) []Loss {
	if !l.now.evidence.Covers(evidence.Claims.GroupResource(), "", "") {
		return []Loss{{Object: g.ID, Why: say.Of(heldUnread)}}
	}
	var all []Loss
	for n := range l.graph.Nodes() {
		if n.Virtual() || n.BeingDeleted() || !evidence.Stores(n.Resource().GroupResource()) || !g.Waits(n) {
			continue
		}
		for _, loss := range l.unclaimed(n) {
			loss.Why, loss.Certain = say.Of(withGuard, g.ID, loss.Why), false
			all = append(all, loss)
		}
	}
	return all
}

// unclaimed says what becomes of the data of a volume whose claim is gone, or of the content of a snapshot that is gone or being deleted.
func (l *losses) unclaimed(n graph.Node) []Loss {
	ref, losses := "claimRef", l.copiesOf
	if n.Resource().GroupResource() == evidence.Volumes.GroupResource() {
		losses = l.ofVolume
	} else if at := slices.IndexFunc(evidence.Copies, func(c evidence.Copy) bool { return c.Has(n.Resource().GroupResource()) }); at >= 0 {
		ref = evidence.Copies[at].Ref
	}
	whole, err := l.now.evidence.Whole(n)
	if err != nil {
		return []Loss{{Object: n.Identity(), Why: say.Of(heldUnread)}}
	}
	of := types.UID(evidence.Nested(whole, "spec", ref, "uid"))
	if owner, there := l.node(of); of == "" || there && (ref == "claimRef" || !owner.BeingDeleted()) {
		return nil
	}
	return losses(n)
}

// ofVolume says what becomes of the data of a volume whose claim is gone.
func (l *losses) ofVolume(n graph.Node) []Loss {
	v, err := l.now.evidence.Whole(n)
	policy, destroys := "", false
	if err == nil {
		policy, destroys = evidence.ReclaimPolicy(v)
	}
	if !destroys {
		return nil
	}
	loss := Loss{Object: n.Identity(), Volume: n.Name(), Size: evidence.Nested(v, "spec", "capacity", "storage"), Certain: true}
	loss.Why = say.Of(volumeGoes, n.Identity(), cmp.Or(loss.Size, unknownSize), policy)
	return []Loss{loss}
}

// released are the claims and snapshots that somebody deleted before, and that by their explanations nothing keeps but what goes.
func (l *losses) released(going *graph.Set) []freed {
	var candidates []graph.Node
	asked := map[string]bool{}
	for _, n := range going.Sorted() {
		if of := n.Resource().GroupResource(); asked[n.Namespace()] || !(n.Resource().IsPod() || evidence.KeepsData(of)) {
			continue
		}
		asked[n.Namespace()] = true
		if !l.now.evidence.Covers(evidence.Claims.GroupResource(), n.Namespace(), "") {
			l.now.evidence.NoteUnread(evidence.Gap{What: say.Of(claimsIn, n.Namespace())})
		}
		for _, m := range l.after.Leaving() {
			if m.Namespace() == n.Namespace() && m.BeingDeleted() && evidence.KeepsData(m.Resource().GroupResource()) && !going.Has(m) {
				candidates = append(candidates, m)
			}
		}
	}
	l.ask(candidates)
	var all []freed
	for _, n := range candidates {
		if k := l.keepers(n, going); k.by.Name != "" && !k.others {
			all = append(all, freed{ensued{n, k.sole && len(n.Finalizers()) == 1 && n.Finalizers()[0] == finalizers.ClaimProtection}, k.by})
		}
	}
	return all
}

// freed is what ends with what keeps it.
type freed struct {
	ensued
	of graph.Identity
}

// used reports whether something is known to keep a claim that is being deleted, too, of which nothing is known to end it.
func (l *losses) used(n graph.Node, going *graph.Set) bool {
	if !evidence.KeepsData(n.Resource().GroupResource()) || !n.BeingDeleted() {
		return false
	}
	return l.keepers(n, going).others
}

// maxAsked is how many objects that are being deleted are explained. Of more it is not known what they wait for.
const maxAsked = 2000

// ask has objects explained that were not before.
func (l *losses) ask(nodes []graph.Node) {
	var fresh []types.UID
	for _, n := range nodes {
		if _, asked := l.told[n.UID()]; !asked && n.BeingDeleted() && evidence.KeepsData(n.Resource().GroupResource()) {
			l.told[n.UID()], fresh = nil, append(fresh, n.UID())
		}
	}
	if len(fresh) == 0 || len(fresh) > maxAsked {
		return
	}
	report := l.explain(fresh)
	for i := range report.Objects {
		l.told[report.Objects[i].Object.UID] = &report.Objects[i]
	}
}

// keepers are what keeps an object that is being deleted: the first of that which goes; whether nothing else is known to, and whether
// anything is.
type keepers struct {
	by           graph.Identity
	sole, others bool
}

func (l *losses) keepers(n graph.Node, going *graph.Set) keepers {
	told := l.told[n.UID()]
	if told == nil {
		return keepers{by: n.Identity()} // nobody knows
	}
	k := keepers{sole: true}
	for _, f := range told.Findings {
		at := slices.IndexFunc(f.Chain, func(link explain.Link) bool { return link.Object.UID != n.UID() && l.among(link.Object.UID, going) })
		switch {
		case at >= 0:
			k.by = cmp.Or(k.by, f.Chain[at].Object)
		case l.among(f.Cause.Object.UID, going):
			k.by = cmp.Or(k.by, f.Cause.Object)
		default:
			k.sole, k.others = false, k.others || f.Cause.Class == finding.Waits && f.Cause.Verdict == explain.Stuck
		}
	}
	return k
}

func (l *losses) among(uid types.UID, going *graph.Set) bool {
	n, known := l.graph.Node(uid)
	return known && going.Has(n)
}
