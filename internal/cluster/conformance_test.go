// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// TestMain lets more tests run at once than there are processors: most of their
// time they wait for an API server to be at rest. In the end it stops the
// control plane that they share.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	if shared.cp != nil {
		if err := shared.cp.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is a control plane without controllers, for all tests that can do
// with one.
var shared struct {
	once  sync.Once
	cp    *controlplane.ControlPlane
	world *live.World
	err   error
	// requests are those of the world in flight.
	requests gauge
}

// bare returns the shared world.
func bare(t *testing.T) *live.World {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	shared.once.Do(func() {
		ctx := context.Background()
		if shared.cp, shared.err = controlplane.Run(ctx, controlplane.Options{}, os.Stderr); shared.err == nil {
			shared.world, shared.err = live.Connect(ctx, shared.cp.Kubeconfig, shared.requests.wrap)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.world
}

// TestConformance plays the scenarios of gctest on a kube-apiserver without
// controllers.
func TestConformance(t *testing.T) {
	world := bare(t)
	t.Run("scenarios", func(t *testing.T) { // returns when all of them have
		for file, scenarios := range gctest.Scenarios(t) {
			for i := range scenarios {
				t.Run(file+"/"+scenarios[i].Name, func(t *testing.T) {
					t.Parallel()
					gctest.Run(t, world, &scenarios[i])
				})
			}
		}
	})
}
