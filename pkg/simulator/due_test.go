// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"testing"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

func TestOfControllerManager(t *testing.T) {
	for finalizer, want := range map[string]simulator.Actor{
		"kubernetes.io/pvc-protection":                        simulator.Acts,
		"batch.kubernetes.io/job-tracking":                    simulator.Acts,
		"external-provisioner.volume.kubernetes.io/finalizer": simulator.Nobody, // a driver's
		"toys.example.com/cleanup":                            simulator.Nobody,
	} {
		if got, _ := simulator.OfControllerManager(&graph.Object{}, finalizer); got != want {
			t.Errorf("%s: %s, want %s", finalizer, got, want)
		}
	}
}
