// SPDX-License-Identifier: Apache-2.0

// Package gc is the garbage collector's deletion algorithm: what happens to
// dependents when an owner goes. Classify and Decide are pure; the Collector
// runs them against a Server until nothing is left to do.
//
// The rules are those of k8s.io/kubernetes/pkg/controller/garbagecollector,
// version 1.36 (attemptToDeleteItem, processDeletingDependentsItem,
// orphanDependents and processGraphChanges); docs/internals/preview.md lists where
// this engine differs, and docs/internals/proofs.md why it needs no GET for each item.
//
// The engine does not know whether its Server is a cluster or a simulation: a
// preview is the same code as the run.
package gc
