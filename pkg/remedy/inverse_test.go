// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

func TestInverse(t *testing.T) {
	const object = `{"webhooks":[{"name":"a","failurePolicy":"Fail","namespaceSelector":{"matchExpressions":[{"key":"k"}]}}],"metadata":{"annotations":{"a/b":"1"}}}`
	for name, test := range map[string]struct{ patch, back string }{
		"a value": {
			`[{"op":"test","path":"/webhooks/0/name","value":"a"},{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`,
			`[{"op":"test","path":"/webhooks/0/failurePolicy","value":"Ignore"},{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"},{"op":"test","path":"/webhooks/0/name","value":"a"}]`,
		},
		"one more in a list": {
			`[{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions/-","value":{"key":"n"}}]`,
			`[{"op":"test","path":"/webhooks/0/namespaceSelector/matchExpressions/1","value":{"key":"n"}},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchExpressions/1"}]`,
		},
		"a field that was not there": {
			`[{"op":"add","path":"/webhooks/0/matchConditions","value":[1]}]`,
			`[{"op":"test","path":"/webhooks/0/matchConditions","value":[1]},{"op":"remove","path":"/webhooks/0/matchConditions"}]`,
		},
		"a key with a slash": {
			`[{"op":"replace","path":"/metadata/annotations/a~1b","value":"2"}]`,
			`[{"op":"test","path":"/metadata/annotations/a~1b","value":"2"},{"op":"replace","path":"/metadata/annotations/a~1b","value":"1"}]`,
		},
		"a value that is tested": {
			`[{"op":"test","path":"/webhooks/0/failurePolicy","value":"Fail"},{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`,
			`[{"op":"test","path":"/webhooks/0/failurePolicy","value":"Ignore"},{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`,
		},
		"what is taken away":                   {`[{"op":"remove","path":"/webhooks/0"}]`, `null`},
		"one more in a list that is not there": {`[{"op":"add","path":"/nothing/-","value":1}]`, `null`},
	} {
		var whole map[string]any
		var patch, want []Step
		for text, into := range map[string]any{object: &whole, test.patch: &patch, test.back: &want} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := Inverse(whole, patch)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != nil) {
			t.Errorf("%s: %v, -want +got:\n%s", name, ok, diff)
		}
	}
}
