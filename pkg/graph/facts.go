// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"k8s.io/apimachinery/pkg/types"
)

// Facts are what a prediction needs to know beyond metadata, by UID. What is
// missing from a map was not read.
type Facts struct {
	Pods       map[types.UID]PodFacts
	Namespaces map[types.UID]NamespaceFacts
	CRDs       map[types.UID]CRDFacts
	// Volumes are the UIDs of the claims to which PersistentVolumes are bound, empty for those that are not.
	Volumes map[types.UID]types.UID
	// Nodes says by name whether a node's kubelet is reporting.
	Nodes map[string]bool
	// NodesRead: a node that a pod names and that is not in Nodes does not
	// exist. Otherwise it may.
	NodesRead bool
}

// PodFacts decide how a pod is deleted (registry/core/pod/strategy.go,
// CheckGracefulDelete).
type PodFacts struct {
	NodeName string
	// Phase is status.phase.
	Phase string
	// TerminationGracePeriodSeconds is that of the spec.
	TerminationGracePeriodSeconds int64
	// Mirror: the pod is the mirror of a static pod, which the kubelet makes
	// again.
	Mirror bool
	// Claims are the names of the PersistentVolumeClaims that it uses, those of its
	// ephemeral volumes included.
	Claims []string
}

// NamespaceFacts decide when a namespace is gone.
type NamespaceFacts struct {
	// Finalizers are those of the spec.
	Finalizers []string
}

// CRDFacts tell which instances a CustomResourceDefinition has.
type CRDFacts struct {
	Group       string
	Plural      string
	Established bool
}
