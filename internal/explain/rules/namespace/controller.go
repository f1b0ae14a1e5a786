// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// How long the namespace controller may take: to begin, and for its first pass.
const (
	begins = 10 * time.Second
	starts = 30 * time.Second
)

// Emptying is the namespace controller's finalizer: the contents are deleted first.
func Emptying(f *rules.Facts, n graph.Node, full *unstructured.Unstructured) []finding.Blocker {
	blockers := waits(f, n, full)
	untouched := len(f.Untouched(n.Name()))
	failure, failed := evidence.ConditionOf(full, "NamespaceDeletionContentFailure")
	failed = failed && failure.Status == "True"
	over := failed && overtaken(f.Reader, failure, n.Name())
	started, hangs := len(evidence.Conditions(full)) > 0, false
	unasked, asked := false, 0
	if (!started || len(blockers) == 0) && f.Age(n) > begins {
		refused := writesRefused(f, n)
		blockers, hangs = append(blockers, refused...), len(refused) > 0
	}
	if !started && untouched > 0 && f.Age(n) > begins {
		late, stands := contentHangs(f, n)
		blockers, hangs = append(blockers, late...), hangs || stands.slow && len(late) > 0
		unasked, asked = stands.unsent && len(late) == 0, stands.asked
	}
	m := f.Manager()
	switch late := f.Waited(n) > starts; {
	case !started && hangs && !m.Dead:
	case !started && m.Dead:
		return append(blockers, f.Turn(n, finding.NsControllerAbsent, say.Of(ToBegin), f.Age(n) > starts))
	case !started && unasked && late:
		return append(blockers, contentUnasked(f, n, untouched, asked))
	case !started && late:
		return append(blockers, notBegun(f))
	case m.Dead && (len(m.Idle) > 0 || len(blockers) == 0):
		blockers = append(blockers, f.Turn(n, finding.Kind{}, say.Of(ToResume), f.Age(n) > starts))
		if failed && !over { // it might be rejected when it works again
			refused, _ := contentHangs(f, n)
			blockers = append(blockers, refused...)
		}
	case over && len(blockers) == 0:
		return append(blockers, backOff(f, n, failure, say.Of(FailureGone)))
	case failed && !over && (untouched > 0 || len(blockers) == 0):
		return append(blockers, contentRefused(f, n, full, failure, untouched)...)
	case len(blockers) == 0 || !started:
		return append(blockers, turn(f, n, full, untouched))
	}
	return blockers
}

// writesRefused are webhooks that must allow the writes of the namespace controller to the namespace itself, and are
// provably unreachable.
func writesRefused(f *rules.Facts, n graph.Node) []finding.Blocker {
	var blockers []finding.Blocker
	for _, part := range admission.PartsOf(n.Resource()) {
		for _, c := range write.Unreachable(f, n, f.Admission.DeadWebhooks(n, "UPDATE", part), finding.FieldSays(n, "", MatchesUpdates, part)) {
			blockers = append(blockers, finding.Blocker{Because: say.Of(CannotUpdate, part), Cause: c})
		}
	}
	return blockers
}

// notBegun is the namespace controller of a controller manager that works as far as is known, and of which a namespace shows
// no sign.
func notBegun(f *rules.Facts) finding.Blocker {
	c := f.Manager().Cause("late with namespaces", say.Of(NotStarted).And(MightNotStart))
	c.Decides = say.Of(NotStarted)
	if f.Manager().Lease == evidence.LeaseUnread {
		c.Summary = c.Summary.And(LeaseUnread)
	}
	return finding.Blocker{Symptom: finding.NsControllerAbsent, Because: say.Of(ToBegin), Cause: c}
}

// turn is a namespace at which nothing but its controller has to act.
func turn(f *rules.Facts, n graph.Node, full *unstructured.Unstructured, untouched int) finding.Blocker {
	f.Needs(graph.Part{}) // a list that fails may keep it, and may fail for all namespaces alone
	because := say.Of(ToFinish)
	if untouched > 0 {
		because = say.Of(ToDelete, evidence.Number(untouched, "object"))
	}
	latest := evidence.Latest(evidence.Requested(n.Object()), f.Manager().Taken)
	for _, c := range evidence.Conditions(full) {
		latest = evidence.Latest(latest, c.Since)
	}
	c := &finding.Cause{
		Kind: finding.NsContent, At: n.Identity(), Key: "turn", Verdict: finding.Progressing,
		Until: latest.Add(rules.ContentRetry), Summary: because,
		Evidence: []finding.Fact{finding.Field(n, "spec.finalizers", "kubernetes"), f.Manager().Shows},
	}
	if f.Now.After(c.Until) {
		c.Verdict, c.Until, c.Summary = finding.Unknown, time.Time{}, because.And(NothingChanged, duration.HumanDuration(f.Now.Sub(latest)))
		if untouched == 0 {
			c.Summary = c.Summary.And(UpdateBlocked)
		}
	}
	return finding.Blocker{Because: because, Cause: c}
}

// remaining are the words of the namespace controller about what is left of one type
// (pkg/controller/namespace/deletion, deleteAllContentForGroupVersionResource).
var remaining = pattern.New(`^Failed to delete all resource types, \d+ remaining: |unexpected items still remain in namespace: \S+ for gvr: (\S*)/\S+, Resource=([a-z0-9]+)`)

// overtaken reports whether a failure is about contents that do not exist any more: the condition is kept until the
// namespace controller retries, up to a minute later.
func overtaken(r *evidence.Reader, failure evidence.Condition, namespace string) bool {
	said := slices.DeleteFunc(remaining().FindAllStringSubmatch(failure.Message, -1), func(words []string) bool { return words[2] == "" })
	if len(said) == 0 || strings.Trim(remaining().ReplaceAllString(failure.Message, ""), " [],") != "" {
		return false // it says something else as well
	}
	for _, words := range said {
		resource := schema.GroupResource{Group: words[1], Resource: words[2]}
		is := func(m graph.Node) bool { return m.Resource().GroupResource() == resource }
		if !r.Covers(resource, namespace, "") || slices.ContainsFunc(r.In(namespace), is) {
			return false
		}
	}
	return true
}

// backOff is a namespace whose controller has still to see that the reason of its failure does not exist any more.
func backOff(f *rules.Facts, n graph.Node, failure evidence.Condition, because say.Text) finding.Blocker {
	return finding.Blocker{Because: because, Cause: &finding.Cause{
		Kind: finding.NsContent, At: n.Identity(), Key: "back-off", Verdict: finding.Progressing,
		Until: f.Now.Add(rules.ContentDelay), Summary: because,
		Evidence: []finding.Fact{failure.Fact(n.Identity()), f.Manager().Shows},
	}}
}
