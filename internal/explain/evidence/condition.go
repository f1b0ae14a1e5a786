// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is an entry of status.conditions.
type Condition struct {
	Type, Status, Reason, Message string
	// Since is when it changed last, or, where it does not say, when it was written last.
	Since time.Time
	// Observed is the generation of the object that it is about, empty where it does not say.
	Observed string
	// in is the path of the conditions, where that is not the usual one.
	in string
}

// usual is the path of most conditions.
const usual = "status.conditions"

// Conditions returns the entries of status.conditions, in their order: of a list, or by type. After them come those of
// status.v1beta2.conditions, which are Cluster API's.
func Conditions(o *unstructured.Unstructured) []Condition {
	var result []Condition
	for _, in := range []string{usual, "status.v1beta2.conditions"} {
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(in, ".")...)
		entries, _ := value.([]any)
		byType, _ := value.(map[string]any)
		for _, kind := range slices.Sorted(maps.Keys(byType)) {
			if fields, ok := byType[kind].(map[string]any); ok {
				result = append(result, newCondition(in, kind, fields))
			}
		}
		for _, entry := range entries {
			if fields, ok := entry.(map[string]any); ok {
				result = append(result, newCondition(in, Text(fields["type"]), fields))
			}
		}
	}
	return result
}

func newCondition(in, kind string, fields map[string]any) Condition {
	c := Condition{Type: kind, Status: Text(fields["status"]), Reason: Text(fields["reason"]), Message: Text(fields["message"]), in: in}
	if observed, has := fields["observedGeneration"]; has {
		c.Observed = fmt.Sprint(observed)
	}
	c.Since, _ = time.Parse(time.RFC3339, cmp.Or(Text(fields["lastTransitionTime"]), Text(fields["lastUpdateTime"])))
	return c
}

// ConditionOf returns the condition of a type, and whether the object has it.
func ConditionOf(o *unstructured.Unstructured, kind string) (Condition, bool) {
	for _, c := range Conditions(o) {
		if c.Type == kind {
			return c, true
		}
	}
	return Condition{Type: kind}, false
}

// Said is what the condition says in words, the reason first.
func (c Condition) Said() string {
	if c.Reason == "" || c.Message == "" {
		return c.Reason + c.Message
	}
	return c.Reason + ": " + c.Message
}

// Fact is the condition as it was read from the source.
func (c Condition) Fact(source any) Fact {
	value := c.Status
	if c.Reason != "" {
		value = strings.TrimSpace(value + " (" + c.Reason + ")")
	}
	if c.Message != "" {
		value = strings.TrimPrefix(value+": "+c.Message, ": ")
	}
	value = cmp.Or(value, "not set")
	return At(source, fmt.Sprintf("%s[%s]", cmp.Or(c.in, usual), c.Type), value)
}

// Text returns a value that is a string, or nothing.
func Text(value any) string {
	s, _ := value.(string)
	return s
}

// FieldOf returns the string in a field, spec.a.b or metadata.labels.KEY, or nothing.
func FieldOf(o *unstructured.Unstructured, path string) string {
	if key, is := strings.CutPrefix(path, "metadata.labels."); is {
		return o.GetLabels()[key]
	}
	return Nested(o, strings.Split(path, ".")...)
}

// Nested returns the string at a path, or nothing.
func Nested(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// ServiceOf returns the service that a client configuration of a webhook, or the spec of an APIService, names, also by a URL; nothing for
// what is elsewhere.
func ServiceOf(config map[string]any) (namespace, name string) {
	if service, is := config["service"].(map[string]any); is {
		return Text(service["namespace"]), Text(service["name"])
	}
	if at, err := url.Parse(Text(config["url"])); err == nil {
		if parts := strings.Split(at.Hostname(), "."); len(parts) > 2 && parts[2] == "svc" {
			return parts[1], parts[0]
		}
	}
	return "", ""
}

// Converter returns the service that converts the objects of a definition; nothing for none, or for what is elsewhere.
func Converter(definition *unstructured.Unstructured) (namespace, name string) {
	client, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
	return ServiceOf(client)
}
