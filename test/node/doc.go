// SPDX-License-Identifier: Apache-2.0

// Package node runs real nodes for tests: containerd and a kubelet in
// namespaces of their own, so that a node can lose its power without a trace
// left on the machine. It shows what an object looks like when a node
// misbehaves in a way that only a real kubelet shows.
//
// It needs Linux, root, and containerd, runc and nsenter on the PATH (the
// Debian packages containerd, runc and util-linux); where one of them is
// missing, Start skips the test. Nodes are tainted by nobody and schedule
// nothing: tests bind pods to them by spec.nodeName.
package node
