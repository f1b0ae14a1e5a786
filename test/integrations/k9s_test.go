// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/derailed/k9s/internal/config"
	"github.com/derailed/k9s/internal/ui"
	"github.com/derailed/k9s/internal/view"
	"github.com/derailed/tcell/v2"
)

// TestK9s has k9s load the file, fill in its variables for an object with an API
// group and one without, and look its keys up. The commands that come of it are
// those that test/e2e runs.
func TestK9s(t *testing.T) {
	config.AppPluginsFile = t.TempDir() + "/none"
	plugins := config.NewPlugins()
	if err := plugins.Load("../../docs/examples/k9s.yaml", false); err != nil {
		t.Fatal(err)
	}
	subcommands := map[string]string{"gc-tree": "tree", "gc-explain-stuck": "explain-stuck", "gc-delete-preview": "delete --dry-run"}
	if len(plugins.Plugins) != len(subcommands) {
		t.Errorf("k9s has loaded %v", slices.Collect(maps.Keys(plugins.Plugins)))
	}
	keys := map[string]string{}
	for name, subcommand := range subcommands {
		plugin := plugins.Plugins[name]
		if err := plugin.Validate(); err != nil || plugin.Dangerous || plugin.ShouldConfirm() || plugin.Background {
			t.Errorf("%s: %+v: %v", name, plugin, err)
		}
		if other := keys[plugin.ShortCut]; other != "" || !isKey(plugin.ShortCut) {
			t.Errorf("%s: the key %q is that of %q, or no key of k9s", name, plugin.ShortCut, other)
		}
		keys[plugin.ShortCut] = name
		for object, env := range map[string]view.Env{
			"--namespace=shop deployments.apps/web": {"NAMESPACE": "shop", "RESOURCE_NAME": "deployments", "RESOURCE_GROUP": "apps", "NAME": "web"},
			"--namespace=- nodes./a":                {"NAMESPACE": "-", "RESOURCE_NAME": "nodes", "RESOURCE_GROUP": "", "NAME": "a"},
		} {
			env["KUBECONFIG"], env["CONTEXT"] = "/home/ann/config", "prod"
			words := []string{plugin.Command}
			for _, arg := range plugin.Args {
				word, err := env.Substitute(arg)
				if err != nil {
					t.Fatal(err)
				}
				words = append(words, word)
			}
			want := `env KUBECONFIG=/home/ann/config sh -c kubectl gc ` + subcommand + ` "$@" 2>&1 | less -RS sh --color=always --context=prod ` + object
			if got := strings.Join(words, " "); got != want {
				t.Errorf("%s: k9s runs\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}

// isKey reports whether k9s knows a key of the name that does nothing in any view
// yet, or only in some.
func isKey(name string) bool {
	for key, known := range tcell.KeyNames {
		if known == name {
			return key >= ui.KeyShiftA && key <= ui.KeyShiftZ
		}
	}
	return false
}
