// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Quiet is for how long nothing may move on an object whose controller works
// before it is no longer said to progress.
const Quiet = 10 * time.Minute

// Progress is what an object shows of the work on its deletion.
type Progress struct {
	Failure *Failure
	// Says is what may be a failure, by words alone; nil for none.
	Says *Failure
	// Pause may be why nothing moves; nil for none.
	Pause *Pause
	// Worked is when something last changed since the deletion that is not the
	// failure itself. A controller that fails writes the same down with every try:
	// that is no work. Neither is anything else beside a failure that lasts.
	Worked time.Time
	// Moved is when anything last changed since the deletion, with what shows it;
	// zero for nothing.
	Moved    time.Time
	Evidence evidence.Fact
}

// ProgressOf reads what an object's status, managed fields and events say about
// its deletion.
func (f *Finder) ProgressOf(n graph.Node, full *unstructured.Unstructured) Progress {
	asked := evidence.Requested(n.Object())
	var p Progress
	var written, worked time.Time
	move := func(t time.Time, e evidence.Fact) {
		if t.After(asked) && t.After(p.Moved) {
			p.Moved, p.Evidence = t, e
		}
	}
	for _, entry := range full.GetManagedFields() {
		if entry.Time != nil && !isPerson(entry.Manager) {
			move(entry.Time.Time, evidence.Field(n, "metadata.managedFields", fmt.Sprintf("%q changed it at %s", entry.Manager, entry.Time.UTC().Format(time.RFC3339))))
		}
	}
	written = p.Moved
	for _, failure := range statusFailures(n, full, asked) {
		if failure.weak {
			p.Says = failure
		} else {
			p.take(failure)
		}
	}
	for _, c := range evidence.Conditions(full) {
		move(c.Since, c.Fact(n.Identity().String()))
		if failing, _ := fails(c); !failing {
			worked = evidence.Latest(worked, c.Since)
		}
	}
	events := merged(f.eventsAbout(n))
	var news time.Time
	for _, e := range events {
		move(e.Last, e.Fact())
		if e.Type != "Warning" && !e.Last.Before(asked) { // what is said again with every try is nothing new
			news = evidence.Latest(news, e.First)
		}
	}
	worked = evidence.Latest(worked, news)
	for _, e := range events {
		if e.Type == "Warning" && !e.Last.Before(asked) && f.evidence.Now.Sub(e.Last) <= SameFailure && !news.After(e.Last) {
			p.take(failureOf(e, asked))
		}
	}
	p.Pause = f.pauseOf(n, full)
	if p.Pause != nil && p.Pause.certain && f.evidence.Now.Sub(p.Moved) > lastingFailure {
		p.take(p.Pause.failure(asked))
	}
	p.Worked = evidence.Latest(worked, written)
	if failure := p.Failure; failure != nil && failure.Lasting && !failure.counts {
		p.Worked = time.Time{}
	} else if failure != nil && failure.Dated && !failure.counts {
		p.Worked = worked
	}
	return p
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
	nodes := []graph.Node{n}
	for _, d := range n.Dependents() {
		if len(nodes) < maxDependents && !d.Virtual() {
			nodes = append(nodes, d)
		}
	}
	var all []unstructured.Unstructured
	for _, m := range nodes {
		all = append(all, f.evidence.Events(m.Identity().Namespace, m.UID())...)
	}
	return all
}

// maxDependents is the number of objects whose events are read for one.
const maxDependents = 3
