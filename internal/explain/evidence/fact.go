// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Fact is one fact that a cause rests on.
type Fact struct {
	// Source names the object or the place that was read.
	Source say.Text
	// Path is a field path, empty when the source says it all.
	Path  string
	Value say.Text
}

// At is a fact about a field of what the source is: an object, or words for a place.
func At(source any, path string, value any) Fact {
	return Fact{say.Plain(source), path, say.Plain(value)}
}

// Object is what the source is, ok where that is an object.
func (f Fact) Object() (id graph.Identity, ok bool) {
	if _, of := f.Source.Find(""); len(of) == 1 {
		id, ok = of[0].(graph.Identity)
	}
	return id, ok
}

// Key is the fact as a string, to compare it.
func (f Fact) Key() string { return f.Source.String() + " " + f.Path + ": " + f.Value.String() }

// Equal reports whether two facts are the same.
func (f Fact) Equal(other Fact) bool { return f.Key() == other.Key() }

// The types that explanations know by name.
var (
	Pods               = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Nodes              = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Services           = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	Namespaces         = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Volumes            = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	Claims             = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	Secrets            = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ConfigMaps         = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	StatefulSets       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	Leases             = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	APIServices        = graph.APIServices
	ServiceAccounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	EndpointSlices     = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	CRDs               = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	ValidatingWebhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingwebhookconfigurations"}
	MutatingWebhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "mutatingwebhookconfigurations"}
	ClusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	AdmissionPolicies   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies"}
	PriorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	RuntimeClasses  = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
	ResourceQuotas  = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
)

// VolumeSnapshots and their contents (kubernetes-csi/external-snapshotter), whatever version is served.
var (
	Snapshots        = schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots"}
	SnapshotContents = schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents"}
)

// Copy is a type of snapshots of volumes with that of their contents, whose field spec.Ref names the snapshot.
type Copy struct {
	Of, Contents schema.GroupResource
	Kind, Ref    string // of the contents
}

// Has reports whether a type is one of the two.
func (c Copy) Has(of schema.GroupResource) bool { return of == c.Of || of == c.Contents }

// Copies are all of them.
var Copies = []Copy{
	{Snapshots, SnapshotContents, "VolumeSnapshotContent", "volumeSnapshotRef"},
	{
		schema.GroupResource{Group: "groupsnapshot.storage.k8s.io", Resource: "volumegroupsnapshots"},
		schema.GroupResource{Group: "groupsnapshot.storage.k8s.io", Resource: "volumegroupsnapshotcontents"}, "VolumeGroupSnapshotContent",
		"volumeGroupSnapshotRef",
	},
}

// KeepsData reports whether a type is that of claims or of snapshots: behind their objects there is data that goes with them.
func KeepsData(of schema.GroupResource) bool {
	return of == Claims.GroupResource() || slices.ContainsFunc(Copies, func(c Copy) bool { return of == c.Of })
}

// Stores reports whether a type is that of volumes or of the contents of snapshots: something behind their objects goes with them.
func Stores(of schema.GroupResource) bool {
	return of == Volumes.GroupResource() || slices.ContainsFunc(Copies, func(c Copy) bool { return of == c.Contents })
}

var kinds = map[schema.GroupVersionResource]string{
	Pods: "Pod", Nodes: "Node", Services: "Service", Namespaces: "Namespace", Claims: "PersistentVolumeClaim", Volumes: "PersistentVolume",
	Leases: "Lease", Secrets: "Secret", ConfigMaps: "ConfigMap",
	ServiceAccounts: "ServiceAccount", APIServices: "APIService", CRDs: "CustomResourceDefinition",
	AdmissionPolicies: "ValidatingAdmissionPolicy", ClusterRoleBindings: "ClusterRoleBinding",
	PriorityClasses: "PriorityClass", RuntimeClasses: "RuntimeClass", ResourceQuotas: "ResourceQuota",
}

// Identity names an object of one of these types that need not be in the graph.
func Identity(resource schema.GroupVersionResource, namespace, name string) graph.Identity {
	return graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: resource, Kind: kinds[resource], Namespaced: namespace != ""},
		Namespace: namespace, Name: name,
	}
}

// Named names an object of any kind.
func Named(kind, namespace, name string) graph.Identity {
	return graph.Identity{Resource: graph.Resource{Kind: kind}, Namespace: namespace, Name: name}
}
