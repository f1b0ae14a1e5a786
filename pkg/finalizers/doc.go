// SPDX-License-Identifier: Apache-2.0

// Package finalizers knows who removes which finalizer: the product that it
// belongs to, the controller and where that usually runs, what it waits for,
// and what is left behind when somebody removes it by hand.
//
// The knowledge is data. Builtin returns what catalogue.yaml has, which is
// linked into the program and says at its top what an entry may state; Load
// reads more of the same form from a user, and Merge puts that first.
//
// A match is knowledge about a string and nothing else. It never says that the
// controller is there, or not there, or works: that takes evidence from the
// cluster, to which an entry only points. And where Entry.OffCluster is set,
// not finding a controller is no evidence either.
package finalizers
