// SPDX-License-Identifier: Apache-2.0

// Package cluster reads a live API server: fresh discovery, metadata lists
// into a graph.Snapshot, and the few whole objects or tables that a command
// shows. It is the only package that uses client-go for more than its
// configuration.
//
// A Reader sends GET requests and nothing else; its transport refuses the
// rest. Whatever it cannot read it reports in the snapshot as Unlisted.
package cluster
