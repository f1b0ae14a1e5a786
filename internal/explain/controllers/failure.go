// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// SameFailure is for how long a controller must fail alike before that
	// counts as stuck.
	SameFailure = 10 * time.Minute
	// lastingFailure is SameFailure for what does not pass by itself.
	lastingFailure = time.Minute
)

// FailureKind tells the failures of a working controller apart.
type FailureKind int

// The failures.
const (
	// Failing: it says that it fails.
	Failing FailureKind = iota
	// Paused says that it leaves the object alone, because it was told to.
	Paused
	// NeedsCreate says that it has to create something in a namespace that is being
	// deleted.
	NeedsCreate
	// OverQuota says that a quota or a pod security level keeps it from creating
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
	// Lasting: what it says does not pass by itself, somebody has to act.
	Lasting bool
	// weak: only words say so, beside a reason that says something else, or none. What is
	// told in whole sentences has such words of what is being removed, or is over.
	weak bool
	// counts: it says how many are left, so that it may be another with each try.
	counts bool
	// once: it came once, and need not stand any more.
	once bool
	// made is what was created for the cleanup, where that fails, because of something.
	made    graph.Identity
	because string
}

// Text is what it says, with words of the cluster as they are made brief.
func (f *Failure) Text(brief func(string) string) say.Text {
	if f.made.Name == "" {
		return say.Plain(brief(f.Message))
	}
	return say.Of(madeForCleanup, f.made, brief(f.because))
}

// Patience is how long the failure must stand before it counts as stuck.
func (f *Failure) Patience() time.Duration {
	if f.Lasting && !f.once {
		return lastingFailure
	}
	return SameFailure
}

var (
	failingType = pattern.New(`(?i)fail|error|degraded|stalled|blocked|terminal`)
	failingText = pattern.New(`(?i)fail|error|denied|forbidden|unauthorized|cannot|could not|unable|refused|timed? ?out|not allowed|not permitted|conflict|invalid|exceeded|not empty|protect|in use|will not be deleted|` + missingText)
	quotaText   = pattern.New(`(?i)exceeded quota|violates PodSecurity`)
	lastingText = pattern.New(`(?i)denied|forbidden|unauthori[sz]ed|unauthenticated|not permitted|permission|credentials?\b|expired|exceeded|protection|x509|will not be deleted|` + missingText)
	countText   = pattern.New(`(?i)\b\d+ ?(of|/) ?\d+\b|\b\d+ [a-z ]*(left|remain|still)|\b(left|remaining|still)\b.{0,20}\b\d+`)
	// deletingType is a condition about the deletion itself.
	deletingType = pattern.New(`(?i)delet|terminat|cleanup|finaliz`)
	// telling are the fields of a status in which controllers say what is wrong.
	telling = pattern.New(`(?i)^((last|failure|status|condition)?(errors?|message|reason|description)|errorMessage|failures)$`)
	// erring are the paths of those that are for errors alone. A failureMessage may be why the
	// object never came to be (cluster-api, Machine.status.failureMessage).
	erring = pattern.New(`(?i)error|failures\[`)
	// inErrors are those in a list of what goes wrong, whatever they say.
	inErrors = pattern.New(`(?i)(errors|failures)\[`)
	// availability is a condition of what the object is there for: during a clean-up that goes.
	availability = pattern.New(`(?i)^(ready|available|healthy|synced|\w*available|\w*ready)$`)
	// absence is a reason that says no more than that something is gone, but for what a clean-up needs and does not remove.
	absence = pattern.New(`(?i)notfound|missing`)
	needed  = pattern.New(`(?i)secret|credential|configmap|token|certificate|\w(class|account|project|provider)`)
	// waiting is a reason, or a message, of something that takes its time.
	waiting = pattern.New(`(?i)^(wait|inprogress|deleting|terminating|draining|pending)|\bstill (running|in progress|being)\b`)
	// failingReason is a reason, in one word, that says that something goes wrong.
	failingReason = pattern.New(`(?i)fail|error|denied|forbidden|unauthori|refused|invalid|missing|notfound|exceeded|blocked|conflict|timeout|timedout|unable|cannot|backoff|inuse|haddependents|hasdependents|notempty`)
	// notSo takes back what the words beside it say; over says that it has been.
	notSo = pattern.New(`(?i)\b(no|0|zero|nothing|without|not)\b( \w+)? ?(fail\w*|errors?|missing|denied|conflicts?|times?)\b`)
	over  = pattern.New(`(?i)\b(previous(ly)?|earlier|was fixed|were fixed|succeeded|success(ful|fully)?|accomplished|recovered|resolved)\b`)
	// settled is a state beside which such a text speaks of the past.
	settled = pattern.New(`(?i)^(true|ready|running|active|succeeded|complete(d)?|ok|healthy|bound|available)$`)
)

// missingText is something that a controller needs and that is not there: in its own
// words, or in those of an API server about an object of some type
// (k8s.io/apimachinery/pkg/api/errors, NewNotFound).
const missingText = `(secret|issuer|config|account|class|key|certificate|credentials?)\b[^.]{0,80}(not found|missing|does not exist)|[a-z0-9.-]+ \\?"[^"]+" not found|there (is|are) no\b`

const endingNamespace = "because it is being terminated"

var inEnding = pattern.New(`in namespace "?([a-z0-9-]+)"? ` + endingNamespace)

// isOver reports whether a message is about a namespace that was being deleted, and is there.
func (f *Finder) isOver(failure *Failure) bool {
	in := inEnding().FindStringSubmatch(failure.Message)
	return in != nil && !f.evidence.Ending(in[1]) && len(f.evidence.Named(evidence.Namespaces.GroupResource(), "", in[1])) > 0
}

// ofEnding reports whether a message says that something cannot be created in a namespace that is being deleted: that begins
// before the deletion of its contents.
func ofEnding(message string) bool { return strings.Contains(message, endingNamespace) }

func newFailure(message string, e evidence.Fact, since time.Time) *Failure {
	f := &Failure{
		Message: strings.TrimSpace(message), Evidence: e, Since: since,
		Lasting: lastingText().MatchString(message), counts: countText().MatchString(message),
	}
	switch {
	case ofEnding(message):
		f.Kind = NeedsCreate
	case quotaText().MatchString(message):
		f.Kind = OverQuota
	}
	return f
}

// explainsMore reports whether the failure says more than another one: what it is,
// then that it lasts, then since when.
func (f *Failure) explainsMore(other *Failure) bool {
	switch {
	case other == nil:
		return true
	case f.Kind != other.Kind:
		return f.Kind > other.Kind
	case f.Lasting != other.Lasting:
		return f.Lasting
	}
	return f.Dated && !other.Dated
}

// maxDepth is how deep a status is looked into for texts.
const maxDepth = 4

// tellingTexts goes over the texts of a status in which controllers say how things are, in a
// fixed order. Conditions, and what has been, as are entries of lists with a time before the deletion was asked for, are left out.
func tellingTexts(path string, fields map[string]any, depth int, asked time.Time) func(yield func(path, text string) bool) {
	return func(yield func(path, text string) bool) { goOver(path, fields, depth, asked, yield) }
}

func goOver(path string, fields map[string]any, depth int, asked time.Time, yield func(path, text string) bool) bool {
	var keys []string
	for key, value := range fields {
		if text := evidence.Text(value); (key == "state" || key == "phase" || key == "status") && settled().MatchString(text) {
			return true
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		at := path + "." + key
		switch value := fields[key].(type) {
		case string:
			if telling().MatchString(key) && value != "" && !yield(at, value) {
				return false
			}
		case map[string]any:
			if depth > 0 && key != "conditions" && !past(key) && !goOver(at, value, depth-1, asked, yield) {
				return false
			}
		case []any:
			for i, entry := range value {
				inner, ok := entry.(map[string]any)
				if !ok { // status.errors may be a list of texts
					inner = map[string]any{key: entry}
				}
				deeper := depth > 0 && key != "conditions" && !past(key) && !isBefore(inner, asked)
				if deeper && !goOver(fmt.Sprintf("%s[%d]", at, i), inner, depth-1, asked, yield) {
					return false
				}
			}
		}
	}
	return true
}

// isBefore reports whether an entry has times, all of which are before another.
func isBefore(entry map[string]any, asked time.Time) bool {
	var latest time.Time
	for _, value := range entry {
		if t, err := time.Parse(time.RFC3339, evidence.Text(value)); err == nil {
			latest = evidence.Latest(latest, t)
		}
	}
	return !latest.IsZero() && latest.Before(asked)
}

// past reports whether a field of a status tells what has been.
func past(key string) bool {
	return strings.Contains(strings.ToLower(key), "history") || strings.HasPrefix(key, "previous")
}

// says reports whether a text says that something goes wrong.
func says(text string) bool {
	return !over().MatchString(text) && failingText().MatchString(notSo().ReplaceAllString(text, ""))
}

// fails reports whether a condition says that something goes wrong, and not
// only that it is not done, or not so: False is what a condition like Paused
// says when all is well. Some have no status at all. It is strong when the type or the
// reason says so; words alone may be about what is being removed.
func fails(c evidence.Condition) (failing, strong bool) {
	aboutDeletion := c.Status != "True" || deletingType().MatchString(c.Type)
	switch {
	case ofEnding(c.Message):
		return true, true
	case over().MatchString(c.Message), waiting().MatchString(c.Reason) && !says(c.Message), waiting().MatchString(c.Message):
		return false, false
	case failingType().MatchString(c.Type):
		bad := c.Status == "True" || c.Status == ""
		return bad, bad
	case aboutDeletion && availability().MatchString(c.Type) && absence().MatchString(c.Reason) && !needed().MatchString(c.Reason):
		return false, false // what it cleans up has gone
	case aboutDeletion && failingReason().MatchString(c.Reason):
		return true, true
	}
	return aboutDeletion && says(c.Said()), false
}

// failureOf is what Warning events tell. One that came once stands since then.
func failureOf(e evidence.Event, asked time.Time) *Failure {
	since, repeats := e.Last, e.Repeats(SameFailure)
	if repeats {
		since = e.First
	}
	f := newFailure(e.Message, e.Fact(), evidence.Latest(asked, since))
	f.Dated, f.once = true, !repeats
	return f
}

// OfQuota reports whether a message says that a quota or a pod security level is against
// something.
func OfQuota(message string) bool { return quotaText().MatchString(message) }

// Gist is what the failure of an object of the name says but for what is another with
// each object and each try: objects whose failures have the same share the cause.
func (f *Failure) Gist(name string) string {
	return gist(regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(f.Message, "1"))
}

// gist is what a message says but for what is another each time: numbers and
// identifiers.
func gist(message string) string {
	words := strings.Fields(message)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.ContainsAny(w, "0123456789") }), " ")
}

// merged takes events that say the same together, in the order of the first of each.
func merged(events []unstructured.Unstructured) []evidence.Event {
	var all []evidence.Event
	for i := range events {
		e := evidence.NewEvent(&events[i])
		same := slices.IndexFunc(all, func(have evidence.Event) bool {
			return have.About == e.About && have.Type == e.Type && have.Reason == e.Reason && gist(have.Message) == gist(e.Message)
		})
		if same < 0 {
			all = append(all, e)
			continue
		}
		have := &all[same]
		if e.First.Before(have.First) {
			have.First = e.First
		}
		if e.Last.After(have.Last) {
			have.Last, have.Message = e.Last, e.Message
		}
		have.Count += e.Count
	}
	return all
}
