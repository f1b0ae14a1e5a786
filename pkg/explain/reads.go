// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// place is what a read asks for.
type place struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (p place) String() string {
	name := p.resource.GroupResource().String()
	if p.name != "" {
		name += "/" + p.name
	}
	if p.namespace != "" {
		name += " in namespace " + p.namespace
	}
	return name
}

type reading struct {
	object *unstructured.Unstructured
	err    error
}

type listing struct {
	items []unstructured.Unstructured
	err   error
}

var (
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	services        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	claims          = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	leases          = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	apis            = graph.APIServices
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	slicesOf        = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

var kinds = map[schema.GroupVersionResource]string{
	pods: "Pod", nodes: "Node", services: "Service", namespaces: "Namespace", claims: "PersistentVolumeClaim", leases: "Lease", serviceAccounts: "ServiceAccount", apis: "APIService",
	crds: "CustomResourceDefinition", admissionPolicies: "ValidatingAdmissionPolicy",
}

// identity names an object that need not be in the graph.
func identity(resource schema.GroupVersionResource, namespace, name string) graph.Identity {
	return graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: resource, Kind: kinds[resource], Namespaced: namespace != ""},
		Namespace: namespace, Name: name,
	}
}

// full reads a whole object, once.
func (w *walker) full(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	p := place{resource, namespace, name}
	r, known := w.read[p]
	if !known {
		r.object, r.err = w.Cluster.Read(w.ctx, resource, namespace, name)
		w.read[p] = r
		w.note(p, r.err)
	}
	return r.object, r.err
}

// fullOf reads the whole of a node. Another object of its name is an error.
func (w *walker) fullOf(n graph.Node) (*unstructured.Unstructured, error) {
	id := n.Identity()
	o, err := w.full(id.Resource.GroupVersionResource, id.Namespace, id.Name)
	if err == nil && o.GetUID() != id.UID {
		return nil, apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
	}
	return o, err
}

// maxPodReads is the number of terminating pods in a namespace up to which each
// is read by itself; of more, the namespace is listed.
const maxPodReads = 20

// fullPod reads the whole of a pod.
func (w *walker) fullPod(n graph.Node) (*unstructured.Unstructured, error) {
	namespace, terminating := n.Namespace(), 0
	if _, listed := w.lists[place{pods, namespace, ""}]; !listed {
		for _, m := range w.contents[namespace] {
			if m.BeingDeleted() && m.Resource().GroupResource() == pods.GroupResource() {
				terminating++
			}
		}
		if terminating <= maxPodReads {
			return w.fullOf(n)
		}
	}
	return w.inList(n, namespace)
}

// inList finds the whole of a node in the list of its type, in the namespace or
// everywhere.
func (w *walker) inList(n graph.Node, namespace string) (*unstructured.Unstructured, error) {
	p := place{resource: n.Resource().GroupVersionResource, namespace: namespace}
	items, err := w.all(p.resource, namespace)
	if err != nil {
		return nil, err
	}
	index := w.indexes[p]
	if index == nil {
		index = map[types.UID]*unstructured.Unstructured{}
		for i := range items {
			index[items[i].GetUID()] = &items[i]
		}
		w.indexes[p] = index
	}
	if full := index[n.UID()]; full != nil {
		return full, nil
	}
	return nil, apierrors.NewNotFound(p.resource.GroupResource(), n.Object().Name)
}

// all lists whole objects, once.
func (w *walker) all(resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	p := place{resource, namespace, ""}
	l, known := w.lists[p]
	if !known {
		l.items, l.err = w.Cluster.List(w.ctx, resource, namespace)
		w.lists[p] = l
		w.note(p, l.err)
	}
	return l.items, l.err
}

// note keeps what could not be read.
func (w *walker) note(p place, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		w.unreadable = append(w.unreadable, fmt.Sprintf("%s: %v", p, err))
	}
}

// gone is a hold by an object that went away while it was looked at.
func gone() []hold { return []hold{{because: "it went away while it was looked at"}} }

// unread is the cause of an object of which something that decides could not be
// read.
func (w *walker) unread(n graph.Node, because, what string, err error) []hold {
	return []hold{{because: because, cause: w.cause("unread", n.Identity(), what, func(c *Cause) {
		c.Summary = what + " could not be read, so what holds it is not known"
		c.Evidence = []Evidence{{Source: what, Value: err.Error()}}
	})}}
}

// condition is an entry of status.conditions.
type condition struct {
	kind, status, reason, message string
	since                         time.Time
}

func conditions(o *unstructured.Unstructured) []condition {
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var result []condition
	for _, entry := range entries {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		c := condition{kind: text(fields["type"]), status: text(fields["status"]), reason: text(fields["reason"]), message: text(fields["message"])}
		c.since, _ = time.Parse(time.RFC3339, text(fields["lastTransitionTime"]))
		result = append(result, c)
	}
	return result
}

func conditionOf(o *unstructured.Unstructured, kind string) (condition, bool) {
	for _, c := range conditions(o) {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{kind: kind}, false
}

func (c condition) evidence(source string) Evidence {
	value := cmp.Or(c.status, "not set")
	if c.reason != "" {
		value += " (" + c.reason + ")"
	}
	if c.message != "" {
		value += ": " + c.message
	}
	return Evidence{Source: source, Path: fmt.Sprintf("status.conditions[%s]", c.kind), Value: value}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func nested(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}
