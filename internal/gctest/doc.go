// SPDX-License-Identifier: Apache-2.0

// Package gctest is the conformance suite for everything that a gc.Collector
// can work against, as testing/fstest is for file systems: scenarios in a small
// language, and Run, which plays one in a World. The same scenarios are played
// in the simulator and on a real kube-apiserver, so that the prediction and the
// deletion are held to the same text.
//
// A scenario says what exists, what is done, and what is left when nothing
// moves any more:
//
//	== D2/D3: dependents that do not block are deleted and not waited for
//	objects
//	  configmap/owner
//	  configmap/blocking < owner!
//	  configmap/loose    < owner~ finalizers=example.com/hold
//	delete configmap/owner Foreground
//	expect
//	  configmap/owner    gone
//	  configmap/blocking gone
//	  configmap/loose    terminating example.com/hold
//
// The scenarios under testdata are named after the rules that they hold: B of references, C of attempts, D of owners
// that are finished, E of the API server, W of waves.
//
// # Objects
//
// An object is kind/name. It lives in the scenario's namespace unless another
// stands before it, as in other:configmap/x, or its kind has none. The kinds
// are in kinds.go; among them are two custom resources, widget (namespaced) and
// gadget (cluster-scoped). A scenario that has crd/things, or crd/things
// cluster, has a kind thing of its own.
//
// What may stand behind it:
//
//	< owner! other:configmap/x~   owner references, see below
//	finalizers=a,b
//	deleting=Foreground           a user's DELETE before the first action, with
//	                              this policy, or with no options: default
//	later                         is created by an action
//	node=n phase=Failed grace=30  of pods
//	ready                         of nodes: the kubelet reports
//
// An owner is the name of an object, with its kind where that is not clear.
// Flags behind it set blockOwnerDeletion, ! to true and ~ to false, and * sets
// controller. What the reference states wrongly stands in braces: owner{name=x},
// {kind=Secret}, {apiVersion=v9}, {uid=nobody}, {uid=configmap/x}. The uid of
// nobody is that of no object; nobody2 and so on are others. With such a uid
// the object need not be there.
//
// # Actions
//
//	delete PATH... POLICY [grace=0]      what the Collector is for; "then" between
//	                                     paths begins the next wave, "early" stands
//	                                     before one that is no target of the user's
//	collect                              a pass of the garbage collector
//	collect in other [only]              one that is limited to a namespace
//	user delete PATH [POLICY] [grace=0] [uid=nobody] [version=stale] [orphanDependents=true] [dryRun] [-> 409]
//	user patch PATH [< owners] [finalizers=a,b]
//	user create PATH
//	user drop crd/things
//
// The scenario's own namespace is called . where a collection is limited to it.
// With only, nothing else is read, but for owners that have no namespace.
//
// What the user does is a plain request, and succeeds unless another status is
// given. To drop a definition is a deletecollection: it goes at once, and its
// instances stay in storage, where nobody sees them. They count as gone until it
// is created again.
//
// # Expectations
//
//	PATH gone
//	PATH intact [< owners]
//	PATH terminating FINALIZERS [< owners]
//
// Owner references are the declared ones unless given; a lone < is none.
// Finalizers are compared as a set, and - is none. Every object has a line.
// Where the garbage collector's own races have several ends, each stands behind
// either and or, and replaces what it speaks of:
//
//	expect
//	  configmap/a gone
//	either
//	  configmap/b gone
//	or
//	  configmap/b intact <
//
// Two more blocks are held only where the order of requests is fixed: steps
// lists the Collector's writes in order, and outcome says what its report tells
// of some objects.
//
//	steps
//	  Delete configmap/owner Foreground
//	  RemoveFinalizer configmap/owner foregroundDeletion
//	outcome
//	  configmap/owner Deleted
//	  configmap/loose Remaining finalizer example.com/hold
//
// A line "needs namespace-controller" before the objects, or kubelets, podgc,
// or simulation, says that the scenario has someone who works besides the API
// server, or cannot happen elsewhere; endpoints-storage, that the API server is one that
// deletes Endpoints itself. What follows on the line says why.
package gctest
