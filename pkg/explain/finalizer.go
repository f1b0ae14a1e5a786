// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxByHand is the number of objects for which a cause shows how to remove the
// finalizer by hand.
const maxByHand = 3

// foreign is a finalizer of a controller outside this program. Objects that
// wait for the same share the cause. Behind it may be what keeps the controller from
// running.
func (w *walker) foreign(n graph.Node, index int, finalizer string, list finalizers.Field) []hold {
	resource := n.Resource().GroupResource().String()
	because := "finalizer " + finalizer
	if list == finalizers.Spec {
		because = "spec finalizer " + finalizer
	}
	if h, is := w.component(n, finalizer, list); is {
		h.because = because + ": " + h.because
		return []hold{h}
	}
	a := w.finder.Find(n, finalizer, list)
	s, r := a.Search, w.judge(n, a)
	if r.next != nil {
		return []hold{{symptom: r.id, because: because + ": " + r.summary, next: r.next}}
	}
	key, at := r.id.ID+" "+r.key, n.Identity()
	alike := r.at == nil && !n.Resource().IsNamespace()
	switch {
	case n.Resource().IsNamespace():
		key += " " + resource
		r.id = nsMetaFinalizers
		if list == finalizers.Spec {
			r.id = nsSpecFinalizers
		}
	case r.at != nil:
		at = *r.at
	default:
		key += " " + resource
	}
	c := w.shared(key, r.id, at, func(c *Cause) {
		c.Verdict, c.Summary, c.Controller = r.verdict, r.summary, r.controller
		c.Evidence, c.Remedies = r.shared, r.remedies
	})
	w.takeIn(c, n, index, s, r)
	holds := []hold{{because: because, cause: c, alike: alike}}
	if a.Is == controllers.Unserved {
		for _, root := range w.podsRefused(a.By.Workload) {
			holds = append(holds, hold{because: because + ": the pods of its controller cannot be made", cause: root})
		}
	}
	return holds
}

// podsRefused are the webhooks that keep the pods of a workload from being made: the one
// that the API server names, if it is known which, and all others that must allow them
// and cannot be reached.
func (w *walker) podsRefused(l *controllers.Workload) []*Cause {
	message := w.finder.StateOf(l).Obstacle
	n, known := w.Graph.Node(l.ID().UID)
	r := admission.Reply{Refusal: answer.ToWrite(errors.New(message)), About: l.ID()}
	if message == "" || !known || r.Kind != answer.WebhookFailed {
		return nil
	}
	fact := Evidence{Source: l.ID().String(), Path: "status.conditions[ReplicaFailure]", Value: message}
	var all []*Cause
	if suspects := w.asker.WebhooksNamed(n, r, "CREATE"); len(suspects) == 1 {
		all = append(all, w.webhookDead(n, suspects[0], w.asker.ServingOf(suspects[0]), fact, message))
	}
	for h, s := range w.asker.DeadForPods(n) {
		must := Evidence{Source: l.ID().String(), Value: "the webhook is asked about each of its pods, by its rules and selectors"}
		if c := w.webhookDead(n, h, s, must, ""); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// takeIn adds an object to those that a cause holds up.
func (w *walker) takeIn(c *Cause, n graph.Node, index int, s *controllers.Search, r ruling) {
	var facts []Evidence
	if w.members[c] < evidence.MaxShown {
		facts = slices.Concat([]Evidence{evidence.Field(n, fmt.Sprintf("%s[%d]", s.Field, index), s.Finalizer)}, w.author(n, s.Finalizer), r.own)
	}
	members := w.join(c, facts...)
	for _, remedy := range r.ownRemedies {
		w.offerOnce(c, remedy)
	}
	if members <= maxByHand && r.byHand {
		w.offer(c, w.byHand(n, index, s, r))
	}
}

// byHand removes the finalizer instead of its controller, the last way out.
func (w *walker) byHand(n graph.Node, index int, s *controllers.Search, r ruling) Remedy {
	leaks, harmless := "whatever its controller would have cleaned up, which may be outside the cluster", false
	for _, m := range s.Known {
		leaks, harmless = cmp.Or(m.Leaks, leaks), m.Harmless
	}
	if s.Field == finalizers.Spec {
		return w.finalizeNamespace(n, s.Finalizer, leaks)
	}
	remedy := w.removeFinalizer(n, index, s.Finalizer, leaks)
	if harmless && (r.id == finAbsent || r.id == finInNamespace) {
		remedy.Risk = Disruptive
	}
	return remedy
}

// component is a finalizer that a part of kube-controller-manager removes, of
// which the conditions are not looked at.
func (w *walker) component(n graph.Node, finalizer string, list finalizers.Field) (hold, bool) {
	known := w.finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), list)
	if len(known) == 0 || known[0].Builtin != finalizers.ControllerManager {
		return hold{}, false
	}
	name := "the " + controllers.Whose(finalizer, known)
	because := name + " has to remove it"
	if w.health().lease != evidence.LeaseFresh || !w.late(n) {
		return w.manager(n, because, w.late(n)), true
	}
	return hold{because: because, cause: w.shared(finalizer, finWorking, n.Identity(), func(c *Cause) {
		c.Summary = fmt.Sprintf("%s: kube-controller-manager works, and what the finalizer waits for is not looked at: %s", because, known[0].WaitsFor)
		c.Controller = &Controller{Name: name, Liveness: controllers.Alive, Evidence: append([]Evidence{w.health().evidence}, entryEvidence(known[0])...)}
		c.Evidence = []Evidence{evidence.Field(n, string(list), finalizer)}
	})}, true
}

// maxAuthors is the number of objects that are read for who set a finalizer.
const maxAuthors = 100

// author says who set the finalizer, by the object's managed fields.
func (w *walker) author(n graph.Node, finalizer string) []Evidence {
	if w.authors++; w.authors > maxAuthors {
		return nil
	}
	full, err := w.evidence.Whole(n)
	if err != nil {
		return nil
	}
	var facts []Evidence
	for _, entry := range full.GetManagedFields() {
		if entry.FieldsV1 == nil || !evidence.SetsFinalizer(entry.FieldsV1.GetRawBytes(), finalizer) {
			continue
		}
		when := ""
		if entry.Time != nil {
			when = " at " + entry.Time.UTC().Format(time.RFC3339)
		}
		facts = append(facts, evidence.Field(n, "metadata.managedFields", fmt.Sprintf("the finalizer was set by %q (%s)%s", entry.Manager, entry.Operation, when)))
	}
	return facts
}
