// SPDX-License-Identifier: Apache-2.0

// Package differential holds the engine to the garbage collector: generated
// scenarios are executed by the Collector in the simulator, by the Collector on
// a kube-apiserver, and by the garbage collector of kube-controller-manager,
// and what is left has to be the same, object by object.
//
// Where the garbage collector's own races have several ends, model says which
// they are, and each execution may have any of these.
package differential
