// SPDX-License-Identifier: Apache-2.0

package explain

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
	// sameFailure is for how long a controller must fail alike before that
	// counts as stuck.
	sameFailure = 10 * time.Minute
	// quiet is for how long nothing may move on an object whose controller works
	// before it is no longer said to progress.
	quiet = 10 * time.Minute
)

// failureKind tells the failures of a working controller apart.
type failureKind int

const (
	failing failureKind = iota
	// needsCreate: it has to create something in a namespace that is being
	// deleted.
	needsCreate
	// overQuota: a quota or a pod security level keeps it from creating
	// something.
	overQuota
)

// failure is something that a controller says about a clean-up that fails.
type failure struct {
	kind     failureKind
	evidence Evidence
	message  string
	since    time.Time
}

// progress is what an object shows of the work on its deletion.
type progress struct {
	failure *failure
	// worked is when something last changed since the deletion that is not the
	// failure itself.
	worked time.Time
	// moved is when anything last changed since the deletion, with what shows it;
	// zero for nothing.
	moved    time.Time
	evidence Evidence
}

var (
	failingType = regexp.MustCompile(`(?i)fail|error|degraded|stalled|blocked`)
	failingText = regexp.MustCompile(`(?i)fail|error|denied|forbidden|unauthorized|cannot|could not|unable|refused|timed? ?out|not allowed|not permitted|conflict|invalid|exceeded|not empty|protect|in use`)
	quotaText   = regexp.MustCompile(`(?i)exceeded quota|violates PodSecurity`)
)

const endingNamespace = "because it is being terminated"

// progressOf reads what an object's status, managed fields and events say about
// its deletion.
func (w *walker) progressOf(n graph.Node, full *unstructured.Unstructured) progress {
	asked := evidence.Requested(n.Object())
	var p progress
	move := func(t time.Time, e Evidence) {
		if t.After(asked) && t.After(p.moved) {
			p.moved, p.evidence = t, e
		}
	}
	for _, entry := range full.GetManagedFields() {
		if entry.Time != nil && !isPerson(entry.Manager) {
			move(entry.Time.Time, evidence.Field(n, "metadata.managedFields", fmt.Sprintf("%q changed it at %s", entry.Manager, entry.Time.UTC().Format(time.RFC3339))))
		}
	}
	p.take(statusFailure(n, full, asked))
	p.worked = p.moved
	for _, c := range evidence.Conditions(full) {
		move(c.Since, c.Fact(n.Identity().String()))
		if !fails(c) {
			p.worked = evidence.Latest(p.worked, c.Since)
		}
	}
	for _, e := range w.eventsAbout(n) {
		view := evidence.NewEvent(&e)
		move(view.Last, view.Fact())
		switch {
		case view.Last.Before(asked):
		case view.Type != "Warning":
			p.worked = evidence.Latest(p.worked, view.Last)
		case w.evidence.Now.Sub(view.Last) <= sameFailure:
			p.take(failureOf(view, asked))
		}
	}
	return p
}

// take keeps the failure that explains most, and of like ones the first.
func (p *progress) take(f *failure) {
	if f != nil && (p.failure == nil || f.kind > p.failure.kind) {
		p.failure = f
	}
}

// statusFailure finds a failure in the status: a condition that is about the
// deletion, or a text.
func statusFailure(n graph.Node, full *unstructured.Unstructured, asked time.Time) *failure {
	var found *failure
	for i, c := range evidence.Conditions(full) {
		if c.Since.Before(asked) && !observed(full, i) || !fails(c) {
			continue
		}
		f := newFailure(c.Message+" "+c.Reason, c.Fact(n.Identity().String()), evidence.Latest(asked, c.Since))
		if found == nil || f.kind > found.kind {
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

func newFailure(message string, e Evidence, since time.Time) *failure {
	f := &failure{message: strings.TrimSpace(message), evidence: e, since: since}
	switch {
	case strings.Contains(message, endingNamespace):
		f.kind = needsCreate
	case quotaText.MatchString(message):
		f.kind = overQuota
	}
	return f
}

// failureOf is what a Warning event tells. One that came once stands since then.
func failureOf(e evidence.Event, asked time.Time) *failure {
	since := e.Last
	if e.Repeats(sameFailure) {
		since = e.First
	}
	return newFailure(e.Message, e.Fact(), evidence.Latest(asked, since))
}

// eventsAbout reads the events about an object, and about its direct dependents,
// of which a few are looked at: the Jobs that clean up for a controller.
func (w *walker) eventsAbout(n graph.Node) []unstructured.Unstructured {
	if w.Events == nil {
		return nil
	}
	nodes := []graph.Node{n}
	for _, d := range n.Dependents() {
		if len(nodes) < maxDependents && !d.Virtual() {
			nodes = append(nodes, d)
		}
	}
	var all []unstructured.Unstructured
	for _, m := range nodes {
		all = append(all, w.evidence.Events(m.Identity().Namespace, m.UID())...)
	}
	return all
}

// maxDependents is the number of objects whose events are read for one.
const maxDependents = 3
