// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Failing is a namespace of which the controller says that it fails to delete the contents.
type Failing struct {
	Namespace graph.Node
	Whole     *unstructured.Unstructured
	Failure   evidence.Condition
	// Accepted: a dry run of the deletion of all contents is accepted from the caller. Unasked: none was sent, since too much
	// was asked already.
	Accepted, Unasked bool
}

// failing is one with the facts.
type failing struct {
	*rules.Facts
	Failing
}

// Alone leads to what refuses the namespace controller by its own words. settled says that nothing is left of all that they
// speak of, so that the controller resumes when it retries. Nothing is returned when that is not known.
func Alone(facts *rules.Facts, c Failing) (blockers []finding.Blocker, settled bool) {
	f := &failing{facts, c}
	said := answer.Named(f.Failure.Message)
	settled = len(said) > 0
	for _, r := range said {
		refuses := f.webhook
		if r.Kind == answer.PolicyDenied {
			refuses = f.policy
		}
		cause, over := refuses(r)
		settled = settled && over
		if cause != nil {
			blockers = append(blockers, finding.Blocker{Symptom: finding.NsContentFailure, Because: say.Of(ControllerRejected), Cause: cause})
		}
	}
	if lacking, mentioned := f.withoutRight(); mentioned {
		blockers, settled = append(blockers, lacking...), (settled || len(said) == 0) && len(lacking) == 0
	}
	return blockers, settled
}

// once is the cause of namespaces of which the same may refuse the controller, and the same is known.
func (f *failing) once(kind finding.Kind, key string, counts bool, fill func(*finding.Cause)) *finding.Cause {
	return f.Once(kind, key+" controller "+fmt.Sprint(f.Accepted, f.Unasked, counts), func(c *finding.Cause) {
		c.Evidence = []finding.Fact{f.says()}
		if f.Accepted {
			c.Evidence = append(c.Evidence, admission.AcceptedEach)
		}
		fill(c)
	})
}

// says is what the controller says.
func (f *failing) says() finding.Fact {
	return f.Failure.Fact(f.Namespace.Identity())
}

// policy is a policy that refuses the namespace controller. It is over when it no longer exists, or does not cover any of the
// contents that are left.
func (f *failing) policy(said answer.Refusal) (c *finding.Cause, over bool) {
	policy, at, err := policyOf(f.Facts, said.Name)
	binding, missing := f.Get(admission.PolicyBindings, "", said.Binding)
	read := err == nil && missing == nil
	met := []*unstructured.Unstructured{f.Whole}
	var about graph.Node
	switch {
	case static(said.Name): // it is not in the API
	case apierrors.IsNotFound(err) || apierrors.IsNotFound(missing):
		return nil, true
	case read:
		asked := f.askedAbout(f.Admission.PolicyAsked(policy, binding, "DELETE", ""))
		if len(asked) == 0 {
			return nil, true
		}
		if f.Accepted && !admission.TellsRequestsApart(specText(policy), specText(binding)) {
			return nil, false
		}
		about, met = asked[0], append(met, policy, binding)
		for _, m := range asked[:min(len(asked), rules.FirstAsked)] {
			if whole, err := f.Facts.Whole(m); err == nil {
				met = append(met, whole)
			}
		}
	}
	lasts := read && f.lasts(met...)
	c = f.once(finding.AdmVapDeny, said.Name+" "+said.Binding, lasts, func(c *finding.Cause) {
		c.At, c.Summary, c.Ways = at, say.Of(PolicyRejectsController), []finding.Way{finding.See(remedy.YAML(at), HaveAllowed)}
		if f.Accepted {
			c.Summary = c.Summary.And(ButNotDryRun)
		}
		switch {
		case static(said.Name):
			c.Summary, c.Ways = c.Summary.And(InFile), []finding.Way{{Effect: say.Of(FromFile)}}
		case !read:
			c.Summary, c.Ways = say.Of(PolicyRejectedController).And(PolicyUnread), nil
		case f.Unasked:
			c.Summary = say.Of(PolicyRejectedController).And(NotCheckedNow)
		case !lasts:
			c.Summary = say.Of(PolicyRejectedController).And(ChangedSinceThen)
		default:
			c.Verdict = finding.Stuck
			changed, _ := changedAt(policy)
			c.Evidence = append(c.Evidence, finding.AtSays(at, "metadata.managedFields", LastChanged, duration.HumanDuration(f.Now.Sub(changed))))
		}
	})
	because(c, said)
	if read {
		exemptBound(f.Facts, c, about, true, said.Binding)
	}
	return c, false
}

// askedAbout are the contents of the namespace that are not being deleted and that a webhook or policy covers.
func (f *failing) askedAbout(asked func(graph.Node) bool) []graph.Node {
	return slices.DeleteFunc(slices.Clone(f.Untouched(f.Namespace.Name())), func(m graph.Node) bool { return !asked(m) })
}

// lasts reports whether the failure of the namespace controller is still what it would meet: it has tried since all that it
// met was changed for the last time, as far as that shows. It tries at least every minute as long as it fails.
func (f *failing) lasts(met ...*unstructured.Unstructured) bool {
	if f.Manager().Dead || f.Failure.Since.IsZero() {
		return false
	}
	tried := evidence.Latest(f.Now.Add(-rules.ContentRetry), f.Failure.Since)
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
		known, at = true, evidence.Latest(at, entry.Time.Time)
	}
	// A manager that creates an object without a field, such as an empty ConfigMap, manages none.
	return at, known || !at.IsZero() && o.GetGeneration() <= 1
}

// webhook is a webhook that refuses the namespace controller, nil when which one is not certain. Which senders it accepts is
// in its code. It is over when it does not cover any of the contents that are left, or could not be called and by now
// rejects nothing for that.
func (f *failing) webhook(said answer.Refusal) (c *finding.Cause, over bool) {
	named := slices.DeleteFunc(slices.Clone(f.Admission.Webhooks()), func(h *admission.Webhook) bool { return h.Name != said.Name })
	if len(named) == 0 {
		return nil, false // it may come from a file of the API server
	}
	var asked []*admission.Webhook
	var about graph.Node
	for _, h := range named {
		if said.Kind == answer.WebhookFailed && h.FailurePolicy == "Ignore" {
			continue
		}
		if content := f.askedAbout(func(m graph.Node) bool {
			matches,
				_ := f.Admission.Matches(h, "DELETE", "", m)
			return matches
		}); len(content) > 0 {
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
	long := f.FailsLong(f.Failure)
	c = f.once(finding.AdmWebhookDeny, keyOf(h), long, func(c *finding.Cause) {
		c.At, c.Summary = h.Config, say.Of(WebhookRejectsController, h.Name)
		switch {
		case f.Accepted:
			c.Summary = say.Of(WebhookRejectedController, h.Name).And(DryRunPasses)
		case f.Unasked:
			c.Summary = say.Of(WebhookRejectedController, h.Name).And(NotCheckedNow)
		case long:
			c.Verdict = finding.Stuck
		}
		c.Evidence = append(c.Evidence, configured(h)...)
		c.Ways = []finding.Way{finding.See(remedy.YAML(h.Config), HaveWebhookAllow)}
	})
	because(c, said)
	exempt(f.Facts, c, about, true, h)
	return c, false
}

// webhookFailed is a webhook that could not be called for the namespace controller.
func (f *failing) webhookFailed(h *admission.Webhook, about graph.Node, said answer.Refusal) *finding.Cause {
	s := f.Admission.ServingOf(h)
	if dead := s != nil && s.Dead; dead && (!f.Accepted || h.JudgesUsers()) || !f.Accepted && !f.Unasked {
		return DeadWebhook(f.Facts, about, h, s, f.says(), said.Message)
	}
	c := f.once(finding.AdmWebhookDead, keyOf(h), false, func(c *finding.Cause) {
		c.At, c.Summary = h.Config, say.Of(WebhookDidNotAnswer, h.Name).And(DryRunPasses)
		if f.Unasked {
			c.Summary = say.Of(WebhookDidNotAnswer, h.Name).And(NotCheckedNow)
		}
		c.Evidence, c.Ways = append(c.Evidence, configured(h)...), deadWays(f.Facts, h, s, said.Message)
	})
	bypass(f.Facts, c, about, h)
	return c
}

// withoutRight is a namespace controller that lacks a right. mentioned says that the words are about one; there are no
// blockers when it has that now.
func (f *failing) withoutRight() (blockers []finding.Blocker, mentioned bool) {
	right, mentioned := answer.Lacking(f.Failure.Message)
	if !mentioned {
		return nil, false
	}
	id := f.Namespace.Identity()
	may, unread := f.Finder.UserMay(right, id.Name)
	if may {
		return nil, true
	}
	c := &finding.Cause{
		Kind: finding.NsContentFailure, At: id, Key: "rights", Verdict: finding.Stuck,
		Summary:  say.Of(LacksRight, right.Verb, right.Resource, right.User),
		Evidence: []finding.Fact{f.says()},
		Ways:     []finding.Way{finding.See(remedy.CanI(right.Verb, right.Resource.String(), right.User, id.Name), RestoreControllerRole)},
	}
	if len(unread) > 0 {
		c.Verdict, c.Summary = finding.Unknown, c.Summary.And(AtLastAttempt)
	} else {
		c.Evidence = append(c.Evidence, finding.AtSays("RBAC", "", NoBinding, right.User, right.Verb, right.Resource))
	}
	return []finding.Blocker{{Because: say.Of(ControllerLacksRights), Cause: c}}, true
}
