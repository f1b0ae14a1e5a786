// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// SameFailure is for how long a controller must fail alike before that
	// counts as stuck.
	SameFailure = 10 * time.Minute
	// Quiet is for how long nothing may move on an object whose controller works
	// before it is no longer said to progress.
	Quiet = 10 * time.Minute
)

// FailureKind tells the failures of a working controller apart.
type FailureKind int

const (
	Failing FailureKind = iota
	// NeedsCreate: it has to create something in a namespace that is being
	// deleted.
	NeedsCreate
	// OverQuota: a quota or a pod security level keeps it from creating
	// something.
	OverQuota
)

// Failure is something that a controller says about a clean-up that fails.
type Failure struct {
	Kind     FailureKind
	Evidence evidence.Fact
	Message  string
	Since    time.Time
	// Dated: it says itself since when it stands; otherwise Since is when the
	// deletion was asked for.
	Dated bool
}

// Progress is what an object shows of the work on its deletion.
type Progress struct {
	Failure *Failure
	// Worked is when something last changed since the deletion that is not the
	// failure itself.
	Worked time.Time
	// Moved is when anything last changed since the deletion, with what shows it;
	// zero for nothing.
	Moved    time.Time
	Evidence evidence.Fact
}

var (
	failingType = regexp.MustCompile(`(?i)fail|error|degraded|stalled|blocked`)
	failingText = regexp.MustCompile(`(?i)fail|error|denied|forbidden|unauthorized|cannot|could not|unable|refused|timed? ?out|not allowed|not permitted|conflict|invalid|exceeded|not empty|protect|in use`)
	quotaText   = regexp.MustCompile(`(?i)exceeded quota|violates PodSecurity`)
)

const endingNamespace = "because it is being terminated"

// ProgressOf reads what an object's status, managed fields and events say about
// its deletion.
func (f *Finder) ProgressOf(n graph.Node, full *unstructured.Unstructured) Progress {
	asked := evidence.Requested(n.Object())
	var p Progress
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
	p.take(statusFailure(n, full, asked))
	p.Worked = p.Moved
	for _, c := range evidence.Conditions(full) {
		move(c.Since, c.Fact(n.Identity().String()))
		if !fails(c) {
			p.Worked = evidence.Latest(p.Worked, c.Since)
		}
	}
	for _, e := range f.eventsAbout(n) {
		view := evidence.NewEvent(&e)
		move(view.Last, view.Fact())
		switch {
		case view.Last.Before(asked):
		case view.Type != "Warning":
			p.Worked = evidence.Latest(p.Worked, view.Last)
		case f.evidence.Now.Sub(view.Last) <= SameFailure:
			p.take(failureOf(view, asked))
		}
	}
	return p
}

// take keeps the failure that explains most, and of like ones the first.
func (p *Progress) take(f *Failure) {
	if f != nil && (p.Failure == nil || f.Kind > p.Failure.Kind) {
		p.Failure = f
	}
}

// statusFailure finds a failure in the status: a condition that is about the
// deletion, or a text.
func statusFailure(n graph.Node, full *unstructured.Unstructured, asked time.Time) *Failure {
	var found *Failure
	for i, c := range evidence.Conditions(full) {
		if c.Since.Before(asked) && !observed(full, i) || !fails(c) {
			continue
		}
		f := newFailure(c.Message+" "+c.Reason, c.Fact(n.Identity().String()), evidence.Latest(asked, c.Since))
		f.Dated = !c.Since.IsZero()
		if found == nil || f.Kind > found.Kind {
			found = f
		}
	}
	for _, name := range []string{"error", "lastError", "message", "reason"} {
		value := evidence.Nested(full, "status", name)
		if found == nil && failingText.MatchString(value) {
			found = newFailure(value, evidence.Field(n, "status."+name, value), asked)
		}
	}
	return found
}

// observed reports whether a condition is about the object as it is now: the
// deletion of a custom resource gives it a new generation.
func observed(full *unstructured.Unstructured, i int) bool {
	entries, _, _ := unstructured.NestedSlice(full.Object, "status", "conditions")
	entry, _ := entries[i].(map[string]any)
	generation, _, _ := unstructured.NestedFieldNoCopy(entry, "observedGeneration")
	return full.GetGeneration() > 1 && fmt.Sprint(generation) == fmt.Sprint(full.GetGeneration())
}

// fails reports whether a condition says that something goes wrong, and not
// only that it is not done, or not so: False is what a condition like Paused
// says when all is well, so its words decide.
func fails(c evidence.Condition) bool {
	switch {
	case strings.Contains(c.Message, endingNamespace):
		return true
	case failingType.MatchString(c.Type):
		return c.Status == "True"
	case c.Status == "False":
		return failingText.MatchString(c.Reason + " " + c.Message)
	}
	return false
}

func newFailure(message string, e evidence.Fact, since time.Time) *Failure {
	f := &Failure{Message: strings.TrimSpace(message), Evidence: e, Since: since}
	switch {
	case strings.Contains(message, endingNamespace):
		f.Kind = NeedsCreate
	case quotaText.MatchString(message):
		f.Kind = OverQuota
	}
	return f
}

// failureOf is what a Warning event tells. One that came once stands since then.
func failureOf(e evidence.Event, asked time.Time) *Failure {
	since := e.Last
	if e.Repeats(SameFailure) {
		since = e.First
	}
	f := newFailure(e.Message, e.Fact(), evidence.Latest(asked, since))
	f.Dated = true
	return f
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
