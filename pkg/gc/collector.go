// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	Guard func(Action, graph.Object) error
	// Patient: the run waits for what is on its way out until the context ends, also when the
	// server says that nothing will change any more.
	Patient bool
}

// Collector runs the algorithm. It is used once: for one Delete or one
// Collect. It owns the loop: what is due is done, and what the server tells is taken in.
type Collector struct {
	server    Server
	options   Options
	state     *state
	snapshot  *graph.Snapshot
	scope     *scope
	report    *report
	writer    *writer
	builder   *graphBuilder
	scheduler *scheduler
	worker    *worker
	// finished counts the tasks that runParallel has seen the end of.
	finished atomic.Int64
}

// New returns a Collector that starts from a graph of the server's objects.
func New(server Server, g *graph.Graph, options Options) *Collector {
	options.Workers = max(options.Workers, 1)
	c := &Collector{server: server, options: options, state: newState(g), snapshot: g.Snapshot()}
	c.scope = &scope{state: c.state}
	c.report = &report{scope: c.scope}
	c.builder = &graphBuilder{state: c.state, scope: c.scope}
	r := &reader{
		server: server, snapshot: c.snapshot, state: c.state, apply: c.builder.apply, seesAll: options.SeesAll,
		blindSpots: map[string]string{}, resolved: map[[2]string]resolution{},
	}
	c.scheduler = &scheduler{server: server, state: c.state, scope: c.scope, reader: r}
	c.builder.reader, c.builder.scheduler = r, c.scheduler
	c.writer = &writer{
		server: server, state: c.state, report: c.report, open: &c.scheduler.open, apply: c.builder.apply, told: r.told,
		guard: options.Guard, observer: options.Observer,
	}
	c.worker = &worker{
		state: c.state, snapshot: c.snapshot, scope: c.scope, reader: r, builder: c.builder, scheduler: c.scheduler,
		writer: c.writer, report: c.report, releases: map[number]ownerRelease{},
	}
	return c
}

// DeleteOptions are what the user says of a deletion.
type DeleteOptions struct {
	Policy metav1.DeletionPropagation
	// GracePeriodSeconds is for the targets alone; nil leaves it to them.
	GracePeriodSeconds *int64
	// Reason is why the targets are deleted, empty when the user has named them.
	Reason string
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
	// Unselected is why the object is left alone that is not selected any more; empty says that it does not match the selector.
	Unselected string
}

// Delete deletes the targets with the policy and then does what the garbage
// collector does about their dependents, until nothing more can be done. A
// target that is not in the graph as an object but as a missing owner is
// treated as just deleted. Of targets with one UID the first counts. The error is
// that of the context or of the server's events, or says that the server does not
// answer any more; refused writes are in the report, which is never nil.
func (c *Collector) Delete(ctx context.Context, targets []Target, options DeleteOptions) (*Report, error) {
	c.worker.deletion = options
	wave, named := Wave{Targets: targets, Ahead: options.Ahead}, make(map[number]bool, len(targets))
	for i := range targets {
		named[c.state.of(targets[i].UID)] = true
	}
	concerned := Concerned(c.state.graph, wave.uids())
	c.scope.expect(concerned, named)
	c.report.expect(concerned, targets)
	c.worker.ahead = newAhead(c.worker.reader, options.Policy, options.For, named)
	c.scheduler.begin(&wave, options.Policy)
	err := c.run(ctx)
	return c.conclude(), err
}

// Collect does what the garbage collector has to do now: delete what has only
// dangling owners, drop references that keep nothing, finish foreground and
// orphan deletions that were begun. With a namespace, nothing outside it is
// deleted or loses a reference; an owner outside is finished when nothing else is
// left to do for that.
func (c *Collector) Collect(ctx context.Context, namespace string) (*Report, error) {
	c.scope.everything, c.scope.namespace = true, namespace
	for n := range c.state.graph.Nodes() {
		if n.Virtual() {
			continue
		}
		switch {
		case !c.scope.within(n.Namespace()) && !c.ownsWithin(n):
		case n.OrphaningDependents():
			c.builder.orphan(numberOf(n))
		case n.DeletingDependents():
			c.scheduler.enqueueForeground(numberOf(n))
			c.scheduler.awaitEnding(c.state.blockingDependents(numberOf(n)))
		case !n.BeingDeleted() && !n.AllSolid():
			c.scheduler.enqueue(task{kind: attempt, object: numberOf(n)})
		}
	}
	err := c.run(ctx)
	return c.conclude(), err
}

func (c *Collector) conclude() *Report {
	k := &conclusion{
		server: c.server, state: c.state, scope: c.scope, report: c.report, lost: &c.writer.lost,
		entered: &c.scheduler.entered, proofs: &c.scheduler.proofs, policy: c.worker.deletion.Policy,
	}
	return k.conclude(c.scheduler.queue.left())
}

// ownsWithin reports whether an object of the namespace depends on an owner outside
// whose deletion was begun.
func (c *Collector) ownsWithin(n graph.Node) bool {
	return n.BeingDeleted() && slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return c.scope.within(d.Namespace()) })
}
