// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	answers "github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func TestTicket(t *testing.T) {
	web := graph.Identity{Resource: graph.Resource{Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	ticket := render.Ticket{
		Asked: "kubectl gc why deploy/web -o markdown", When: now, Where: &answers.Where{Context: "prod", Server: "https://10.0.0.1"},
		Timeline: []render.Moment{{now, web, "created by `me` | @all"}, {now, web, "created by `me` | @all"}, {now.Add(-1e9), web, "x"}},
		Answer:   "STUCK    deployment/web, context prod\n```\n# no heading\n", Undo: "kubectl gc undo /tmp/x",
	}
	var out strings.Builder
	if err := ticket.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = "### `STUCK deployment/web`\n\n" +
		"- **Asked:** `kubectl gc why deploy/web -o markdown`\n- **When:** 2026-01-02T03:04:05Z\n- **Where:** `context prod, server https://10.0.0.1`\n- **Undo:** `kubectl gc undo /tmp/x`\n\n" +
		"````text\nSTUCK    deployment/web, context prod\n```\n# no heading\n````\n\n" +
		"**Timeline**\n\n| when | object | what |\n|---|---|---|\n" +
		"| 2026-01-02T03:04:04Z | `deployment/web -n shop` | `x` |\n" +
		"| 2026-01-02T03:04:05Z | `deployment/web -n shop` | ``created by `me` \\| @all`` |\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// Whatever objects, events and answers say stays in their code: outside of it there is only what the program writes.
func TestTicketIsNotSpokenFor(t *testing.T) {
	span := regexp.MustCompile("`+")
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOfN(rapid.SampledFrom([]rune("a `|\n\\*#<>[]()@\u2028\x1b")), 0, 12, -1)
		id := graph.Identity{Resource: graph.Resource{Kind: "Pod"}, Name: hostile.Draw(t, "name")}
		ticket := render.Ticket{Asked: hostile.Draw(t, "asked"), Timeline: []render.Moment{{now, id, hostile.Draw(t, "what")}}, Answer: "x" + strings.ReplaceAll(hostile.Draw(t, "answer"), "\n", " ")}
		var out strings.Builder
		if err := ticket.Write(&out); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			outside, within := "", ""
			rest := line
			for rest != "" {
				at := span.FindStringIndex(rest)
				if at == nil {
					if within == "" {
						outside += rest
					}
					break
				}
				ticks := rest[at[0]:at[1]]
				switch within {
				case "":
					outside, within = outside+rest[:at[0]], ticks
				case ticks:
					within = ""
				}
				rest = rest[at[1]:]
			}
			if strings.ContainsAny(outside, "@<>[]()\\\x1b") && !strings.HasPrefix(line, "x") {
				t.Fatalf("%q is outside of code: %q", outside, line)
			}
		}
	})
}
