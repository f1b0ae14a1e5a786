// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestExplain runs the sessions of explain-stuck on a cluster without
// controllers, on one where everything works, and, each on a cluster of its
// own, those that harm it.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, world := range []struct {
		name    string
		options controlplane.Options
	}{
		{"bare", controlplane.Options{Users: []controlplane.User{{Name: "reader"}}}},
		{"controllers", controlplane.Options{Controllers: "all", FakeNodes: 2, Users: []controlplane.User{{Name: "reader"}}}},
	} {
		t.Run(world.name, func(t *testing.T) {
			t.Parallel() // the sessions take long, and mostly sleep: they start at once
			cp := controlplane.Start(t, world.options)
			params := scriptParams(cp)
			params.Dir = "testdata/explain/" + world.name
			testscriptRun(t, params, cp)
		})
	}
	scripts, err := filepath.Glob("testdata/explain/sick/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run("sick-"+strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			parallel(t)
			cp := controlplane.Start(t, controlplane.Options{Controllers: "all"})
			params := scriptParams(cp)
			params.Files = []string{script}
			testscriptRun(t, params, cp)
		})
	}
}

// testscriptRun runs sessions that may act as another user: READER is the
// kubeconfig of one without rights.
func testscriptRun(t *testing.T, params testscript.Params, cp *controlplane.ControlPlane) {
	params.Cmds["webhook"] = webhook
	plain := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("READER", cp.Users["reader"])
		return plain(env)
	}
	testscript.Run(t, params)
}
