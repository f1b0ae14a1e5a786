// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
)

// container is what of a container says nothing of whether its pod runs, what that holds, or who it is.
func container(env cut) cut {
	return cut{"env": env}.and("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "securityContext", "volumeMounts",
		"ports", "envFrom")
}

// podSpec is the same of a pod's spec.
func podSpec(container cut) cut {
	spec := cuts("affinity", "topologySpreadConstraints", "dnsConfig", "hostAliases", "securityContext", "imagePullSecrets")
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		spec[list] = container
	}
	return spec
}

// template is what is left out of a workload's template for pods.
func template(spec cut) cut { return cut{"spec": {"template": {"spec": spec}}} }

var (
	// ofPod leaves the names of variables, and ofTemplate their values, too, if they are not those of other objects.
	ofPod      = podSpec(container(cuts("value", "valueFrom")))
	ofTemplate = container(cut{"valueFrom": cuts("resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")})
	// heavy are, by resource, what reduce leaves nothing of.
	heavy = map[string]cut{
		"customresourcedefinitions": {"spec": {"versions": cuts("schema")}},
		"pods":                      {"spec": ofPod},
		"deployments":               template(podSpec(ofTemplate)),
		"statefulsets":              template(podSpec(ofTemplate)),
		"daemonsets":                template(podSpec(ofTemplate)),
	}
)

// heavyFields are what is not even decoded of objects in protobuf: what reduce leaves nothing of, and of workloads all else of which nobody
// asks.
var heavyFields = func() map[schema.GroupResource]wire.Drop {
	ofContainer := ofTemplate.and("workingDir", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "volumeDevices",
		"resizePolicy", "restartPolicy", "restartPolicyRules")
	ofSpec := podSpec(nil).and("volumes", "initContainers", "ephemeralContainers", "restartPolicy", "terminationGracePeriodSeconds",
		"activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccount", "nodeName", "hostname", "subdomain", "schedulerName", "tolerations",
		"priorityClassName", "readinessGates", "runtimeClassName", "preemptionPolicy", "overhead", "os", "schedulingGates", "resourceClaims",
		"resources", "hostnameOverride")
	ofSpec["containers"] = ofContainer
	workload := func(spec, status cut) cut {
		spec["template"] = cut{"spec": ofSpec}
		return cut{"spec": spec, "status": status,
			"metadata": cuts("generateName", "selfLink", "resourceVersion", "ownerReferences", "finalizers", "managedFields")}
	}
	return map[schema.GroupResource]wire.Drop{
		{Resource: "pods"}: cut{"spec": ofPod.and("tolerations")}.drop(reflect.TypeFor[corev1.Pod]()),
		{Group: "apps", Resource: "deployments"}: workload(cuts("strategy", "revisionHistoryLimit", "progressDeadlineSeconds"), cut{}).
			drop(reflect.TypeFor[appsv1.Deployment]()),
		{Group: "apps", Resource: "statefulsets"}: workload(cuts("volumeClaimTemplates", "serviceName", "podManagementPolicy", "updateStrategy",
			"revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "ordinals"), nil).drop(reflect.TypeFor[appsv1.StatefulSet]()),
		{Group: "apps", Resource: "daemonsets"}: workload(cuts("updateStrategy", "revisionHistoryLimit"), cuts("collisionCount", "conditions")).
			drop(reflect.TypeFor[appsv1.DaemonSet]()),
	}
}()

// heavyOfMostPods are the heavyFields of those of which it does not matter who has set which
// field.
var heavyOfMostPods = cut{"spec": ofPod.and("tolerations"), "metadata": cuts("managedFields")}.drop(reflect.TypeFor[corev1.Pod]())

// notFacts are fields of a pod of which factsOf takes nothing: nearly all of what a pod is.
var notFacts = cut{
	"metadata": cuts("labels", "ownerReferences", "finalizers", "managedFields"),
	"spec": cuts("containers", "initContainers", "ephemeralContainers", "nodeSelector", "securityContext", "imagePullSecrets", "affinity",
		"tolerations", "hostAliases", "dnsConfig", "readinessGates", "topologySpreadConstraints", "resourceClaims", "resources"),
	"status": cuts("conditions", "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses", "podIPs", "hostIPs",
		"resourceClaimStatuses"),
}.drop(reflect.TypeFor[corev1.Pod]())

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
	heavy[resource.Resource].from(o.Object)
	path := []string{"spec", "template", "spec"}
	if resource.Resource == "pods" {
		path = path[2:]
	} else if heavy[resource.Resource]["spec"]["template"] == nil {
		return
	}
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	if spec, ok := value.(map[string]any); ok {
		reduceTolerations(spec)
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
