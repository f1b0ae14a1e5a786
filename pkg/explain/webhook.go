// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

const admissionGroup = "admissionregistration.k8s.io"

var (
	policyBindings   = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "validatingadmissionpolicybindings"}
	mutatingPolicies = schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "mutatingadmissionpolicies"}
)

// webhook is an entry of a webhook configuration.
type webhook struct {
	webhookSpec
	config graph.Identity
	whole  *unstructured.Unstructured
	index  int
}

type webhookSpec struct {
	Name              string                `json:"name"`
	FailurePolicy     string                `json:"failurePolicy"`
	TimeoutSeconds    int64                 `json:"timeoutSeconds"`
	ClientConfig      clientConfig          `json:"clientConfig"`
	Rules             []admissionRule       `json:"rules"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	MatchConditions   []matchCondition      `json:"matchConditions"`
}

type clientConfig struct {
	URL     string `json:"url"`
	Service *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
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
// subresource of it when that is not empty. Which version it names does not
// matter: rules match other versions of the resource unless their matchPolicy is
// Exact, which is hardly used. The stars mean what they do in
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules.
func (r admissionRule) covers(operation string, resource graph.Resource, subresource string) bool {
	if r.Scope == "Namespaced" && !resource.Namespaced || r.Scope == "Cluster" && resource.Namespaced {
		return false
	}
	return states(r.Operations, operation) && states(r.APIGroups, resource.Group) &&
		slices.ContainsFunc(r.Resources, func(name string) bool {
			name, sub, _ := strings.Cut(name, "/")
			return (name == "*" || name == resource.Resource) && (sub == "*" || sub == subresource)
		})
}

// webhookList holds the entries of all webhook configurations.
type webhookList struct {
	all []*webhook
	err error
}

// webhooks returns the entries of all webhook configurations, which it reads
// once.
func (w *walker) webhooks() ([]*webhook, error) {
	if w.hooks == nil {
		w.hooks = &webhookList{}
		w.hooks.all, w.hooks.err = w.readWebhooks()
	}
	return w.hooks.all, w.hooks.err
}

func (w *walker) readWebhooks() ([]*webhook, error) {
	var all []*webhook
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		kind     string
	}{{mutatingWebhooks, "MutatingWebhookConfiguration"}, {validatingWebhooks, "ValidatingWebhookConfiguration"}} {
		configs, err := w.evidence.List(kind.resource, "")
		if err != nil {
			return nil, err
		}
		for i := range configs {
			var view struct {
				Webhooks []webhookSpec `json:"webhooks"`
			}
			if !evidence.Decode(&configs[i], &view) {
				continue
			}
			for at, spec := range view.Webhooks {
				all = append(all, &webhook{spec, evidence.IdentityOf(kind.resource, kind.kind, &configs[i]), &configs[i], at})
			}
		}
	}
	slices.SortFunc(all, func(a, b *webhook) int {
		if c := a.config.Compare(b.config); c != 0 {
			return c
		}
		return a.index - b.index
	})
	return all, nil
}

// matches reports whether the API server asks the webhook about an operation on
// the object, or on a subresource of it. certain is false where conditions in
// CEL decide.
func (w *walker) matches(h *webhook, operation, subresource string, n graph.Node) (matches, certain bool) {
	o := n.Object()
	if o.Resource.Group == admissionGroup { // webhooks are not asked about admission itself
		return false, true
	}
	covered := slices.ContainsFunc(h.Rules, func(r admissionRule) bool { return r.covers(operation, *o.Resource, subresource) })
	return covered && selects(h.ObjectSelector, o.Labels) && w.selectsNamespace(h.NamespaceSelector, n), len(h.MatchConditions) == 0
}

// selects reports whether a label selector matches; none matches everything.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set))
}

// selectsNamespace reports whether a namespace selector matches the object's
// namespace, or the object itself when it is a namespace. Other cluster-scoped
// objects always match (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace).
func (w *walker) selectsNamespace(selector *metav1.LabelSelector, n graph.Node) bool {
	o := n.Object()
	if o.Resource.GroupResource() == namespaces.GroupResource() {
		return selects(selector, o.Labels)
	}
	if o.Namespace == "" {
		return true
	}
	for _, m := range w.evidence.Instances(namespaces.GroupResource()) {
		if m.Object().Name == o.Namespace {
			return selects(selector, m.Object().Labels)
		}
	}
	namespace, err := w.evidence.Get(namespaces, "", o.Namespace)
	return err == nil && selects(selector, namespace.GetLabels())
}

// deadWebhook finds a webhook that would be asked about an operation on the
// object, or on a subresource of it, and provably cannot be reached. It takes
// the place of a probe that could not be sent.
func (w *walker) deadWebhook(n graph.Node, operation, subresource string) (*webhook, *serving) {
	all, err := w.webhooks()
	if err != nil {
		return nil, nil
	}
	for _, h := range all {
		if h.FailurePolicy == "Ignore" || h.ClientConfig.Service == nil {
			continue
		}
		if matches, certain := w.matches(h, operation, subresource, n); !matches || !certain {
			continue
		}
		if s := w.serving(h.ClientConfig.Service.Namespace, h.ClientConfig.Service.Name); s.dead {
			return h, s
		}
	}
	return nil, nil
}

// judgesUsers reports whether a policy's expressions ask who sends the request:
// what it answers to one says nothing about another.
func judgesUsers(expressions ...string) bool {
	return slices.ContainsFunc(expressions, func(e string) bool {
		return strings.Contains(e, "userInfo") || strings.Contains(e, "authorizer")
	})
}

func (h *webhook) path() string { return fmt.Sprintf("webhooks[%d]", h.index) }

// excludeNamespace are the operations that add "not this namespace" to the
// namespace selector at the path of an object. The selector's parents must
// exist up to the given depth of the path.
func excludeNamespace(o *unstructured.Unstructured, path []string, namespace string) []shell.Operation {
	condition := map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{namespace}}
	var value any = condition
	full := append(slices.Clone(path), "matchExpressions", "-")
	for depth := len(full) - 1; depth > 0; depth-- {
		if exists(o.Object, full[:depth]) {
			return []shell.Operation{shell.Add("/"+strings.Join(full[:depth+1], "/"), value)}
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

// states reports whether a list of a rule has the word, or stands for all.
func states(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}
