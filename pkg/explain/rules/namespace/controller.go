// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What the namespace controller has to do.
const (
	ToBegin        finding.Word = "to begin"
	ToDelete       finding.Word = "to delete"
	ToResume       finding.Word = "to resume"
	ToFinish       finding.Word = "to finish"
	NothingChanged finding.Word = "nothing changed"
	UpdateBlocked  finding.Word = "update blocked"
	NotStarted     finding.Word = "not started"
	LeaseUnread    finding.Word = "lease unread"
)

// Retries of the namespace controller, once the reason of its failure does not exist any more.
const (
	FailureGone   finding.Word = "failure gone"
	RejectionGone finding.Word = "rejection gone"
)

// How long the namespace controller may take: to begin, for its first pass, and after the last thing that it waited for
// went.
const (
	Begins = 10 * time.Second
	Starts = 30 * time.Second
	Retry  = 90 * time.Second
)

// NotBegun is the namespace controller of a controller manager that works as far as is known, and of which a namespace shows
// no sign.
func NotBegun(f *rules.Facts) finding.Blocker {
	c := f.Manager().Cause("late with namespaces", NotStarted)
	if f.Manager().Lease == evidence.LeaseUnread {
		c.Summary = c.Summary.And(LeaseUnread)
	}
	return finding.Blocker{Symptom: finding.NsControllerAbsent, Because: finding.Say(ToBegin), Cause: c}
}

// Turn is a namespace at which nothing but its controller has to act.
func Turn(f *rules.Facts, n graph.Node, full *unstructured.Unstructured, untouched int) finding.Blocker {
	f.Needs(graph.Part{}) // a list that fails may keep it, and may fail for all namespaces alone
	because := finding.Say(ToFinish)
	if untouched > 0 {
		because = finding.Say(ToDelete, evidence.Number(untouched, "object"))
	}
	latest := evidence.Latest(evidence.Requested(n.Object()), f.Manager().Taken)
	for _, c := range evidence.Conditions(full) {
		latest = evidence.Latest(latest, c.Since)
	}
	c := &finding.Cause{
		Kind: finding.NsContent, At: n.Identity(), Key: "turn", Verdict: finding.Progressing, Until: latest.Add(Retry), Summary: because,
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

// Overtaken reports whether a failure is about contents that do not exist any more: the condition is kept until the
// namespace controller retries, up to a minute later.
func Overtaken(r *evidence.Reader, failure evidence.Condition, namespace string) bool {
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

// BackOff is a namespace whose controller has still to see that the reason of its failure does not exist any more.
func BackOff(f *rules.Facts, n graph.Node, failure evidence.Condition, because finding.Word) finding.Blocker {
	return finding.Blocker{Because: finding.Say(because), Cause: &finding.Cause{
		Kind: finding.NsContent, At: n.Identity(), Key: "back-off", Verdict: finding.Progressing, Until: f.Now.Add(Delay), Summary: finding.Say(because),
		Evidence: []finding.Fact{{Fact: failure.Fact(n.Identity().String())}, f.Manager().Shows},
	}}
}
