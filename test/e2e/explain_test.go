// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestExplain runs the sessions of explain-stuck.
func TestExplain(t *testing.T) {
	t.Parallel()
	worlds{
		dir: "testdata/explain",
		named: map[string]controlplane.Options{
			"bare":        {Users: []controlplane.User{{Name: "reader"}}},
			"controllers": {Controllers: "all", FakeNodes: 2, Users: []controlplane.User{{Name: "reader"}}},
		},
		sick:   controlplane.Options{Controllers: "all"},
		wait:   (*testing.T).Parallel, // the sessions take long, and mostly sleep: they start at once
		params: func(cp *controlplane.ControlPlane) testscript.Params { return shown(comparedAll(scriptParams(cp))) },
	}.run(t)
}

// worlds are the clusters that the sessions of a directory run on: named ones, which the sessions of the directory of that
// name share, and a sick one for each session of the directory "sick", which harms it.
type worlds struct {
	dir   string
	named map[string]controlplane.Options
	sick  controlplane.Options

	wait   func(*testing.T) // until a named one may start
	params func(*controlplane.ControlPlane) testscript.Params
}

func (w worlds) run(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(w.named)) {
		t.Run(name, func(t *testing.T) {
			w.wait(t)
			cp := controlplane.Start(t, w.named[name])
			params := w.params(cp)
			params.Dir = filepath.Join(w.dir, name)
			testscriptRun(t, params, cp)
		})
	}
	scripts, err := filepath.Glob(filepath.Join(w.dir, "sick", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run("sick-"+strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			parallel(t)
			cp := controlplane.Start(t, w.sick)
			params := w.params(cp)
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
