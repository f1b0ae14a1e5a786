// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// What explanations look at stays: names, programs, claims, states.
func TestReduce(t *testing.T) {
	for _, test := range []struct{ resource, before, after string }{
		{
			"pods",
			`{"metadata":{"name":"p","managedFields":[{"manager":"m"}],"ownerReferences":[{"kind":"ReplicaSet","name":"r","uid":"1","apiVersion":"apps/v1","controller":true}]},
			  "spec":{"nodeName":"n","tolerations":[{}],"volumes":[{"name":"v"}],"containers":[{"name":"c","image":"i","args":["a"],"env":[{"name":"E","value":"1"}],"resources":{"limits":{}}}]},
			  "status":{"phase":"Running"}}`,
			`{"metadata":{"name":"p","ownerReferences":[{"kind":"ReplicaSet","name":"r","uid":"1","apiVersion":"apps/v1","controller":true}]},
			  "spec":{"nodeName":"n","volumes":[{"name":"v"}],"containers":[{"name":"c","image":"i","args":["a"],"env":[{"name":"E"}]}]},
			  "status":{"phase":"Running"}}`,
		},
		{ // nobody controls it: who made it is told by its fields
			"pods", `{"metadata":{"name":"p","managedFields":[{"manager":"m"}]}}`, `{"metadata":{"name":"p","managedFields":[{"manager":"m"}]}}`,
		},
		{
			"configmaps",
			`{"metadata":{"name":"c","managedFields":[{"manager":"m"}],"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`,
			`{"metadata":{"name":"c","annotations":{"a":"b"}}}`,
		},
		{
			"configmaps", `{"metadata":{"name":"c","deletionTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"m"}]}}`,
			`{"metadata":{"name":"c","deletionTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"m"}]}}`,
		},
		{
			"deployments", `{"spec":{"replicas":1,"template":{"spec":{"serviceAccountName":"s","affinity":{},"containers":[{"name":"c","livenessProbe":{}}]}}}}`,
			`{"spec":{"replicas":1,"template":{"spec":{"serviceAccountName":"s","containers":[{"name":"c"}]}}}}`,
		},
		{
			"customresourcedefinitions", `{"spec":{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{}}}]}}`,
			`{"spec":{"versions":[{"name":"v1","served":true}]}}`,
		},
	} {
		got, want := decoded(t, test.before), decoded(t, test.after)
		reduce(schema.GroupVersionResource{Resource: test.resource}, got)
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.resource, diff)
		}
	}
}

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
