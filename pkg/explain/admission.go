// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// refusals asks whether the finalizers of an object could be taken off at all:
// a controller, dead or alive, needs that. The garbage collector's own are asked
// about where its other work is done.
func (w *walker) refusals(n graph.Node, known []hold) []hold {
	o := n.Object()
	if o.Namespace != "" && w.namespaceGone(o.Namespace) {
		return nil
	}
	var holds []hold
	for _, finalizer := range o.Finalizers {
		if isCollectors(finalizer) {
			continue
		}
		r := w.tryRemoval(n, finalizer)
		if working := atWork(known); working != nil && (r.kind == webhookDenied || r.kind == policyDenied) {
			w.addOnce(working, Evidence{Source: asked(n, r).Source, Path: "when you send it", Value: r.message})
			continue
		}
		if c := w.refusal(n, r, "UPDATE"); c != nil && !slices.ContainsFunc(holds, func(h hold) bool { return h.cause == c }) {
			holds = append(holds, hold{because: "its finalizer " + finalizer + " cannot be taken off", cause: c})
		}
	}
	return holds
}

// atWork returns the cause of a controller that works and has not come to its
// end. What is refused to others may be allowed to it: that it does not go on
// has to show first.
func atWork(holds []hold) *Cause {
	for _, h := range holds {
		if h.cause != nil && h.cause.ID == "fin-working" && h.cause.Verdict == Progressing {
			return h.cause
		}
	}
	return nil
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
		return w.webhookRefuses(n, r)
	case policyDenied:
		return w.policyDenies(n, r)
	case keepsFinalizer:
		return w.readds(n, r)
	case invalid:
		return w.noLongerValid(n, r)
	case conversionFailed:
		return w.conversion(n.Object().Resource.GroupResource(), r.message)
	case undecodable:
		return w.undecodable(n.Object().Resource.GroupVersionResource, r.message)
	case refused:
		return w.otherwiseRefused(n, r)
	case noAnswer:
		if h, s := w.deadWebhook(n, operation); h != nil {
			return w.webhookDead(n, h, s, Evidence{Source: n.Identity().String(), Value: "the webhook is asked about a write to it, by its rules and selectors"})
		}
	}
	return nil
}

// asked is the API server's answer as evidence.
func asked(n graph.Node, r reply) Evidence {
	return Evidence{Source: "a dry-run " + r.write + " of " + n.Identity().String(), Value: r.message}
}

// webhookRefuses is a webhook that was asked: it cannot be called, or says no.
func (w *walker) webhookRefuses(n graph.Node, r reply) *Cause {
	all, _ := w.webhooks() // what cannot be read is noted
	for _, h := range all {
		if h.Name != r.name {
			continue
		}
		if r.kind == webhookDenied {
			return w.webhookDenies(n, h, r)
		}
		if h.FailurePolicy == "Ignore" {
			continue
		}
		var s *serving
		if service := h.ClientConfig.Service; service != nil {
			s = w.serving(service.Namespace, service.Name)
		}
		return w.webhookDead(n, h, s, asked(n, r))
	}
	id, summary := "adm-webhook-dead", "an admission webhook that cannot be called must allow every write to it"
	if r.kind == webhookDenied {
		id, summary = "adm-webhook-deny", "an admission webhook refuses the write that it waits for"
	}
	return w.cause(id, n.Identity(), r.name, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, summary+"; the configuration of the webhook "+r.name+" was not found or may not be read"
		c.Evidence = []Evidence{asked(n, r)}
	})
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
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.Kubectl, targetOf(h.config)),
			Effect: "shows how the webhook is called, at a URL and not through a service: make that answer, and " + effect,
		}}
	}
	at := fmt.Sprintf("/webhooks/%d", h.index)
	remedies = append(remedies, Remedy{
		Risk: Disruptive,
		Command: w.saved(h.config, w.patchOf(h.config, operation{"test", at + "/name", h.Name},
			operation{"replace", at + "/failurePolicy", "Ignore"})),
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

// webhookDenies is a webhook that answers, and says no.
func (w *walker) webhookDenies(n graph.Node, h *webhook, r reply) *Cause {
	c := w.shared("adm-webhook-deny "+string(h.config.UID)+" "+h.Name, "adm-webhook-deny", h.config, func(c *Cause) {
		c.Verdict = Stuck
		c.Summary = fmt.Sprintf("its webhook %s refuses the write that the deletion needs", h.Name)
		if judgesUsers(h.expressions()...) {
			c.Verdict = Unknown
			c.Summary += ", when you send it; its conditions ask who does, so what it answers to the controller is not known"
		}
		c.Evidence = append([]Evidence{asked(n, r)}, w.webhookEvidence(h)...)
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.kubectl(n), target(n)),
			Effect: "shows the object: change it so that the webhook allows the write, and its controller goes on by itself",
		}}
	})
	w.exception(c, n, h)
	return c
}

// exception adds a way to except the object's namespace from a webhook.
func (w *walker) exception(c *Cause, n graph.Node, h *webhook) {
	namespace := n.Object().Namespace
	at := fmt.Sprintf("/webhooks/%d", h.index)
	if namespace == "" {
		return
	}
	selector := []string{"webhooks", fmt.Sprint(h.index), "namespaceSelector"}
	operations := append([]operation{{"test", at + "/name", h.Name}}, excludeNamespace(h.whole, selector, namespace)...)
	w.addRemedy(c, Remedy{
		Risk: Disruptive, Command: w.saved(h.config, w.patchOf(h.config, operations...)),
		Effect: "excepts the namespace " + namespace + " from the webhook; the file allows to put it back",
		Leaks:  "what the webhook guards in that namespace is not guarded any more",
	})
}

// addRemedy adds a remedy that a shared cause does not have yet. One for each of
// the first namespaces is enough.
func (w *walker) addRemedy(c *Cause, r Remedy) {
	if len(c.Remedies) < 2*maxShown && !slices.Contains(c.Remedies, r) {
		c.Remedies = append(c.Remedies, r)
	}
}

// policyDenies is a ValidatingAdmissionPolicy that refuses the write.
func (w *walker) policyDenies(n graph.Node, r reply) *Cause {
	at := identity(admissionPolicies, "", r.name)
	policy, err := w.full(admissionPolicies, "", r.name)
	if err == nil {
		at.UID = policy.GetUID()
	}
	c := w.shared("adm-vap-deny "+r.name+" "+r.binding, "adm-vap-deny", at, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, "the policy refuses the write that the deletion needs"
		if err == nil && judgesUsers(specText(policy)) {
			c.Verdict = Unknown
			c.Summary += ", when you send it; its expressions ask who does, so what it answers to the controller is not known"
		}
		c.Evidence = []Evidence{asked(n, r), {Source: "ValidatingAdmissionPolicyBinding/" + r.binding, Path: "spec.policyName", Value: r.name}}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", w.Kubectl, targetOf(at)),
			Effect: "shows what the policy asks for: change the object so that it satisfies that, and its controller goes on by itself",
		}}
	})
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
	namespace := n.Object().Namespace
	binding, err := w.full(policyBindings, "", name)
	if err != nil {
		return
	}
	at := objectIdentity(policyBindings, "ValidatingAdmissionPolicyBinding", binding)
	if namespace == "" {
		w.addRemedy(c, Remedy{
			Risk: Disruptive, Command: w.saved(at, w.patchOf(at, operation{"replace", "/spec/validationActions", []string{"Audit"}})),
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
	return w.cause("adm-refused", n.Identity(), r.message, func(c *Cause) {
		c.Verdict, c.Summary = Stuck, "the API server refuses the write that the deletion needs"
		c.Evidence = []Evidence{asked(n, r)}
	})
}

// mutator is a configuration that may change an object as it is written.
type mutator struct {
	at       graph.Identity
	evidence Evidence
	remedy   Remedy
}

// terminating is the condition with which a mutating webhook or policy leaves
// alone what is being deleted.
var spareTerminating = map[string]any{"name": "kubectl-gc-not-terminating", "expression": "!has(object.metadata.deletionTimestamp)"}

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
		c.Evidence = []Evidence{asked(n, r)}
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
		if matches, _ := w.matches(h, "UPDATE", n); !matches {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", h.index)
		found = append(found, mutator{
			h.config, Evidence{Source: h.config.String(), Path: h.path(), Value: h.Name + " is asked about updates of it"},
			w.spare(h.config, operation{"test", at + "/name", h.Name}, addTo(h.whole, at+"/matchConditions")),
		})
	}
	resource, served := w.served(schema.GroupResource{Group: admissionGroup, Resource: mutatingPolicies.Resource})
	if !served {
		return found
	}
	policies, _ := w.all(resource, "") // as above
	for i := range policies {
		if !w.policyMatches(&policies[i], n) {
			continue
		}
		at := objectIdentity(resource, "MutatingAdmissionPolicy", &policies[i])
		found = append(found, mutator{
			at, Evidence{Source: at.String(), Path: "spec.matchConstraints", Value: "it applies to updates of it"},
			w.spare(at, addTo(&policies[i], "/spec/matchConditions")),
		})
	}
	return found
}

// addTo is the operation that adds the condition to a list which may not exist.
func addTo(o *unstructured.Unstructured, path string) operation {
	if exists(o.Object, strings.Split(strings.TrimPrefix(path, "/"), "/")) {
		return operation{"add", path + "/-", spareTerminating}
	}
	return operation{"add", path, []any{spareTerminating}}
}

func (w *walker) spare(at graph.Identity, operations ...operation) Remedy {
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
	if !decode(policy, &view) {
		return false
	}
	m := view.Spec.MatchConstraints
	h := &webhook{webhookSpec: webhookSpec{Rules: m.ResourceRules, NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector}}
	matches, _ := w.matches(h, "UPDATE", n)
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
		c.Evidence = []Evidence{asked(n, r)}
		for i, cause := range r.causes {
			if i < maxShown {
				c.Evidence = append(c.Evidence, field(n, strings.TrimPrefix(cause.Field, "<nil>"), cause.Message)) // <nil> is the object itself
			}
		}
		c.Remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s edit %s", w.kubectl(n), target(n)),
			Effect: "opens it in an editor: correct the fields above, and its controller goes on by itself",
		}}
		definition, err := w.full(crds, "", n.Object().Resource.GroupResource().String())
		if err != nil {
			return
		}
		at := objectIdentity(crds, "CustomResourceDefinition", definition)
		c.Evidence = append(c.Evidence, Evidence{Source: at.String(), Path: "metadata.generation", Value: fmt.Sprint(definition.GetGeneration())})
		c.Remedies = append(c.Remedies, Remedy{
			Risk: Disruptive, Command: w.saved(at, fmt.Sprintf("%s edit %s", w.Kubectl, targetOf(at))),
			Effect: "opens its definition in an editor: relax the schema, so that the object is valid as it is; the file allows to put it back",
		})
	})
}
