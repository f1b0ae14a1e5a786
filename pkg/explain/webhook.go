// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Webhooks that are unreachable, slow, or reject a write.

// byWebhook is a webhook that was called: it is unreachable, or rejects the write.
// The API server tells only its name, which others may have in other
// configurations.
func (f refusedWrite) byWebhook() *Cause {
	suspects := f.asker.WebhooksNamed(f.n, f.r, f.operation)
	switch {
	case len(suspects) != 1:
		return f.unclearWebhook(suspects)
	case f.r.Kind == answer.WebhookDenied:
		return f.denies(suspects[0])
	}
	if f.r.Passed > 0 {
		return f.answersSometimes(suspects[0])
	}
	first := f.r.Fact()
	if f.r.Asked > 1 {
		first.Path = fmt.Sprintf(failedEachTime, f.r.Asked)
	}
	return f.webhookDead(f.n, suspects[0], f.asker.ServingOf(suspects[0]), first, f.r.Message)
}

// answersSometimes is a webhook of which some calls fail: whether the write that is needed is refused is not known.
func (f refusedWrite) answersSometimes(h *admission.Webhook) *Cause {
	c := f.shared(string(h.Config.UID)+" "+h.Name+" sometimes", finding.AdmWebhookDead, h.Config, func(c *Cause) {
		s := f.asker.ServingOf(h)
		wrong := admission.CallError(f.r.Message)
		if correction[wrong] == "" {
			wrong = admission.Late
		}
		c.Verdict, c.Summary = Unknown, fmt.Sprintf(answersSometimes, h.Name, f.r.Passed, f.r.Asked)
		c.Evidence = append([]Evidence{f.r.Fact()}, webhookEvidence(h)...)
		if s != nil {
			c.Evidence = append(c.Evidence, s.Evidence...)
		}
		c.Remedies = []Remedy{correctCall(f.Kubectl, h, s, wrong, blockedPass)}
	})
	f.met(c)
	return c
}

// unclearWebhook is a refusal by a webhook of which the configuration is not
// known, or several may be meant.
func (f refusedWrite) unclearWebhook(suspects []*admission.Webhook) *Cause {
	id, verdict, does := finding.AdmWebhookDead, Stuck, someUnreachable
	if f.r.Kind == answer.WebhookDenied {
		id, verdict, does = finding.AdmWebhookDeny, Unknown, someRejects
	}
	c := f.walker.cause(id, f.n.Identity(), f.r.Name, func(c *Cause) {
		c.Verdict, c.Summary, c.Evidence = verdict, fmt.Sprintf(does, f.r.Name), []Evidence{f.r.Fact()}
		switch {
		case len(suspects) > 0:
			c.Summary += oneOfSeveral
		case f.asker.Configured():
			c.Summary += notInAPI
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
		default:
			c.Summary += configUnread
		}
		if verdict == Unknown {
			f.onlyCaller(c)
		}
		for _, h := range suspects {
			c.Evidence = append(c.Evidence, webhookEvidence(h)...)
			f.offerOnce(c, Remedy{Risk: Safe, Action: yaml(f.Kubectl, h.Config), Effect: findWebhook})
		}
	})
	f.met(c)
	return c
}

// static reports whether an admission configuration comes from a file of the API server,
// by its name (k8s.io/apiserver/pkg/admission/plugin/manifest, StaticConfigSuffix).
func static(name string) bool { return strings.HasSuffix(name, ".static.k8s.io") }

// webhookDead is an unreachable webhook that must allow a write. The
// service is nil for one that is called by a URL; message says how the call failed, and
// is empty when none was made.
//
// The webhooks of a configuration that have one backend are one cause.
func (w *walker) webhookDead(n graph.Node, h *admission.Webhook, s *admission.Serving, first Evidence, message string) *Cause {
	served := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		served = service.Namespace + "/" + service.Name
	}
	c := w.shared(fmt.Sprintf("%s %s %t", h.Config.UID, served, h.JudgesUsers()), finding.AdmWebhookDead, h.Config, func(c *Cause) {
		c.Verdict = Stuck
		if h.JudgesUsers() {
			c.Verdict = Unknown
		}
		c.Evidence = append([]Evidence{first}, webhookEvidence(h)...)
		if s != nil {
			c.Evidence = append(c.Evidence, s.Evidence...)
		}
		c.Remedies = w.deadWebhookRemedies(h, s, message)
	})
	w.nameWebhook(c, h, s, message)
	if e, seen := w.asker.SeenFailing(n, `failed calling webhook "`+h.Name+`"`); seen {
		w.worsen(c, Stuck, c.Summary, e)
	}
	w.exception(c, n, w.hooks[c]...)
	return c
}

// nameWebhook adds a webhook to those of a cause.
func (w *walker) nameWebhook(c *Cause, h *admission.Webhook, s *admission.Serving, message string) {
	if slices.ContainsFunc(w.hooks[c], func(have *admission.Webhook) bool { return have.Name == h.Name }) {
		return
	}
	hooks := append(w.hooks[c], h)
	w.hooks[c] = hooks
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.Name
	}
	c.Summary = fmt.Sprintf(unreachable, names[0])
	if admission.CallError(message) == admission.Late && (s == nil || !s.Dead) {
		c.Summary = fmt.Sprintf(notInTime, names[0], h.Seconds())
	}
	if len(hooks) > 1 {
		c.Summary = fmt.Sprintf(allUnreachable, strings.Join(names, ", "))
		if len(hooks) <= evidence.MaxShown {
			c.Evidence = append(c.Evidence, webhookEvidence(h)...)
		}
		w.offerInstead(c, w.passOver(hooks))
	}
	if h.JudgesUsers() {
		c.Summary += asksWho
	}
	if s == nil {
		return
	}
	if behind := w.finder.Behind(s.Namespace, s.Name); len(behind) > 0 {
		c.Summary += fmt.Sprintf(backendIs, behind[0].ID())
	}
	c.Summary += say(workload.Hopeless(s))
}

// passOver makes writes pass while webhooks of one configuration are unreachable.
func (w *walker) passOver(hooks []*admission.Webhook) Remedy {
	hooks = slices.SortedFunc(slices.Values(hooks), func(a, b *admission.Webhook) int { return a.Index - b.Index })
	var operations []remedy.Step
	for _, h := range hooks {
		at := fmt.Sprintf("/webhooks/%d", h.Index)
		operations = append(operations, remedy.Test(at+"/name", h.Name), remedy.Replace(at+"/failurePolicy", "Ignore"))
	}
	what, in := webhooks(len(hooks))
	return Remedy{
		Risk: Disruptive, Action: w.change(hooks[0].Config, hooks[0].Whole, operations...),
		Effect: fmt.Sprintf(letPass, what, in), Loss: unguards(what, in), way: passesOver, Temporary: true,
	}
}

func webhookEvidence(h *admission.Webhook) []Evidence {
	where := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		where = "service " + service.Namespace + "/" + service.Name
	}
	return []Evidence{
		{Source: h.Config.String(), Path: h.Path() + ".clientConfig", Value: where},
		{Source: h.Config.String(), Path: h.Path() + ".failurePolicy", Value: h.FailurePolicy},
	}
}

func (w *walker) deadWebhookRemedies(h *admission.Webhook, s *admission.Serving, message string) []Remedy {
	var remedies []Remedy
	switch wrong := admission.CallError(message); {
	case wrong != admission.OtherCall && (s == nil || !s.Dead):
		remedies = []Remedy{correctCall(w.Kubectl, h, s, wrong, blockedPass)}
	case s != nil:
		remedies = w.repair(s, blockedPass)
	default:
		remedies = []Remedy{{Risk: Safe, Action: yaml(w.Kubectl, h.Config), Effect: makeURLAnswer}}
	}
	remedies = append(remedies, w.passOver([]*admission.Webhook{h}))
	if s == nil || s.Uninstalled {
		remedies = append(remedies, Remedy{
			Risk: Dangerous, Action: w.deleteSaved(h.Config),
			Effect: deleteConfiguration, Loss: unguards("webhooks", fromNowOn),
		})
	}
	return remedies
}

// correctCall is the way to correct how a webhook is called, when its backend
// exists.
func correctCall(kubectl string, h *admission.Webhook, s *admission.Serving, wrong admission.WrongCall, effect string) Remedy {
	show := yaml(kubectl, h.Config)
	if s != nil && (wrong == admission.WrongPort || wrong == admission.NotListening) {
		show = shows("%s get service,endpointslices -o wide", shell.In(kubectl, s.Namespace))
	}
	return Remedy{Risk: Safe, Action: show, Effect: correction[wrong] + effect}
}

// delays returns what delays a write that is not refused: webhooks that do not
// answer and may be passed over.
func (w *walker) delays(n graph.Node, r admission.Reply, operation string) []*Cause {
	if !r.OK() || !r.Slow() {
		return nil
	}
	suspects, certain := w.asker.Delaying(n, r)
	took := r.Took.Round(time.Second)
	var causes []*Cause
	for _, h := range suspects {
		c := w.shared(string(h.Config.UID)+" "+h.Name+" delays", finding.AdmWebhookDead, h.Config, func(c *Cause) {
			c.Summary = fmt.Sprintf(mightDelay, h.Name, operation, took)
			if len(suspects) == 1 && r.Kind == answer.Accepted {
				c.Verdict, c.Summary = Progressing, fmt.Sprintf(seemsToAnswerLate, h.Name, took)
				if certain {
					c.Summary = fmt.Sprintf(answersLate, h.Name, took)
				}
			}
			c.Evidence = append([]Evidence{{Source: r.Fact().Source, Value: strings.TrimSpace(fmt.Sprintf(answeredAfter, took, cmp.Or(r.Message, "accepted")))}}, webhookEvidence(h)...)
			s := w.asker.ServingOf(h)
			if s != nil && s.Dead {
				c.Remedies = w.repair(s, noLongerWait)
			} else {
				c.Remedies = []Remedy{correctCall(w.Kubectl, h, s, admission.Late, noLongerWait)}
			}
			if s != nil {
				c.Evidence = append(c.Evidence, s.Evidence...)
			}
		})
		w.exception(c, n, h)
		causes = append(causes, c)
	}
	return causes
}

// denies is a webhook that answers, and rejects the write. Which senders it accepts is in
// its code.
func (f refusedWrite) denies(h *admission.Webhook) *Cause {
	c := f.shared(string(h.Config.UID)+" "+h.Name, finding.AdmWebhookDeny, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf(webhookRejects, h.Name)
		f.onlyCaller(c)
		c.Evidence = append([]Evidence{f.r.Fact()}, webhookEvidence(h)...)
		c.Remedies = []Remedy{{Risk: Safe, Action: yaml(f.Kubectl, f.n.Identity()), Effect: changeForWebhook}}
	})
	f.met(c)
	f.exception(c, f.n, h)
	return c
}

// exception adds a way to except the object's namespace from webhooks of one configuration.
func (w *walker) exception(c *Cause, n graph.Node, hooks ...*admission.Webhook) {
	namespace := n.Namespace()
	if namespace == "" {
		return
	}
	h := hooks[0]
	what, _ := webhooks(len(hooks))
	w.except(c, string(h.Config.UID)+" "+h.Name, namespace, what, func(namespaces []string) Action {
		var operations []remedy.Step
		for _, h := range hooks {
			at := []string{"webhooks", fmt.Sprint(h.Index)}
			operations = append(operations, remedy.Test("/"+strings.Join(at, "/")+"/name", h.Name))
			operations = append(operations, excludeNamespaces(h.Whole, append(at, "namespaceSelector"), namespaces)...)
		}
		return w.change(h.Config, h.Whole, operations...)
	})
}

// exception is a remedy that excepts namespaces from what refuses.
type exception struct {
	namespaces []string
	causes     []*Cause
}

// except adds a namespace to those that a remedy excepts from the webhook or policy, which has
// the key. One command is for all of them, whatever the causes: each is made for the object as
// it was read, and a second would undo what the first has done.
func (w *walker) except(c *Cause, key, namespace, from string, action func(namespaces []string) Action) {
	e := w.excepted[key]
	if e == nil {
		e = &exception{}
		w.excepted[key] = e
	}
	if !slices.Contains(e.causes, c) {
		e.causes = append(e.causes, c)
	}
	if !slices.Contains(e.namespaces, namespace) && len(e.namespaces) < mostExcepted {
		e.namespaces = append(e.namespaces, namespace)
		slices.Sort(e.namespaces)
	}
	effect, in := exempt(e.namespaces, from)
	for _, c := range e.causes {
		w.offerInstead(c, Remedy{
			Risk: Disruptive, Action: action(e.namespaces),
			Effect: effect, Loss: unguards(from, in), way: exceptsNamespaces, Temporary: true,
		})
	}
}

// mostExcepted is the number of namespaces that a remedy excepts.
const mostExcepted = 2 * evidence.MaxShown
