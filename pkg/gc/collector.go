// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Step is one write of the algorithm.
type Step struct {
	Action Action
	// Object is the object before the write.
	Object graph.Object
	Reason string
	// Options are those of a Delete.
	Options metav1.DeleteOptions
	// Patch is that of any other action.
	Patch Patch
	// Err is what the server answered, nil when it accepted.
	Err error
	// Unanswered: this write, or one to the same object before it, was not answered, and may be carried out late.
	Unanswered bool
}

// Observer is told every write after the server has answered. It is called by
// one goroutine at a time.
type Observer func(Step)

// Options configure a Collector.
type Options struct {
	// Workers is the number of requests in flight. With one, which is also what
	// 0 means, everything happens in one order that depends on the graph alone.
	Workers int
	// Observer may be nil.
	Observer Observer
	// SeesAll: the Collector stands for one that reads everything, such as the
	// cluster's own garbage collector in a simulation of it. What was not read
	// keeps it from nothing.
	SeesAll bool
	// Guard is asked before each write that the Collector itself decides about, and
	// so not about the delete of a target. After an error the object is left alone,
	// and remains with that as the reason. It may be called by several goroutines at
	// once; nil allows everything.
	Guard func(graph.Object) error
	// Patient: the run waits for what is on its way out until the context ends, also when the
	// server says that nothing will change any more.
	Patient bool
}

// Collector runs the algorithm. It is used once: for one Delete or one
// Collect.
type Collector struct {
	server   Server
	options  Options
	state    *state
	snapshot *graph.Snapshot
	queue    queue
	report   *report
	writer   *writer
	deletion DeleteOptions
	// everything is set when all objects are the Collector's business, not only
	// those that depend on the targets.
	everything bool
	// namespace is the one that is collected, empty for all.
	namespace string
	// blindSpots has what was not read, by namespace.
	blindSpots map[string]string
	// asking holds a lock for each owner that the server is asked about, and
	// verified those that it said to be in foreground deletion.
	asking   locks
	verified verified
	// proofs says which owners may be finished.
	proofs proofs
	// entered are owners in foreground deletion whose dependents were queued.
	entered memo
	// lookedAgain are those whose blocking dependents were once more.
	lookedAgain memo
	// orphans are the targets whose dependents are to stay, and letsGo the owners that orphan theirs in this run.
	orphans, letsGo memo
	// turns says whose turn it is.
	turns turns
	// vanished are the contents of what is gone in the end, and emptying those of what is being deleted then.
	vanished, emptying contents
	// ahead has what objects go with that are deleted before it.
	ahead ahead
	// resolved has the resolutions by apiVersion and kind: a mapper that remembers, too, makes
	// garbage for each question.
	resolved map[[2]string]resolution
	// lettings has what is done to the dependents of owners that orphan them.
	lettings map[number]letting
	// remembering is held while resolved, lettings and blindSpots are looked at.
	remembering sync.Mutex
	// applying is held while a change is taken into the state and onto the queue.
	applying sync.Mutex
	// finished counts the tasks that runParallel has seen the end of.
	finished atomic.Int64
}

// New returns a Collector that starts from a graph of the server's objects.
func New(server Server, g *graph.Graph, options Options) *Collector {
	options.Workers = max(options.Workers, 1)
	c := &Collector{
		server: server, options: options, state: newState(g), snapshot: g.Snapshot(),
		resolved: map[[2]string]resolution{}, lettings: map[number]letting{}, blindSpots: map[string]string{},
	}
	c.report = &report{}
	c.writer = &writer{
		server: server, state: c.state, report: c.report, apply: c.apply, told: c.told,
		guard: options.Guard, observer: options.Observer,
	}
	return c
}

// DeleteOptions are what the user says of a deletion.
type DeleteOptions struct {
	Policy metav1.DeletionPropagation
	// GracePeriodSeconds is for the targets alone; nil leaves it to them.
	GracePeriodSeconds *int64
	// Ahead are objects that are deleted besides, before the targets For with which they
	// go; see Wave.
	Ahead []graph.Identity
	For   []Target
}

// Target is an object that the user wants to be deleted, as the user named it. Its
// UID alone does not say which one that is. When the graph has the object under
// another group that serves the same, with the same name, the delete goes to the
// resource of the Target. When what it has under the UID is another object, or
// there is no UID, nothing is deleted.
type Target struct {
	graph.Identity
	// Reselect is nil for an object that the user named. For one that a selector
	// chose it asks the server whether the selection still has the object, and
	// returns it as it is then; an object with another UID is not it. It is asked
	// when a delete met with a conflict or was not answered. What it returns is what
	// the next delete states, so what is deleted matched in that very version.
	Reselect func(context.Context, Server) (o graph.Object, selected bool, err error)
	// Matched is the resourceVersion in which the selector chose the object.
	Matched string
}

// Delete deletes the targets with the policy and then does what the garbage
// collector does about their dependents, until nothing more can be done. A
// target that is not in the graph as an object but as a missing owner is
// treated as just deleted. Of targets with one UID the first counts. The error is
// that of the context or of the server's events, or says that the server does not
// answer any more; refused writes are in the report, which is never nil.
func (c *Collector) Delete(ctx context.Context, targets []Target, options DeleteOptions) (*Report, error) {
	c.deletion = options
	wave, named := Wave{Targets: targets, Ahead: options.Ahead}, make(map[number]bool, len(targets))
	for i := range targets {
		named[c.state.of(targets[i].UID)] = true
	}
	c.report.expect(Concerned(c.state.graph, wave.uids()), named)
	c.prepareAhead(options.For, named)
	c.begin(&wave)
	err := c.run(ctx)
	return c.conclude(), err
}

// begin queues what a deletion begins with. The delete of an object that is to go ahead, and is being deleted
// already, is not repeated, as that could change how it goes: its end is waited for.
func (c *Collector) begin(w *Wave) {
	c.applying.Lock()
	defer c.applying.Unlock()
	for i := range w.Targets {
		t := &w.Targets[i]
		if t.UID == "" {
			c.report.nameless = append(c.report.nameless, objectOf(t.Identity))
			continue
		}
		n := c.state.of(t.UID)
		if v, ok := c.state.view(n); !ok || v.gone {
			c.enqueueDependents(n)
			continue
		}
		c.queue.push(task{kind: deleteTarget, object: n, target: t})
		c.turns.targets = append(c.turns.targets, n)
	}
	for _, id := range w.Ahead {
		n := c.state.of(id.UID)
		if v, ok := c.state.view(n); ok && !v.gone {
			if v.object.BeingDeleted() {
				c.writer.open.set(n, true)
			}
			c.enqueue(task{kind: goAhead, object: n})
		}
	}
	if c.deletion.Policy != metav1.DeletePropagationOrphan {
		c.awaitEnding(c.included()) // what an owner that orphans leaves alone is not waited for
	}
}

// awaitEnding has a run last until what somebody else deleted before has ended, of some objects,
// if it was given time for that: it goes as what the run deletes does, and nothing need be written
// to it.
func (c *Collector) awaitEnding(objects []number) {
	for _, n := range objects {
		if v, ok := c.state.view(n); ok && !v.gone && v.object.InGrace() {
			c.writer.open.set(n, true)
		}
	}
}

// Collect does what the garbage collector has to do now: delete what has only
// dangling owners, drop references that keep nothing, finish foreground and
// orphan deletions that were begun. With a namespace, nothing outside it is
// deleted or loses a reference; an owner outside is finished when nothing else is
// left to do for that.
func (c *Collector) Collect(ctx context.Context, namespace string) (*Report, error) {
	c.everything, c.namespace = true, namespace
	for n := range c.state.graph.Nodes() {
		if n.Virtual() {
			continue
		}
		switch {
		case !c.within(n.Namespace()) && !c.ownsWithin(n):
		case n.OrphaningDependents():
			c.orphan(numberOf(n))
		case n.DeletingDependents():
			c.enqueueForeground(numberOf(n))
			c.awaitEnding(c.state.blockingDependents(numberOf(n)))
		case !n.BeingDeleted() && !n.AllSolid():
			c.enqueue(task{kind: attempt, object: numberOf(n)})
		}
	}
	err := c.run(ctx)
	return c.conclude(), err
}

// within reports whether objects of the namespace are to be collected.
func (c *Collector) within(namespace string) bool {
	return c.namespace == "" || c.namespace == namespace
}

// ownsWithin reports whether an object of the namespace depends on an owner outside
// whose deletion was begun.
func (c *Collector) ownsWithin(n graph.Node) bool {
	return n.BeingDeleted() && slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return c.within(d.Namespace()) })
}

// Concerned returns the nodes that the deletion of the targets concerns: what
// depends on them, what is in a target namespace, the instances of a target
// CustomResourceDefinition, and what depends on those. The server itself
// deletes contents and instances. An owner in foreground deletion that waits
// for nothing but these is concerned, too, for it can go then.
func Concerned(g *graph.Graph, targets []types.UID) graph.Set {
	var roots []graph.Node
	for _, uid := range targets {
		if n, ok := g.Node(uid); ok && uid != "" {
			roots = append(roots, n)
		}
	}
	roots = append(roots, Contents(g, roots...)...)
	set := graph.Descendants(roots...)
	blind := map[string]bool{}
	for namespace := range namespacesOf(set) {
		blind[namespace] = g.Snapshot().BlindSpot(namespace) != ""
	}
	for owners := waitingFor(set, blind); len(owners) > 0; owners = waitingFor(set, blind) {
		set.AddAll(graph.Descendants(owners...))
	}
	return set
}

// namespacesOf returns the namespaces of objects of which the set has dependents
// that block them, empty for none.
func namespacesOf(set graph.Set) map[string]bool {
	namespaces := map[string]bool{}
	for n := range set.All() {
		for o := range n.Blocks() {
			if o.DeletingDependents() {
				namespaces[o.Namespace()] = true
			}
		}
	}
	return namespaces
}

// waitingFor returns the owners in foreground deletion outside the set that are
// blocked from within it and not from without. Of what is in a namespace that was
// not read, or in none when not all were, that is not known.
func waitingFor(set graph.Set, blind map[string]bool) []graph.Node {
	var owners []graph.Node
	for n := range set.All() {
		for o := range n.Blocks() {
			outside := func(d graph.Node) bool { return !set.Has(d) }
			if !set.Has(o) && o.DeletingDependents() && !blind[o.Namespace()] && !slices.ContainsFunc(o.BlockingDependents(), outside) {
				owners = append(owners, o)
			}
		}
	}
	return owners
}

// enqueue puts a task on the queue, and makes its object the Collector's
// business. What is outside the namespace that is collected is not.
func (c *Collector) enqueue(t task) {
	if t.kind.decides() && c.namespace != "" {
		if v, ok := c.state.view(t.object); !ok || !c.within(v.object.Namespace) {
			return
		}
	}
	c.report.include(t.object)
	if t.kind == finish && !c.queue.has(t) {
		c.proofs.renew(t.object)
	}
	c.queue.push(t)
}

// enqueueDependents has everything looked at that references the owner.
func (c *Collector) enqueueDependents(owner number) {
	for _, d := range c.state.dependents(owner) {
		if c.isForeground(d) {
			c.enqueueForeground(d)
		} else {
			c.enqueue(task{kind: attempt, object: d})
		}
	}
}

// isForeground reports whether an object is in foreground deletion now. That it was,
// and another policy took its place, says nothing about its dependents.
func (c *Collector) isForeground(n number) bool {
	v, ok := c.state.view(n)
	return ok && !v.gone && v.object.DeletingDependents()
}

// enqueueForeground has an object in foreground deletion looked at, and when that
// is for the first time its dependents before: at once, so that nothing comes
// between that waits for what becomes of them. If it orphans by now, they lose
// their references to it whatever is decided about them, and that it was in
// foreground deletion is no reason to decide.
func (c *Collector) enqueueForeground(n number) {
	if c.turns.open() { // the user may have another policy for it
		c.turns.foreground = append(c.turns.foreground, n)
		return
	}
	if !c.isOrphaning(n) && c.entered.first(n) {
		c.enqueueDependents(n)
	}
	c.enqueue(task{kind: finish, object: n})
}

// lookAtForeground is enqueueForeground for a task.
func (c *Collector) lookAtForeground(n number) {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.enqueueForeground(n)
}

// apply takes a change of an object into the state, and queues what the change
// gives reason to look at (garbagecollector/graph_builder.go,
// processGraphChanges and processTransitions).
func (c *Collector) apply(e Event) {
	n := c.state.of(e.Object.UID)
	if !c.state.recognize(n, &e) {
		return
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	defer c.settle(n)
	change := c.state.apply(n, e)
	if e.Lost {
		c.writer.open.set(n, false)
	}
	if change.late {
		return
	}
	mine := c.mine(n)
	if mine && (change.removed || e.Object.BeingDeleted()) {
		c.writer.open.set(n, !change.removed) // other changes may be older than a delete
	}
	if mine && (change.removed || change.found) {
		c.enqueueDependents(n)
	}
	for _, owner := range change.released {
		if c.mine(owner.number) && c.isForeground(owner.number) {
			c.enqueueForeground(owner.number)
		}
	}
	for _, owner := range change.unreferenced {
		if c.mine(owner.number) && c.isOrphaning(owner.number) {
			c.orphanWhenReleased(owner.number)
		}
	}
	for _, owner := range change.added {
		switch {
		case !c.mine(owner.number):
		case c.isForeground(owner.number):
			c.enqueue(task{kind: attempt, object: n})
		case c.isOrphaning(owner.number) && c.letsGo.has(owner.number):
			c.enqueue(task{kind: release, object: n, owner: owner.number})
		case c.removed(owner.number): // the event of its removal came by another watch
			c.enqueue(task{kind: attempt, object: n})
		}
	}
	if !c.mine(n) {
		return
	}
	if change.startsDeletion {
		c.turns.emptied.add(e.Object.Identity())
	}
	if c.retries(change.ownersBefore, e.Object.Namespace) {
		c.decideAgain(n)
	}
	if change.startsOrphaning {
		c.orphan(n)
	} else if change.startsForeground {
		c.enqueueForeground(n)
	}
}

func (c *Collector) removed(n number) bool {
	v, ok := c.state.view(n)
	return ok && v.gone
}

// mine reports whether the object is the Collector's business.
func (c *Collector) mine(n number) bool {
	if c.everything && c.namespace == "" || c.report.includes(n) {
		return true
	}
	v, ok := c.state.view(n)
	return c.everything && ok && c.within(v.object.Namespace)
}

// blindSpot says what was not read of that which may depend on the object, empty
// for nothing.
func (c *Collector) blindSpot(o *graph.Object) string {
	c.remembering.Lock()
	defer c.remembering.Unlock()
	spot, known := c.blindSpots[o.Namespace]
	if !known && !c.options.SeesAll {
		spot = c.snapshot.BlindSpot(o.Namespace)
		c.blindSpots[o.Namespace] = spot
	}
	return spot
}

// lastWords is how long a Collector whose context has ended waits for the events
// of deletes that were accepted.
const lastWords = 2 * time.Second

// run works until the queue is empty and the server has nothing more to tell.
func (c *Collector) run(ctx context.Context) error {
	run := c.runInOrder
	if c.options.Workers > 1 {
		run = c.runParallel
	}
	looked := map[types.UID]bool{}
	for {
		err := run(ctx)
		if ctx.Err() != nil {
			c.hearOut(ctx)
			if err == nil && !c.nothingOpen() {
				err = ctx.Err()
			}
			return err
		}
		if err != nil || !c.lookForUnseen(ctx, looked) && !c.lookIntoGone(looked) && (!c.options.Patient || c.nothingOpen()) {
			return err
		}
	}
}

// lookForUnseen reads the objects, once each, of which a delete was accepted and no
// event has come: their type cannot be watched. It reports whether there were
// any. What cannot be read stays unseen.
func (c *Collector) lookForUnseen(ctx context.Context, looked map[types.UID]bool) bool {
	var group errgroup.Group
	group.SetLimit(max(1, c.options.Workers))
	found := false
	for _, o := range c.state.unseen() {
		if looked[o.UID] {
			continue
		}
		looked[o.UID], found = true, true
		group.Go(func() error {
			switch now, err := c.server.Get(ctx, *o.Resource, o.Namespace, o.Name); {
			case isGone(err, &o), err == nil && now.UID != o.UID:
				c.apply(Event{Object: o, Removed: true})
			case err == nil:
				c.state.linger(c.state.of(o.UID))
				c.apply(Event{Object: now})
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails
	return found
}

// lookIntoGone asks for the proof, once for each, of what became of the contents of a Namespace or
// CustomResourceDefinition that is gone: that they went before it, the events have not told of all.
// It reports whether there is something to hear of.
func (c *Collector) lookIntoGone(looked map[types.UID]bool) bool {
	var gone contents
	for v := range c.containers {
		if v.gone && !looked[v.object.UID] {
			looked[v.object.UID] = true
			gone.add(v.object.Identity())
		}
	}
	if gone.empty() || !slices.ContainsFunc(c.included(), func(n number) bool {
		v, ok := c.state.view(n)
		return ok && !v.gone && !v.lost && gone.has(v.object.Resource, v.object.Namespace)
	}) {
		return false
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	c.proofs.renew(aProof)
	c.proofs.done(aProof, c.server.CatchUp)
	return true
}

// containers goes over the Namespaces and CustomResourceDefinitions that the report is about.
func (c *Collector) containers(yield func(view) bool) {
	for _, n := range c.included() {
		v, ok := c.state.view(n)
		if ok && (v.object.Resource.IsNamespace() || v.object.Resource.IsCRD()) && !yield(v) {
			return
		}
	}
}

// hearOut takes in what became of the deletes that were accepted before the
// context ended, so that the report does not call gone objects remaining.
func (c *Collector) hearOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for c.state.awaitsEvents() && c.drain(ctx, true) == nil {
	}
}

func (c *Collector) runInOrder(ctx context.Context) error {
	for {
		for t, ok := c.next(); ok; t, ok = c.next() {
			if ctx.Err() != nil {
				c.report.unreached(t.object)
				return ctx.Err()
			}
			c.do(ctx, t)
			c.done(t)
			if err := cmp.Or(c.writer.silent(), c.drain(ctx, false)); err != nil {
				return err
			}
		}
		if c.ends(false) {
			return nil
		}
		if !c.queue.empty() {
			continue
		}
		if err := c.drain(ctx, true); errors.Is(err, ErrAtRest) {
			if c.ends(true) {
				return nil
			}
		} else if err != nil {
			return err
		}
	}
}

// drain applies the events that there are, or waits for some.
func (c *Collector) drain(ctx context.Context, wait bool) error {
	events, err := c.server.Events(ctx, wait)
	for _, e := range events {
		if e.CaughtUp > 0 {
			c.caughtUp(e)
		} else {
			c.apply(e)
		}
	}
	return err
}

// runParallel keeps up to Workers tasks in flight. Events are applied as they
// come; that the server is at rest counts only if it was asked after the last
// task was done.
func (c *Collector) runParallel(ctx context.Context) error {
	rest, stop := c.startPump(ctx)
	defer stop()
	done, inFlight, wake := make(chan struct{}, c.options.Workers), 0, c.queue.wake()
	var failure error
	for {
		for failure == nil && ctx.Err() == nil && inFlight < c.options.Workers {
			t, ok := c.next()
			if !ok {
				break
			}
			inFlight++
			go func() {
				c.do(ctx, t)
				c.done(t)
				done <- struct{}{}
			}()
		}
		idle := inFlight == 0
		if idle && (failure != nil || ctx.Err() != nil) {
			return cmp.Or(failure, ctx.Err())
		}
		if idle && c.ends(false) {
			return nil
		}
		select {
		case <-done:
			inFlight--
			c.finished.Add(1)
			failure = cmp.Or(failure, c.writer.silent())
		case <-wake:
		case v := <-rest:
			if !errors.Is(v.err, ErrAtRest) {
				failure = v.err
			} else if idle && v.done == c.finished.Load() && c.ends(true) {
				return nil
			}
		}
	}
}

// nothingOpen reports whether there is nothing to do and nothing to wait for. A
// change that is just being applied counts with what it queues.
func (c *Collector) nothingOpen() bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	return c.writer.open.empty() && c.idle()
}

// idle reports whether there is nothing to do. The caller holds applying: the end of a proof and
// what waits for it come together.
func (c *Collector) idle() bool { return c.queue.empty() && !c.proofs.running() }

// ends reports whether the run is over: there is nothing to do, nothing to wait for unless the
// server is at rest, and nothing that waits until others have had their time, or for what does not hold
// any more, which goes on now. No task may be out.
func (c *Collector) ends(atRest bool) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	return c.idle() && (atRest || c.writer.open.empty()) && !c.rest() && !c.reconsider()
}

// verdict is an error of the server's events, with the number of tasks that
// were done when it was asked for them.
type verdict struct {
	err  error
	done int64
}

// startPump starts the pump. The function that it returns ends it, and returns
// when it has ended.
func (c *Collector) startPump(ctx context.Context) (<-chan verdict, func()) {
	ctx, cancel := context.WithCancel(ctx)
	rest, ended := make(chan verdict), make(chan struct{})
	go func() {
		defer close(ended)
		c.pump(ctx, rest)
	}()
	return rest, func() {
		cancel()
		<-ended
	}
}

// pump applies the server's events until the context ends, wakes the queue
// after them, and sends every error of the server to rest.
func (c *Collector) pump(ctx context.Context, rest chan<- verdict) {
	for {
		done := c.finished.Load()
		err := c.drain(ctx, true)
		c.queue.notify()
		if err == nil {
			continue
		}
		select {
		case rest <- verdict{err, done}:
		case <-ctx.Done():
			return
		}
		if !errors.Is(err, ErrAtRest) {
			return
		}
	}
}
