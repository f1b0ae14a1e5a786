// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Namespaces: pkg/controller/namespace/deletion, namespaced_resources_deleter.go.

// namespace returns what the finalizers in a namespace's spec wait for.
func (w *walker) namespace(n graph.Node) []hold {
	full, unread := namespace.Whole(w.rules, n)
	holds := w.holdsOf(n, unread)
	if full == nil {
		return holds
	}
	for i, finalizer := range rules.SpecFinalizers(full) {
		if finalizer == "kubernetes" {
			holds = append(holds, w.emptying(n, full)...)
		} else {
			holds = append(holds, w.foreign(n, i, finalizer, finalizers.Spec)...)
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
	over := failed && namespace.Overtaken(w.evidence, failure, n.Object().Name)
	started, hangs := len(evidence.Conditions(full)) > 0, false
	unasked, asked := false, 0
	age := w.rules.Age(n)
	if (!started || len(holds) == 0) && age > namespace.Begins {
		refused := w.writesRefused(n)
		holds, hangs = append(holds, refused...), len(refused) > 0
	}
	if !started && untouched > 0 && age > namespace.Begins {
		late, stands := w.contentHangs(n)
		holds, hangs = append(holds, late...), hangs || stands.slow && len(late) > 0
		unasked, asked = stands.unsent && len(late) == 0, stands.asked
	}
	m, waited := w.rules.Manager(), w.rules.Waited(n)
	controller := func(b finding.Blocker) { holds = append(holds, w.hold(n, b)) }
	switch {
	case !started && hangs && !m.Dead:
	case !started && m.Dead:
		controller(w.rules.Turn(n, finding.NsControllerAbsent, finding.Say(namespace.ToBegin), age > namespace.Starts))
	case !started && unasked && waited > namespace.Starts:
		holds = append(holds, w.contentUnasked(n, untouched, asked))
	case !started && waited > namespace.Starts:
		controller(namespace.NotBegun(w.rules))
	case m.Dead && (len(m.Idle) > 0 || len(holds) == 0):
		controller(w.rules.Turn(n, finding.Kind{}, finding.Say(namespace.ToResume), age > namespace.Starts))
		if failed && !over { // it might be rejected when it works again
			refused, _ := w.contentHangs(n)
			holds = append(holds, refused...)
		}
	case over && len(holds) == 0:
		controller(namespace.BackOff(w.rules, n, failure, namespace.FailureGone))
	case failed && !over && (untouched > 0 || len(holds) == 0):
		holds = append(holds, w.contentRefused(n, full, failure, untouched)...)
	case len(holds) == 0 || !started:
		controller(namespace.Turn(w.rules, n, full, untouched))
	}
	return holds
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
