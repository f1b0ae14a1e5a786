// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// aheadOf is how many things are read at once when one after the other is asked for.
const aheadOf = 4

// family is a type and finalizers. Objects that are being deleted and have the same wait for
// the same: who has asked for the whole of two will ask for that of the next one, too.
type family struct {
	resource   schema.GroupVersionResource
	finalizers string
}

func familyOf(n graph.Node) family {
	return family{n.Resource().GroupVersionResource, strings.Join(n.Finalizers(), " ")}
}

// Announce says that the whole of these nodes will be asked for, most of them: those of which there are many come from
// lists then, and one after the other of the rest not by itself.
func (r *Reader) Announce(nodes []graph.Node) {
	if r.whole != nil {
		r.whole.Announce(nodes)
		return
	}
	touched := sets.New[place]()
	for _, n := range nodes {
		of := alikeOf(n)
		r.announced[of] = append(r.announced[of], n)
		touched.Insert(of)
	}
	for of := range touched {
		slices.SortFunc(r.announced[of], byIndex)
		r.announced[of] = slices.CompactFunc(r.announced[of], func(a, b graph.Node) bool { return a.Index() == b.Index() })
	}
}

func byIndex(a, b graph.Node) int { return cmp.Compare(a.Index(), b.Index()) }

// maxAlone is how many objects are read each by itself as long as lists may have them, whatever the lists cost.
const maxAlone = 150

// ahead reads the whole of a node that was announced or is being deleted and, unless it is the first of its
// family, that of the next ones, all at once. Get has what was read; that something could not
// be read is not worth a word before somebody asks for it.
func (r *Reader) ahead(n graph.Node) {
	if r.whole != nil {
		r.whole.ahead(n)
		return
	}
	of := alikeOf(n)
	announced := r.announced[of]
	_, is := slices.BinarySearchFunc(announced, n, byIndex)
	if r.hasRead(placeOf(n)) || !is && !n.BeingDeleted() {
		return
	}
	if is && r.listsFor(of) {
		return
	}
	if r.asked[familyOf(n)]++; r.asked[familyOf(n)] == 1 {
		return
	}
	if !is {
		announced = r.counts().deleted[of.resource]
	}
	r.readEarly(familyAfter(n, announced, func(m graph.Node) bool { return r.hasRead(placeOf(m)) }))
}

// listsFor reads what was announced of a list from that, once, if it is worth it: the requests would cost more, or be too many.
func (r *Reader) listsFor(of place) bool {
	left := slices.DeleteFunc(slices.Clone(r.announced[of]), func(n graph.Node) bool { return r.hasRead(placeOf(n)) })
	if !r.cheaper(of, len(left)) && (len(left) <= 1 || r.alone+len(left) <= maxAlone) {
		return false
	}
	delete(r.announced, of)
	return r.readListed(of.resource, left) == nil
}

// cheaper reports whether a list costs less than requests for some of its objects.
func (r *Reader) cheaper(of place, objects int) bool {
	return objects > maxAlike && r.counts().all[of] <= objects*perTerminating
}

// Together reads the whole of several nodes at once, for who is about to ask for each by
// Whole. Those of a type of which there are many are read from one list.
func (r *Reader) Together(nodes []graph.Node) {
	if r.whole != nil {
		r.whole.Together(nodes)
		return
	}
	unread := map[place][]graph.Node{}
	for _, n := range nodes {
		if of := alikeOf(n); !r.many(of) && !r.hasRead(placeOf(n)) {
			unread[of] = append(unread[of], n)
		}
	}
	var single []graph.Node
	for of, alike := range unread {
		if r.cheaper(of, len(alike)) && r.readListed(of.resource, alike) == nil {
			continue
		}
		single = append(single, alike...)
	}
	r.readEarly(single)
}

// readListed reads the whole of nodes of one type from a list, as far as it has them.
func (r *Reader) readListed(resource schema.GroupVersionResource, nodes []graph.Node) error {
	namespace, wanted := nodes[0].Namespace(), map[types.UID]bool{}
	var uids []string
	for _, n := range nodes {
		uids = append(uids, strconv.Quote(string(n.UID())))
		if wanted[n.UID()] = true; n.Namespace() != namespace {
			namespace = ""
		}
	}
	var found []unstructured.Unstructured
	err := r.source.Cluster.EachNaming(r.ctx, resource, namespace, uids, func() { found = nil }, func(o *unstructured.Unstructured) error {
		if wanted[o.GetUID()] {
			found = append(found, *o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range found {
		r.Known(resource, &found[i])
	}
	return nil
}

// hasRead reports whether an object was read, maybe early.
func (r *Reader) hasRead(p place) bool {
	_, known := r.objects[p]
	return known || r.early[p] != nil
}

// readEarly reads the whole of nodes, all at once.
func (r *Reader) readEarly(nodes []graph.Node) {
	var group sync.WaitGroup
	for _, n := range nodes {
		whole := r.wholeOnce(r.ctx, placeOf(n))
		group.Go(func() { whole() })
	}
	group.Wait()
}

// wholeOnce returns what reads an object, which Get will do without it.
func (r *Reader) wholeOnce(ctx context.Context, p place) func() reading {
	r.alone++
	r.early[p] = sync.OnceValue(func() reading { return r.readNow(ctx, p) })
	return r.early[p]
}

const (
	// expectedInFlight reads are on their way that were begun before they were asked for.
	expectedInFlight = 8
	// maxExpected bounds the objects of which the whole is read so.
	maxExpected = 64
)

// Expect begins to read, beside what else is done, what is asked for first when objects that are
// being deleted are explained in this order: of each family the whole of the first, and those that
// would be read beside the second, and the events about the first. From a server that is far
// away one would come after the other. What could not be read is not worth a word before somebody
// asks for it. Done forgets what nobody has asked for.
func (r *Reader) Expect(nodes []graph.Node) (done func()) {
	if r.whole != nil {
		return r.whole.Expect(nodes)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	var queue []func()
	for _, n := range r.firstOfFamilies(nodes) {
		whole := r.wholeOnce(ctx, placeOf(n.Node))
		queue = append(queue, func() { whole() })
		if !n.first {
			continue
		}
		of := familyOf(n.Node)
		r.asked[of]++ // those after them come together
		if r.source.Events != nil {
			r.askedEvents[of]++
			events := r.eventsOnce(ctx, n.Namespace(), n.UID())
			queue = append(queue, func() { events() })
		}
	}
	var group sync.WaitGroup
	group.Go(func() { inTurn(ctx, queue) })
	return func() {
		cancel()
		group.Wait()
		clear(r.early)
		clear(r.earlyEvents)
	}
}

// inTurn reads things, a few at a time.
func inTurn(ctx context.Context, queue []func()) {
	var group errgroup.Group
	group.SetLimit(expectedInFlight)
	for _, read := range queue {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			read()
			return nil
		})
	}
	_ = group.Wait() // there are no errors
}

// eventsOnce returns what reads the events about an object, which Events will do without it.
func (r *Reader) eventsOnce(ctx context.Context, namespace string, uid types.UID) func() listing {
	r.earlyEvents[uid] = sync.OnceValue(func() (l listing) {
		l.items, l.err = r.source.Events(ctx, namespace, uid)
		return l
	})
	return r.earlyEvents[uid]
}

// eventsAhead reads the events about an object that is being deleted and, unless it is the first
// of its family, those about the next ones, as ahead does.
func (r *Reader) eventsAhead(uid types.UID) {
	n, known := r.source.Graph.Node(uid)
	if !known || !n.BeingDeleted() || r.earlyEvents[uid] != nil {
		return
	}
	of := familyOf(n)
	if r.askedEvents[of]++; r.askedEvents[of] == 1 {
		return
	}
	var group sync.WaitGroup
	read := func(n graph.Node) bool {
		_, known := r.events[n.UID()]
		return known || r.earlyEvents[n.UID()] != nil
	}
	next := familyAfter(n, r.counts().deleted[of.resource], read)
	for _, m := range next[:min(len(next), maxEventReads-len(r.events))] { // more are not asked for
		events := r.eventsOnce(r.ctx, m.Namespace(), m.UID())
		group.Go(func() { events() })
	}
	group.Wait()
}

// member is an object of a family.
type member struct {
	graph.Node
	first bool
}

// firstOfFamilies returns the first objects of each family of which the whole is to be
// read, and not in a list.
func (r *Reader) firstOfFamilies(nodes []graph.Node) []member {
	var members []member
	seen := map[family]int{}
	for _, n := range nodes {
		of := familyOf(n)
		if !n.BeingDeleted() || seen[of] == 1+aheadOf || r.many(alikeOf(n)) || r.hasRead(placeOf(n)) {
			continue
		}
		if len(members) == maxExpected {
			break
		}
		seen[of]++
		members = append(members, member{n, seen[of] == 1})
	}
	return members
}

// Begun are lists of whole objects, everywhere, that are being read.
type Begun struct {
	group sync.WaitGroup
	lists map[place]*listing
}

// Begin begins to read lists, all at once, and does not wait.
func Begin(ctx context.Context, cluster Cluster, resources ...schema.GroupVersionResource) *Begun {
	b := &Begun{lists: map[place]*listing{}}
	for _, resource := range resources {
		l := &listing{}
		b.lists[place{resource: resource}] = l
		b.group.Go(func() { l.items, l.err = cluster.List(ctx, resource, "") })
	}
	return b
}

// ListTogether lists the whole objects of several resources everywhere, all at once, for who
// is about to ask for each by List. What was begun is not read again; nil is for nothing.
func (r *lists) ListTogether(begun *Begun, resources ...schema.GroupVersionResource) {
	if r.whole != nil {
		r.whole.ListTogether(begun, resources...)
		return
	}
	var more []schema.GroupVersionResource
	for _, resource := range resources {
		if p := (place{resource: resource}); !r.hasListed(p) && (begun == nil || begun.lists[p] == nil) {
			more = append(more, resource)
		}
	}
	others := Begin(r.ctx, r.source.Cluster, more...)
	r.take(begun)
	r.take(others)
}

// hasListed reports whether a list was read, maybe early.
func (r *lists) hasListed(p place) bool {
	_, known := r.all[p]
	_, early := r.earlyLists[p]
	return known || early
}

// take waits for lists, and keeps those that were not read before.
func (r *lists) take(begun *Begun) {
	if begun == nil {
		return
	}
	begun.group.Wait()
	for p, l := range begun.lists {
		if !r.hasListed(p) {
			r.earlyLists[p] = *l
		}
	}
}

// familyAfter returns a node and the next ones with its finalizers, aheadOf in all, but
// for those that are not to be had. The nodes are in the order of the graph.
func familyAfter(n graph.Node, nodes []graph.Node, not func(graph.Node) bool) []graph.Node {
	family := []graph.Node{n}
	from, is := slices.BinarySearchFunc(nodes, n, byIndex)
	if is {
		from++
	}
	for _, next := range nodes[from:] {
		if len(family) == aheadOf {
			break
		}
		if slices.Equal(next.Finalizers(), n.Finalizers()) && !not(next) {
			family = append(family, next)
		}
	}
	return family
}
