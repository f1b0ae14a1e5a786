// SPDX-License-Identifier: Apache-2.0

// Package graph holds the ownership graph of a cluster as Kubernetes' garbage
// collector sees it: nodes are objects keyed by UID, edges are owner
// references, and every reference has a state (solid, dangling, waiting for
// dependents' deletion, or unknown) with the reason for it.
//
// A Snapshot is what was read from a cluster, with what could not be read. New
// builds a Graph from it. Nothing in this package talks to a cluster, and what
// was not read is never taken as absent: a reference whose owner could not be
// looked for is Unknown.
//
// The rules come from k8s.io/kubernetes/pkg/controller/garbagecollector
// (graph.go, graph_builder.go and classifyReferences in garbagecollector.go).
package graph
