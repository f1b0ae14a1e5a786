// SPDX-License-Identifier: Apache-2.0

// Package foresight holds previews of deletions to what happens. Its tests set up
// operators with all that belongs to them, in the layouts of layouts_test.go, and
// compare for each what "kubectl gc delete --dry-run" says, what is left when kubectl
// deletes the same objects, and what --order=safe leaves.
//
// The operators work: see package toy. Every copy of a layout has an API group,
// namespaces and names of its own, so that many are on one control plane; only those
// that harm the whole cluster have one for themselves.
package foresight
