// SPDX-License-Identifier: Apache-2.0

// Package node runs real nodes for tests: containerd and a kubelet in
// namespaces of their own, so that a node can lose its power without a trace
// left on the machine. It shows what an object looks like when a node
// misbehaves in a way that only a real kubelet shows.
//
// It needs Linux, root, and containerd and runc, which are downloaded from
// Debian's packages when they are not on the PATH; where one of these is
// missing, Start skips the test. Nodes schedule nothing: tests bind pods to them
// by spec.nodeName.
package node
