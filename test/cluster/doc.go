// SPDX-License-Identifier: Apache-2.0

// Package cluster builds and runs a real Kubernetes control plane for tests:
// etcd, kube-apiserver and kube-controller-manager as child processes on
// 127.0.0.1, and a fake kubelet that stands in for nodes and scheduler.
//
// Build compiles the programs from the Go module proxy once per machine and
// keeps them in a cache outside the source tree. Start starts them in a
// temporary directory and returns when the API server is ready, after 4 to 6
// seconds. Close stops what Start started; if the process that called Start
// dies instead, the kernel kills the children (on Linux; elsewhere only Close
// does).
//
// The package is its own Go module, so that k8s.io/kubernetes and its replace
// directives stay out of the module that users download. Tests of the main
// module therefore do not import it: they use package test/controlplane, which
// runs the command cmd/control-plane.
//
// Compile with CGO_ENABLED=0 and -trimpath, as Build does, to share the Go
// build cache with it:
//
//	CGO_ENABLED=0 go -C test/cluster run -trimpath ./cmd/control-plane build
package cluster
