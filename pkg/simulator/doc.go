// SPDX-License-Identifier: Apache-2.0

// Package simulator is an API server in memory: a gc.Server over a snapshot,
// with the delete semantics of kube-apiserver, so that what a deletion would do
// can be found out without doing it.
//
// Besides the API server it knows those who finish deletions in a real cluster
// (Actors): kubelets, pod garbage collection, the namespace controller and the
// owners of finalizers. The clean-up of custom resources is part of the API
// server and always there. What an actor would do only under a condition that
// metadata does not show is not guessed: the object stays, and its Fate says
// what is not known.
//
// A simulation starts at Options.Now and knows no other clock; the same calls
// in the same order give the same result. It never writes to the snapshot,
// copies only what changes, and reaches no cluster.
//
// The rules are those of k8s.io/apiserver/pkg/registry (rest/delete.go and
// generic/registry/store.go) and of the registries and controllers that the
// code names, version 1.36.
package simulator
