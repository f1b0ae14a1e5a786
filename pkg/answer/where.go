// SPDX-License-Identifier: Apache-2.0

package answer

import "k8s.io/apimachinery/pkg/types"

// Where is the cluster that was asked, or is changed.
type Where struct {
	// Context is that of the kubeconfig, empty inside a cluster.
	Context string `json:"context,omitempty"`
	// Server is the address of the API server.
	Server string `json:"server"`
	// UID is that of the namespace kube-system, empty when it could not be read.
	UID types.UID `json:"uid,omitempty"`
}

// String names the context and the server: "context prod-eu, server https://10.0.0.1".
func (w *Where) String() string {
	switch {
	case w == nil:
		return "a file"
	case w.Context == "":
		return "server " + w.Server
	}
	return "context " + w.Context + ", server " + w.Server
}

// In ends a sentence: " in context prod-eu", without a context " on https://10.0.0.1". It is empty for nil, which is a file.
func (w *Where) In() string {
	switch {
	case w == nil:
		return ""
	case w.Context == "":
		return " on " + w.Server
	}
	return " in context " + w.Context
}
