// SPDX-License-Identifier: Apache-2.0

// Package check finds owner references that are wrong, and says what the
// garbage collector does about each. It looks at a graph and at nothing else:
// it asks no server and prints nothing.
//
// An owner that could not be looked for is never a finding. It is counted in
// Report.Unchecked, and a conclusion that it could change says so.
//
// What the garbage collector does comes from
// k8s.io/kubernetes/pkg/controller/garbagecollector: attemptToDeleteItem,
// classifyReferences and isDangling in garbagecollector.go, deleteOwnerRefs in
// patch.go.
package check
