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
			params := comparedAll(scriptParams(cp))
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
			params := comparedAll(scriptParams(cp))
			params.Files = []string{script}
			params.Cmds["component"] = func(ts *testscript.TestScript, _ bool, args []string) { component(ts, cp, args) }
			testscriptRun(t, params, cp)
		})
	}
}

// component stops or starts a component of the session's own control plane:
//
//	component stop controller-manager
func component(ts *testscript.TestScript, cp *controlplane.ControlPlane, args []string) {
	actions := map[string]func(string) error{"stop": cp.Stop, "start": cp.Start}
	if len(args) != 2 || actions[args[0]] == nil {
		ts.Fatalf("usage: component stop|start NAME")
	}
	ts.Check(actions[args[0]](args[1]))
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
