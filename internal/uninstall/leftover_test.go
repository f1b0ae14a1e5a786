// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// judged says what becomes of leftovers. A case begins with "leftovers", a tool, a name and a namespace; the cluster is that after the tool
// has run. After a line with -- comes what was said before, "goes Kind/namespace/name" of what the tool deletes itself, "takes" of what
// goes with that, "of Kind namespace name" of who delivered it (the release, for Helm), "left Belonging Kind/name detail" "kept Kind/name" and "made Kind/name"; at=2, generation=3 and metadata=DIGEST are the version that it
// had (all have 1 now). "goes nothing" is a plan that deletes nothing; without any such line a Deployment of the name has gone. A UID is
// the name, or what stands after @.
func judged(t *testing.T, given string) string {
	t.Helper()
	world, plan, _ := strings.Cut(given, "\n--\n")
	order, text, _ := strings.Cut(world, "\n")
	words := strings.Fields(order)[1:]
	cluster := explaintest.Parse(t, text)
	g := cluster.Graph()
	w := &uninstall.World{Graph: g, Evidence: evidence.New(t.Context(), evidence.Source{Cluster: cluster, Graph: g, Now: explaintest.Now})}
	saved := &uninstall.Saved{Tool: words[0], Name: words[1], Namespace: words[2]}
	if saved.Tool == "helm" {
		saved.Of = uninstall.Deliverers{{Kind: "Release", Namespace: words[2], Name: words[1], Records: words[2]}}
	}
	for line := range strings.Lines(plan) {
		f := strings.Fields(line)
		switch f[0] {
		case "of":
			d := uninstall.Deliverer{Kind: f[1], Namespace: strings.Trim(f[2], "-"), Name: f[3]}
			if d.Kind == "Release" {
				d.Records = d.Namespace
			}
			saved.Of = append(saved.Of, d)
		case "goes":
			if f[1] == "nothing" {
				continue
			}
			saved.Goes, saved.Targets = append(saved.Goes, identified(t, g, f[1])), append(saved.Targets, identified(t, g, f[1]))
		case "takes":
			saved.Goes = append(saved.Goes, identified(t, g, f[1]))
		case "left":
			l := uninstall.Left{By: uninstall.Belonging(f[1]), Object: identified(t, g, f[2])}
			for _, word := range f[3:] {
				if _, err := fmt.Sscanf(word, "at=%s", &l.Version.Resource); err == nil {
					continue
				}
				if _, err := fmt.Sscanf(word, "metadata=%s", &l.Version.Metadata); err == nil {
					continue
				}
				if _, err := fmt.Sscanf(word, "generation=%d", &l.Version.Generation); err != nil {
					l.Detail = word
				}
			}
			saved.Left = append(saved.Left, l)
		case "made":
			made := uninstall.Kept{Object: identified(t, g, f[1]), Reason: uninstall.HookMade}
			made.Object.UID = ""
			saved.Kept = append(saved.Kept, made)
		case "kept":
			saved.Kept = append(saved.Kept, uninstall.Kept{Object: identified(t, g, f[1])})
		}
	}
	if len(saved.Goes) == 0 && !strings.Contains(plan, "goes nothing") {
		saved.Goes = append(saved.Goes, identified(t, g, "Deployment/"+words[2]+"/"+words[1]+"@gone"))
	}
	if err := w.Over(saved); err != nil {
		var not uninstall.NotOverError
		if !errors.As(err, &not) {
			t.Fatal(err)
		}
		return "not over: " + err.Error() + "; " + not.Hint("TOOL")
	}
	var lines []string
	for _, l := range w.Leftovers(saved) {
		becomes := "left"
		switch {
		case l.Gone:
			becomes = "gone"
		case l.Held != nil:
			becomes = "kept: " + l.Says().String()
		}
		lines = append(lines, fmt.Sprintf("%s: %s", l.Object, becomes))
	}
	return strings.Join(lines, "\n")
}

// identified reads Kind/namespace/name, Kind/name, either with @UID.
func identified(t *testing.T, g *graph.Graph, text string) graph.Identity {
	t.Helper()
	at, uid, other := strings.Cut(text, "@")
	parts := strings.Split(at, "/")
	id := graph.Identity{Name: parts[len(parts)-1]}
	for _, r := range g.Snapshot().Types {
		if r.Kind == parts[0] {
			id.Resource = *r
		}
	}
	if id.Resource.Kind == "" {
		t.Fatalf("no such kind: %s", text)
	}
	if len(parts) == 3 {
		id.Namespace = parts[1]
	}
	id.UID = types.UID(id.Name)
	if other {
		id.UID = types.UID(uid)
	}
	return id
}
