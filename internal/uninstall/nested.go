// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var applicationSets = schema.GroupResource{Group: "argoproj.io", Resource: "applicationsets"}

// delegate is an object of the plan that is itself a tool's object: its controller deletes in turn what it has deployed.
type delegate struct {
	node   graph.Node
	object *unstructured.Unstructured
	// within is the delegate by whose controller it goes, empty for one that the tool itself deletes.
	within types.UID
	// deletes is what its controller does.
	deletes []graph.Identity
	// awaits: it goes only when all has gone that its controller deletes.
	awaits bool
}

// following adds what delegates delete to a plan.
type following struct {
	*World
	plan *Plan
	// parents are the apply sets that have one, which are looked for once.
	parents func() sets.Set[string]
	// lists are the tools' own objects that stay, by what they list in this cluster.
	lists func() map[delivery.Entry][]graph.Node
	// seen are the objects of tools that were looked at: one may contain itself.
	seen map[types.UID]bool
}

// Follow adds to a plan what the controllers of tools' own objects delete in turn that go by it, as targets, or with a namespace, a
// definition or an owner: each by the rules of its own, from the barrier on in which that object goes, and in no order with the barriers
// that come later, which do not wait for it unless they are awaited. It is to be called once, and before anything is made of the plan.
func (w *World) Follow(p *Plan) {
	p.inTurn()
	p.graph = w.Graph
	f := &following{World: w, plan: p, parents: w.idsIn("id"), seen: map[types.UID]bool{p.Own.UID: true}}
	f.lists = sync.OnceValue(f.listed)
	f.ownWithoutAccount()
	for at := 0; at < len(p.Barriers); at++ {
		next := at + 1
		for _, n := range f.delegates(at) {
			next += f.follow(at, next, n)
		}
	}
	for _, d := range p.delegates {
		f.needs(d.node, d.object, d.node.UID(), d)
	}
	if own, o := f.own(); o != nil {
		f.needs(own, o, "", nil)
	}
	f.asked()
	p.keepNoTargets()
	f.spared()
}

// inTurn has each barrier come after the one before, and only when that has gone if it is awaited. The tool's own object is in the first of
// its barriers alone.
func (p *Plan) inTurn() {
	for i := range p.Barriers {
		b := &p.Barriers[i]
		if own := p.in(p.Own.UID); len(own) > 0 && own[0] < i {
			b.Objects = slices.DeleteFunc(slices.Clone(b.Objects), func(id graph.Identity) bool { return id.UID == p.Own.UID })
		}
		b.Awaited = b.Awaited || p.Awaits
		if i > 0 {
			b.After, b.Wave = []int{i - 1}, p.Barriers[i-1].Wave
			if p.Barriers[i-1].Awaited {
				b.Wave++
			}
		}
	}
	p.removeEmpty()
}

// delegates returns the tools' objects that go with a barrier and were not looked at before, in the order of their identities.
func (f *following) delegates(at int) []graph.Node {
	var uids []types.UID
	for _, id := range f.plan.Barriers[at].Objects {
		uids = append(uids, id.UID)
	}
	var all []graph.Node
	for n := range gc.Concerned(f.Graph, uids).All() {
		if n.Virtual() || f.seen[n.UID()] {
			continue
		}
		switch resource := n.Resource().GroupResource(); {
		case resource == applicationSets:
			f.seen[n.UID()] = true
			f.keepsApplications(n)
		case controlled(resource) != nil:
			all = append(all, n)
		}
	}
	all = slices.DeleteFunc(all, func(n graph.Node) bool { return f.seen[n.UID()] })
	for _, n := range all {
		f.seen[n.UID()] = true
	}
	slices.SortFunc(all, graph.Node.Compare)
	return all
}

// keepsApplications looks at an ApplicationSet, of which the garbage collector deletes the Applications: with a policy that allows no
// deletion, and a finalizer by which it has the time, its controller removes their owner references first, unless it was told not to obey
// the policy (github.com/argoproj/argo-cd/v3/applicationset/controllers/applicationset_controller.go, Reconcile; utils/policy.go,
// DefaultPolicy).
func (f *following) keepsApplications(n graph.Node) {
	o, err := f.Evidence.Whole(n)
	if err != nil || len(n.Finalizers()) == 0 {
		return // what could not be read is noted as unread
	}
	policy, _, _ := unstructured.NestedString(o.Object, "spec", "syncPolicy", "applicationsSync")
	if policy != "create-only" && policy != "create-update" {
		return
	}
	for _, app := range n.Dependents() {
		f.seen[app.UID()] = true
		f.plan.doubt(app.UID(), say.Of(keptBySet, n.Identity(), policy))
	}
}

// follow adds what the controller of an object does when that goes with a barrier, as barriers of its own that are the next ones, and
// returns how many these are.
func (f *following) follow(at, next int, n graph.Node) int {
	p := f.plan
	o, err := f.Evidence.Whole(n)
	if err != nil {
		p.Open = append(p.Open, Open{Cause: Nested, Item: itemOf(n), Detail: say.Plain(err.Error())})
		return 0
	}
	inner := f.planOf(n, o)
	p.Items, p.Absent, p.Of = append(p.Items, inner.Items...), append(p.Absent, inner.Absent...), append(p.Of, inner.Of...)
	for _, k := range inner.Kept {
		k.By = n.Identity()
		p.Kept = append(p.Kept, k)
	}
	if inner.Halt != nil {
		inner.Open = append(inner.Open, *inner.Halt)
	}
	for _, open := range inner.Open {
		if open.Item.Kind == "" {
			open.Item = itemOf(n)
		}
		if open.Cause == HookRuns {
			open.Cause = HookRunsNested
		}
		p.Open = append(p.Open, open)
	}
	for uid, why := range inner.doubts {
		p.doubt(uid, why)
	}
	f.awaitsHook(n, inner)
	p.delegates = append(p.delegates, &delegate{n, o, p.Barriers[at].By.UID, inner.Targets(), inner.Awaits})
	chain := f.chain(at, next, n, inner)
	if account := f.noAccount(at, n, o); account.Name != "" {
		p.keepWithoutAccount(chain, account, n.Identity())
		return 0
	}
	_, target := slices.BinarySearch(p.in(n.UID()), at)
	p.insert(at, next, chain, p.Barriers[at].Awaited && (target || p.Policy == metav1.DeletePropagationForeground))
	return len(chain)
}

// awaitsHook doubts what comes after an object of a hook that has finalizers, for the end of which Helm 3 waits.
func (f *following) awaitsHook(n graph.Node, inner *Plan) {
	for i, b := range inner.Barriers {
		if !b.Awaited || inner.Awaits {
			continue
		}
		hook, known := f.Graph.Node(b.Objects[0].UID)
		if !known || len(hook.Finalizers()) == 0 {
			continue
		}
		why := say.Of(foresight.MayStick, say.Of(waitsFor, hook.Identity()))
		f.plan.doubt(n.UID(), why)
		for _, later := range inner.Barriers[i+1:] {
			for _, id := range later.Objects {
				f.plan.doubt(id.UID, why)
			}
		}
	}
}

// planOf is what the controller of a tool's object does when that is deleted.
func (f *following) planOf(n graph.Node, o *unstructured.Unstructured) *Plan {
	p, err := controlled(n.Resource().GroupResource()).Plan(f.World, n, o)
	if err != nil {
		p.Open = append(p.Open, Open{Cause: Nested, Item: itemOf(n), Detail: say.Plain(err.Error())})
	}
	return p
}

// chain are the barriers of what a controller deletes in turn, but for what the deletion of has begun by then.
func (f *following) chain(at, next int, n graph.Node, inner *Plan) []Barrier {
	from, gone := f.plan.Barriers[at], map[types.UID]bool{inner.Own.UID: true, f.plan.Own.UID: true}
	before := f.plan.before(at)
	for i := range f.plan.Barriers {
		if i == at || before[i] {
			for _, id := range f.plan.Barriers[i].Objects {
				gone[id.UID] = true
			}
		}
	}
	var chain []Barrier
	for _, b := range inner.Barriers {
		b.Objects = slices.DeleteFunc(slices.Clone(b.Objects), func(id graph.Identity) bool { return gone[id.UID] })
		if len(b.Objects) == 0 {
			continue
		}
		b.By, b.Awaited, b.Wave, b.After = n.Identity(), inner.Awaits, from.Wave, []int{next + len(chain) - 1}
		if len(chain) == 0 {
			b.After = slices.Clone(from.After)
		}
		chain = append(chain, b)
	}
	return chain
}

// insert adds barriers before the one with the number next, of which the first begins with the barrier at. What comes after that comes
// after all of them when it awaits the object by whose deletion they are: its finalizer is there until all deletes have been answered.
func (p *Plan) insert(at, next int, chain []Barrier, awaited bool) {
	if len(chain) == 0 {
		return
	}
	for i := next; i < len(p.Barriers); i++ {
		b := &p.Barriers[i]
		for j := range b.After {
			if b.After[j] >= next {
				b.After[j] += len(chain)
			}
		}
		if awaited && slices.Contains(b.After, at) {
			b.After = append(b.After, next+len(chain)-1)
		}
	}
	p.Barriers = slices.Insert(p.Barriers, next, chain...)
}

// before has, of the barriers before one, whether all their deletes have certainly been answered when it begins.
func (p *Plan) before(barrier int) []bool {
	return preview.Before(len(p.Barriers), barrier, func(i int) []int { return p.Barriers[i].After })
}

// in returns the barriers in which an object is deleted.
func (p *Plan) in(uid types.UID) []int {
	var in []int
	for i := range p.Barriers {
		if slices.ContainsFunc(p.Barriers[i].Objects, func(id graph.Identity) bool { return id.UID == uid }) {
			in = append(in, i)
		}
	}
	return in
}

// keepNoTargets takes out of what is kept by one object what another deletes.
func (p *Plan) keepNoTargets() {
	going := map[types.UID]bool{}
	for _, id := range p.Targets() {
		going[id.UID] = true
	}
	p.Kept = slices.DeleteFunc(p.Kept, func(k Kept) bool { return k.Object.UID != "" && going[k.Object.UID] })
	known := map[graph.Identity]bool{}
	p.Kept = slices.DeleteFunc(p.Kept, func(k Kept) bool {
		before := known[k.Object]
		known[k.Object] = true
		return before
	})
}

// doubtAll doubts all that the tool deletes.
func (p *Plan) doubtAll(why say.Text) {
	for _, id := range p.Targets() {
		p.doubt(id.UID, why)
	}
}

func (p *Plan) doubt(uid types.UID, why say.Text) {
	if p.doubts == nil {
		p.doubts = map[types.UID]say.Text{}
	}
	if p.doubts[uid].IsZero() {
		p.doubts[uid] = why
	}
}

// drop takes out what a delegate's controller would have deleted, and what that would have brought about: it is kept.
func (p *Plan) drop(d *delegate) {
	p.delegates = slices.DeleteFunc(p.delegates, func(o *delegate) bool { return o == d })
	var dropped []graph.Identity
	for i := range p.Barriers {
		if b := &p.Barriers[i]; b.By.UID == d.node.UID() {
			dropped, b.Objects = append(dropped, b.Objects...), nil
		}
	}
	for _, id := range dropped {
		if len(p.in(id.UID)) == 0 {
			p.Kept = append(p.Kept, Kept{Object: id, Reason: Undone, By: d.node.Identity()})
		}
	}
	for _, o := range slices.Clone(p.delegates) {
		if o.within == d.node.UID() {
			p.drop(o)
		}
	}
	p.removeEmpty()
}

// removeEmpty removes barriers without objects. What came after one comes after those before it.
func (p *Plan) removeEmpty() {
	for i := len(p.Barriers) - 1; i >= 0; i-- {
		if len(p.Barriers[i].Objects) > 0 {
			continue
		}
		before := p.Barriers[i].After
		p.Barriers = slices.Delete(p.Barriers, i, i+1)
		for j := i; j < len(p.Barriers); j++ {
			after := map[int]bool{}
			for _, k := range p.Barriers[j].After {
				switch {
				case k > i:
					after[k-1] = true
				case k < i:
					after[k] = true
				default:
					for _, l := range before {
						after[l] = true
					}
				}
			}
			p.Barriers[j].After = slices.Sorted(maps.Keys(after))
		}
	}
}
