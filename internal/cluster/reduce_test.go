// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
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

// fullPodSpec has each field that is left out, and beside it one of each that is looked at.
const fullPodSpec = `{
	"serviceAccountName":"sa", "nodeName":"n", "terminationGracePeriodSeconds":30, "hostNetwork":true, "hostPID":true, "priority":1, "schedulerName":"s",
	"hostname":"h", "subdomain":"d", "runtimeClassName":"r", "resourceClaims":[{"name":"g"}], "schedulingGates":[{"name":"w"}],
	"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}],
	"affinity":{"nodeAffinity":{}}, "tolerations":[{"key":"k"}], "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],
	"dnsConfig":{"nameservers":["x"]}, "hostAliases":[{"ip":"x"}], "securityContext":{"runAsUser":1}, "imagePullSecrets":[{"name":"x"}],
	"initContainers":[CONTAINER], "containers":[CONTAINER],
	"ephemeralContainers":[{"name":"e","image":"i"}]}`

const fullContainer = `{
	"name":"c", "image":"i", "command":["/bin/x"], "args":["--kubeconfig=k"], "workingDir":"/", "env":[{"name":"KUBECONFIG","value":"v"},{"name":"F","valueFrom":{"fieldRef":{"fieldPath":"p"}}},{"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],
	"ports":[{"containerPort":1}], "envFrom":[{"prefix":"p"}], "resources":{"limits":{"cpu":"1"}}, "volumeMounts":[{"name":"v","mountPath":"/v"}], "volumeDevices":[{"name":"b","devicePath":"/b"}],
	"livenessProbe":{"periodSeconds":1}, "readinessProbe":{"periodSeconds":1}, "startupProbe":{"periodSeconds":1}, "lifecycle":{"stopSignal":"SIGTERM"},
	"terminationMessagePath":"/t", "imagePullPolicy":"Always", "securityContext":{"privileged":true}, "stdin":true, "tty":true}`

// What is left out before it is decoded is what heavyFields says in numbers, and nothing
// else.
func TestHeavyFields(t *testing.T) {
	spec := strings.ReplaceAll(fullPodSpec, "CONTAINER", fullContainer)
	meta := `{"name":"o","namespace":"s","uid":"u","generation":2,"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}],"managedFields":[{"manager":"m"}]}`
	ofWorkloads := []string{"metadata.managedFields", "metadata.ownerReferences", "metadata.finalizers", "spec.template.spec"}
	for field := range decoded(t, spec).Object {
		if !slices.Contains([]string{"serviceAccountName", "containers", "hostNetwork", "hostPID", "priority"}, field) {
			ofWorkloads = append(ofWorkloads, "spec.template.spec."+field)
		}
	}
	slices.Sort(ofWorkloads) // the pod's spec comes before its fields
	ofWorkloads = slices.Clip(ofWorkloads)
	for _, test := range []struct {
		kind, object string
		heavy        []string
	}{
		{"Pod", `{"metadata":` + meta + `,"spec":` + spec + `,"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","ready":true,"restartCount":1,"image":"i","imageID":"x"}]}}`,
			[]string{"spec"}},
		{"Deployment", `{"metadata":` + meta + `,"spec":{"replicas":2,"paused":true,"selector":{"matchLabels":{"a":"b"}},"strategy":{"type":"Recreate"},"template":{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}},
			"status":{"observedGeneration":2,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"r","message":"m"}]}}`,
			append(ofWorkloads, "spec.strategy")},
		{"StatefulSet", `{"metadata":` + meta + `,"spec":{"replicas":2,"serviceName":"x","selector":{"matchLabels":{"a":"b"}},"volumeClaimTemplates":[{"metadata":{"name":"x"}}],"template":{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}},"status":{"replicas":2}}`,
			append(ofWorkloads, "spec.volumeClaimTemplates", "spec.serviceName", "status")},
		{"DaemonSet", `{"metadata":` + meta + `,"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}},"status":{"desiredNumberScheduled":3,"observedGeneration":2}}`,
			ofWorkloads},
	} {
		t.Run(test.kind, func(t *testing.T) {
			group := schema.GroupVersion{Group: "apps", Version: "v1"}
			if test.kind == "Pod" {
				group.Group = ""
			}
			resource := schema.GroupResource{Group: group.Group, Resource: strings.ToLower(test.kind) + "s"}
			full := decoded(t, test.object)
			whole := typed(t, group.WithKind(test.kind), full.Object)
			message, err := whole.(interface{ Marshal() ([]byte, error) }).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			light, _ := heavyFields[resource].From(message, nil)
			got, err := newObject(group.WithKind(test.kind))
			if err == nil {
				err = got.Unmarshal(light)
			}
			if err != nil {
				t.Fatal(err)
			}
			if containers, _, _ := unstructured.NestedFieldNoCopy(full.Object, "spec", "template", "spec", "containers"); containers != nil {
				cuts("workingDir", "volumeDevices", "terminationMessagePath", "imagePullPolicy").from(containers)
			}
			for _, path := range test.heavy {
				fields := strings.Split(path, ".")
				if fields[len(fields)-1] == "spec" { // of a pod
					reduce(schema.GroupVersionResource{Resource: resource.Resource}, full)
				} else {
					unstructured.RemoveNestedField(full.Object, fields...)
				}
			}
			if diff := cmp.Diff(typed(t, group.WithKind(test.kind), full.Object), runtime.Object(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is left out of a pod before its facts are taken changes none of them.
func TestNotFacts(t *testing.T) {
	spec := strings.ReplaceAll(fullPodSpec, "CONTAINER", fullContainer)
	for _, change := range []string{"", "volumes", "nodeName", "terminationGracePeriodSeconds"} {
		full := decoded(t, `{"metadata":{"name":"o","namespace":"s","uid":"u","annotations":{"kubernetes.io/config.mirror":"x"},"labels":{"a":"b"},
			"finalizers":["f"],"ownerReferences":[{"name":"n"}],"managedFields":[{"manager":"m"}]},"spec":`+spec+`,
			"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c"}],"podIPs":[{"ip":"10.0.0.1"}]}}`)
		if change == "volumes" {
			claims := []any{
				map[string]any{"name": "a", "persistentVolumeClaim": map[string]any{"claimName": "data"}},
				map[string]any{"name": "b", "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{}}},
			}
			if err := unstructured.SetNestedSlice(full.Object, claims, "spec", "volumes"); err != nil {
				t.Fatal(err)
			}
		} else if change != "" {
			unstructured.RemoveNestedField(full.Object, "spec", change)
		}
		pod := typed(t, corev1.SchemeGroupVersion.WithKind("Pod"), full.Object).(*corev1.Pod)
		message, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		light, _ := notFacts.From(message, nil)
		var got corev1.Pod
		if err := got.Unmarshal(light); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(factsOf(pod), factsOf(&got)); diff != "" || len(light) > len(message)/2 || got.UID != pod.UID {
			t.Errorf("without %q: %d of %d bytes (-want +got):\n%s", change, len(light), len(message), diff)
		}
	}
}

// typed returns an object in Go's type.
func typed(t *testing.T, kind schema.GroupVersionKind, object map[string]any) runtime.Object {
	t.Helper()
	o, err := scheme.Scheme.New(kind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
