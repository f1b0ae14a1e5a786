// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/offline"
)

// What is held of an object does not depend on what was cut out of its text.
func TestDecode(t *testing.T) {
	const managers = `"managedFields":[{"manager":"a","fieldsV1":{"f:spec":{"f:x":{}},"f:metadata":{"f:finalizers":{"v:\"y\"":{}}}}},{"manager":"b"}]`
	const containers = `[{"name":"m","image":"i","resources":{"limits":{"cpu":"1"}},"args":["--kubeconfig=\"}]\\"],"env":[{"name":"A"}]},{"name":"n"}]`
	const pod = `{"nodeName":"n","tolerations":[{"key":"[{"},{}],"containers":` + containers + `,"initContainers":` + containers + `,"volumes":[{"name":"v","ephemeral":{}}],"priority":0}`
	for _, test := range []struct{ resource, object string }{
		{"pods", `{"kind":"Pod","metadata":{"name":"p",` + managers + `},"spec":` + pod + `,"status":{"phase":"Running"}}`},
		{"pods", ` { "metadata" : { "ownerReferences" : [ { "controller" : true } ] , ` + managers + ` } , "spec" : ` + pod + " }\n"},
		{"pods", `{"metadata":{"ownerReferences":[{"controller":true}],"finalizers":["y"],` + managers + `},"spec":null}`},
		{"deployments.apps", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":\"\\\"\"}","paused":"x"}},"spec":{"replicas":12345678901234567,"template":{"spec":` + pod + `}}}`},
		{"replicasets.apps", `{"metadata":{"annotations":{}},"spec":{"template":{"spec":` + pod + `},"replicas":1e3}}`},
		{"statefulsets.apps", `{"metadata":{` + managers + `},"spec":{"volumeClaimTemplates":[{}],"template":{"spec":` + pod + `}}}`},
		{"events", `{"metadata":{` + managers + `},"message":"\\\"{"}`},
		{"widgets.example.com", `{"metadata":{"labels":{}},"spec":[],"status":{"phase":true,"a":[[1,[2]],{}]}}`},
		{"widgets.example.com", `{}`},
		{"widgets.example.com", `{"metadata":{"managedFields":null}}`},
	} {
		resource := schema.ParseGroupResource(test.resource)
		var whole map[string]any
		if err := utiljson.Unmarshal([]byte(test.object), &whole); err != nil {
			t.Fatal(test.object, err)
		}
		got, err := offline.Decode(resource, []byte(test.object))
		if err != nil {
			t.Fatal(test.object, err)
		}
		if diff := cmp.Diff(entry(t, resource, whole), entry(t, resource, got)); diff != "" {
			t.Errorf("%s: (-whole +cut)\n%s", test.object, diff)
		}
	}
}

// entry is what a file has of an object.
func entry(t *testing.T, resource schema.GroupResource, object map[string]any) (held map[string]any) {
	t.Helper()
	e, err := offline.NewEntry(resource, object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e.Object, &held); err != nil {
		t.Fatal(err)
	}
	return held
}
