// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIServices is the type of the objects that say who serves a group version.
var APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Local reports whether kube-apiserver itself serves the types of the group
// version, and not an aggregated API, to which an APIService with a service
// forwards all requests. Only of kube-apiserver is it known that it carries no
// dry run out, so nothing else is sent one. read reads the APIService of that
// name; when it fails there is no telling.
func Local(gv schema.GroupVersion, read func(name string) (*unstructured.Unstructured, error)) (bool, error) {
	if BuiltinGroup(gv.Group) {
		return true, nil
	}
	registered, err := read(gv.Version + "." + gv.Group)
	if err != nil {
		return false, err
	}
	service, _, err := unstructured.NestedFieldNoCopy(registered.Object, "spec", "service")
	return service == nil && err == nil, err
}

// BuiltinGroup reports whether the group can only be kube-apiserver's own.
func BuiltinGroup(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io",
		"scheduling.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io",
		"events.k8s.io", "internal.apiserver.k8s.io", "storagemigration.k8s.io":
		return true
	}
	return false
}
