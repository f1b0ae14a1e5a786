// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
)

// A policy looks at the object by its expressions, or by what selects the objects that it is
// about; the namespace, the request and the parameters are not it.
func TestJudgesObject(t *testing.T) {
	for _, test := range []struct {
		policy, binding string
		want            bool
	}{
		{`{validations: [{expression: "false", message: "no object goes"}]}`, `{}`, false},
		{`{validations: [{expression: "namespaceObject.metadata.name != 'a' || params.objects"}]}`, `{}`, false},
		{`{validations: [{expression: "request.options.x"}]}`, `{matchResources: {namespaceSelector: {matchLabels: {a: b}}}}`, false},
		{`{validations: [{expression: "false"}, {expression: "!has(oldObject.metadata.labels)"}]}`, `{}`, true},
		{`{variables: [{name: a, expression: "object == null"}], validations: [{expression: "variables.a"}]}`, `{}`, true},
		{`{matchConditions: [{name: a, expression: "oldObject.metadata.name == 'a'"}], validations: [{expression: "false"}]}`, `{}`, true},
		{`{matchConstraints: {objectSelector: {matchLabels: {a: b}}}, validations: [{expression: "false"}]}`, `{}`, true},
		{`{matchConstraints: {objectSelector: {}}, validations: [{expression: "false"}]}`, `{}`, false},
		{`{validations: [{expression: "false"}]}`, `{matchResources: {objectSelector: {matchLabels: {a: b}}}}`, true},
	} {
		var policy, binding map[string]any
		for text, into := range map[string]*map[string]any{test.policy: &policy, test.binding: &binding} {
			if err := yaml.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		of := func(spec map[string]any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		}
		if got := admission.JudgesObject(of(policy), of(binding)); got != test.want {
			t.Errorf("%s with %s: %t", test.policy, test.binding, got)
		}
	}
}
