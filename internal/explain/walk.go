// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Cluster is what the analysis asks beyond metadata. It only reads.
type Cluster = evidence.Cluster

// Prober asks the API server what it would answer to a write, by dry runs.
type Prober = admission.Prober

// Input is what Explain works on.
type Input struct {
	Graph *graph.Graph
	// Outcomes are those of the engine on a simulation in which nothing else acts, with no new delete.
	Outcomes []gc.Outcome
	Cluster  Cluster
	// Workloads are those of the cluster; nil stands for reading them when they are needed.
	Workloads *controllers.Workloads
	// Read has read things of the graph already; nil has none.
	Read *evidence.Reader
	// Earlier has read things of an earlier graph, for a Report that Missed something; nil has none.
	Earlier *evidence.Reader
	// Failed are objects that were asked for and could not be read.
	Failed []Failed
	// Prober asks what would happen to a write; nil asks nothing.
	Prober Prober
	// Events returns the events about an object; nil reads none.
	Events func(ctx context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error)
	// Now is the API server's time.
	Now time.Time
	// Server is what is known of the API server by its version.
	Server answer.Server
	// Catalogue says who removes which finalizer; nil stands for the built-in one.
	Catalogue *finalizers.Catalogue
	// Passed returns how much time has passed since the objects of the graph were
	// listed, or less; nil counts none.
	Passed func() time.Duration
	// Wait lets the time pass that a second look needs; nil does not wait.
	Wait func(context.Context, time.Duration)
	// Far: to ask takes so long that what will be asked is asked at once.
	Far bool
	// Each: what has to be done to each of many objects is wanted for all of them, not for the first few.
	Each bool
	// Kubectl and Plugin begin the commands of remedies.
	Kubectl, Plugin string
}

// Explain says of each object why it still exists.
func Explain(ctx context.Context, in Input, objects []types.UID) *Report {
	w := newWalker(ctx, in)
	report := &Report{Now: in.Now}
	nodes := sortedNodes(in.Graph, objects)
	w.evidence.Announce(nodes)
	defer w.expect(nodes)()
	for _, n := range nodes {
		report.Objects = append(report.Objects, w.explanation(n))
	}
	for _, f := range in.Failed {
		report.Objects = append(report.Objects, w.unreadableObject(f))
	}
	for _, o := range report.Objects {
		w.waysOut(o)
	}
	position := map[types.UID]int{}
	for i, uid := range objects {
		position[uid] = i
	}
	slices.SortStableFunc(report.Objects[:len(report.Objects)-len(in.Failed)], func(a, b Explanation) int {
		return position[a.Object.UID] - position[b.Object.UID]
	})
	for _, a := range w.known {
		for _, f := range a.found {
			f.cause.Blocks++
			if !slices.Contains(report.Causes, f.cause) {
				report.Causes = append(report.Causes, f.cause)
			}
		}
	}
	unasked(report)
	for _, c := range report.Causes {
		w.finish(c)
	}
	slices.SortFunc(report.Causes, compareCauses)
	for i := range report.Objects {
		o := &report.Objects[i]
		for _, f := range o.Findings {
			if last := len(f.Chain) - 1; last > 0 && f.Chain[last].Because.IsZero() {
				f.Chain[last].Because = f.Cause.Summary
			}
		}
		slices.SortStableFunc(o.Findings, func(a, b Finding) int { return compareCauses(a.Cause, b.Cause) })
		if len(o.Findings) > 0 { // a shared cause may have got worse since
			o.Chain = o.Findings[0].Chain
			o.Verdict = o.Verdict.Worse(o.Findings[0].Cause.Verdict)
		}
	}
	report.Unread, report.Missed, report.Read = w.evidence.Unread(), w.evidence.Missed(), w.evidence
	return report
}

// expect begins to ask what will be asked about objects.
func (w *walker) expect(nodes []graph.Node) (done func()) {
	read := func() {}
	if w.Far {
		read = w.evidence.Expect(nodes)
	}
	probed := w.reviewer.Expect(removals(w.evidence, nodes))
	return func() {
		probed()
		read()
	}
}

// sortedNodes returns the nodes in the order of their identities, in which they are explained however they were asked for:
// the order of the question must not decide which object stands for those that share a cause, and which is asked about.
func sortedNodes(g *graph.Graph, objects []types.UID) []graph.Node {
	var nodes []graph.Node
	for _, uid := range objects {
		if n, ok := g.Node(uid); ok && !n.Virtual() {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, graph.Node.Compare)
	return nodes
}

// walker follows the blockers of objects. Every object is explained once.
type walker struct {
	*facts
	registry
	commands
	known map[types.UID]*known
	// path holds the objects between the one asked for and the current one.
	path []types.UID
}

// known is what is known of one object.
type known struct {
	verdict Verdict
	found   []found
	waits   *step // what it waits for when there is no cause
}

// found is a cause with the way to it.
type found struct {
	cause *Cause
	way   *step
}

// step is a link of a chain. Chains share their ends.
type step struct {
	link Link
	next *step
}

func (s *step) chain() []Link {
	var links []Link
	for ; s != nil; s = s.next {
		links = append(links, s.link)
	}
	return links
}

func newWalker(ctx context.Context, in Input) *walker {
	w := &walker{
		facts:    &facts{Input: in},
		registry: newRegistry(), known: map[types.UID]*known{},
	}
	source := evidence.Source{Cluster: in.Cluster, Graph: in.Graph, Events: in.Events, Now: in.Now, Server: in.Server,
		Wait: w.patience(), Passed: in.Passed}
	if w.evidence = evidence.New(ctx, source); in.Read != nil {
		w.evidence = in.Read.For(source)
	} else if in.Earlier != nil {
		w.evidence = in.Earlier.Again(source)
	}
	outcomes := map[types.UID]gc.Outcome{}
	for _, o := range in.Outcomes {
		outcomes[o.Object.UID] = o
	}
	unlisted := slices.DeleteFunc(in.Graph.Snapshot().Unlisted(), func(u graph.Unlisted) bool { return definition.Gone(w.evidence, u) })
	for _, u := range unlisted {
		w.evidence.Needs(graph.Part{Resource: u.GroupResource()}) // it may fail there alone
	}
	if w.Catalogue == nil {
		w.Catalogue = finalizers.Builtin()
	}
	if w.Workloads == nil {
		w.Workloads = controllers.NewWorkloads(ctx, in.Cluster)
	}
	w.finder = controllers.New(w.evidence, w.Workloads, w.Catalogue, func() []Evidence { return w.rules.UnmadePods() })
	w.reviewer = admission.New(ctx, in.Prober, w.evidence, w.finder)
	w.Kubectl = cmp.Or(w.Kubectl, "kubectl")
	w.Plugin = cmp.Or(w.Plugin, "kubectl gc")
	w.commands = commands{remedy.Programs{Kubectl: w.Kubectl, Plugin: w.Plugin}, w.Graph}
	w.rules = &rules.Facts{Reader: w.evidence, Finder: w.finder, Admission: w.reviewer, Graph: w.Graph, Unlisted: unlisted, Outcomes: outcomes,
		Outlived: map[string]bool{}, Each: in.Each, Note: func(t say.Text) { w.evidence.NoteUnread(evidence.Gap{What: t}) },
		Together: map[*finding.Cause][]*admission.Webhook{}, Exemptions: map[string]rules.Exemption{}}
	return w
}

func (w *walker) explanation(n graph.Node) Explanation {
	e := Explanation{Object: n.Identity(), Since: evidence.Requested(n.Object())}
	if !n.BeingDeleted() {
		e.Verdict = NotTerminating
		e.Chain = []Link{{Object: e.Object, Symptom: finding.NotBeingDeleted.ID, Because: say.Of(notTerminated)}}
		e.Findings = w.notTerminating(n)
		return e
	}
	e.Why = w.collected(n)
	a := w.explain(n)
	e.Verdict, e.Chain = a.verdict, a.waits.chain()
	for _, f := range a.found {
		e.Findings = append(e.Findings, Finding{f.cause, f.way.chain()})
	}
	return e
}

// blocker is one blocker of an object: a cause, another object that must be deleted first, or, without either, only the
// garbage collector or the API server, which will act.
type blocker struct {
	symptom Kind // zero for a step that has none
	because say.Text
	// finalizer is the one of metadata.finalizers that blocks the object, empty for others.
	finalizer string
	cause     *Cause
	next      *graph.Node
	// alike: the cause is named after the first of several objects that it blocks in the same way, and none of them waits
	// for that one.
	alike bool
}

// explain finds all blockers of a terminating object, directly or further down.
func (w *walker) explain(n graph.Node) *known {
	uid := n.UID()
	if a, done := w.known[uid]; done {
		return a
	}
	a := &known{verdict: Pending}
	w.known[uid] = a
	w.path = append(w.path, uid)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	for _, h := range w.holds(n) {
		w.add(a, n, h)
	}
	return a
}

// add adds a blocker to an answer.
func (w *walker) add(a *known, n graph.Node, h blocker) {
	link := Link{Object: n.Identity(), Symptom: h.symptom.ID, Because: h.because, Finalizer: h.finalizer}
	switch {
	case h.cause != nil:
		way := &step{link: link}
		if h.cause.Object != n.Identity() && !h.alike {
			way.next = &step{link: Link{Object: h.cause.Object}} // the rest is said when all of the cause is known
		}
		a.take(found{h.cause, way})
	case h.next != nil:
		below := w.explain(*h.next)
		a.verdict = a.verdict.Worse(below.verdict)
		for _, f := range below.found {
			a.take(found{f.cause, &step{link, f.way}})
		}
		if a.waits == nil {
			a.waits = &step{link, below.waits}
		}
	case a.waits == nil:
		a.waits = &step{link: link}
	}
}

func (a *known) take(f found) {
	a.verdict = a.verdict.Worse(f.cause.Verdict)
	if !slices.ContainsFunc(a.found, func(g found) bool { return g.cause == f.cause }) {
		a.found = append(a.found, f)
	}
}

// holds returns the blockers of a terminating object.
func (w *walker) holds(n graph.Node) []blocker {
	o := n.Object()
	var holds []blocker
	if w.evidence.NamespaceGone(o.Namespace) {
		left, wentToo := namespace.Gone(w.rules, n)
		if holds = w.holdsOf(left); wentToo {
			return holds
		}
	}
	for i, finalizer := range w.finalizers(n) {
		holds = append(holds, w.finalizer(n, i, finalizer)...)
	}
	switch {
	case o.Resource.IsNamespace():
		holds = append(holds, w.namespace(n)...)
	case o.Resource.IsPod():
		blockers, _ := pod.Terminating(w.rules, rules.Mark{Node: n})
		holds = append(holds, w.holdsOf(blockers)...)
	}
	holds = append(holds, w.refusals(n, holds)...)
	if slices.ContainsFunc(w.finalizers(n), func(f string) bool { return !isCollectors(f) }) {
		_, progresses := w.atWork(holds)
		holds = append(holds, w.holdsOf(definition.OwnUnlisted(w.rules, n, progresses))...)
	}
	holds = append(holds, w.holdsOf(w.rules.Future(n))...)
	if len(holds) == 0 {
		holds = append(holds, w.hold(collector.HalfDeleted(n)))
	}
	return holds
}
