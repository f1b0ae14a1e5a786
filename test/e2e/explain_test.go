// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestExplain runs the sessions of explain-stuck on a cluster without
// controllers, on one where everything works, and on one with an API that does
// not answer.
func TestExplain(t *testing.T) {
	for _, world := range []struct {
		name    string
		options controlplane.Options
	}{
		{"bare", controlplane.Options{Users: []controlplane.User{{Name: "reader"}}}},
		{"controllers", controlplane.Options{Controllers: "all", FakeNodes: 2}},
		{"sick", controlplane.Options{Controllers: "all"}},
	} {
		t.Run(world.name, func(t *testing.T) {
			cp := controlplane.Start(t, world.options)
			params := scriptParams(cp)
			params.Dir = "testdata/explain/" + world.name
			testscriptRun(t, params, cp)
		})
	}
}

// testscriptRun runs sessions that may act as another user: READER is the
// kubeconfig of one without rights.
func testscriptRun(t *testing.T, params testscript.Params, cp *controlplane.ControlPlane) {
	plain := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("READER", cp.Users["reader"])
		return plain(env)
	}
	testscript.Run(t, params)
}
