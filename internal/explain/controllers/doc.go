// SPDX-License-Identifier: Apache-2.0

// Package controllers finds out who removes a finalizer from an object, and whether
// that works: which workloads there are (workload.go), what their accounts may do
// (rights.go), what points at one of them (search.go, signs.go), which it is
// (choose.go), whether it runs (liveness.go, leader.go), and what it says about the
// object (progress.go). What there is, is what its reader sees, which may leave out
// what is about to go. It creates no cause, and words no way out.
package controllers
