// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Namespaces: pkg/controller/namespace/deletion, namespaced_resources_deleter.go.

// How long the namespace controller may take: to begin, for its first pass, and after
// the last thing that it waited for went.
const (
	namespaceBegins = 10 * time.Second
	namespaceStart  = 30 * time.Second
	namespaceRetry  = 90 * time.Second
	// contentDelay is how long content may be left alone before a failure that
	// the conditions state counts.
	contentDelay = 60 * time.Second
)

// withoutNamespace is an object whose namespace does not exist. A namespace whose deletion finished in the ordinary way
// was empty: only an object that still exists after the namespace was missed was left behind, and one is enough to know
// that of the namespace.
func (w *walker) withoutNamespace(n graph.Node) (holds []hold, wentToo bool) {
	id := n.Identity()
	if !w.outlived[id.Namespace] {
		o, err := w.evidence.Anew(id.Resource.GroupVersionResource, id.Namespace, id.Name)
		switch {
		case apierrors.IsNotFound(err), err == nil && o.GetUID() != id.UID:
			return gone(), true
		case err != nil:
			return w.unread(n, namespaceMissing, "the object", err), false
		}
		w.outlived[id.Namespace] = true
	}
	if w.changeable(n) {
		return nil, false
	}
	return []hold{{because: namespaceMissing, cause: w.leftover(id.Namespace)}}, false
}

// leftover is a namespace that was removed from under its content.
func (w *walker) leftover(namespace string) *Cause {
	at := evidence.Identity(namespaces, "", namespace)
	return w.shared(namespace, finding.NsForcedLeftovers, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, leftBehind
		c.Evidence = []Evidence{{Source: at.String(), Value: evidence.DoesNotExist}}
		c.Remedies = []Remedy{{Risk: Safe, Action: w.create(at), Effect: recreateIt}}
	})
}

func specFinalizers(o *unstructured.Unstructured) []string {
	names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
	return names
}

// namespace returns what the finalizers in a namespace's spec wait for.
func (w *walker) namespace(n graph.Node) []hold {
	full, err := w.evidence.Whole(n)
	if apierrors.IsNotFound(err) {
		return gone()
	}
	if err != nil {
		return append(w.unread(n, specUnknown, "its spec", err), w.content(n)...)
	}
	var holds []hold
	for i, finalizer := range specFinalizers(full) {
		if finalizer == "kubernetes" {
			holds = append(holds, w.emptying(n, full)...)
		} else {
			holds = append(holds, w.foreign(n, i, finalizer, finalizers.Spec)...)
		}
	}
	return holds
}

// emptying is the namespace controller's finalizer: the contents are deleted first. The conditions are hints: they have
// been seen to say that the namespace is empty while pods were left.
func (w *walker) emptying(n graph.Node, full *unstructured.Unstructured) []hold {
	holds := w.discovery(n, full)
	holds = append(holds, w.content(n)...)
	holds = append(holds, w.versions(n, full)...)
	holds = append(holds, w.unseen(n, full)...)
	untouched := len(w.untouchedIn(n.Object().Name))
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

// content returns the contents of a namespace that have to be deleted first: its pods, then the rest.
func (f *facts) content(n graph.Node) []hold {
	var holds []hold
	all, left := f.evidence.In(n.Name()), 0
	for _, m := range all {
		if m.Resource().IsPod() {
			left++
		}
	}
	next := heldNext(f.evidence, f.finder, n.Name())
	for _, m := range all {
		if !m.BeingDeleted() {
			continue
		}
		h := hold{symptom: finding.NsContent, because: fmt.Sprintf(waitsForContents, objects(len(all))) + next, next: &m}
		if m.Resource().IsPod() && f.Server.PodsFirst() {
			h.symptom, h.because = finding.NsPodsFirst, fmt.Sprintf(waitsForPods, evidence.Some(left, "pod"))+next
		}
		holds = append(holds, h)
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

// unseen is content of types that could not be listed.
func (w *walker) unseen(n graph.Node, full *unstructured.Unstructured) []hold {
	var holds []hold
	var rest []graph.Unlisted
	for _, u := range w.unlistedIn(n.Object().Name) {
		if c := definition.Unlisted(w.rules, u); c != nil {
			holds = append(holds, hold{symptom: finding.NsContentFailure, because: cannotList, cause: w.caused(c)})
		} else {
			rest = append(rest, u)
		}
	}
	if len(rest) > 0 {
		holds = append(holds, hold{symptom: finding.NsContent, because: mightWaitFor, cause: w.unlistedContent(n, full, say(w.rules.Missing(rest)))})
	}
	return holds
}

// versions is an API whose versions the namespace controller cannot make sense
// of.
func (w *walker) versions(n graph.Node, full *unstructured.Unstructured) []hold {
	failure, _ := evidence.ConditionOf(full, "NamespaceDeletionGroupVersionParsingFailure")
	if failure.Status != "True" {
		return nil
	}
	return []hold{{because: cannotDiscover, cause: w.cause(finding.NsGvParse, n.Identity(), "", func(c *Cause) {
		c.Verdict, c.Summary = Stuck, badVersion
		c.Evidence = []Evidence{failure.Fact(n.Identity().String())}
		c.Remedies = []Remedy{see(repairAPI, "%s get apiservices -o wide", w.Kubectl)}
	})}}
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
		c.Verdict, c.Summary, c.Until = Progressing, summary, w.evidence.Now.Add(contentDelay)
		c.Evidence = []Evidence{failure.Fact(n.Identity().String()), w.health().evidence}
	})}
}

func (w *walker) unlistedContent(n graph.Node, full *unstructured.Unstructured, missing string) *Cause {
	return w.cause(finding.NsContent, n.Identity(), "unlisted", func(c *Cause) {
		c.Evidence = []Evidence{evidence.Field(n, "spec.finalizers", "kubernetes")}
		var told []string
		for _, kind := range []string{"NamespaceContentRemaining", "NamespaceFinalizersRemaining"} {
			if said, has := evidence.ConditionOf(full, kind); has && said.Status == "True" && said.Message != "" {
				told = append(told, said.Message)
				c.Evidence = append(c.Evidence, said.Fact(n.Identity().String()))
			}
		}
		if c.Summary = fmt.Sprintf(emptinessUnknown, missing); len(told) > 0 {
			c.Summary += fmt.Sprintf(controllerSays, strings.Join(told, "; "))
		}
	})
}

// discovery finds the APIs that keep the namespace controller from knowing what
// the namespace may hold.
func (w *walker) discovery(n graph.Node, full *unstructured.Unstructured) []hold {
	failure, _ := evidence.ConditionOf(full, "NamespaceDeletionDiscoveryFailure")
	failing := failure.Status == "True"
	if !failing && !slices.ContainsFunc(w.rules.Unlisted, func(u graph.Unlisted) bool { return u.Reason == graph.DiscoveryFailed }) {
		return nil
	}
	registered, err := w.evidence.List(apis, "")
	if err != nil {
		return w.unread(n, cannotDiscover, "apiservices.apiregistration.k8s.io", err)
	}
	var holds []hold
	for i := range registered {
		available, known := evidence.ConditionOf(&registered[i], "Available")
		if evidence.Nested(&registered[i], "spec", "service", "name") == "" || known && available.Status == "True" {
			continue
		}
		c := w.unavailable(&registered[i], available)
		if failing {
			c.Verdict = Stuck
			w.show(c, failure.Fact(n.Identity().String()))
		}
		holds = append(holds, hold{symptom: finding.NsDiscovery, because: cannotDiscover, cause: c})
	}
	if len(holds) == 0 && failing {
		holds = append(holds, hold{because: cannotDiscover, cause: w.cause(finding.NsDiscovery, n.Identity(), "", func(c *Cause) {
			c.Verdict, c.Summary, c.Until = Progressing, apisAnswer, w.evidence.Now.Add(contentDelay)
			c.Evidence = []Evidence{failure.Fact(n.Identity().String())}
		})})
	}
	return holds
}

// unavailable is an aggregated API that does not answer. It stops the deletion
// of every namespace.
func (w *walker) unavailable(api *unstructured.Unstructured, available evidence.Condition) *Cause {
	at := evidence.IdentityOf(apis, "APIService", api)
	return w.shared(api.GetName(), finding.NsDiscovery, at, func(c *Cause) {
		c.Evidence = []Evidence{available.Fact(at.String())}
		s := w.asker.Serving(evidence.Nested(api, "spec", "service", "namespace"), evidence.Nested(api, "spec", "service", "name"))
		c.Evidence = append(c.Evidence, s.Evidence...)
		c.Summary = apiSilent + say(workload.Hopeless(s))
		c.Remedies = append(w.repair(s, apiRepaired), Remedy{
			Risk: Dangerous, Action: w.deleteSaved(at), Effect: unregister, Loss: loses(remedy.Leaks, lostStoredBy),
		})
	})
}
