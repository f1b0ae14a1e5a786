// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Writes that are refused: what explain/admission finds, in words.

// refusals asks whether the finalizers of an object could be taken off at all:
// a controller, dead or alive, needs that. The garbage collector's own are asked
// about where its other work is done.
func (w *walker) refusals(n graph.Node, known []hold) []hold {
	o := n.Object()
	if w.evidence.NamespaceGone(o.Namespace) && !w.changeable(n) {
		return nil
	}
	var holds []hold
	for _, finalizer := range w.finalizers(n) {
		if isCollectors(finalizer) {
			continue
		}
		r := w.asker.TryRemoval(n, finalizer)
		if w.onlyYours(n, r, known) {
			continue
		}
		for _, c := range w.obstacles(n, r, "UPDATE") {
			if !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
				holds = append(holds, hold{because: "its finalizer " + finalizer + " cannot be taken off", cause: c})
			}
		}
	}
	return holds
}

// removals goes over what refusals asks about objects.
func (w *walker) removals(nodes []graph.Node) iter.Seq2[graph.Node, string] {
	return func(yield func(graph.Node, string) bool) {
		for _, n := range nodes {
			if !n.BeingDeleted() || w.evidence.NamespaceGone(n.Namespace()) {
				continue
			}
			for _, finalizer := range n.Finalizers() {
				if !isCollectors(finalizer) && !yield(n, finalizer) {
					return
				}
			}
		}
	}
}

// obstacles returns all that is known to be in the way of a write. The API server
// names the first that it meets; webhooks that must allow the write and cannot be
// reached are in its way as well.
func (w *walker) obstacles(n graph.Node, r admission.Reply, operation string) []*Cause {
	var all []*Cause
	if c := w.refusedBy(n, r, operation); c != nil {
		all = append(all, c)
	}
	if r.Kind == answer.Accepted || r.Kind == answer.NamespaceMissing {
		return all
	}
	for h, s := range w.asker.DeadWebhooks(n, operation, r.Subresource) {
		c := w.webhookDead(n, h, s, Evidence{Source: n.Identity().String(), Value: "the webhook is asked about a write to it, by its rules and selectors"}, "")
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// onlyYours reports whether a refusal says nothing of the object, since what
// holds it comes to its end by itself, and nobody but the caller is seen to be
// refused.
func (w *walker) onlyYours(n graph.Node, r admission.Reply, known []hold) bool {
	if r.Words() == "" || misconfigured(r) {
		return false
	}
	working, progresses := w.atWork(known)
	if !progresses {
		return false
	}
	if _, seen := w.asker.SeenFailing(n, r.Words()); seen {
		return false
	}
	if working != nil && working.Object == n.Identity() {
		w.show(working, Evidence{Source: asked(r).Source, Path: "when you send it", Value: r.Message})
	}
	return true
}

// atWork reports whether something holds the object that comes to its end by
// itself, with its cause if it is known. What is refused to others may be
// allowed to the controller: that it does not go on has to show first.
func (w *walker) atWork(holds []hold) (*Cause, bool) {
	for _, h := range holds {
		if h.cause != nil && h.cause.Verdict == Progressing {
			return h.cause, true
		}
		if h.cause == nil && h.next != nil && w.explain(*h.next).verdict == Progressing {
			return nil, true
		}
	}
	return nil, false
}

// isCollectors reports whether a finalizer is taken off by the garbage
// collector or, from a CustomResourceDefinition, by the API server.
func isCollectors(finalizer string) bool {
	return graph.IsCollectorFinalizer(finalizer) || finalizer == crdCleanup
}

// refusal returns the first of what is in the way of a write, nil when nothing is known
// to be.
func (w *walker) refusal(n graph.Node, r admission.Reply, operation string) *Cause {
	for _, c := range w.obstacles(n, r, operation) {
		return c
	}
	return nil
}

// refusedBy returns what the API server's answer names, nil when it names nothing.
func (w *walker) refusedBy(n graph.Node, r admission.Reply, operation string) *Cause {
	switch r.Kind {
	case answer.WebhookFailed, answer.WebhookDenied:
		return w.webhookRefuses(n, r, operation)
	case answer.PolicyDenied:
		return w.policyDenies(n, r)
	case answer.KeepsFinalizer, answer.AddsFinalizer:
		return w.readds(n, r)
	case answer.Invalid:
		if m := w.asker.Mutation(n, r); m != nil {
			return w.madeInvalid(n, r, m)
		}
		return w.noLongerValid(n, r)
	case answer.ConversionFailed:
		return w.conversion(n.Resource().GroupResource(), r.Message)
	case answer.Undecodable:
		return w.undecodable(n.Resource().GroupVersionResource, r.Message)
	case answer.Refused:
		return w.otherwiseRefused(n, r)
	}
	return nil
}

// asked is the API server's answer as evidence, about the object that was asked
// about.
func asked(r admission.Reply) Evidence {
	return Evidence{Source: "a dry-run " + r.Write + " of " + r.About.String(), Value: shortened(r.Message)}
}

// whenYou ends the summary of a refusal of which only the caller is known to
// meet it.
const whenYou = ", when you send it; what it answers to the controller is not known"

// met makes a refusal of the caller's write the cause that the object is stuck,
// when the controller is seen to meet it, too.
func (w *walker) met(c *Cause, n graph.Node, r admission.Reply) {
	if c.Verdict == Stuck || r.Words() == "" {
		return
	}
	if e, seen := w.asker.SeenFailing(n, r.Words()); seen {
		w.worsen(c, Stuck, strings.TrimSuffix(c.Summary, whenYou), e)
	}
}

// webhookRefuses is a webhook that was asked: it cannot be called, or says no.
// The API server tells only its name, which others may have in other
// configurations.
func (w *walker) webhookRefuses(n graph.Node, r admission.Reply, operation string) *Cause {
	suspects := w.asker.WebhooksNamed(n, r, operation)
	switch {
	case len(suspects) != 1:
		return w.webhookUnclear(n, r, suspects)
	case r.Kind == answer.WebhookDenied:
		return w.webhookDenies(n, suspects[0], r)
	}
	return w.webhookDead(n, suspects[0], w.asker.ServingOf(suspects[0]), asked(r), r.Message)
}

// webhookUnclear is a refusal by a webhook of which the configuration is not
// known, or several may be meant.
func (w *walker) webhookUnclear(n graph.Node, r admission.Reply, suspects []*admission.Webhook) *Cause {
	id, verdict, end := admWebhookDead, Stuck, ""
	summary := "the admission webhook " + r.Name + ", which cannot be called, must allow every write to it"
	if r.Kind == answer.WebhookDenied {
		id, verdict, end = admWebhookDeny, Unknown, whenYou
		summary = "the admission webhook " + r.Name + " refuses the write that it waits for"
	}
	c := w.cause(id, n.Identity(), r.Name, func(c *Cause) {
		c.Verdict, c.Evidence = verdict, []Evidence{asked(r)}
		c.Summary = summary + "; its configuration may not be read" + end
		if len(suspects) == 0 && w.asker.Configured() {
			c.Summary = summary + "; no configuration in the API has one of that name: it comes from a file on the machines of the control plane, or was removed a moment ago" + end
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
		}
		if len(suspects) > 0 {
			c.Summary = summary + "; several configurations have one of that name" + end
		}
		for _, h := range suspects {
			c.Evidence = append(c.Evidence, w.webhookEvidence(h)...)
			w.offerOnce(c, Remedy{
				Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(h.Config)),
				Effect: "see one of the configurations: find out which of them is in the way",
			})
		}
	})
	w.met(c, n, r)
	return c
}

// fromFile is what to do about admission that is configured by a file (KEP-5793).
const fromFile = "look on the machines of the control plane, in the directory staticManifestsDir of the file that kube-apiserver gets by --admission-control-config-file: what is there cannot be changed through the API"

// static reports whether an admission configuration comes from a file of the API server,
// by its name (k8s.io/apiserver/pkg/admission/plugin/manifest, StaticConfigSuffix).
func static(name string) bool { return strings.HasSuffix(name, ".static.k8s.io") }

// webhookDead is a webhook that must be asked and cannot be reached. The
// service is nil for one that is called by a URL; message says how the call failed, and
// is empty when none was made.
//
// The webhooks of a configuration that one service serves are one cause.
func (w *walker) webhookDead(n graph.Node, h *admission.Webhook, s *admission.Serving, first Evidence, message string) *Cause {
	served := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		served = service.Namespace + "/" + service.Name
	}
	c := w.shared(fmt.Sprintf("%s %s %t", h.Config.UID, served, h.JudgesUsers()), admWebhookDead, h.Config, func(c *Cause) {
		c.Verdict = Stuck
		if h.JudgesUsers() {
			c.Verdict = Unknown
		}
		c.Evidence = append([]Evidence{first}, w.webhookEvidence(h)...)
		if s != nil {
			c.Evidence = append(c.Evidence, s.Evidence...)
		}
		c.Remedies = w.deadWebhookRemedies(h, s, message)
	})
	w.nameWebhook(c, h, s)
	if e, seen := w.asker.SeenFailing(n, `failed calling webhook "`+h.Name+`"`); seen {
		w.worsen(c, Stuck, c.Summary, e)
	}
	w.exception(c, n, w.hooks[c]...)
	return c
}

// nameWebhook adds a webhook to those of a cause.
func (w *walker) nameWebhook(c *Cause, h *admission.Webhook, s *admission.Serving) {
	if slices.ContainsFunc(w.hooks[c], func(have *admission.Webhook) bool { return have.Name == h.Name }) {
		return
	}
	hooks := append(w.hooks[c], h)
	w.hooks[c] = hooks
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.Name
	}
	if len(hooks) == 1 {
		c.Summary = fmt.Sprintf("its webhook %s is unreachable (failurePolicy: Fail), so every write that it covers is rejected", h.Name)
	} else {
		c.Summary = fmt.Sprintf("its webhooks %s are unreachable (failurePolicy: Fail), so every write that one of them covers is rejected", strings.Join(names, ", "))
		if len(hooks) <= evidence.MaxShown {
			c.Evidence = append(c.Evidence, w.webhookEvidence(h)...)
		}
		w.offerInstead(c, w.passOver(hooks))
	}
	if h.JudgesUsers() {
		c.Summary += "; its conditions ask who sends the write, so the controller's may pass"
	}
	if s == nil {
		return
	}
	if behind := w.finder.Behind(s.Namespace, s.Name); len(behind) > 0 {
		c.Summary += "; " + behind[0].ID().String() + " serves it"
	}
	c.Summary += hopeless(s)
}

// passOver has webhooks of one configuration passed over while they cannot be called.
func (w *walker) passOver(hooks []*admission.Webhook) Remedy {
	var operations []remedy.Step
	for _, h := range hooks {
		at := fmt.Sprintf("/webhooks/%d", h.Index)
		operations = append(operations, remedy.Test(at+"/name", h.Name), remedy.Replace(at+"/failurePolicy", "Ignore"))
	}
	r := Remedy{
		Risk: Disruptive, Action: w.change(hooks[0].Config, hooks[0].Whole, operations...),
		Effect: "let writes pass while the webhook cannot be reached",
		Loss:   unguards("webhook", "while it cannot be reached"), way: passesOver, Temporary: true,
	}
	if len(hooks) > 1 {
		r.Effect = "let writes pass while the webhooks cannot be reached"
		r.Loss = unguards("webhooks", "while they cannot be reached")
	}
	return r
}

func (w *walker) webhookEvidence(h *admission.Webhook) []Evidence {
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
	const effect = "the writes that wait for the webhook go through"
	var remedies []Remedy
	switch wrong := admission.CallError(message); {
	case wrong != admission.OtherCall && (s == nil || !s.Dead):
		remedies = []Remedy{w.correctCall(h, s, wrong, effect)}
	case s != nil:
		remedies = w.repair(s, effect)
	default:
		remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(h.Config)),
			Effect: "see how the webhook is called, at a URL and not through a service: make that answer, and " + effect,
		}}
	}
	remedies = append(remedies, w.passOver([]*admission.Webhook{h}))
	if s == nil || s.Uninstalled {
		remedies = append(remedies, Remedy{
			Risk: Dangerous, Action: w.deleteSaved(h.Config),
			Effect: "remove the configuration with all its webhooks, if its product was uninstalled",
			Loss:   unguards("webhooks", "any more"),
		})
	}
	return remedies
}

// correctCall is the way to correct how a webhook is called, when what should answer
// is there.
func (w *walker) correctCall(h *admission.Webhook, s *admission.Serving, wrong admission.WrongCall, effect string) Remedy {
	show := shows("%s get %s -o yaml", w.Kubectl, shell.Target(h.Config))
	if s != nil && (wrong == admission.WrongPort || wrong == admission.NotListening) {
		show = shows("%s get service,endpointslices -o wide", shell.In(w.Kubectl, s.Namespace))
	}
	return Remedy{Risk: Safe, Action: show, Effect: map[admission.WrongCall]string{
		admission.WrongCertificate: "see the webhook's clientConfig: its caBundle has to be the authority that signed the certificate with which the webhook answers, and that has to be valid for the service's name; make both anew, by the product's chart or its certificate manager, and ",
		admission.WrongPort:        "see the ports of the service: clientConfig.service.port has to be one of them; correct it in the configuration or the service, and ",
		admission.NotListening:     "see the service's ports and the addresses behind it, where nothing listens at the port that is called: correct the port, or make the pods listen there, and ",
		admission.WrongPath:        "see the webhook's clientConfig: at its path something else answers; correct the path, and ",
		admission.Late:             "see the webhook's clientConfig and timeoutSeconds: the call gets no answer in time, so look for a network policy between the API server and the pods, and at what the pods do; and ",
	}[wrong] + effect}
}

// delays returns what takes its time over a write that is not refused: webhooks that do not
// answer and may be passed over.
func (w *walker) delays(n graph.Node, r admission.Reply, operation string) []*Cause {
	if !r.OK() || !r.Slow() {
		return nil
	}
	suspects, certain := w.asker.Delaying(n, r)
	took := r.Took.Round(time.Second)
	var causes []*Cause
	for _, h := range suspects {
		c := w.shared(string(h.Config.UID)+" "+h.Name+" delays", admWebhookDead, h.Config, func(c *Cause) {
			c.Summary = fmt.Sprintf("its webhook %s may be what a %s waits for, which took %s", h.Name, operation, took)
			if len(suspects) == 1 && r.Kind == answer.Accepted {
				c.Verdict = Progressing
				c.Summary = fmt.Sprintf("its webhook %s does not answer in its time: what it is asked about goes through without it, after %s each", h.Name, took)
				if !certain {
					c.Summary = fmt.Sprintf("its webhook %s seems not to answer in its time: what it is asked about goes through, after %s each", h.Name, took)
				}
			}
			c.Evidence = append([]Evidence{{Source: "a dry-run " + r.Write + " of " + r.About.String(), Value: strings.TrimSpace(fmt.Sprintf("answered after %s: %s", took, cmp.Or(r.Message, "accepted")))}}, w.webhookEvidence(h)...)
			c.Remedies = w.quickenWebhook(h)
			if s := w.asker.ServingOf(h); s != nil {
				c.Evidence = append(c.Evidence, s.Evidence...)
			}
		})
		w.exception(c, n, h)
		causes = append(causes, c)
	}
	return causes
}

// quickenWebhook has a webhook answer.
func (w *walker) quickenWebhook(h *admission.Webhook) []Remedy {
	const effect = "writes do not wait for the webhook any more"
	s := w.asker.ServingOf(h)
	if s != nil && s.Dead {
		return w.repair(s, effect)
	}
	return []Remedy{w.correctCall(h, s, admission.Late, effect)}
}

// webhookDenies is a webhook that answers, and says no. Whom it listens to is in
// its code.
func (w *walker) webhookDenies(n graph.Node, h *admission.Webhook, r admission.Reply) *Cause {
	c := w.shared(string(h.Config.UID)+" "+h.Name, admWebhookDeny, h.Config, func(c *Cause) {
		c.Summary = fmt.Sprintf("its webhook %s refuses the write that the deletion needs", h.Name) + whenYou
		c.Evidence = append([]Evidence{asked(r)}, w.webhookEvidence(h)...)
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "see the object: change it so that the webhook allows the write",
		}}
	})
	w.met(c, n, r)
	w.exception(c, n, h)
	return c
}

// exception adds a way to except the object's namespace from webhooks of one configuration.
func (w *walker) exception(c *Cause, n graph.Node, hooks ...*admission.Webhook) {
	namespace := n.Namespace()
	if namespace == "" {
		return
	}
	h := hooks[0]
	what := "webhook"
	if len(hooks) > 1 {
		what = "webhooks"
	}
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
	effect, leaks := "except the namespace "+e.namespaces[0], "that namespace is"
	if len(e.namespaces) > 1 {
		effect, leaks = "except the namespaces "+strings.Join(e.namespaces, ", "), "those namespaces is"
	}
	for _, c := range e.causes {
		w.offerInstead(c, Remedy{
			Risk: Disruptive, Action: action(e.namespaces),
			Effect: effect + " from the " + from,
			Loss:   loses(remedy.Unguards, "what the %s%s in %s not guarded any more", from, guards(from), leaks), way: exceptsNamespaces, Temporary: true,
		})
	}
}

// guards is the verb of what webhooks, a webhook or a policy does.
func guards(what string) string {
	if what == "webhooks" {
		return " guard"
	}
	return " guards"
}

// mostExcepted is the number of namespaces that a remedy excepts.
const mostExcepted = 2 * evidence.MaxShown

// policyDenies is a ValidatingAdmissionPolicy that refuses the write.
func (w *walker) policyDenies(n graph.Node, r admission.Reply) *Cause {
	at := evidence.Identity(admissionPolicies, "", r.Name)
	policy, err := w.evidence.Get(admissionPolicies, "", r.Name)
	if err == nil {
		at = evidence.IdentityOf(admissionPolicies, at.Resource.Kind, policy)
	}
	c := w.shared(r.Name+" "+r.Binding, admVapDeny, at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, "the policy refuses the write that the deletion needs"
		if misconfigured(r) {
			c.Summary = "its binding " + r.Binding + " cannot be used, so the policy refuses every write that it is about, whoever sends it"
			c.Evidence = append([]Evidence{asked(r)}, w.paramOf(r.Binding)...)
			if missing := w.missingParam(n, r.Binding); missing != "" {
				c.Summary = fmt.Sprintf("%s, with the parameters of its binding %s, does not exist, so the policy refuses every write that it is about, whoever sends it", missing, r.Binding)
			}
			c.Remedies = []Remedy{{
				Risk: Safe, Action: shows("%s get validatingadmissionpolicybinding %s -o yaml", w.Kubectl, shell.Quote(r.Binding)),
				Effect: "see the binding with its paramRef: " + w.paramRepair(n, r.Binding),
			}}
			return
		}
		if cannotJudge(r) {
			c.Summary = "an expression of the policy fails, and while it does the policy refuses the write that the deletion needs"
		}
		if static(r.Name) {
			c.Summary += "; it comes from a file on the machines of the control plane, and is not in the API"
		}
		if err != nil || admission.JudgesUsers(specText(policy)) {
			c.Verdict = Unknown
			c.Summary += whenYou
		}
		if static(r.Name) {
			c.Evidence = []Evidence{asked(r)}
			c.Remedies = []Remedy{{Risk: Safe, Effect: fromFile}}
			return
		}
		c.Evidence = []Evidence{asked(r), {Source: "ValidatingAdmissionPolicyBinding/" + r.Binding, Path: "spec.policyName", Value: r.Name}}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml", w.Kubectl, shell.Target(at)),
			Effect: "see what the policy asks for: " + w.satisfies(policy, r),
		}}
	})
	w.met(c, n, r)
	w.bindingException(c, n, r.Binding)
	return c
}

// satisfies says what may be changed so that a policy allows a write.
func (w *walker) satisfies(policy *unstructured.Unstructured, r admission.Reply) string {
	if cannotJudge(r) {
		correct := "correct the expression that fails, with has() where it is about a field that may be missing"
		if r.Write == "DELETE" {
			correct += "; a DELETE has an oldObject, and its object is null"
		}
		return correct
	}
	bound, err := w.evidence.Get(admission.PolicyBindings, "", r.Binding)
	if policy == nil || err != nil || admission.JudgesObject(policy, bound) {
		return "change the object so that it satisfies that, and the write is allowed"
	}
	return "it does not look at the object, so no change of the object has the write allowed; change the policy so that it allows it"
}

// cannotJudge reports whether a policy refuses because one of its expressions cannot be evaluated
// (k8s.io/apiserver/pkg/admission/plugin/cel/activation.go).
func cannotJudge(r admission.Reply) bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "' resulted in error: ")
}

// missingParam names the parameters of a binding for an object that provably do not exist, empty
// when that is not so.
func (w *walker) missingParam(n graph.Node, binding string) string {
	for _, p := range w.asker.Params() {
		if p.Binding.Name == binding && len(p.In(w.asker, n.Namespace())) == 0 && p.Listed(w.asker, n.Namespace()) {
			return p.Says(n.Namespace())
		}
	}
	return ""
}

// paramRepair says how a binding whose parameters are missing for an object is repaired.
func (w *walker) paramRepair(n graph.Node, binding string) string {
	for _, p := range w.asker.Params() {
		if p.Binding.Name != binding {
			continue
		}
		if len(p.In(w.asker, n.Namespace())) > 0 {
			return "what it names, " + p.Says(n.Namespace()) + ", is there by now, and the API server has not noticed that; if it goes on like that, change the reference"
		}
		if p.Near && w.evidence.Ending(n.Namespace()) {
			return "what it names, " + p.Says(n.Namespace()) + ", cannot be made in a namespace that is being deleted, so change the reference, and the policy judges again"
		}
	}
	return "make the object that it names again, or correct the reference, and the policy judges again"
}

// misconfigured reports whether a policy refuses because its binding cannot be used,
// as when the object with its parameters is gone: who asks, and for what, does not
// matter then (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
func misconfigured(r admission.Reply) bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "failed to configure binding: ")
}

// paramOf is where a binding has its parameters.
func (w *walker) paramOf(binding string) []Evidence {
	o, err := w.evidence.Get(admission.PolicyBindings, "", binding)
	if err != nil {
		return nil
	}
	name, namespace := evidence.Nested(o, "spec", "paramRef", "name"), evidence.Nested(o, "spec", "paramRef", "namespace")
	return []Evidence{{
		Source: "ValidatingAdmissionPolicyBinding/" + binding, Path: "spec.paramRef",
		Value: strings.TrimSpace("name " + cmp.Or(name, "by a selector") + " namespace " + cmp.Or(namespace, "of the object, if it has one")),
	}}
}

func specText(o *unstructured.Unstructured) string {
	data, _ := json.Marshal(o.Object["spec"]) // it came as JSON
	return string(data)
}

// bindingException adds a way to except the object's namespace from the binding
// of a policy.
func (w *walker) bindingException(c *Cause, n graph.Node, name string) {
	namespace := n.Namespace()
	binding, err := w.evidence.Get(admission.PolicyBindings, "", name)
	if err != nil {
		return
	}
	at := evidence.IdentityOf(admission.PolicyBindings, "ValidatingAdmissionPolicyBinding", binding)
	if namespace == "" {
		w.offerOnce(c, Remedy{
			Risk: Disruptive, Action: w.change(at, binding, remedy.Replace("/spec/validationActions", []string{"Audit"})),
			Effect: "make the binding note what it would refuse and let it pass",
			Loss:   unguards("policy", "any more"),
		})
		return
	}
	w.except(c, name, namespace, "policy", func(namespaces []string) Action {
		return w.change(at, binding, defaulted(excludeNamespaces(binding, []string{"spec", "matchResources", "namespaceSelector"}, namespaces))...)
	})
}

// defaulted states in a matchResources that is added what the API server would add to it, so that
// what takes it away again finds what was added (kubernetes/pkg/apis/admissionregistration/v1/defaults.go,
// SetDefaults_MatchResources).
func defaulted(operations []remedy.Step) []remedy.Step {
	for i := range operations {
		if value, ok := operations[i].Value.(map[string]any); ok && operations[i].Path == "/spec/matchResources" {
			value["matchPolicy"], value["objectSelector"] = "Equivalent", map[string]any{}
		}
	}
	return operations
}

// otherwiseRefused is a refusal of an admission plugin inside the API server.
func (w *walker) otherwiseRefused(n graph.Node, r admission.Reply) *Cause {
	c := w.cause(admRefused, n.Identity(), r.Message, func(c *Cause) {
		c.Summary = "the API server refuses the write that the deletion needs" + whenYou
		c.Evidence = []Evidence{asked(r)}
	})
	w.met(c, n, r)
	return c
}

// terminating is the condition with which a mutating webhook or policy leaves
// alone what is being deleted. The object of a DELETE is null.
var spareTerminating = map[string]any{"name": "kubectl-gc-not-terminating", "expression": "object == null || !has(object.metadata.deletionTimestamp)"}

// readds is an object whose finalizer something puts back when it is taken off.
func (w *walker) readds(n graph.Node, r admission.Reply) *Cause {
	suspects := w.asker.Mutators(n)
	at := n.Identity()
	if len(suspects) == 1 {
		at = suspects[0].At
	}
	return w.shared(at.String()+" "+string(at.UID), admMutatingReadd, at, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "a mutating webhook or policy puts the finalizer back whenever it is taken off"
		if r.Kind == answer.AddsFinalizer {
			c.Summary = "a mutating webhook or policy adds a finalizer whenever the object is changed, and since no new one may be added to what is being deleted, every change is refused"
		}
		c.Evidence = []Evidence{asked(r)}
		for _, s := range suspects {
			c.Evidence = append(c.Evidence, s.Evidence)
			w.offerOnce(c, w.spare(&s))
		}
		if len(suspects) == 0 {
			c.Evidence = append(c.Evidence, Evidence{Source: "mutating webhooks and policies", Value: "none that could be read matches"})
		}
	})
}

// addTo is the operation that adds the condition to a list which may not exist.
func addTo(o *unstructured.Unstructured, path string) remedy.Step {
	if exists(o.Object, strings.Split(strings.TrimPrefix(path, "/"), "/")) {
		return remedy.Add(path+"/-", spareTerminating)
	}
	return remedy.Add(path, []any{spareTerminating})
}

// spare has a webhook or policy leave alone what is being deleted.
func (w *walker) spare(m *admission.Mutator) Remedy {
	operations := []remedy.Step{addTo(m.Whole, "/spec/matchConditions")}
	if h := m.Webhook; h != nil {
		at := fmt.Sprintf("/webhooks/%d", h.Index)
		operations = []remedy.Step{remedy.Test(at+"/name", h.Name), addTo(h.Whole, at+"/matchConditions")}
	}
	return Remedy{
		Risk: Disruptive, Action: w.change(m.At, m.Whole, operations...),
		Effect: "make it leave alone what is being deleted",
	}
}

// madeInvalid is an object that is valid, and of which every update is refused for what somebody
// changes while it is written.
func (w *walker) madeInvalid(n graph.Node, r admission.Reply, m *admission.Mutation) *Cause {
	at := n.Identity()
	if len(m.By) == 1 {
		at = m.By[0].At
	}
	return w.shared(at.String()+" "+string(at.UID)+" "+m.Cause.Field, admMutatingInvalid, at, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("it changes %s whenever the object is updated, and the API server refuses that: no finalizer can be taken off", m.Cause.Field)
		if len(m.By) > 1 {
			c.Summary = fmt.Sprintf("a mutating webhook or policy changes %s whenever the object is updated, and the API server refuses that: no finalizer can be taken off", m.Cause.Field)
		}
		c.Evidence = []Evidence{asked(r)}
		for _, by := range m.By {
			c.Evidence = append(c.Evidence, by.Evidence)
			w.offerOnce(c, w.spare(&by))
		}
	})
}

// longest is how much is shown of what an API server says of a value: it may be all of the object.
const longest = 300

func shortened(text string) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return text
}

// noLongerValid is an object that its own type does not allow any more: every
// update of it fails.
func (w *walker) noLongerValid(n graph.Node, r admission.Reply) *Cause {
	return w.cause(valSchemaTightened, n.Identity(), "", func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "it is not valid any more as it is, so no update of it is accepted, and no finalizer can be taken off"
		c.Evidence = []Evidence{asked(r)}
		for i, cause := range r.Causes {
			if i < evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(n, strings.TrimPrefix(cause.Field, "<nil>"), shortened(cause.Message))) // <nil> is the object itself
			}
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Action: shows("%s edit %s", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "open it in an editor: correct the fields above, and it can be updated again",
		}}
		definition, err := w.evidence.Get(crds, "", n.Resource().GroupResource().String())
		if err != nil {
			return
		}
		at := evidence.IdentityOf(crds, "CustomResourceDefinition", definition)
		c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.generation", Value: fmt.Sprint(definition.GetGeneration())})
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Disruptive, Action: shows("%s", remedy.SavedFirst(w.Kubectl, at, w.evidence.Version(at), w.Kubectl+" edit "+shell.Target(at))),
			Effect: "open its definition in an editor: relax the schema, so that the object is valid as it is",
		})
	})
}

// excludeNamespaces are the operations that add "none of these namespaces" to the
// namespace selector at the path of an object. The selector's parents must
// exist up to the given depth of the path.
func excludeNamespaces(o *unstructured.Unstructured, path []string, namespaces []string) []remedy.Step {
	var names []any
	for _, namespace := range namespaces {
		names = append(names, namespace)
	}
	condition := map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}
	var value any = condition
	full := append(slices.Clone(path), "matchExpressions", "-")
	for depth := len(full) - 1; depth > 0; depth-- {
		if exists(o.Object, full[:depth]) {
			return []remedy.Step{remedy.Add("/"+strings.Join(full[:depth+1], "/"), value)}
		}
		if key := full[depth]; key == "-" {
			value = []any{value}
		} else {
			value = map[string]any{key: value}
		}
	}
	return nil
}

// exists reports whether there is an object or a list at the path, in which
// numbers are indexes.
func exists(value any, path []string) bool {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i < 0 || i >= len(v) {
				return false
			}
			value = v[i]
		default:
			return false
		}
	}
	return value != nil
}
