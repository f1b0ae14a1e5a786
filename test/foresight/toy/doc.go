// SPDX-License-Identifier: Apache-2.0

// Package toy is an operator as there are many: it elects a leader by a Lease,
// keeps a finalizer on the objects of its types, and takes it off those that are
// being deleted, after some time of cleaning up. If told to, it serves an admission
// webhook, a conversion webhook and an aggregated API.
//
// It is what the containers of Image run. A fake node runs no containers, so
// [Nodes] stands in for what runs them: an operator works as long as its pod does,
// with a token of the pod's service account that dies with either, and it is
// reached at the pod's address through [Network].
package toy
