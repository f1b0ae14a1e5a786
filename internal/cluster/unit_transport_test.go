// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// A transport that hides the one that it wraps cannot be cancelled: client-go
// writes a warning for it when a request takes too long.
func TestTransportsCanBeCancelled(t *testing.T) {
	next := http.DefaultTransport
	for _, wrapper := range []http.RoundTripper{&transport{next: next}, &readOnlyTransport{next: next}, &dryRunTransport{next: next}} {
		w, ok := wrapper.(utilnet.RoundTripperWrapper)
		if !ok || w.WrappedRoundTripper() != next {
			t.Errorf("%T hides what it wraps", wrapper)
		}
	}
}
