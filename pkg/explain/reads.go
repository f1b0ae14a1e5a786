// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The types that are known by name.
var (
	pods              = evidence.Pods
	nodes             = evidence.Nodes
	services          = evidence.Services
	namespaces        = evidence.Namespaces
	claims            = evidence.Claims
	leases            = evidence.Leases
	apis              = evidence.APIServices
	serviceAccounts   = evidence.ServiceAccounts
	slicesOf          = evidence.EndpointSlices
	crds              = evidence.CRDs
	admissionPolicies = evidence.AdmissionPolicies
)

// gone is a hold by an object that went away while it was looked at.
func gone() []hold { return []hold{{because: "it went away while it was looked at"}} }

// unread is the cause of an object of which something that decides could not be
// read.
func (w *walker) unread(n graph.Node, because, what string, err error) []hold {
	return []hold{{because: because, cause: w.cause("unread", n.Identity(), what, func(c *Cause) {
		c.Summary = what + " could not be read, so what holds it is not known"
		c.Evidence = []Evidence{{Source: what, Value: err.Error()}}
	})}}
}

// condition is an entry of status.conditions.
type condition struct {
	kind, status, reason, message string
	since                         time.Time
}

func conditions(o *unstructured.Unstructured) []condition {
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var result []condition
	for _, entry := range entries {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		c := condition{kind: text(fields["type"]), status: text(fields["status"]), reason: text(fields["reason"]), message: text(fields["message"])}
		c.since, _ = time.Parse(time.RFC3339, text(fields["lastTransitionTime"]))
		result = append(result, c)
	}
	return result
}

func conditionOf(o *unstructured.Unstructured, kind string) (condition, bool) {
	for _, c := range conditions(o) {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{kind: kind}, false
}

func (c condition) evidence(source string) Evidence {
	value := cmp.Or(c.status, "not set")
	if c.reason != "" {
		value += " (" + c.reason + ")"
	}
	if c.message != "" {
		value += ": " + c.message
	}
	return Evidence{Source: source, Path: fmt.Sprintf("status.conditions[%s]", c.kind), Value: value}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func nested(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}
