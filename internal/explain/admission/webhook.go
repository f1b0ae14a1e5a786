// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const admissionGroup = "admissionregistration.k8s.io"

var (
	// PolicyBindings are the ValidatingAdmissionPolicyBindings.
	PolicyBindings   = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "validatingadmissionpolicybindings"}
	mutatingPolicies = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "mutatingadmissionpolicies"}
)

// Webhook is an entry of a webhook configuration.
type Webhook struct {
	Spec
	Config graph.Identity
	Whole  *unstructured.Unstructured
	Index  int
}

// Spec is what the configuration says of it.
type Spec struct {
	Name              string                `json:"name"`
	FailurePolicy     string                `json:"failurePolicy"`
	TimeoutSeconds    int64                 `json:"timeoutSeconds"`
	ClientConfig      ClientConfig          `json:"clientConfig"`
	Rules             []admissionRule       `json:"rules"`
	MatchPolicy       string                `json:"matchPolicy"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	MatchConditions   []matchCondition      `json:"matchConditions"`
}

// ClientConfig says how it is called.
type ClientConfig struct {
	URL     string   `json:"url"`
	Service *Service `json:"service"`
}

// Service answers at it.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type matchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// admissionRule says which requests a webhook or policy is about.
type admissionRule struct {
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Resources   []string `json:"resources"`
	Operations  []string `json:"operations"`
	Scope       string   `json:"scope"`
}

// covers reports whether the rule is about an operation on a resource, or on a
// subresource of it when that is not empty, in any version. The stars mean what they do in
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules.
func (r admissionRule) covers(operation string, resource graph.Resource, subresource string) bool {
	if r.Scope == "Namespaced" && !resource.Namespaced || r.Scope == "Cluster" && resource.Namespaced {
		return false
	}
	return evidence.Lists(r.Operations, operation) && evidence.Lists(r.APIGroups, resource.Group) &&
		slices.ContainsFunc(r.Resources, func(name string) bool {
			name, sub, _ := strings.Cut(name, "/")
			return (name == "*" || name == resource.Resource) && (sub == "*" || sub == subresource)
		})
}

// covers reports whether one of its rules is about an operation on a resource, or on a subresource of it when that is not empty. Unless
// their matchPolicy is Exact, rules match the other versions of the resource, too
// (k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook).
func (a *Reviewer) covers(s *Spec, operation string, resource graph.Resource, subresource string) bool {
	return slices.ContainsFunc(s.Rules, func(r admissionRule) bool {
		switch {
		case !r.covers(operation, resource, subresource):
			return false
		case evidence.Lists(r.APIVersions, resource.Version):
			return true
		}
		versions, known := a.evidence.Versions(resource)
		equivalent := func(version string) bool { return evidence.Lists(r.APIVersions, version) }
		return s.MatchPolicy != "Exact" && (!known || slices.ContainsFunc(versions, equivalent))
	})
}

// webhookList holds the entries of all webhook configurations.
type webhookList struct {
	all []*Webhook
	err error
}

// webhooks returns the entries of all webhook configurations that can be read, which it reads
// once. The error is why some cannot.
func (a *Reviewer) webhooks() ([]*Webhook, error) {
	if a.hooks == nil {
		a.hooks = &webhookList{}
		a.hooks.all, a.hooks.err = a.readWebhooks()
	}
	return a.hooks.all, a.hooks.err
}

func (a *Reviewer) readWebhooks() ([]*Webhook, error) {
	var all []*Webhook
	var failure error
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		kind     string
	}{{evidence.MutatingWebhooks, "MutatingWebhookConfiguration"}, {evidence.ValidatingWebhooks, "ValidatingWebhookConfiguration"}} {
		configs, err := a.evidence.List(kind.resource, "")
		failure = errors.Join(failure, err)
		for i := range configs {
			var view struct {
				Webhooks []Spec `json:"webhooks"`
			}
			if !evidence.Decode(&configs[i], &view) {
				continue
			}
			for at, spec := range view.Webhooks {
				if namespace, name := evidence.ServiceOf(map[string]any{"url": spec.ClientConfig.URL}); name != "" {
					spec.ClientConfig.Service = &Service{namespace, name}
				}
				all = append(all, &Webhook{spec, evidence.IdentityOf(kind.resource, kind.kind, &configs[i]), &configs[i], at})
			}
		}
	}
	slices.SortFunc(all, func(a, b *Webhook) int {
		if c := a.Config.Compare(b.Config); c != 0 {
			return c
		}
		return a.Index - b.Index
	})
	return all, failure
}

// Configured reports whether all webhook configurations that are in the API could be
// read.
func (a *Reviewer) Configured() bool {
	_, err := a.webhooks()
	return err == nil
}

// Matches reports whether the API server asks the webhook about an operation on
// the object, or on a subresource of it if that is not empty. certain is false where
// conditions in CEL decide, or the labels of a namespace that could not be read.
func (a *Reviewer) Matches(h *Webhook, operation, subresource string, n graph.Node) (matches, certain bool) {
	o := n.Object()
	if o.Resource.Group == admissionGroup { // webhooks are not asked about admission itself
		return false, true
	}
	resource := *o.Resource
	if version := a.Versions[n.UID()]; operation == "DELETE" && subresource == "" && version != "" {
		resource.Version = version
	}
	if !a.covers(&h.Spec, operation, resource, subresource) || !Selects(h.ObjectSelector, o.Labels) {
		return false, true
	}
	selects, known := a.selectsNamespace(h.NamespaceSelector, n)
	return selects, known && len(h.MatchConditions) == 0
}

// Selects reports whether a label selector matches; none matches everything.
func Selects(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set))
}

func selectsAll(selector *metav1.LabelSelector) bool {
	return selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
}

// selectsNamespace reports whether a namespace selector matches the object's
// namespace, or the object itself when it is a namespace. Other cluster-scoped
// objects always match (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace).
// It may match a namespace that could not be read.
func (a *Reviewer) selectsNamespace(selector *metav1.LabelSelector, n graph.Node) (selects, known bool) {
	o := n.Object()
	if o.Resource.GroupResource() == evidence.Namespaces.GroupResource() {
		return Selects(selector, o.Labels), true
	}
	if o.Namespace == "" || selectsAll(selector) {
		return true, true
	}
	for _, m := range a.evidence.Named(evidence.Namespaces.GroupResource(), "", o.Namespace) {
		return Selects(selector, m.Object().Labels), true
	}
	namespace, err := a.evidence.Get(evidence.Namespaces, "", o.Namespace)
	if err != nil {
		return !apierrors.IsNotFound(err), apierrors.IsNotFound(err)
	}
	return Selects(selector, namespace.GetLabels()), true
}

// Webhooks returns the entries of all webhook configurations that could be read.
func (a *Reviewer) Webhooks() []*Webhook {
	all, _ := a.webhooks() // what cannot be read is noted
	return all
}

// FailsClosed reports whether it refuses what it is asked about when the service that is to
// answer for it does not. What is called by a URL is out of sight.
func (h *Webhook) FailsClosed() bool {
	return h.FailurePolicy != "Ignore" && h.ClientConfig.Service != nil
}

// Asked reports whether it is asked about an operation on objects of any type.
func (h *Webhook) Asked(operation string) bool {
	return slices.ContainsFunc(h.Rules, func(r admissionRule) bool { return evidence.Lists(r.Operations, operation) })
}

// About says for people what requests the API server asks the webhook about.
func (h *Webhook) About() string {
	var said []string
	for _, r := range h.Rules {
		about := strings.Join(r.Operations, ", ") + " of " + strings.Join(r.Resources, ", ")
		if groups := strings.Trim(strings.Join(r.APIGroups, ", "), ", "); groups != "" {
			about += " in " + groups
		}
		said = append(said, strings.ReplaceAll(about, "*", "all"))
	}
	return strings.Join(said, "; ")
}

// Limited reports whether selectors or conditions limit what it is asked about.
func (h *Webhook) Limited() bool {
	return !selectsAll(h.NamespaceSelector) || !selectsAll(h.ObjectSelector) || len(h.MatchConditions) > 0
}

// Refusing goes over the webhooks that are asked about an operation on the object, or on
// a subresource of it, and refuse it when the service that is to answer does not. It says
// whether it is certain that they are asked.
func (a *Reviewer) Refusing(n graph.Node, operation, subresource string) iter.Seq2[*Webhook, bool] {
	return a.closed(func(h *Webhook) (bool, bool) { return a.Matches(h, operation, subresource, n) })
}

// DeadWebhooks goes over the webhooks that would be asked about an operation on the
// object, or on a subresource of it, and provably cannot be reached, with what should
// serve them.
func (a *Reviewer) DeadWebhooks(n graph.Node, operation, subresource string) iter.Seq2[*Webhook, *Serving] {
	return a.dead(a.Refusing(n, operation, subresource))
}

// DeadForPods goes over the webhooks that must allow every pod that is made in the
// namespace of an object, and provably cannot be reached.
func (a *Reviewer) DeadForPods(n graph.Node) iter.Seq2[*Webhook, *Serving] {
	pods := graph.Resource{GroupVersionResource: evidence.Pods, Kind: "Pod", Namespaced: true}
	return a.dead(a.closed(func(h *Webhook) (bool, bool) {
		selects, known := a.selectsNamespace(h.NamespaceSelector, n)
		return a.covers(&h.Spec, "CREATE", pods, "") && selectsAll(h.ObjectSelector) && len(h.MatchConditions) == 0 && selects, known
	}))
}

// closed goes over the webhooks that are asked, certainly or maybe, and fail closed when a
// service does not answer.
func (a *Reviewer) closed(asked func(*Webhook) (asked, certain bool)) iter.Seq2[*Webhook, bool] {
	return func(yield func(*Webhook, bool) bool) {
		all, _ := a.webhooks() // what cannot be read is noted
		for _, h := range all {
			if !h.FailsClosed() {
				continue
			}
			if asked, certain := asked(h); asked && !yield(h, certain) {
				return
			}
		}
	}
}

// dead goes over those that certainly are asked and provably cannot be reached.
func (a *Reviewer) dead(closed iter.Seq2[*Webhook, bool]) iter.Seq2[*Webhook, *Serving] {
	return func(yield func(*Webhook, *Serving) bool) {
		for h, certain := range closed {
			if !certain {
				continue
			}
			if s := a.ServingOf(h); s.Dead && !yield(h, s) {
				return
			}
		}
	}
}

// JudgesUsers reports whether a policy's expressions ask who sends the request:
// what it answers to one says nothing about another.
func JudgesUsers(expressions ...string) bool {
	return slices.ContainsFunc(expressions, func(e string) bool {
		return strings.Contains(e, "userInfo") || strings.Contains(e, "authorizer")
	})
}

// ofRequest is what a single dry run has, and a controller's request for a whole collection
// has not, or another.
var ofRequest = pattern.New(`request\.(name|dryRun|options)\b`)

// TellsRequestsApart reports whether a policy's expressions ask who sends a request, or what
// request it is, so that it may refuse a controller's and allow a dry run.
func TellsRequestsApart(expressions ...string) bool {
	return JudgesUsers(expressions...) || slices.ContainsFunc(expressions, ofRequest().MatchString)
}

// ofObject is what an expression has of the object that is written.
var ofObject = pattern.New(`\b(object|oldObject)\b`)

// JudgesObject reports whether it may depend on the object whether a policy with a binding
// allows a write: by its expressions, or by selectors of objects.
func JudgesObject(policy, binding *unstructured.Unstructured) bool {
	for _, field := range []string{"validations", "variables", "matchConditions"} {
		entries, _, _ := unstructured.NestedSlice(policy.Object, "spec", field)
		for _, e := range entries {
			if entry, ok := e.(map[string]any); !ok || ofObject().MatchString(fmt.Sprint(entry["expression"])) {
				return true
			}
		}
	}
	for at, o := range map[string]*unstructured.Unstructured{"matchConstraints": policy, "matchResources": binding} {
		selector, _, _ := unstructured.NestedMap(o.Object, "spec", at, "objectSelector")
		if len(selector) > 0 {
			return true
		}
	}
	return false
}

// JudgesUsers reports whether it depends on who sends the request whether the webhook
// is asked.
func (h *Webhook) JudgesUsers() bool {
	return slices.ContainsFunc(h.MatchConditions, func(c matchCondition) bool { return JudgesUsers(c.Expression) })
}

// Path is where it stands in its configuration.
func (h *Webhook) Path() string { return fmt.Sprintf("webhooks[%d]", h.Index) }

// WebhooksNamed returns the webhooks of the name that the API server told: those
// that are asked about such a write, and of several that cannot be called those
// that nothing serves.
func (a *Reviewer) WebhooksNamed(n graph.Node, r Reply, operation string) []*Webhook {
	all, _ := a.webhooks() // what cannot be read is noted
	named := slices.DeleteFunc(slices.Clone(all), func(h *Webhook) bool {
		return h.Name != r.Name || r.Kind == answer.WebhookFailed && h.FailurePolicy == "Ignore"
	})
	narrow := func(keep func(*Webhook) bool) {
		if kept := slices.DeleteFunc(slices.Clone(named), func(h *Webhook) bool { return !keep(h) }); len(kept) > 0 {
			named = kept
		}
	}
	narrow(func(h *Webhook) bool {
		matches, _ := a.Matches(h, operation, r.Subresource, n)
		return matches
	})
	if r.Kind == answer.WebhookFailed && len(named) > 1 {
		narrow(func(h *Webhook) bool {
			s := a.ServingOf(h)
			return s != nil && s.Dead
		})
	}
	return named
}

// ServingOf follows a webhook to what serves it: nil for one that is called by a
// URL.
func (a *Reviewer) ServingOf(h *Webhook) *Serving {
	if service := h.ClientConfig.Service; service != nil {
		return a.Serving(service.Namespace, service.Name)
	}
	return nil
}
