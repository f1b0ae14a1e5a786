// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// Quiet is for how long nothing may move on an object whose controller works
	// before it is no longer said to progress.
	Quiet = 10 * time.Minute
	// recent is how old the events may be that are looked at: a controller that
	// fails tries again after up to 16m40s (k8s.io/client-go/util/workqueue,
	// DefaultTypedControllerRateLimiter).
	recent = 20 * time.Minute
	// stands is for how long a condition must have stood when another one changes before both are steps: conditions that flip
	// change together. That of what the object is there for may flip in a time of its own.
	stands = time.Minute
)

// Settling is for how long after a deletion nobody is said to be absent: who lives may not have shown it yet. Tests do not wait
// for it.
var Settling = time.Minute

// Progress is what an object shows of the work on its deletion.
type Progress struct {
	Failure *Failure
	// Says is what may be a failure, by words alone; nil for none.
	Says *Failure
	// Words are what else was said lately: they decide nothing.
	Words []evidence.Fact
	// Only is what the status or an event says, where that is one thing, with for how long; empty where it is more or nothing.
	Only string
	// Pause may be why nothing moves; nil for none.
	Pause *Pause
	// Worked is when something last changed since the deletion that is not the
	// failure itself. A controller that fails writes the same down with every try:
	// that is no work. Neither is anything else beside a failure that lasts.
	Worked time.Time
	// Moved is when something last ended or began since the deletion: a condition
	// changed, or was told for the first time. Zero for nothing.
	Moved time.Time
	// Fresh is the condition that changed last, where that is not older than Quiet. It may be one that flips and ends
	// nothing, however slowly, so it does not count for Moved.
	Fresh evidence.Condition
	// Written is when a program last wrote to the object since the deletion, which
	// it may do for ever, with what shows it; zero for never.
	Written  time.Time
	Evidence evidence.Fact
	// Started is when the pod of the workload that has run longest was made; zero when that is not known.
	Started time.Time
}

// Changed is when anything last changed since the deletion.
func (p *Progress) Changed() time.Time {
	return evidence.Latest(evidence.Latest(p.Moved, p.Written), p.Fresh.Since)
}

// ProgressOf reads what an object's status, managed fields and events say about
// its deletion, on which a workload works; nil is for one that is none here.
func (f *Finder) ProgressOf(n graph.Node, full *unstructured.Unstructured, by *Workload) Progress {
	asked := evidence.Requested(n.Object())
	var p Progress
	f.written(n, full, &p)
	status := statusOf{full: full, foreign: f.foreign(full, by)}
	for _, failure := range status.failures(n, asked) {
		switch weak := failure.weak || f.isOver(failure); {
		case !weak:
			p.take(failure)
		case failure.explainsMore(p.Says):
			p.Says = failure
		}
	}
	p.Words, p.Only = status.words(n, f.evidence.Now)
	if by != nil {
		p.Started = f.startedAt(by)
	}
	worked := f.moved(n, &status, by, &p)
	if halted := f.halted(n, asked); halted != nil {
		p.take(halted)
	}
	p.Pause = f.pauseOf(n, full)
	if p.Pause != nil && p.Pause.certain && f.evidence.Now.Sub(p.Changed()) > lastingFailure {
		p.take(p.Pause.failure(asked))
	}
	p.Worked = evidence.Latest(worked, p.Written)
	if failure := p.Failure; failure != nil && failure.Lasting && !failure.counts {
		p.Worked = time.Time{}
	} else if failure != nil && failure.Dated && !failure.counts {
		p.Worked = worked
	}
	return p
}

// written notes the last write of a program.
func (f *Finder) written(n graph.Node, full *unstructured.Unstructured, p *Progress) {
	for _, entry := range full.GetManagedFields() {
		if entry.Time == nil || isPerson(entry.Manager) || !entry.Time.After(evidence.Requested(n.Object())) || !entry.Time.After(p.Written) {
			continue
		}
		p.Written = entry.Time.Time
		p.Evidence = evidence.Field(n, "metadata.managedFields", fmt.Sprintf(changedAt, entry.Manager, entry.Time.UTC().Format(time.RFC3339)))
	}
}

// moved notes what conditions and events tell of the work, and returns when
// something last changed that is no failure.
//
// A Warning about the object counts when it may be its controller's: others report, too.
func (f *Finder) moved(n graph.Node, status *statusOf, by *Workload, p *Progress) time.Time {
	asked, now := evidence.Requested(n.Object()), f.evidence.Now
	var worked, news time.Time
	move := func(t time.Time) {
		if t.After(asked) {
			p.Moved = evidence.Latest(p.Moved, t)
		}
	}
	var last evidence.Condition
	for i, c := range status.conditions() {
		if !status.isForeign(i) && c.Since.After(asked) && !last.Since.After(c.Since) {
			last = c
		}
	}
	if now.Sub(last.Since) <= Quiet {
		p.Fresh = last
	}
	for i, c := range status.conditions() {
		if status.isForeign(i) {
			continue
		}
		if p.Fresh.Type == "" || last.Since.Sub(c.Since) > stands && !availability().MatchString(c.Type) {
			move(c.Since)
		}
		if failing, _ := fails(c); !failing {
			worked = evidence.Latest(worked, c.Since)
		}
	}
	events := merged(f.eventsAbout(n))
	for _, e := range events {
		if e.Type != "Warning" && !e.Last.Before(asked) { // what is said again with every try is nothing new
			move(e.First)
			news = evidence.Latest(news, e.First)
		}
	}
	for _, e := range events {
		switch old := now.Sub(e.Last) > recent; {
		case old:
		case e.Type == "Warning" && (!e.Last.Before(asked) || ofEnding(e.Message)) && !news.After(e.Last) && mayReport(e, n, by):
			if failure := failureOf(e, asked); !f.isOver(failure) {
				p.take(failure)
			}
		default:
			p.Words = append(p.Words, e.Fact())
			if len(p.Words) == 1 && e.Type != "Warning" && !e.Last.Before(asked) && mayReport(e, n, by) {
				p.Only = e.Message
			} else if len(p.Words) > 1 {
				p.Only = ""
			}
		}
	}
	return evidence.Latest(worked, news)
}

// startedAt returns when the pod of a workload that has run longest was made.
func (f *Finder) startedAt(l *Workload) time.Time {
	own, err := f.podsOf(l)
	if err != nil {
		return time.Time{}
	}
	var first time.Time
	for _, pod := range own {
		if made := pod.GetCreationTimestamp().Time; !made.IsZero() && (first.IsZero() || made.Before(first)) {
			first = made
		}
	}
	return first
}

// mayReport reports whether an event may be of the workload: its reporter calls itself by a name of it, or by
// a word of that or of the type, as recorders of controllers do; or it is about a dependent, as of the
// Jobs that clean up.
func mayReport(e evidence.Event, n graph.Node, by *Workload) bool {
	r := n.Resource()
	if by == nil || e.Reporter == "" || e.About.Name != "" && e.About != evidence.Named(r.Kind, "", n.Name()) || by.calledBy(e.Reporter) {
		return true
	}
	group, _, _ := strings.Cut(r.Group, ".")
	of := strings.Join(append([]string{by.name, strings.ToLower(r.Kind), group}, by.programs...), " ")
	return shareWord(e.Reporter, of) || strings.Contains(strings.ToLower(e.Reporter), strings.ToLower(r.Kind))
}

// take keeps the failure that explains most, and of like ones the first.
func (p *Progress) take(f *Failure) {
	if f.explainsMore(p.Failure) {
		p.Failure = f
	}
}

// eventsAbout reads the events about an object, and about its direct dependents,
// of which a few are looked at: the Jobs that clean up for a controller.
func (f *Finder) eventsAbout(n graph.Node) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, m := range append([]graph.Node{n}, f.dependents(n)...) {
		all = append(all, f.evidence.Events(m.Identity().Namespace, m.UID())...)
	}
	return all
}

// cleaning are kinds of what is made for a clean-up, like Hive's ClusterDeprovision.
var cleaning = pattern.New(`(?i)deprovision|clean|delet|destroy|teardown|uninstall`)

// cleaners are types of Kubernetes of which objects are made for that.
var cleaners = []schema.GroupVersionResource{jobs, daemonSets}

// dependents returns a few of the direct dependents of an object that may be made for its clean-up.
func (f *Finder) dependents(n graph.Node) []graph.Node {
	its := func(r *graph.Resource) bool {
		return r.IsPod() || slices.Contains(cleaners, r.GroupVersionResource) || r.Group == n.Resource().Group && cleaning().MatchString(r.Kind)
	}
	var few []graph.Node
	for _, r := range f.evidence.Types() {
		if its(r) {
			f.evidence.Needs(graph.Part{Resource: r.GroupResource(), Namespace: n.Namespace()})
		}
	}
	for _, d := range n.Dependents() {
		valid := n.Namespace() == "" || d.Namespace() == n.Namespace()
		if len(few) < maxDependents && !d.Virtual() && valid && its(d.Resource()) {
			few = append(few, d)
		}
	}
	return few
}

// maxDependents is the number of dependents that are looked at for one object.
const maxDependents = 2
