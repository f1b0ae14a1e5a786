// SPDX-License-Identifier: Apache-2.0

// Package explain finds out why objects that are being deleted are still
// there: from each object down to the causes that hold it up, with evidence
// and the ways out.
//
// The garbage collector's algorithm is run on a simulation of the cluster with
// no new delete. What that completes is only pending, and the question is
// whether a garbage collector works; what it leaves waits for something, which
// the walk follows through blocking dependents, namespaces and their content,
// definitions and their instances, claims and their pods, to the last object.
//
// Age alone proves nothing, and what could not be read is never taken as
// absent: the verdict is Unknown then.
package explain
