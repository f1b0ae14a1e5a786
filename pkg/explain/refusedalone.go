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
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// What refuses the namespace controller, by the words of its condition, where no dry run
// meets it: the controller is another user, and sends other requests.

// failing is a namespace of which the controller says that it fails to delete the contents.
type failing struct {
	*walker
	namespace graph.Node
	whole     *unstructured.Unstructured
	failure   evidence.Condition
	// accepted: a dry run of the deletion of all contents is accepted from the caller.
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
// that nothing is left of all that they speak of, so that the controller resumes when it
// retries. Nothing is returned when that is not known.
func (f *failing) refusedAlone() (holds []hold, settled bool) {
	said := answer.Named(f.failure.Message)
	settled = len(said) > 0
	for _, r := range said {
		var c *Cause
		var over bool
		if r.Kind == answer.PolicyDenied {
			c, over = f.policyAlone(r)
		} else {
			c, over = f.webhookAlone(r)
		}
		settled = settled && over
		if c != nil {
			holds = append(holds, hold{symptom: finding.NsContentFailure, because: controllerRejected, cause: c})
		}
	}
	if lacking, mentioned, has := f.withoutRight(); mentioned {
		holds, settled = append(holds, lacking...), (settled || len(said) == 0) && has
	}
	return holds, settled
}

// policyAlone is a policy that refuses the namespace controller. It is over when it no longer
// exists, or does not cover any of the contents that are left.
func (f *failing) policyAlone(said answer.Refusal) (c *Cause, over bool) {
	policy, err := f.evidence.Get(evidence.AdmissionPolicies, "", said.Name)
	binding, missing := f.evidence.Get(admission.PolicyBindings, "", said.Binding)
	read := err == nil && missing == nil
	at := evidence.Identity(evidence.AdmissionPolicies, "", said.Name)
	met := []*unstructured.Unstructured{f.whole}
	var about graph.Node
	switch {
	case static(said.Name): // it is not in the API
	case apierrors.IsNotFound(err) || apierrors.IsNotFound(missing):
		return nil, true
	case read:
		at = evidence.IdentityOf(evidence.AdmissionPolicies, at.Resource.Kind, policy)
		asked := f.askedAbout(f.asker.PolicyAsked(policy, binding, "DELETE"))
		if len(asked) == 0 {
			return nil, true
		}
		if f.accepted && !admission.TellsRequestsApart(specText(policy), specText(binding)) {
			return nil, false
		}
		about, met = asked[0], append(met, policy, binding)
		for _, m := range asked[:min(len(asked), rules.FirstAsked)] {
			if whole, err := f.evidence.Whole(m); err == nil {
				met = append(met, whole)
			}
		}
	}
	lasts := read && f.lasts(met...)
	c = f.shared(said.Name+" "+said.Binding+f.alike(lasts), finding.AdmVapDeny, at, func(c *Cause) {
		c.Summary, c.Evidence = policyRejectsController, f.facts()
		if f.accepted {
			c.Summary += butNotDryRun
		}
		c.Remedies = []Remedy{{Risk: Safe, Action: yaml(f.Kubectl, at), Effect: haveAllowed}}
		switch {
		case static(said.Name):
			c.Summary, c.Remedies = c.Summary+inFile, []Remedy{{Risk: Safe, Effect: fromFile}}
		case !read:
			c.Summary, c.Remedies = policyRejectedController+policyUnread, nil
		case f.unasked:
			c.Summary = policyRejectedController + notCheckedNow
		case !lasts:
			c.Summary = policyRejectedController + changedSinceThen
		default:
			c.Verdict = Stuck
			changed, _ := changedAt(policy)
			c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.managedFields", Value: fmt.Sprintf(lastChanged, duration.HumanDuration(f.evidence.Now.Sub(changed)))})
		}
	})
	if read {
		f.bindingException(c, about, said.Binding)
	}
	return c, false
}

// askedAbout returns the contents of the namespace that are not being deleted and that a
// webhook or policy covers.
func (f *failing) askedAbout(asked func(graph.Node) bool) []graph.Node {
	return slices.DeleteFunc(slices.Clone(f.rules.Untouched(f.namespace.Object().Name)), func(m graph.Node) bool { return !asked(m) })
}

// lasts reports whether the failure of the namespace controller is still what it would meet:
// it has tried since all that it met was changed for the last time, as far as that shows. It
// tries at least every minute as long as it fails.
func (f *failing) lasts(met ...*unstructured.Unstructured) bool {
	if f.rules.Manager().Dead || f.failure.Since.IsZero() {
		return false
	}
	tried := f.evidence.Now.Add(-namespace.Retry)
	if f.failure.Since.After(tried) {
		tried = f.failure.Since
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
	// A manager that creates an object without a field, such as an empty ConfigMap, manages none.
	return at, known || !at.IsZero() && o.GetGeneration() <= 1
}

// webhookAlone is a webhook that refuses the namespace controller, nil when which one is
// not certain. Which senders it accepts is in its code. It is over when it does not cover any
// of the contents that are left.
func (f *failing) webhookAlone(said answer.Refusal) (c *Cause, over bool) {
	named := slices.DeleteFunc(slices.Clone(f.asker.Webhooks()), func(h *admission.Webhook) bool { return h.Name != said.Name })
	if len(named) == 0 {
		return nil, false // it may come from a file of the API server
	}
	var asked []*admission.Webhook
	var about graph.Node
	for _, h := range named {
		if content := f.askedAbout(func(m graph.Node) bool { matches, _ := f.asker.Matches(h, "DELETE", "", m); return matches }); len(content) > 0 {
			asked, about = append(asked, h), content[0]
		}
	}
	switch {
	case len(asked) == 0:
		return nil, true
	case len(asked) > 1:
		return nil, false
	case said.Kind == answer.WebhookFailed:
		return f.webhookFailed(asked[0], about, said), false
	}
	h := asked[0]
	long := f.failsLong(f.failure)
	c = f.shared(string(h.Config.UID)+" "+h.Name+f.alike(long), finding.AdmWebhookDeny, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf(webhookRejectsController, h.Name)
		switch {
		case f.accepted:
			c.Summary = fmt.Sprintf(webhookRejectedController, h.Name) + dryRunPasses
		case f.unasked:
			c.Summary = fmt.Sprintf(webhookRejectedController, h.Name) + notCheckedNow
		case long:
			c.Verdict = Stuck
		}
		c.Evidence = append(f.facts(), webhookEvidence(h)...)
		c.Remedies = []Remedy{{Risk: Safe, Action: yaml(f.Kubectl, h.Config), Effect: haveWebhookAllow}}
	})
	f.exception(c, about, h)
	return c, false
}

// webhookFailed is a webhook that could not be called for the namespace controller.
func (f *failing) webhookFailed(h *admission.Webhook, about graph.Node, said answer.Refusal) *Cause {
	s := f.asker.ServingOf(h)
	if dead := s != nil && s.Dead; dead && (!f.accepted || h.JudgesUsers()) || !f.accepted && !f.unasked {
		return f.webhookDead(about, h, s, f.failure.Fact(f.namespace.Identity().String()), said.Message)
	}
	c := f.shared(string(h.Config.UID)+" "+h.Name+f.alike(false), finding.AdmWebhookDead, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf(webhookDidNotAnswer, h.Name) + dryRunPasses
		if f.unasked {
			c.Summary = fmt.Sprintf(webhookDidNotAnswer, h.Name) + notCheckedNow
		}
		c.Evidence = append(f.facts(), webhookEvidence(h)...)
		c.Remedies = f.deadWebhookRemedies(h, s, said.Message)
	})
	f.exception(c, about, h)
	return c
}

// withoutRight is a namespace controller that lacks rights. mentioned says
// that the words are about a right, has that it has that now.
func (f *failing) withoutRight() (holds []hold, mentioned, has bool) {
	right, mentioned := answer.Lacking(f.failure.Message)
	if !mentioned {
		return nil, false, false
	}
	id := f.namespace.Identity()
	may, unread := f.finder.UserMay(right, id.Name)
	if may {
		return nil, true, true
	}
	return []hold{{because: controllerLacksRights, cause: f.cause(finding.NsContentFailure, id, "rights", func(c *Cause) {
		c.Summary = fmt.Sprintf(lacksRight, right.Verb, right.Resource, right.User)
		c.Evidence = []Evidence{f.failure.Fact(id.String())}
		if len(unread) > 0 {
			c.Summary += atLastAttempt
		} else {
			c.Verdict = Stuck
			c.Evidence = append(c.Evidence, Evidence{Source: "RBAC", Value: fmt.Sprintf(noBinding, right.User, right.Verb, right.Resource)})
		}
		c.Remedies = []Remedy{{
			Risk:   Safe,
			Action: shows("%s auth can-i %s %s --as=%s -n %s", f.Kubectl, right.Verb, shell.Quote(right.Resource.String()), shell.Quote(right.User), shell.Quote(id.Name)),
			Effect: restoreControllerRole,
		}}
	})}}, true, false
}
