// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// refusals asks whether the finalizers of an object could be taken off at all:
// a controller, dead or alive, needs that. The garbage collector's own are asked
// about where its other work is done.
func (w *walker) refusals(n graph.Node, known []hold) []hold {
	o := n.Object()
	if w.evidence.NamespaceGone(o.Namespace) {
		return nil
	}
	var holds []hold
	for _, finalizer := range o.Finalizers {
		if isCollectors(finalizer) {
			continue
		}
		r := w.tryRemoval(n, finalizer)
		if w.onlyYours(n, r, known) {
			continue
		}
		if c := w.refusal(n, r, "UPDATE"); c != nil && !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
			holds = append(holds, hold{because: "its finalizer " + finalizer + " cannot be taken off", cause: c})
		}
	}
	return holds
}

// onlyYours reports whether a refusal says nothing of the object, since what
// holds it comes to its end by itself, and nobody but the caller is seen to be
// refused.
func (w *walker) onlyYours(n graph.Node, r reply, known []hold) bool {
	if r.words() == "" {
		return false
	}
	working, progresses := w.atWork(known)
	if !progresses {
		return false
	}
	if _, seen := w.seenFailing(n, r.words()); seen {
		return false
	}
	if working != nil && working.Object == n.Identity() {
		w.addOnce(working, Evidence{Source: asked(r).Source, Path: "when you send it", Value: r.message})
	}
	return true
}

// words are those by which a refusal that may depend on who asks can be told,
// empty for another answer.
func (r reply) words() string {
	switch r.kind {
	case webhookDenied:
		return r.name
	case policyDenied:
		return "'" + r.name + "' with binding '" + r.binding + "'"
	case refused:
		return r.message
	}
	return ""
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
	return slices.Contains([]string{"foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io"}, finalizer)
}

// refusal returns what refuses a write, nil when nothing is known to.
func (w *walker) refusal(n graph.Node, r reply, operation string) *Cause {
	switch r.kind {
	case webhookFailed, webhookDenied:
		return w.webhookRefuses(n, r, operation)
	case policyDenied:
		return w.policyDenies(n, r)
	case keepsFinalizer:
		return w.readds(n, r)
	case invalid:
		return w.noLongerValid(n, r)
	case conversionFailed:
		return w.conversion(n.Resource().GroupResource(), r.message)
	case undecodable:
		return w.undecodable(n.Resource().GroupVersionResource, r.message)
	case refused:
		return w.otherwiseRefused(n, r)
	case noAnswer:
		if h, s := w.deadWebhook(n, operation, r.subresource); h != nil {
			return w.webhookDead(n, h, s, Evidence{Source: n.Identity().String(), Value: "the webhook is asked about a write to it, by its rules and selectors"})
		}
	}
	return nil
}

// asked is the API server's answer as evidence, about the object that was asked
// about.
func asked(r reply) Evidence {
	return Evidence{Source: "a dry-run " + r.write + " of " + r.about.String(), Value: r.message}
}

// whenYou ends the summary of a refusal of which only the caller is known to
// meet it.
const whenYou = ", when you send it; what it answers to the controller is not known"

// met makes a refusal of the caller's write the cause that the object is stuck,
// when the controller is seen to meet it, too.
func (w *walker) met(c *Cause, n graph.Node, r reply) {
	if c.Verdict == Stuck || r.words() == "" {
		return
	}
	if e, seen := w.seenFailing(n, r.words()); seen {
		c.Verdict, c.Summary = Stuck, strings.TrimSuffix(c.Summary, whenYou)
		c.Evidence = append(c.Evidence, e)
	}
}

// seenFailing finds the words in what controllers say of their work on the
// object: in its status, in events since its deletion was asked for, and in the
// conditions of its namespace and of its definition, whose controllers delete
// it.
func (w *walker) seenFailing(n graph.Node, words string) (Evidence, bool) {
	o := n.Object()
	if full, err := w.evidence.Whole(n); err == nil {
		if e, seen := mentioned(full, n.Identity().String(), words); seen {
			return e, true
		}
	}
	if w.Events != nil {
		for _, item := range w.evidence.Events(o.Namespace, o.UID) {
			if e := evidence.NewEvent(&item); !e.Last.Before(evidence.Requested(o)) && strings.Contains(e.Message, words) {
				return e.Fact(), true
			}
		}
	}
	if o.Namespace != "" {
		if namespace, err := w.evidence.Get(namespaces, "", o.Namespace); err == nil && namespace.GetDeletionTimestamp() != nil {
			if e, seen := mentioned(namespace, "Namespace/"+o.Namespace, words); seen {
				return e, true
			}
		}
	}
	if !graph.BuiltinGroup(o.Resource.Group) {
		name := o.Resource.GroupResource().String()
		if definition, err := w.evidence.Get(crds, "", name); err == nil && definition.GetDeletionTimestamp() != nil {
			return mentioned(definition, "CustomResourceDefinition/"+name, words)
		}
	}
	return Evidence{}, false
}

// mentioned finds the words in the conditions of an object, or in a text of its
// status.
func mentioned(o *unstructured.Unstructured, source, words string) (Evidence, bool) {
	for _, c := range evidence.Conditions(o) {
		if strings.Contains(c.Message, words) {
			return c.Fact(source), true
		}
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if value := evidence.Text(status[name]); strings.Contains(value, words) {
			return Evidence{Source: source, Path: "status." + name, Value: value}, true
		}
	}
	return Evidence{}, false
}

// webhookRefuses is a webhook that was asked: it cannot be called, or says no.
// The API server tells only its name, which others may have in other
// configurations.
func (w *walker) webhookRefuses(n graph.Node, r reply, operation string) *Cause {
	suspects := w.webhooksNamed(n, r, operation)
	switch {
	case len(suspects) != 1:
		return w.webhookUnclear(n, r, suspects)
	case r.kind == webhookDenied:
		return w.webhookDenies(n, suspects[0], r)
	}
	return w.webhookDead(n, suspects[0], w.servingOf(suspects[0]), asked(r))
}

// webhooksNamed returns the webhooks of the name that the API server told: those
// that are asked about such a write, and of several that cannot be called those
// that nothing serves.
func (w *walker) webhooksNamed(n graph.Node, r reply, operation string) []*webhook {
	all, _ := w.webhooks() // what cannot be read is noted
	named := slices.DeleteFunc(slices.Clone(all), func(h *webhook) bool {
		return h.Name != r.name || r.kind == webhookFailed && h.FailurePolicy == "Ignore"
	})
	narrow := func(keep func(*webhook) bool) {
		if kept := slices.DeleteFunc(slices.Clone(named), func(h *webhook) bool { return !keep(h) }); len(kept) > 0 {
			named = kept
		}
	}
	narrow(func(h *webhook) bool {
		matches, _ := w.matches(h, operation, r.subresource, n)
		return matches
	})
	if r.kind == webhookFailed && len(named) > 1 {
		narrow(func(h *webhook) bool {
			s := w.servingOf(h)
			return s != nil && s.dead
		})
	}
	return named
}

// servingOf follows a webhook to what serves it: nil for one that is called by a
// URL.
func (w *walker) servingOf(h *webhook) *serving {
	if service := h.ClientConfig.Service; service != nil {
		return w.serving(service.Namespace, service.Name)
	}
	return nil
}

// webhookUnclear is a refusal by a webhook of which the configuration is not
// known, or several may be meant.
func (w *walker) webhookUnclear(n graph.Node, r reply, suspects []*webhook) *Cause {
	id, verdict, end := "adm-webhook-dead", Stuck, ""
	summary := "the admission webhook " + r.name + ", which cannot be called, must allow every write to it"
	if r.kind == webhookDenied {
		id, verdict, end = "adm-webhook-deny", Unknown, whenYou
		summary = "the admission webhook " + r.name + " refuses the write that it waits for"
	}
	c := w.cause(id, n.Identity(), r.name, func(c *Cause) {
		c.Verdict, c.Evidence = verdict, []Evidence{asked(r)}
		c.Summary = summary + "; its configuration was not found or may not be read" + end
		if len(suspects) > 0 {
			c.Summary = summary + "; several configurations have one of that name" + end
		}
		for _, h := range suspects {
			c.Evidence = append(c.Evidence, w.webhookEvidence(h)...)
			w.addRemedy(c, Remedy{
				Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.Kubectl, shell.Target(h.config)),
				Effect: "shows one of the configurations: find out which of them is in the way",
			})
		}
	})
	w.met(c, n, r)
	return c
}

// webhookDead is a webhook that must be asked and cannot be reached. The
// service is nil for one that is called by a URL.
func (w *walker) webhookDead(n graph.Node, h *webhook, s *serving, first Evidence) *Cause {
	c := w.shared("adm-webhook-dead "+string(h.config.UID)+" "+h.Name, "adm-webhook-dead", h.config, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("its webhook %s cannot be reached, and while that is so every write that it must allow is refused", h.Name)
		c.Evidence = append([]Evidence{first}, w.webhookEvidence(h)...)
		if s != nil {
			c.Evidence = append(c.Evidence, s.evidence...)
			c.Summary += s.hopeless()
		}
		c.Remedies = w.deadWebhookRemedies(h, s)
	})
	w.exception(c, n, h)
	return c
}

func (w *walker) webhookEvidence(h *webhook) []Evidence {
	where := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		where = "service " + service.Namespace + "/" + service.Name
	}
	return []Evidence{
		{Source: h.config.String(), Path: h.path() + ".clientConfig", Value: where},
		{Source: h.config.String(), Path: h.path() + ".failurePolicy", Value: h.FailurePolicy},
	}
}

func (w *walker) deadWebhookRemedies(h *webhook, s *serving) []Remedy {
	const effect = "the writes that wait for the webhook go through"
	var remedies []Remedy
	if s != nil {
		remedies = w.repair(s, effect)
	} else {
		remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.Kubectl, shell.Target(h.config)),
			Effect: "shows how the webhook is called, at a URL and not through a service: make that answer, and " + effect,
		}}
	}
	at := fmt.Sprintf("/webhooks/%d", h.index)
	remedies = append(remedies, Remedy{
		Risk: Disruptive,
		Command: w.saved(h.config, w.patchOf(h.config, shell.Test(at+"/name", h.Name),
			shell.Replace(at+"/failurePolicy", "Ignore"))),
		Effect: "lets writes pass while the webhook cannot be reached; the file allows to put it back",
		Leaks:  "what the webhook guards is not guarded while it cannot be reached",
	})
	if s == nil || s.uninstalled {
		remedies = append(remedies, Remedy{
			Risk: Dangerous, Command: w.saved(h.config, w.deleteRaw(h.config, "")),
			Effect: "removes the configuration with all its webhooks, if its product was uninstalled; the file allows to put it back",
			Leaks:  "what the webhooks guard is not guarded any more",
		})
	}
	return remedies
}

// webhookDenies is a webhook that answers, and says no. Whom it listens to is in
// its code.
func (w *walker) webhookDenies(n graph.Node, h *webhook, r reply) *Cause {
	c := w.shared("adm-webhook-deny "+string(h.config.UID)+" "+h.Name, "adm-webhook-deny", h.config, func(c *Cause) {
		c.Summary = fmt.Sprintf("its webhook %s refuses the write that the deletion needs", h.Name) + whenYou
		c.Evidence = append([]Evidence{asked(r)}, w.webhookEvidence(h)...)
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "shows the object: change it so that the webhook allows the write",
		}}
	})
	w.met(c, n, r)
	w.exception(c, n, h)
	return c
}

// exception adds a way to except the object's namespace from a webhook.
func (w *walker) exception(c *Cause, n graph.Node, h *webhook) {
	namespace := n.Namespace()
	at := fmt.Sprintf("/webhooks/%d", h.index)
	if namespace == "" {
		return
	}
	selector := []string{"webhooks", fmt.Sprint(h.index), "namespaceSelector"}
	operations := append([]shell.Operation{shell.Test(at+"/name", h.Name)}, excludeNamespace(h.whole, selector, namespace)...)
	w.addRemedy(c, Remedy{
		Risk: Disruptive, Command: w.saved(h.config, w.patchOf(h.config, operations...)),
		Effect: "excepts the namespace " + namespace + " from the webhook; the file allows to put it back",
		Leaks:  "what the webhook guards in that namespace is not guarded any more",
	})
}

// addRemedy adds a remedy that a shared cause does not have yet. One for each of
// the first namespaces is enough.
func (w *walker) addRemedy(c *Cause, r Remedy) {
	if len(c.Remedies) < 2*evidence.MaxShown && !slices.Contains(c.Remedies, r) {
		c.Remedies = append(c.Remedies, r)
	}
}

// policyDenies is a ValidatingAdmissionPolicy that refuses the write.
func (w *walker) policyDenies(n graph.Node, r reply) *Cause {
	at := evidence.Identity(admissionPolicies, "", r.name)
	policy, err := w.evidence.Get(admissionPolicies, "", r.name)
	if err == nil {
		at = evidence.IdentityOf(admissionPolicies, at.Resource.Kind, policy)
	}
	c := w.shared("adm-vap-deny "+r.name+" "+r.binding, "adm-vap-deny", at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, "the policy refuses the write that the deletion needs"
		if err != nil || judgesUsers(specText(policy)) {
			c.Verdict = Unknown
			c.Summary += whenYou
		}
		c.Evidence = []Evidence{asked(r), {Source: "ValidatingAdmissionPolicyBinding/" + r.binding, Path: "spec.policyName", Value: r.name}}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.Kubectl, shell.Target(at)),
			Effect: "shows what the policy asks for: change the object so that it satisfies that, and the write is allowed",
		}}
	})
	w.met(c, n, r)
	w.bindingException(c, n, r.binding)
	return c
}

func specText(o *unstructured.Unstructured) string {
	data, _ := json.Marshal(o.Object["spec"]) // it came as JSON
	return string(data)
}

// bindingException adds a way to except the object's namespace from the binding
// of a policy.
func (w *walker) bindingException(c *Cause, n graph.Node, name string) {
	namespace := n.Namespace()
	binding, err := w.evidence.Get(policyBindings, "", name)
	if err != nil {
		return
	}
	at := evidence.IdentityOf(policyBindings, "ValidatingAdmissionPolicyBinding", binding)
	if namespace == "" {
		w.addRemedy(c, Remedy{
			Risk: Disruptive, Command: w.saved(at, w.patchOf(at, shell.Replace("/spec/validationActions", []string{"Audit"}))),
			Effect: "makes the binding note what it would refuse and let it pass; the file allows to put it back",
			Leaks:  "what the policy guards is not guarded any more",
		})
		return
	}
	operations := excludeNamespace(binding, []string{"spec", "matchResources", "namespaceSelector"}, namespace)
	w.addRemedy(c, Remedy{
		Risk: Disruptive, Command: w.saved(at, w.patchOf(at, operations...)),
		Effect: "excepts the namespace " + namespace + " from the policy; the file allows to put it back",
		Leaks:  "what the policy guards in that namespace is not guarded any more",
	})
}

// otherwiseRefused is a refusal of an admission plugin inside the API server.
func (w *walker) otherwiseRefused(n graph.Node, r reply) *Cause {
	c := w.cause("adm-refused", n.Identity(), r.message, func(c *Cause) {
		c.Summary = "the API server refuses the write that the deletion needs" + whenYou
		c.Evidence = []Evidence{asked(r)}
	})
	w.met(c, n, r)
	return c
}

// mutator is a configuration that may change an object as it is written.
type mutator struct {
	at       graph.Identity
	evidence Evidence
	remedy   Remedy
}

// terminating is the condition with which a mutating webhook or policy leaves
// alone what is being deleted. The object of a DELETE is null.
var spareTerminating = map[string]any{"name": "kubectl-gc-not-terminating", "expression": "object == null || !has(object.metadata.deletionTimestamp)"}

// readds is an object whose finalizer something puts back when it is taken off.
func (w *walker) readds(n graph.Node, r reply) *Cause {
	suspects := w.mutators(n)
	at := n.Identity()
	if len(suspects) == 1 {
		at = suspects[0].at
	}
	return w.shared("adm-mutating-readd "+at.String()+" "+string(at.UID), "adm-mutating-readd", at, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "a mutating webhook or policy puts the finalizer back whenever it is taken off"
		c.Evidence = []Evidence{asked(r)}
		for _, s := range suspects {
			c.Evidence = append(c.Evidence, s.evidence)
			w.addRemedy(c, s.remedy)
		}
		if len(suspects) == 0 {
			c.Evidence = append(c.Evidence, Evidence{Source: "mutating webhooks and policies", Value: "none that could be read matches"})
		}
	})
}

// mutators returns the webhooks and policies that may change the object when it
// is updated.
func (w *walker) mutators(n graph.Node) []mutator {
	var found []mutator
	all, _ := w.webhooks() // what cannot be read is noted
	for _, h := range all {
		if h.config.Resource.Resource != mutatingWebhooks.Resource {
			continue
		}
		if matches, _ := w.matches(h, "UPDATE", "", n); !matches {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", h.index)
		found = append(found, mutator{
			h.config, Evidence{Source: h.config.String(), Path: h.path(), Value: h.Name + " is asked about updates of it"},
			w.spare(h.config, shell.Test(at+"/name", h.Name), addTo(h.whole, at+"/matchConditions")),
		})
	}
	resource, served := w.served(schema.GroupResource{Group: admissionGroup, Resource: mutatingPolicies.Resource})
	if !served {
		return found
	}
	policies, _ := w.evidence.List(resource, "") // as above
	for i := range policies {
		if !w.policyMatches(&policies[i], n) {
			continue
		}
		at := evidence.IdentityOf(resource, "MutatingAdmissionPolicy", &policies[i])
		found = append(found, mutator{
			at, Evidence{Source: at.String(), Path: "spec.matchConstraints", Value: "it applies to updates of it"},
			w.spare(at, addTo(&policies[i], "/spec/matchConditions")),
		})
	}
	return found
}

// addTo is the operation that adds the condition to a list which may not exist.
func addTo(o *unstructured.Unstructured, path string) shell.Operation {
	if exists(o.Object, strings.Split(strings.TrimPrefix(path, "/"), "/")) {
		return shell.Add(path+"/-", spareTerminating)
	}
	return shell.Add(path, []any{spareTerminating})
}

func (w *walker) spare(at graph.Identity, operations ...shell.Operation) Remedy {
	return Remedy{
		Risk: Disruptive, Command: w.saved(at, w.patchOf(at, operations...)),
		Effect: "makes it leave alone what is being deleted; the file allows to put it back",
	}
}

// policyMatches reports whether a mutating policy may apply to updates of the
// object.
func (w *walker) policyMatches(policy *unstructured.Unstructured, n graph.Node) bool {
	var view struct {
		Spec struct {
			MatchConstraints struct {
				ResourceRules     []admissionRule       `json:"resourceRules"`
				NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
				ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
			} `json:"matchConstraints"`
		} `json:"spec"`
	}
	if !evidence.Decode(policy, &view) {
		return false
	}
	m := view.Spec.MatchConstraints
	h := &webhook{webhookSpec: webhookSpec{Rules: m.ResourceRules, NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector}}
	matches, _ := w.matches(h, "UPDATE", "", n)
	return matches
}

// served returns the preferred version of a type that the server has.
func (w *walker) served(resource schema.GroupResource) (schema.GroupVersionResource, bool) {
	mapper := w.Graph.Snapshot().Mapper
	if found, err := mapper.ResourceFor(resource.WithVersion("")); err == nil {
		return found, true
	}
	all, err := mapper.ResourcesFor(resource.WithVersion("")) // that was ambiguous
	if err != nil || len(all) == 0 {
		return schema.GroupVersionResource{}, false
	}
	return all[0], true
}

// noLongerValid is an object that its own type does not allow any more: every
// update of it fails.
func (w *walker) noLongerValid(n graph.Node, r reply) *Cause {
	return w.cause("val-schema-tightened", n.Identity(), "", func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = "it is not valid any more as it is, so no update of it is accepted, and no finalizer can be taken off"
		c.Evidence = []Evidence{asked(r)}
		for i, cause := range r.causes {
			if i < evidence.MaxShown {
				c.Evidence = append(c.Evidence, evidence.Field(n, strings.TrimPrefix(cause.Field, "<nil>"), cause.Message)) // <nil> is the object itself
			}
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s edit %s", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "opens it in an editor: correct the fields above, and it can be updated again",
		}}
		definition, err := w.evidence.Get(crds, "", n.Resource().GroupResource().String())
		if err != nil {
			return
		}
		at := evidence.IdentityOf(crds, "CustomResourceDefinition", definition)
		c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.generation", Value: fmt.Sprint(definition.GetGeneration())})
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Disruptive, Command: w.saved(at, fmt.Sprintf("%s edit %s", w.Kubectl, shell.Target(at))),
			Effect: "opens its definition in an editor: relax the schema, so that the object is valid as it is; the file allows to put it back",
		})
	})
}
