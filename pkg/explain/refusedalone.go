// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// What refuses the namespace controller, by the words of its condition, where no dry run
// meets it: the controller is another user, and sends other requests.

// namespaceControllers are the users that the namespace controller may be, without and with
// --use-service-account-credentials.
const namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"

// failing is a namespace of which the controller says that it fails to delete the content.
type failing struct {
	namespace graph.Node
	whole     *unstructured.Unstructured
	failure   evidence.Condition
	// accepted: a dry run of the deletion of all content is accepted from whoever asks here.
	// unasked: none was sent, since too much was asked already.
	accepted, unasked bool
}

// alike tells the causes of namespaces apart of which the same may refuse the controller, and
// not the same is known.
func (f *failing) alike(counts bool) string {
	return fmt.Sprintf(" controller %t %t %t", f.accepted, f.unasked, counts)
}

func (f *failing) facts() []Evidence {
	facts := []Evidence{f.failure.Fact(f.namespace.Identity().String())}
	if f.accepted {
		facts = append(facts, triedContent)
	}
	return facts
}

// refusedAlone leads to what refuses the namespace controller by its own words. settled says
// that nothing is left of all that they speak of, so that the controller goes on when it
// tries again. Nothing is returned when that is not known.
func (w *walker) refusedAlone(f failing) (holds []hold, settled bool) {
	const because = "the namespace controller is refused"
	said := answer.Named(f.failure.Message)
	settled = len(said) > 0
	for _, r := range said {
		var c *Cause
		var over bool
		if r.Kind == answer.PolicyDenied {
			c, over = w.policyAlone(f, r)
		} else {
			c, over = w.webhookAlone(f, r)
		}
		settled = settled && over
		if c != nil {
			holds = append(holds, hold{symptom: nsContentFailure, because: because, cause: c})
		}
	}
	if lacking, mentioned, has := w.withoutRight(f); mentioned {
		holds, settled = append(holds, lacking...), (settled || len(said) == 0) && has
	}
	return holds, settled
}

// policyAlone is a policy that refuses the namespace controller. It is over when it does not
// exist any more, or is not asked about any of the content that is left.
func (w *walker) policyAlone(f failing, said answer.Refusal) (c *Cause, over bool) {
	policy, err := w.evidence.Get(admissionPolicies, "", said.Name)
	binding, missing := w.evidence.Get(admission.PolicyBindings, "", said.Binding)
	read := err == nil && missing == nil
	at := evidence.Identity(admissionPolicies, "", said.Name)
	met := []*unstructured.Unstructured{f.whole}
	var about graph.Node
	switch {
	case static(said.Name): // it is not in the API
	case apierrors.IsNotFound(err) || apierrors.IsNotFound(missing):
		return nil, true
	case read:
		at = evidence.IdentityOf(admissionPolicies, at.Resource.Kind, policy)
		asked := w.askedAbout(f.namespace, w.asker.PolicyAsked(policy, binding, "DELETE"))
		if len(asked) == 0 {
			return nil, true
		}
		if f.accepted && !admission.TellsRequestsApart(specText(policy), specText(binding)) {
			return nil, false
		}
		about, met = asked[0], append(met, policy, binding)
		for _, m := range asked[:min(len(asked), firstProbes)] {
			if whole, err := w.evidence.Whole(m); err == nil {
				met = append(met, whole)
			}
		}
	}
	lasts := read && w.lasts(f.failure, met...)
	c = w.shared(said.Name+" "+said.Binding+f.alike(lasts), admVapDeny, at, func(c *Cause) {
		c.Summary = "the policy refuses the namespace controller the deletion"
		if f.accepted {
			c.Summary += ", while a dry run by you passes: it asks who sends a request, or what request it is"
		}
		c.Evidence = f.facts()
		switch {
		case static(said.Name):
			c.Summary += "; it comes from a file on the machines of the control plane, and is not in the API"
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
			return
		case !read:
			c.Summary = "the policy refused the namespace controller the deletion at its last try; it, or its binding, could not be read"
			return
		case f.unasked:
			c.Summary = "the policy refused the namespace controller the deletion at its last try; whether it does now was not asked"
		case !lasts:
			c.Summary = "the policy refused the namespace controller the deletion at its last try; whether it does now is not known: the policy, its binding, the namespace or the content has been changed since, or may have been"
		default:
			c.Verdict = Stuck
			changed, _ := changedAt(policy)
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.managedFields", Value: "last changed " + duration.HumanDuration(w.evidence.Now.Sub(changed)) + " ago"})
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(at)),
			Effect: "see what the policy asks for: have it allow the namespace controller, which is " + namespaceControllers + ", and the namespace goes on within a minute",
		}}
	})
	if read {
		w.bindingException(c, about, said.Binding)
	}
	return c, false
}

// askedAbout returns the content of a namespace that is not being deleted and about which
// somebody is asked.
func (w *walker) askedAbout(n graph.Node, asked func(graph.Node) bool) []graph.Node {
	return slices.DeleteFunc(slices.Clone(w.untouchedIn(n.Object().Name)), func(m graph.Node) bool { return !asked(m) })
}

// lasts reports whether a failure of the namespace controller is still what it would meet:
// it has tried since all that it met was changed for the last time, as far as that shows. It
// tries at least every minute as long as it fails.
func (w *walker) lasts(failure evidence.Condition, met ...*unstructured.Unstructured) bool {
	if w.health().dead() || failure.Since.IsZero() {
		return false
	}
	tried := w.evidence.Now.Add(-namespaceRetry)
	if failure.Since.After(tried) {
		tried = failure.Since
	}
	return !slices.ContainsFunc(met, func(o *unstructured.Unstructured) bool {
		changed, known := changedAt(o)
		return !known || !changed.Before(tried)
	})
}

// changedAt returns when an object was changed for the last time, but for its status.
func changedAt(o *unstructured.Unstructured) (at time.Time, known bool) {
	at = o.GetCreationTimestamp().Time
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		if entry.Time == nil {
			return at, false
		}
		known = true
		if entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	// Who made an object without a field, such as an empty ConfigMap, manages none.
	return at, known || !at.IsZero() && o.GetGeneration() <= 1
}

// webhookAlone is a webhook that refuses the namespace controller, nil when which one is
// not certain. Whom it listens to is in its code. It is over when it is not asked about any
// of the content that is left.
func (w *walker) webhookAlone(f failing, said answer.Refusal) (c *Cause, over bool) {
	named := slices.DeleteFunc(slices.Clone(w.asker.Webhooks()), func(h *admission.Webhook) bool { return h.Name != said.Name })
	if len(named) == 0 {
		return nil, false // it may come from a file of the API server
	}
	var asked []*admission.Webhook
	var about graph.Node
	for _, h := range named {
		if content := w.askedAbout(f.namespace, func(m graph.Node) bool { matches, _ := w.asker.Matches(h, "DELETE", "", m); return matches }); len(content) > 0 {
			asked, about = append(asked, h), content[0]
		}
	}
	switch {
	case len(asked) == 0:
		return nil, true
	case len(asked) > 1:
		return nil, false
	case said.Kind == answer.WebhookFailed:
		return w.webhookFailedAlone(f, asked[0], about, said), false
	}
	h := asked[0]
	long := w.failsLong(f.failure)
	c = w.shared(string(h.Config.UID)+" "+h.Name+f.alike(long), admWebhookDeny, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf("its webhook %s refuses the namespace controller the deletion", h.Name)
		switch {
		case f.accepted:
			c.Summary = fmt.Sprintf("its webhook %s refused the namespace controller the deletion at its last try, and a dry run by you passes now: %s", h.Name, ifRepaired)
		case f.unasked:
			c.Summary = fmt.Sprintf("its webhook %s refused the namespace controller the deletion at its last try; whether it does now was not asked", h.Name)
		case long:
			c.Verdict = Stuck
		}
		c.Evidence = append(f.facts(), w.webhookEvidence(h)...)
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(h.Config)),
			Effect: "see the webhook and what serves it: have it allow the namespace controller, which is " + namespaceControllers,
		}}
	})
	w.exception(c, about, h)
	return c, false
}

// ifRepaired says what becomes of a namespace whose controller was refused by what lets a dry
// run pass.
const ifRepaired = "the namespace goes on within a minute if the webhook was repaired since, and does not as long as only the controller's requests fail"

// webhookFailedAlone is a webhook that could not be called for the namespace controller.
func (w *walker) webhookFailedAlone(f failing, h *admission.Webhook, about graph.Node, said answer.Refusal) *Cause {
	s := w.asker.ServingOf(h)
	if dead := s != nil && s.Dead; dead && (!f.accepted || h.JudgesUsers()) || !f.accepted && !f.unasked {
		return w.webhookDead(about, h, s, f.failure.Fact(f.namespace.Identity().String()), said.Message)
	}
	c := w.shared(string(h.Config.UID)+" "+h.Name+f.alike(false), admWebhookDead, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf("its webhook %s did not answer at the namespace controller's last try, and a dry run by you passes now: %s", h.Name, ifRepaired)
		if f.unasked {
			c.Summary = fmt.Sprintf("its webhook %s did not answer at the namespace controller's last try; whether it does now was not asked", h.Name)
		}
		c.Evidence = append(f.facts(), w.webhookEvidence(h)...)
		c.Remedies = w.deadWebhookRemedies(h, s, said.Message)
	})
	w.exception(c, about, h)
	return c
}

// withoutRight is a namespace controller that has not the rights which it needs. mentioned says
// that the words are about a right, has that it has that now.
func (w *walker) withoutRight(f failing) (holds []hold, mentioned, has bool) {
	right, mentioned := answer.Lacking(f.failure.Message)
	if !mentioned {
		return nil, false, false
	}
	n := f.namespace
	may, unread := w.finder.UserMay(right, n.Object().Name)
	if may {
		return nil, true, true
	}
	const because = "the namespace controller has not the rights that it needs"
	return []hold{{because: because, cause: w.cause(nsContentFailure, n.Identity(), "rights", func(c *Cause) {
		c.Summary = fmt.Sprintf("the namespace controller may not %s %s: %s lacks that right", right.Verb, right.Resource, right.User)
		c.Evidence = []Evidence{f.failure.Fact(n.Identity().String())}
		if len(unread) > 0 {
			c.Summary += " as of the controller's last try"
		} else {
			c.Verdict = Stuck
			c.Evidence = append(c.Evidence, Evidence{Source: "RBAC", Value: fmt.Sprintf("no binding gives %s %s of %s", right.User, right.Verb, right.Resource)})
		}
		c.Remedies = []Remedy{{
			Risk:   Safe,
			Action: shows("%s auth can-i %s %s --as=%s -n %s", w.Kubectl, right.Verb, shell.Quote(right.Resource.String()), shell.Quote(right.User), shell.Quote(n.Object().Name)),
			Effect: "ask the API server for the same; then give the controller its ClusterRole back, system:controller:namespace-controller, with its binding: kube-apiserver makes both anew when it starts",
		}}
	})}}, true, false
}
