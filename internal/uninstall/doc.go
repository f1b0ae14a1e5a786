// SPDX-License-Identifier: Apache-2.0

// Package uninstall says what a tool deletes when it removes what it has deployed: which objects, in which order, and with which
// propagation; what it keeps, and why; and what nobody can know beforehand. The rules are those of the tools, of which the comments
// name the files. What becomes of the objects in that order is for internal/preview and internal/foresight to say. It reaches no cluster
// but through evidence.Reader, and changes nothing.
package uninstall
