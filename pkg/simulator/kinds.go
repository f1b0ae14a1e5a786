// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The resources that the API server treats in a way of their own.
var (
	podResource       = schema.GroupResource{Resource: "pods"}
	nodeResource      = schema.GroupResource{Resource: "nodes"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	serviceResource   = schema.GroupResource{Resource: "services"}
	endpointsResource = schema.GroupResource{Resource: "endpoints"}
	crdResource       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	priorityResource  = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}
)

func is(o *graph.Object, resource schema.GroupResource) bool {
	return o.Resource.Group == resource.Group && o.Resource.Resource == resource.Resource
}

// defaultPolicy is what a type's DELETE does with dependents when neither the
// request nor a finalizer says (rest.GarbageCollectionDeleteStrategy).
type defaultPolicy int

const (
	// deleteDependents: no finalizer; the garbage collector deletes them.
	deleteDependents defaultPolicy = iota
	orphanDependents
	// unsupported: the type's objects have no dependents; policies are ignored.
	unsupported
)

// defaultPolicies lists the types whose default is not deleteDependents, by the
// version that is asked for (DefaultGarbageCollectionPolicy in the strategies of
// pkg/registry/core/replicationcontroller, batch/job and core/event; the rest is
// what older servers did).
var defaultPolicies = map[schema.GroupVersionResource]defaultPolicy{
	{Version: "v1", Resource: "replicationcontrollers"}:                orphanDependents,
	{Group: "batch", Version: "v1", Resource: "jobs"}:                  orphanDependents,
	{Group: "batch", Version: "v1beta1", Resource: "cronjobs"}:         orphanDependents,
	{Group: "batch", Version: "v2alpha1", Resource: "cronjobs"}:        orphanDependents,
	{Group: "extensions", Version: "v1beta1", Resource: "deployments"}: orphanDependents,
	{Group: "extensions", Version: "v1beta1", Resource: "daemonsets"}:  orphanDependents,
	{Group: "extensions", Version: "v1beta1", Resource: "replicasets"}: orphanDependents,
	{Group: "apps", Version: "v1beta1", Resource: "deployments"}:       orphanDependents,
	{Group: "apps", Version: "v1beta1", Resource: "statefulsets"}:      orphanDependents,
	{Group: "apps", Version: "v1beta2", Resource: "deployments"}:       orphanDependents,
	{Group: "apps", Version: "v1beta2", Resource: "daemonsets"}:        orphanDependents,
	{Group: "apps", Version: "v1beta2", Resource: "replicasets"}:       orphanDependents,
	{Group: "apps", Version: "v1beta2", Resource: "statefulsets"}:      orphanDependents,
	{Version: "v1", Resource: "events"}:                                unsupported,
	{Group: "events.k8s.io", Version: "v1", Resource: "events"}:        unsupported,
	{Group: "events.k8s.io", Version: "v1beta1", Resource: "events"}:   unsupported,
}

// systemPriorityClasses may not be deleted (registry/scheduling/priorityclass/
// storage, Delete).
var systemPriorityClasses = []string{"system-cluster-critical", "system-node-critical"}

// immortalNamespaces may not be deleted (apiserver/pkg/admission/plugin/
// namespace/lifecycle). kube-node-lease is not among them.
var immortalNamespaces = []string{"default", "kube-system", "kube-public"}
