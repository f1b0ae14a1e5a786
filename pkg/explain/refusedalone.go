// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// What refuses the namespace controller, by the words of its condition, where no dry run
// meets it: the controller is another user, and sends another request.

// namespaceControllers are the users that the namespace controller may be, without and with
// --use-service-account-credentials.
const namespaceControllers = "system:kube-controller-manager or system:serviceaccount:kube-system:namespace-controller"

// refusedAlone leads to what refuses the namespace controller by its own words. accepted: the
// API server accepts the deletion of all content from whoever asks here. Nothing is returned
// when the words name nothing, or nothing that may tell the two apart, so that what they
// speak of has been repaired.
func (w *walker) refusedAlone(n graph.Node, failure evidence.Condition, accepted bool) []hold {
	const because = "the namespace controller is refused"
	said := answer.ToWrite(errors.New(failure.Message))
	var c *Cause
	switch {
	case said.Kind == answer.PolicyDenied:
		gone, found := w.policyAlone(n, failure, said, accepted)
		if gone != nil {
			return []hold{*gone}
		}
		c = found
	case said.Kind == answer.WebhookDenied || said.Kind == answer.WebhookFailed:
		c = w.webhookAlone(n, failure, said, accepted)
	case said.NoRight:
		return w.withoutRight(n, failure)
	}
	if c == nil {
		return nil
	}
	return []hold{{symptom: nsContentFailure, because: because, cause: c}}
}

// policyAlone is a policy that refuses the namespace controller. The hold is that of one
// which is gone.
func (w *walker) policyAlone(n graph.Node, failure evidence.Condition, said answer.Refusal, accepted bool) (*hold, *Cause) {
	policy, err := w.evidence.Get(admissionPolicies, "", said.Name)
	binding, missing := w.evidence.Get(admission.PolicyBindings, "", said.Binding)
	switch {
	case static(said.Name): // it is not in the API
	case apierrors.IsNotFound(err) || apierrors.IsNotFound(missing):
		h := w.backOff(n, failure, "what refused the namespace controller is gone")
		return &h, nil
	case err == nil && accepted && !admission.TellsRequestsApart(specText(policy)):
		return nil, nil
	}
	at := evidence.Identity(admissionPolicies, "", said.Name)
	if err == nil {
		at = evidence.IdentityOf(admissionPolicies, at.Resource.Kind, policy)
	}
	c := w.shared(said.Name+" "+said.Binding+" controller", admVapDeny, at, func(c *Cause) {
		c.Summary = "the policy refuses the namespace controller the deletion"
		if accepted {
			c.Summary += ", and allows it to you: it asks who sends a request, or what request it is"
		}
		c.Evidence = refusedFacts(n, failure, accepted)
		switch {
		case static(said.Name):
			c.Summary += "; it comes from a file on the machines of the control plane, and is not in the API"
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
			return
		case err != nil || missing != nil:
			c.Summary = "the policy refused the namespace controller the deletion at its last try; it, or its binding, could not be read"
			return
		case !w.lasts(failure, policy, binding):
			c.Summary = "the policy refused the namespace controller the deletion at its last try; it has been changed since, or may have been, and whether it allows it now is not known"
		default:
			c.Verdict = Stuck
			changed, _ := changedAt(policy)
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.managedFields", Value: "last changed " + w.evidence.Now.Sub(changed).Round(time.Second).String() + " ago"})
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(at)),
			Effect: "shows what the policy asks for: have it allow the namespace controller, which is " + namespaceControllers + ", and the namespace goes on within a minute",
		}}
	})
	if untouched := w.untouchedIn(n.Object().Name); len(untouched) > 0 {
		w.bindingException(c, untouched[0], said.Binding)
	}
	return nil, c
}

// refusedFacts is what shows that the namespace controller is refused.
func refusedFacts(n graph.Node, failure evidence.Condition, accepted bool) []Evidence {
	facts := []Evidence{failure.Fact(n.Identity().String())}
	if accepted {
		facts = append(facts, triedContent)
	}
	return facts
}

// lasts reports whether a failure of the namespace controller is still what it would meet:
// it has tried since all that it met was changed for the last time. It tries at least every
// minute as long as it fails.
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
	return at, known || o.GetGeneration() == 1
}

// webhookAlone is a webhook that refuses the namespace controller, nil when which one is
// not certain. Whom it listens to is in its code.
func (w *walker) webhookAlone(n graph.Node, failure evidence.Condition, said answer.Refusal, accepted bool) *Cause {
	h, m := w.webhookSaid(n, said)
	if h == nil {
		return nil
	}
	if said.Kind == answer.WebhookFailed {
		// One that all ask fails for all.
		if s := w.asker.ServingOf(h); !accepted || h.JudgesUsers() && s != nil && s.Dead {
			return w.webhookDead(m, h, s, failure.Fact(n.Identity().String()), said.Message)
		}
		return nil
	}
	c := w.shared(string(h.Config.UID)+" "+h.Name+" controller", admWebhookDeny, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf("its webhook %s refuses the namespace controller the deletion", h.Name)
		switch {
		case accepted:
			c.Summary = fmt.Sprintf("its webhook %s refused the namespace controller the deletion at its last try, and allows it to you now: the namespace goes on within a minute if the webhook was repaired since, and never while it refuses only the controller", h.Name)
		case w.failsLong(failure):
			c.Verdict = Stuck
		}
		c.Evidence = refusedFacts(n, failure, accepted)
		c.Evidence = append(c.Evidence, w.webhookEvidence(h)...)
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(h.Config)),
			Effect: "shows the webhook and what serves it: have it allow the namespace controller, which is " + namespaceControllers,
		}}
	})
	w.exception(c, m, h)
	return c
}

// webhookSaid returns the one webhook that the words are about, with an object of the
// content about which it is asked; nil for none or several.
func (w *walker) webhookSaid(n graph.Node, said answer.Refusal) (*admission.Webhook, graph.Node) {
	untouched := w.untouchedIn(n.Object().Name)
	for _, m := range untouched[:min(len(untouched), maxContentProbes)] {
		suspects := w.asker.WebhooksNamed(m, admission.Reply{Refusal: said, Write: "DELETE"}, "DELETE")
		if len(suspects) != 1 {
			continue
		}
		if asked, _ := w.asker.Matches(suspects[0], "DELETE", "", m); asked {
			return suspects[0], m
		}
	}
	return nil, graph.Node{}
}

// forbidden are words of the API server about a right that somebody has not
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters, forbiddenMessage).
var forbidden = regexp.MustCompile(`User "([^"]+)" cannot (\w+) resource "([^"/]+)" in API group "([^"]*)"`)

// withoutRight is a namespace controller that has not the rights which it needs.
func (w *walker) withoutRight(n graph.Node, failure evidence.Condition) []hold {
	words := forbidden.FindStringSubmatch(failure.Message)
	if words == nil {
		return nil
	}
	user, verb, resource := words[1], words[2], schema.GroupResource{Group: words[4], Resource: words[3]}
	may, unread := w.finder.UserMay(user, verb, resource, n.Object().Name)
	if may {
		return []hold{w.backOff(n, failure, "the right that the namespace controller lacked, as "+user+", is there now")}
	}
	const because = "the namespace controller has not the rights that it needs"
	return []hold{{because: because, cause: w.cause(nsContentFailure, n.Identity(), "rights", func(c *Cause) {
		c.Summary = fmt.Sprintf("the namespace controller may not %s %s: %s lacks that right", verb, resource, user)
		c.Evidence = []Evidence{failure.Fact(n.Identity().String())}
		switch {
		case len(unread) > 0:
			c.Summary += " as of the controller's last try"
		case w.failsLong(failure):
			c.Verdict = Stuck
			c.Evidence = append(c.Evidence, Evidence{Source: "RBAC", Value: fmt.Sprintf("no binding gives %s %s of %s", user, verb, resource)})
		}
		c.Remedies = []Remedy{{
			Risk:   Safe,
			Action: shows("%s auth can-i %s %s --as=%s -n %s", w.Kubectl, verb, shell.Quote(resource.String()), shell.Quote(user), shell.Quote(n.Object().Name)),
			Effect: "asks the API server for the same; then give the controller its ClusterRole back, system:controller:namespace-controller, with its binding: kube-apiserver makes both anew when it starts",
		}}
	})}}
}
