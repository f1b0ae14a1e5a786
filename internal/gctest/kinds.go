// SPDX-License-Identifier: Apache-2.0

package gctest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// CustomGroup is the group of the custom resources that every world has.
const CustomGroup = "example.com"

// The resources that are needed to make room for scenarios.
var (
	Namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	CRDs       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// Kind is a type that scenarios speak of.
type Kind struct {
	// Word is what scenarios call it.
	Word string
	graph.Resource
	// Also are other versions that are served.
	Also []string
	// Spec is what an object needs besides metadata, nil for nothing.
	Spec map[string]any
}

// kinds are the types that every world has.
var kinds = []Kind{
	namespaced("configmap", "", "ConfigMap", "configmaps", nil),
	namespaced("secret", "", "Secret", "secrets", nil),
	namespaced("pod", "", "Pod", "pods", map[string]any{"spec": podSpec()}),
	namespaced("service", "", "Service", "services",
		map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}),
	namespaced("endpoints", "", "Endpoints", "endpoints", nil),
	namespaced("event", "", "Event", "events", map[string]any{"involvedObject": map[string]any{}}),
	namespaced("claim", "", "PersistentVolumeClaim", "persistentvolumeclaims", claim),
	namespaced("controller", "", "ReplicationController", "replicationcontrollers",
		map[string]any{"spec": map[string]any{"replicas": int64(0), "selector": labels, "template": podTemplate()}}),
	namespaced("deployment", "apps", "Deployment", "deployments", workload),
	namespaced("replicaset", "apps", "ReplicaSet", "replicasets", workload),
	namespaced("job", "batch", "Job", "jobs",
		map[string]any{"spec": map[string]any{"suspend": true, "template": jobTemplate()}}),
	clusterScoped("namespace", "", "Namespace", "namespaces"),
	clusterScoped("node", "", "Node", "nodes"),
	clusterScoped("clusterrole", "rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
	clusterScoped("crd", "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
	also("v1beta1", namespaced("widget", CustomGroup, "Widget", "widgets", nil)),
	clusterScoped("gadget", CustomGroup, "Gadget", "gadgets"),
}

var labels = map[string]any{"app": "gctest"}

var workload = map[string]any{"spec": map[string]any{
	"replicas": int64(0), "selector": map[string]any{"matchLabels": labels}, "template": podTemplate(),
}}

var claim = map[string]any{"spec": map[string]any{
	"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "",
	"resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
}}

func podSpec() map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}}
}

func podTemplate() map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec()}
}

func jobTemplate() map[string]any {
	spec := podSpec()
	spec["restartPolicy"] = "Never"
	return map[string]any{"spec": spec}
}

func namespaced(word, group, kind, plural string, spec map[string]any) Kind {
	k := clusterScoped(word, group, kind, plural)
	k.Namespaced, k.Spec = true, spec
	return k
}

func clusterScoped(word, group, kind, plural string) Kind {
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	return Kind{Word: word, Resource: graph.Resource{GroupVersionResource: gvr, Kind: kind}}
}

func also(version string, k Kind) Kind {
	k.Also = []string{version}
	return k
}

// Definitions are the kinds that must be made before a scenario can use them.
func Definitions() []Kind {
	var custom []Kind
	for _, k := range kinds {
		if k.Group == CustomGroup {
			custom = append(custom, k)
		}
	}
	return custom
}

// KindsOf returns the kinds with the words.
func KindsOf(words ...string) []Kind {
	var found []Kind
	for _, k := range kinds {
		if slices.Contains(words, k.Word) {
			found = append(found, k)
		}
	}
	return found
}

// ownKind returns the kind that a crd of a scenario defines in the group.
func ownKind(plural, group string, isNamespaced bool) Kind {
	word := strings.TrimSuffix(plural, "s")
	k := clusterScoped(word, group, strings.ToUpper(word[:1])+word[1:], plural)
	k.Namespaced = isNamespaced
	return k
}

// Definition returns the CustomResourceDefinition of the kind as it is created.
func (k Kind) Definition() map[string]any {
	var versions []any
	for i, version := range append([]string{k.Version}, k.Also...) {
		schema := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		versions = append(versions, map[string]any{
			"name": version, "served": true, "storage": i == 0, "schema": map[string]any{"openAPIV3Schema": schema},
		})
	}
	scope := "Cluster"
	if k.Namespaced {
		scope = "Namespaced"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.GroupResource().String()},
		"spec": map[string]any{
			"group": k.Group, "scope": scope, "versions": versions,
			"names": map[string]any{"plural": k.GroupVersionResource.Resource, "singular": k.Word, "kind": k.Kind},
		},
	}
}

// AddTo makes a mapper resolve the kind as client-go's does: in every served
// version, and in lower case too.
func (k Kind) AddTo(mapper *meta.DefaultRESTMapper) {
	scope := meta.RESTScopeRoot
	if k.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	for _, version := range append([]string{k.Version}, k.Also...) {
		gv := schema.GroupVersion{Group: k.Group, Version: version}
		plural := gv.WithResource(k.GroupVersionResource.Resource)
		mapper.AddSpecific(gv.WithKind(strings.ToLower(k.Kind)), plural, gv.WithResource(k.Word), scope)
		mapper.AddSpecific(gv.WithKind(k.Kind), plural, gv.WithResource(k.Word), scope)
	}
}
