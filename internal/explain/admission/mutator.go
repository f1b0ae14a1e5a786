// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Mutator is a configuration that may change an object as it is written.
type Mutator struct {
	At       graph.Identity
	Evidence evidence.Fact
	// Webhook is the entry of a webhook configuration, nil for a policy, which is
	// whole.
	Webhook *Webhook
	Whole   *unstructured.Unstructured
}

// Mutators returns the webhooks and policies that may change the object when it
// is updated.
func (a *Reviewer) Mutators(n graph.Node) []Mutator {
	var found []Mutator
	all, _ := a.webhooks() // what cannot be read is noted
	for _, h := range all {
		if h.Config.Resource.Resource != evidence.MutatingWebhooks.Resource {
			continue
		}
		if matches, _ := a.Matches(h, "UPDATE", "", n); !matches {
			continue
		}
		found = append(found, Mutator{
			At: h.Config, Webhook: h, Whole: h.Whole,
			Evidence: evidence.At(h.Config, h.Path(), fmt.Sprintf(webhookCovers, h.Name)),
		})
	}
	resource, served := a.evidence.Served(schema.GroupResource{Group: admissionGroup, Resource: mutatingPolicies.Resource})
	if !served {
		return found
	}
	policies, _ := a.evidence.List(resource, "") // as above
	for i := range policies {
		if !a.policyMatches(&policies[i], n) {
			continue
		}
		at := evidence.IdentityOf(resource, "MutatingAdmissionPolicy", &policies[i])
		found = append(found, Mutator{
			At: at, Whole: &policies[i],
			Evidence: evidence.At(at, "spec.matchConstraints", policyCovers),
		})
	}
	return found
}

// Mutation is a value that somebody put into an object while it was written, and that the API
// server refused.
type Mutation struct {
	// Cause is the API server's, with the field.
	Cause metav1.StatusCause
	// By are those who may have put it there: the policies that have the field in their
	// mutations, or else all webhooks that are asked about updates of the object; both where only its
	// spec is named. There are none where it is an admission plugin inside the API server.
	By []Mutator
}

// Mutation returns what makes an update of the object invalid that is not its own: the write changes
// nothing but metadata, so a refused value that is another than the stored one, or a refused change,
// is of somebody who changes what is written. It is nil when what is refused is stored.
func (a *Reviewer) Mutation(n graph.Node, r Reply) *Mutation {
	full, err := a.evidence.Whole(n)
	if err != nil {
		return nil
	}
	var unknown *Mutation
	for _, cause := range r.Causes {
		if !isMutated(full, cause) {
			continue
		}
		var policies, webhooks []Mutator
		for _, m := range a.Mutators(n) {
			switch {
			case m.Webhook != nil:
				webhooks = append(webhooks, m)
			case mutates(m.Whole, cause.Field):
				m.Evidence.Path, m.Evidence.Value = "spec.mutations", say.Of(writesField, cause.Field)
				policies = append(policies, m)
			}
		}
		switch {
		case cause.Field == "spec":
			policies = append(policies, webhooks...)
		case len(policies) == 0:
			policies = webhooks
		}
		if len(policies) > 0 {
			return &Mutation{cause, policies}
		}
		unknown = &Mutation{Cause: cause}
	}
	return unknown
}

// Changers returns who may have made the change that a webhook rejects of a write that changes no such thing itself: the removal of a
// finalizer. They are those with the backend of that webhook, which set defaults, or else all.
func (a *Reviewer) Changers(n graph.Node, denier *Webhook, r Reply) []Mutator {
	if !rejectsChange().MatchString(r.Reason()) {
		return nil
	}
	all := a.Mutators(n)
	own := slices.DeleteFunc(slices.Clone(all), func(m Mutator) bool {
		return m.Webhook == nil || !reflect.DeepEqual(m.Webhook.ClientConfig, denier.ClientConfig)
	})
	if len(own) > 0 {
		return own
	}
	return all
}

var (
	// rejectsChange is said of a change, by webhooks that allow the object to be as it is.
	rejectsChange = pattern.New(`(?i)immutable|no (updates?|changes?) (is|are) allowed|only status updates|\b(spec|field)\b.{0,80}(can|may|must)( ?not|n't) be (changed|updated|modified)|(changes?|updates?) to .{0,80} forbidden`)
	// invalidValue begins what is said of a value (k8s.io/apimachinery/pkg/util/validation/field,
	// Error.ErrorBody); immutable is said of a change, whatever the value.
	invalidValue = pattern.New(`^(?:Invalid value|Unsupported value): ("(?:[^"\\]|\\.)*"|\{.*\}|\[.*\]|[^:]+): `)
	immutable    = pattern.New(`(?i)immutable|may not change|(can|may) ?not be changed|\boldSelf\b|updates? to .* forbidden`)
	pathStep     = pattern.New(`[^.\[\]]+`)
)

// isMutated reports whether a refused field has another value than is stored, or may not change.
func isMutated(stored *unstructured.Unstructured, cause metav1.StatusCause) bool {
	if cause.Field == "" || strings.HasPrefix(cause.Field, "metadata.finalizers") {
		return false
	}
	if immutable().MatchString(cause.Message) {
		return true
	}
	said := invalidValue().FindStringSubmatch(cause.Message)
	if said == nil {
		return false
	}
	var refused any
	if utiljson.Unmarshal([]byte(said[1]), &refused) != nil {
		return false
	}
	value, found := valueAt(stored.Object, pathStep().FindAllString(cause.Field, -1))
	return found && sameType(value, refused) && !equality.Semantic.DeepEqual(value, refused)
}

// sameType reports whether two values are of one kind: of some an error tells the type alone.
func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// valueAt returns the value at a path of fields, keys and indexes.
func valueAt(value any, steps []string) (any, bool) {
	for _, step := range steps {
		switch v := value.(type) {
		case map[string]any:
			inner, has := v[step]
			if !has {
				return nil, false
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// mutates reports whether the mutations of a policy have the field, by the last name of its path.
func mutates(policy *unstructured.Unstructured, field string) bool {
	steps := pathStep().FindAllString(field, -1)
	mutations, _, _ := unstructured.NestedSlice(policy.Object, "spec", "mutations")
	text := fmt.Sprint(mutations)
	if field == "spec" {
		return strings.Contains(text, field)
	}
	return slices.ContainsFunc(steps[max(0, len(steps)-2):], func(step string) bool {
		_, err := strconv.Atoi(step)
		return err != nil && step != "spec" && strings.Contains(text, step)
	})
}

// policyMatches reports whether a mutating policy may apply to updates of the
// object.
func (a *Reviewer) policyMatches(policy *unstructured.Unstructured, n graph.Node) bool {
	return a.constrained(policy, "matchConstraints", "UPDATE", "")(n)
}

// PolicyAsked returns what reports whether a policy may be asked by its binding about an
// operation on an object, or on a subresource of it if that is not empty, as far as their rules and selectors tell.
func (a *Reviewer) PolicyAsked(policy, binding *unstructured.Unstructured, operation, subresource string) func(graph.Node) bool {
	byPolicy, byBinding := a.constrained(policy, "matchConstraints", operation, subresource),
		a.constrained(binding, "matchResources", operation, subresource)
	return func(n graph.Node) bool { return byPolicy(n) && byBinding(n) }
}

// constrained returns what reports whether an operation on an object meets the match criteria
// in a field of the spec. A binding without criteria or rules is met by all.
func (a *Reviewer) constrained(o *unstructured.Unstructured, field, operation, subresource string) func(graph.Node) bool {
	var m struct {
		ResourceRules     []admissionRule       `json:"resourceRules"`
		MatchPolicy       string                `json:"matchPolicy"`
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	}
	criteria, found, _ := unstructured.NestedMap(o.Object, "spec", field)
	ofBinding := field == "matchResources"
	if !found || !evidence.Decode(&unstructured.Unstructured{Object: criteria}, &m) {
		return func(graph.Node) bool { return ofBinding }
	}
	if len(m.ResourceRules) == 0 && ofBinding {
		m.ResourceRules = []admissionRule{{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"},
			Operations: []string{"*"}}}
	}
	h := &Webhook{Spec: Spec{Rules: m.ResourceRules, MatchPolicy: m.MatchPolicy, NamespaceSelector: m.NamespaceSelector,
		ObjectSelector: m.ObjectSelector}}
	return func(n graph.Node) bool {
		matches, _ := a.Matches(h, operation, subresource, n)
		return matches
	}
}
