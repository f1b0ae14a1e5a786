// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
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
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Namespaces: pkg/controller/namespace/deletion, namespaced_resources_deleter.go.

// How long the namespace controller may take: to begin, for its first pass, and after
// the last thing that it waited for went.
const (
	namespaceBegins = 10 * time.Second
	namespaceStart  = 30 * time.Second
	namespaceRetry  = 90 * time.Second
)

// namespace returns what the finalizers in a namespace's spec wait for.
func (w *walker) namespace(n graph.Node) []hold {
	full, unread := namespace.Whole(w.rules, n)
	holds := w.holdsOf(n, unread)
	if full == nil {
		return holds
	}
	for i, finalizer := range namespace.Finalizers(full) {
		if finalizer == "kubernetes" {
			holds = append(holds, w.emptying(n, full)...)
		} else {
			holds = append(holds, w.foreign(rules.Mark{Node: n, Index: i, Key: finalizer}, finalizers.Spec)...)
		}
	}
	return holds
}

// emptying is the namespace controller's finalizer: the contents are deleted first.
func (w *walker) emptying(n graph.Node, full *unstructured.Unstructured) []hold {
	holds := w.holdsOf(n, namespace.Waits(w.rules, n, full))
	untouched := len(w.rules.Untouched(n.Object().Name))
	failure, failed := evidence.ConditionOf(full, "NamespaceDeletionContentFailure")
	failed = failed && failure.Status == "True"
	over := failed && overtaken(w.evidence, failure, n.Object().Name)
	started, hangs := len(evidence.Conditions(full)) > 0, false
	unasked, asked := false, 0
	if (!started || len(holds) == 0) && w.rules.Age(n) > namespaceBegins {
		refused := w.writesRefused(n)
		holds, hangs = append(holds, refused...), len(refused) > 0
	}
	if !started && untouched > 0 && w.rules.Age(n) > namespaceBegins {
		late, stands := w.contentHangs(n)
		holds, hangs = append(holds, late...), hangs || stands.slow && len(late) > 0
		unasked, asked = stands.unsent && len(late) == 0, stands.asked
	}
	switch h := w.health(); {
	case !started && hangs && !h.dead():
	case !started && h.dead():
		holds = append(holds, w.manager(n, toBegin, w.rules.Age(n) > namespaceStart).as(finding.NsControllerAbsent))
	case !started && unasked && w.waited(n) > namespaceStart:
		holds = append(holds, w.contentUnasked(n, untouched, asked))
	case !started && w.waited(n) > namespaceStart:
		holds = append(holds, hold{symptom: finding.NsControllerAbsent, because: toBegin, cause: w.notBegun(h)})
	case h.dead() && (len(h.idle) > 0 || len(holds) == 0):
		holds = append(holds, w.manager(n, toResume, w.rules.Age(n) > namespaceStart))
		if failed && !over { // it might be rejected when it works again
			refused, _ := w.contentHangs(n)
			holds = append(holds, refused...)
		}
	case over && len(holds) == 0:
		holds = append(holds, w.backOff(n, failure, failureGone))
	case failed && !over && (untouched > 0 || len(holds) == 0):
		holds = append(holds, w.contentRefused(n, full, failure, untouched)...)
	case len(holds) == 0 || !started:
		holds = append(holds, w.controllerTurn(n, full, untouched))
	}
	return holds
}

// notBegun is the namespace controller of a controller manager that works as far as is known,
// and of which a namespace shows no sign.
func (w *walker) notBegun(h *health) *Cause {
	return w.shared("late with namespaces", finding.GcAbsent, managerLease(), func(c *Cause) {
		if c.Summary = notStarted; h.lease == evidence.LeaseUnread {
			c.Summary += leaseUnread
		}
		c.Evidence = []Evidence{h.evidence}
	})
}

// writesRefused are webhooks that must allow the writes of the namespace controller to the namespace itself, and are
// provably unreachable.
func (w *walker) writesRefused(n graph.Node) []hold {
	var holds []hold
	for _, part := range []string{"status", "finalize"} {
		for h, s := range w.asker.DeadWebhooks(n, "UPDATE", part) {
			c := w.webhookDead(n, h, s, Evidence{Source: n.Identity().String(), Value: fmt.Sprintf(matchesUpdates, part)}, "")
			if !slices.ContainsFunc(holds, func(have hold) bool { return have.cause == c }) {
				holds = append(holds, hold{because: fmt.Sprintf(cannotUpdate, part), cause: c})
			}
		}
	}
	return holds
}

// controllerTurn is a namespace at which nothing but its controller has to act.
func (w *walker) controllerTurn(n graph.Node, full *unstructured.Unstructured, untouched int) hold {
	w.evidence.Needs(graph.Part{}) // a list that fails may keep it, and may fail for all namespaces alone
	summary := toFinish
	if untouched > 0 {
		summary = fmt.Sprintf(toDelete, objects(untouched))
	}
	latest := evidence.Latest(evidence.Requested(n.Object()), w.health().taken)
	for _, c := range evidence.Conditions(full) {
		if c.Since.After(latest) {
			latest = c.Since
		}
	}
	return hold{because: summary, cause: w.cause(finding.NsContent, n.Identity(), "turn", func(c *Cause) {
		c.Verdict, c.Summary, c.Until = Progressing, summary, latest.Add(namespaceRetry)
		c.Evidence = []Evidence{evidence.Field(n, "spec.finalizers", "kubernetes"), w.health().evidence}
		if w.evidence.Now.After(c.Until) {
			c.Verdict, c.Until = Unknown, time.Time{}
			c.Summary += fmt.Sprintf(nothingChanged, duration.HumanDuration(w.evidence.Now.Sub(latest)))
			if untouched == 0 {
				c.Summary += updateBlocked
			}
		}
	})}
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
func (w *walker) backOff(n graph.Node, failure evidence.Condition, summary string) hold {
	return hold{because: summary, cause: w.cause(finding.NsContent, n.Identity(), "back-off", func(c *Cause) {
		c.Verdict, c.Summary, c.Until = Progressing, summary, w.evidence.Now.Add(namespace.Delay)
		c.Evidence = []Evidence{failure.Fact(n.Identity().String()), w.health().evidence}
	})}
}
