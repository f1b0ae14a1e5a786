// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	answers "github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestLeftoversFile: what others chose, as the name of a role or the holder of a lease, neither ends a comment nor changes a manifest.
func TestLeftoversFile(t *testing.T) {
	names := []string{"plain", "1e3", "null", "a: b", `"quoted" \`, "öß\u200b"}
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		names = append(names, "a"+end+`- {"apiVersion":"v1","kind":"Secret","metadata":{"name":"b","uid":"c"}}`)
	}
	for _, name := range names {
		role := graph.Identity{Resource: graph.Resource{Kind: "Role"}, Namespace: "shop", Name: name, UID: "u"}
		role.Resource.Group, role.Resource.Version, role.Resource.Resource = "rbac.authorization.k8s.io", "v1", "roles"
		held := &uninstall.Hold{Why: uninstall.Leased, Detail: say.Plain(name)}
		l := render.Leftovers{
			Saved: &uninstall.Saved{Tool: "helm", Name: name}, Plan: name, Where: &answers.Where{Context: name, Server: name}, Delete: name,
			All: []uninstall.Leftover{{Object: role, Belongs: say.Plain(name)}, {Object: role, Held: held}, {Object: role, Held: held, Belongs: say.Plain(name)}, {Object: role, Gone: true}},
		}
		var out strings.Builder
		if err := l.File(&out); err != nil {
			t.Fatal(err)
		}
		var list struct {
			Items []struct {
				Metadata struct {
					Name, Namespace string
					UID             types.UID
				}
			}
		}
		err := yaml.Unmarshal([]byte(out.String()), &list)
		if err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != name || list.Items[0].Metadata.UID != "u" {
			t.Errorf("%q: %v, %+v:\n%s", name, err, list, out.String())
		}
		uncommented := strings.ReplaceAll(out.String(), "\n# - {", "\n- {")
		if err := yaml.Unmarshal([]byte(uncommented), &list); err != nil || len(list.Items) != 3 || list.Items[2].Metadata.Name != name {
			t.Errorf("%q, uncommented: %v, %+v:\n%s", name, err, list, uncommented)
		}
	}
}
