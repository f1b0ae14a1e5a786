// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
)

// heavy are the fields of a pod's spec, and of its containers, that say nothing of
// whether it runs, what it holds, or who it is.
var (
	heavySpec       = []string{"affinity", "topologySpreadConstraints", "dnsConfig", "hostAliases", "securityContext", "imagePullSecrets"}
	heavyContainers = []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "securityContext",
		"volumeMounts", "ports", "envFrom"}
)

// heavyFields are, by the numbers that generated.proto has for them, fields of which reduce
// leaves nothing, and of workloads all else of which nobody asks: so they are not even decoded.
var heavyFields = func() map[schema.GroupResource]wire.Drop {
	container := wire.Drop{
		6: wire.Whole, 7: {2: wire.Whole, 3: wire.Whole}, 8: wire.Whole, 9: wire.Whole, 10: wire.Whole, 11: wire.Whole, 12: wire.Whole,
		15: wire.Whole, 19: wire.Whole, 22: wire.Whole,
	}
	spec := wire.Drop{
		2: container, 14: wire.Whole, 15: wire.Whole, 18: wire.Whole, 20: container, 22: wire.Whole, 23: wire.Whole,
		26: wire.Whole, 33: wire.Whole,
	}
	// workingDir, terminationMessage*, imagePullPolicy, devices, what becomes of it
	ofContainer := and(container, 5, 13, 14, 20, 21, 23, 24, 25)
	ofContainer[7] = wire.Drop{3: and(nil, 2, 3, 4, 5)} // of variables all but values and fields of the pod: namespaces that are watched
	// volumes, initContainers, whatever says where and how the pod runs
	ofSpec := and(spec, 1, 3, 4, 5, 6, 7, 9, 10, 16, 17, 19, 20, 24, 28, 29, 31, 32, 34, 36, 38, 39, 40, 41)
	ofSpec[2] = ofContainer
	template := wire.Drop{2: ofSpec}
	meta := and(nil, 2, 4, 6, 13, 14, 17) // generateName, selfLink, resourceVersion, ownerReferences, finalizers, managedFields
	return map[schema.GroupResource]wire.Drop{
		{Resource: "pods"}:                        {2: spec},
		{Group: "apps", Resource: "deployments"}:  {1: meta, 2: and(wire.Drop{3: template}, 4, 6, 9)},
		{Group: "apps", Resource: "statefulsets"}: {1: meta, 2: and(wire.Drop{3: template}, 4, 5, 6, 7, 8, 10, 11), 3: wire.Whole},
		{Group: "apps", Resource: "daemonsets"}:   {1: meta, 2: and(wire.Drop{2: template}, 3, 6), 3: and(nil, 9, 10)},
	}
}()

// heavyOfMostPods are the heavyFields of those of which it does not matter who has set which
// field.
var heavyOfMostPods = func() wire.Drop {
	drop := slices.Clone(heavyFields[schema.GroupResource{Resource: "pods"}])
	drop[1] = and(nil, 17)
	return drop
}()

// and returns a Drop that leaves out the fields with the numbers, too.
func and(d wire.Drop, numbers ...int) wire.Drop {
	more := make(wire.Drop, max(len(d), slices.Max(numbers)+1))
	copy(more, d)
	for _, number := range numbers {
		more[number] = wire.Whole
	}
	return more
}

// notFacts are fields of a pod of which factsOf takes nothing, as heavyFields has them: nearly
// all of what a pod is.
var notFacts = wire.Drop{
	1: {11: wire.Whole, 13: wire.Whole, 14: wire.Whole, 17: wire.Whole}, // labels, ownerReferences, finalizers, managedFields
	2: {
		2: wire.Whole, 7: wire.Whole, 14: wire.Whole, 15: wire.Whole, 18: wire.Whole, 20: wire.Whole, 22: wire.Whole, 23: wire.Whole,
		26: wire.Whole, 28: wire.Whole, 33: wire.Whole, 34: wire.Whole, 39: wire.Whole, 40: wire.Whole,
	},
	// conditions, statuses, addresses
	3: {2: wire.Whole, 8: wire.Whole, 10: wire.Whole, 12: wire.Whole, 13: wire.Whole, 15: wire.Whole, 16: wire.Whole},
}

// reduce takes out of an object of a list what no explanation looks at, which is most of
// it: who has set which field of an object that nobody deletes, unless that may tell who
// made it, schemas, and what containers are given.
func reduce(resource schema.GroupVersionResource, o *unstructured.Unstructured) {
	if !keepsManagers(o, resource.Resource == "pods") {
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	}
	if annotations := o.GetAnnotations(); annotations[lastApplied] != "" {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", lastApplied)
	}
	switch resource.Resource {
	case "customresourcedefinitions":
		versions, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
		dropFromEach(versions, []string{"schema"})
	case "pods":
		reducePod(o.Object, "spec")
	case "deployments", "statefulsets", "daemonsets":
		reducePod(o.Object, "spec", "template", "spec")
	}
}

// keepsManagers reports whether it matters who has set which field of an object: when it is
// being deleted, and of a pod that no controller made.
func keepsManagers(o metav1.Object, isPod bool) bool {
	return o.GetDeletionTimestamp() != nil || isPod && metav1.GetControllerOfNoCopy(o) == nil
}

// reduceTyped is reduce for objects in Go's types, from which heavyFields were taken before
// they were decoded.
func reduceTyped(object runtime.Object) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	if _, isPod := object.(*corev1.Pod); !keepsManagers(o, isPod) {
		o.SetManagedFields(nil)
	}
	delete(o.GetAnnotations(), lastApplied)
}

// lastApplied is the annotation of kubectl apply, a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// reducePod reduces the pod's spec at the path.
func reducePod(object map[string]any, path ...string) {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	spec, ok := value.(map[string]any)
	if !ok {
		return
	}
	for _, field := range heavySpec {
		delete(spec, field)
	}
	reduceTolerations(spec)
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		dropFromEach(spec[list], heavyContainers)
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			reduceVariables(container["env"], len(path) > 1)
		}
	}
}

// reduceTolerations leaves those that may be about the taint with which Karpenter empties a node.
func reduceTolerations(spec map[string]any) {
	all, _ := spec["tolerations"].([]any)
	kept := slices.DeleteFunc(all, func(t any) bool {
		toleration, _ := t.(map[string]any)
		key, _ := toleration["key"].(string)
		return !strings.HasPrefix(key, "karpenter.sh/") && (key != "" || toleration["operator"] != "Exists")
	})
	if len(kept) == 0 {
		delete(spec, "tolerations")
	} else {
		spec["tolerations"] = kept
	}
}

// dropFromEach deletes fields from each object of a list.
func dropFromEach(list any, fields []string) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		object, _ := entry.(map[string]any)
		for _, field := range fields {
			delete(object, field)
		}
	}
}

// reduceVariables leaves the names of variables, and of a template the values that are not those of other objects.
func reduceVariables(list any, template bool) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		object, _ := entry.(map[string]any)
		maps.DeleteFunc(object, func(field string, _ any) bool { return field != "name" && !template })
		from, _ := object["valueFrom"].(map[string]any)
		maps.DeleteFunc(from, func(field string, _ any) bool { return field != "fieldRef" })
	}
}
