// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"net/url"
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a type that the API server serves, as discovery describes it.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// GroupVersionKind returns the kind of the resource's objects.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// IsNamespace reports whether the resource is that of Namespaces.
func (r Resource) IsNamespace() bool {
	return r.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// IsPod reports whether the resource is that of Pods.
func (r Resource) IsPod() bool { return r.GroupResource() == schema.GroupResource{Resource: "pods"} }

// IsNode reports whether the resource is that of Nodes.
func (r Resource) IsNode() bool { return r.GroupResource() == schema.GroupResource{Resource: "nodes"} }

// IsCRD reports whether the resource is that of CustomResourceDefinitions.
func (r Resource) IsCRD() bool {
	return r.GroupResource() == schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
}

// Path returns the segments of the URL of an object of the type, or without a
// name that of their list; without a namespace the list of all.
func (r Resource) Path(namespace, name string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	path = append(path, r.Resource)
	if name != "" {
		path = append(path, name)
	}
	return path
}

// Identity says which object is meant. It is comparable.
//
// The plural Resource.Resource is empty for a missing owner whose stated kind
// the server does not serve.
type Identity struct {
	Resource  Resource
	Namespace string
	Name      string
	UID       types.UID
}

// Unidentified is the place of an object, whichever is there.
func (i Identity) Unidentified() Identity {
	i.UID = ""
	return i
}

// Compare orders identities by kind, group, namespace, name, UID and version:
// the order of every list that the project prints.
func (i Identity) Compare(j Identity) int {
	return cmp.Or(
		cmp.Compare(i.Resource.Kind, j.Resource.Kind),
		cmp.Compare(i.Resource.Group, j.Resource.Group),
		cmp.Compare(i.Namespace, j.Namespace),
		cmp.Compare(i.Name, j.Name),
		cmp.Compare(i.UID, j.UID),
		cmp.Compare(i.Resource.Version, j.Resource.Version),
	)
}

// URLPath returns the path of the object's URL, or without a name that of the list
// of its type.
func (i Identity) URLPath() string { return string(i.AppendURLPath(nil)) }

// AppendURLPath appends what URLPath returns.
func (i *Identity) AppendURLPath(path []byte) []byte {
	add := func(segment string) { path = append(append(path, '/'), url.PathEscape(segment)...) }
	if i.Resource.Group == "" {
		add("api")
	} else {
		add("apis")
		add(i.Resource.Group)
	}
	add(i.Resource.Version)
	if i.Namespace != "" {
		add("namespaces")
		add(i.Namespace)
	}
	add(i.Resource.Resource)
	if i.Name != "" {
		add(i.Name)
	}
	return path
}

// String returns Kind/name, or Kind/namespace/name for a namespaced object.
// Without a name it is the kind: the whole type is meant.
func (i Identity) String() string {
	if i.Name == "" {
		return i.Resource.Kind
	}
	if i.Namespace == "" {
		return i.Resource.Kind + "/" + i.Name
	}
	return i.Resource.Kind + "/" + i.Namespace + "/" + i.Name
}

// Place is the namespace that the object is in, or that it is; empty for all others.
func (i Identity) Place() string {
	if i.Resource.IsNamespace() {
		return i.Name
	}
	return i.Namespace
}

// Object is what the graph needs to know of one object: no annotations, no
// managed fields, no spec.
type Object struct {
	// Resource is shared by all objects of a type and must not be changed.
	Resource          *Resource
	Namespace         string
	Name              string
	UID               types.UID
	ResourceVersion   string
	CreationTimestamp metav1.Time
	// DeletionTimestamp is nil unless the object is being deleted. For pods it
	// is the end of the grace period, for everything else the time of the
	// request.
	DeletionTimestamp          *metav1.Time
	DeletionGracePeriodSeconds *int64
	Finalizers                 []string
	OwnerReferences            []metav1.OwnerReference
	Labels                     map[string]string
}

// NewObject keeps what the graph needs of an object's metadata. It shares
// slices and maps with it.
func NewObject(resource *Resource, item metav1.Object) Object {
	return Object{
		Resource:                   resource,
		Namespace:                  item.GetNamespace(),
		Name:                       item.GetName(),
		UID:                        item.GetUID(),
		ResourceVersion:            item.GetResourceVersion(),
		CreationTimestamp:          item.GetCreationTimestamp(),
		DeletionTimestamp:          item.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: item.GetDeletionGracePeriodSeconds(),
		Finalizers:                 item.GetFinalizers(),
		OwnerReferences:            item.GetOwnerReferences(),
		Labels:                     item.GetLabels(),
	}
}

// Metadata is the reverse of NewObject: it shares slices and maps with the object.
func (o *Object) Metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:                  o.Namespace,
		Name:                       o.Name,
		UID:                        o.UID,
		ResourceVersion:            o.ResourceVersion,
		CreationTimestamp:          o.CreationTimestamp,
		DeletionTimestamp:          o.DeletionTimestamp,
		DeletionGracePeriodSeconds: o.DeletionGracePeriodSeconds,
		Finalizers:                 o.Finalizers,
		OwnerReferences:            o.OwnerReferences,
		Labels:                     o.Labels,
	}
}

// Identity returns the object's identity.
func (o *Object) Identity() Identity {
	return Identity{Resource: *o.Resource, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

// BeingDeleted reports whether the object has a deletion timestamp.
func (o *Object) BeingDeleted() bool { return o.DeletionTimestamp != nil }

// InGrace reports whether the object is being deleted and was given time to end.
func (o *Object) InGrace() bool {
	return o.BeingDeleted() && o.DeletionGracePeriodSeconds != nil && *o.DeletionGracePeriodSeconds > 0
}

// DeletingDependents reports whether the object is in foreground deletion: it
// has a deletion timestamp and the finalizer foregroundDeletion
// (garbagecollector/graph_builder.go, deletionStartsWithFinalizer).
func (o *Object) DeletingDependents() bool {
	return o.BeingDeleted() && o.HasFinalizer(metav1.FinalizerDeleteDependents)
}

// OrphaningDependents reports whether the object is being deleted and its dependents
// are to stay: it has a deletion timestamp and the finalizer orphan
// (garbagecollector/graph_builder.go, deletionStartsWithFinalizer).
func (o *Object) OrphaningDependents() bool {
	return o.BeingDeleted() && o.HasFinalizer(metav1.FinalizerOrphanDependents)
}

// IsCollectorFinalizer reports whether the finalizer is one of the two that the
// garbage collector takes off.
func IsCollectorFinalizer(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// HasFinalizer reports whether the object carries the finalizer.
func (o *Object) HasFinalizer(finalizer string) bool {
	return slices.Contains(o.Finalizers, finalizer)
}

// SortByIdentity sorts values by an identity that they have; values with the same one are in any order. Unlike slices.SortFunc it is not
// compiled anew for each type, which makes 15 kB of a program for a large one.
func SortByIdentity[T any](all []T, of func(*T) Identity) {
	sort.Slice(all, func(i, j int) bool { return of(&all[i]).Compare(of(&all[j])) < 0 })
}
