// SPDX-License-Identifier: Apache-2.0

// Package differential holds the engine to the garbage collector: generated
// scenarios are executed by the Collector in the simulator, by the Collector on
// a kube-apiserver, and by the garbage collector of kube-controller-manager,
// and what is left has to be the same, object by object.
//
// Every run of the Collector has a plan, made in the simulator from what the run
// starts with. They have to agree, and the plan with its own steps and with what
// then is.
//
// Where the garbage collector's own races have several ends, model says which
// they are, and each execution may have any of these.
package differential
