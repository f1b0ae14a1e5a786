// SPDX-License-Identifier: Apache-2.0

// Package render writes answers: trees, tables, pictures in DOT, and the
// versioned documents behind -o json and -o yaml. It decides nothing and reads
// nothing but its arguments.
package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// APIVersion is the version of every document.
const APIVersion = "kubectl-gc/v1"

// ObjectReference says which object is meant.
type ObjectReference struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Resource   string    `json:"resource"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
}

// NewObjectReference describes an identity.
func NewObjectReference(id graph.Identity) ObjectReference {
	apiVersion, kind := id.Resource.GroupVersionKind().ToAPIVersionAndKind()
	return ObjectReference{
		APIVersion: apiVersion, Kind: kind, Resource: id.Resource.Resource,
		Namespace: id.Namespace, Name: id.Name, UID: id.UID,
	}
}

// Unlisted is something that could not be read.
type Unlisted struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// NewUnlisted describes what a snapshot could not read.
func NewUnlisted(s *graph.Snapshot) []Unlisted {
	unlisted := []Unlisted{}
	for _, u := range s.Unlisted() {
		unlisted = append(unlisted, Unlisted{
			Group: u.Group, Version: u.Version, Resource: u.Resource,
			Namespace: u.Namespace, Name: u.Name, Reason: string(u.Reason), Message: u.Message,
		})
	}
	return unlisted
}

// head begins a document.
type head struct {
	metav1.TypeMeta `json:",inline"`
	// Cluster is the one that the document is about, nil for a file.
	Cluster *answer.Where `json:"cluster,omitempty"`
}

func headOf(kind string) head {
	return head{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: kind}}
}

// In says which cluster the document is about.
func (h *head) In(where *answer.Where) { h.Cluster = where }

// Graph is the document that tree prints.
type Graph struct {
	head     `json:",inline"`
	Complete bool        `json:"complete"`
	Unlisted []Unlisted  `json:"unlisted"`
	Roots    []types.UID `json:"roots"`
	Nodes    []Node      `json:"nodes"`
}

// Node is an object in a Graph document.
type Node struct {
	ObjectReference            `json:",inline"`
	ResourceVersion            string       `json:"resourceVersion"`
	CreationTimestamp          *metav1.Time `json:"creationTimestamp"`
	DeletionTimestamp          *metav1.Time `json:"deletionTimestamp,omitempty"`
	DeletionGracePeriodSeconds *int64       `json:"deletionGracePeriodSeconds,omitempty"`
	Finalizers                 []string     `json:"finalizers"`
	Virtual                    bool         `json:"virtual"`
	BeingDeleted               bool         `json:"beingDeleted"`
	DeletingDependents         bool         `json:"deletingDependents"`
	Owners                     []Owner      `json:"owners"`
}

// Owner is an owner reference in a Graph document.
type Owner struct {
	APIVersion         string    `json:"apiVersion"`
	Kind               string    `json:"kind"`
	Name               string    `json:"name"`
	UID                types.UID `json:"uid"`
	Controller         bool      `json:"controller"`
	BlockOwnerDeletion bool      `json:"blockOwnerDeletion"`
	State              string    `json:"state"`
	Reason             string    `json:"reason,omitempty"`
}

// NewGraph returns the document of the nodes that a forest shows.
func NewGraph(s *graph.Snapshot, forest graph.Forest) *Graph {
	document := &Graph{
		head:     headOf("Graph"),
		Complete: s.Complete(),
		Unlisted: NewUnlisted(s),
		Roots:    []types.UID{},
		Nodes:    []Node{},
	}
	for _, root := range forest.Roots {
		document.Roots = append(document.Roots, root.UID())
	}
	for _, n := range forest.Nodes.Sorted() {
		document.Nodes = append(document.Nodes, newNode(n))
	}
	return document
}

func newNode(n graph.Node) Node {
	o := n.Object()
	node := Node{
		ObjectReference:            NewObjectReference(n.Identity()),
		ResourceVersion:            o.ResourceVersion,
		DeletionTimestamp:          o.DeletionTimestamp,
		DeletionGracePeriodSeconds: o.DeletionGracePeriodSeconds,
		Finalizers:                 append([]string{}, o.Finalizers...),
		Virtual:                    n.Virtual(),
		BeingDeleted:               n.BeingDeleted(),
		DeletingDependents:         n.DeletingDependents(),
		Owners:                     []Owner{},
	}
	if !o.CreationTimestamp.IsZero() {
		node.CreationTimestamp = &o.CreationTimestamp
	}
	for _, ref := range n.Owners() {
		node.Owners = append(node.Owners, Owner{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID,
			Controller:         ref.Controller != nil && *ref.Controller,
			BlockOwnerDeletion: ref.Blocking(),
			State:              ref.State.String(),
			Reason:             ref.Reason.String(),
		})
	}
	return node
}

// DeepCopyObject implements runtime.Object, which the printers of cli-runtime
// ask for. Documents are never changed, so the copy is shallow.
func (g *Graph) DeepCopyObject() runtime.Object {
	document := *g
	return &document
}
