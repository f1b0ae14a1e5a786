// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Words are those by which a refusal that may depend on who asks can be told,
// empty for another answer.
func (r Reply) Words() string {
	switch r.Kind {
	case answer.WebhookDenied:
		return r.Name
	case answer.PolicyDenied:
		return "'" + r.Name + "' with binding '" + r.Binding + "'"
	case answer.Refused:
		return r.Message
	}
	return ""
}

// Misconfigured reports whether a policy refuses because its binding cannot be used, as when the object with its parameters is
// gone: who asks, and for what, does not matter then (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
func (r Reply) Misconfigured() bool {
	return r.Kind == answer.PolicyDenied && strings.Contains(r.Message, "failed to configure binding: ")
}

// SeenFailing finds the words in what controllers say of their work on the
// object: in its status, in events since its deletion was asked for, and in the
// conditions of its namespace and of its definition, whose controllers delete
// it.
func (a *Reviewer) SeenFailing(n graph.Node, words string) (evidence.Fact, bool) {
	o := n.Object()
	if full, err := a.evidence.Whole(n); err == nil {
		if e, seen := mentioned(full, n.Identity(), words); seen {
			return e, true
		}
	}
	for _, item := range a.evidence.Events(o.Namespace, o.UID) {
		if e := evidence.NewEvent(&item); !e.Last.Before(evidence.Requested(o)) && strings.Contains(e.Message, words) {
			return e.Fact(), true
		}
	}
	if o.Namespace != "" {
		if namespace, err := a.evidence.Get(evidence.Namespaces, "", o.Namespace); err == nil && namespace.GetDeletionTimestamp() != nil {
			if e, seen := mentioned(namespace, evidence.Identity(evidence.Namespaces, "", o.Namespace), words); seen {
				return e, true
			}
		}
	}
	if !graph.BuiltinGroup(o.Resource.Group) {
		name := o.Resource.GroupResource().String()
		if definition, err := a.evidence.Get(evidence.CRDs, "", name); err == nil && definition.GetDeletionTimestamp() != nil {
			return mentioned(definition, evidence.Identity(evidence.CRDs, "", name), words)
		}
	}
	return evidence.Fact{}, false
}

// mentioned finds the words in the conditions of an object, or in a text of its
// status.
func mentioned(o *unstructured.Unstructured, source graph.Identity, words string) (evidence.Fact, bool) {
	for _, c := range evidence.Conditions(o) {
		if strings.Contains(c.Message, words) {
			return c.Fact(source), true
		}
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if value := evidence.Text(status[name]); strings.Contains(value, words) {
			return evidence.At(source, "status."+name, value), true
		}
	}
	return evidence.Fact{}, false
}
