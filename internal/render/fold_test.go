// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Of causes that differ in nothing but their objects a text explains five and names the
// others; one that fails for another reason is not among these.
func TestFold(t *testing.T) {
	service := graph.Resource{Kind: "Service", Namespaced: true}
	report := &explain.Report{}
	for i := range 9 {
		name := fmt.Sprintf("web-%d", i)
		id := graph.Identity{Resource: service, Namespace: "shop", Name: name}
		message := fmt.Sprintf("Failed: quota of %s (%d times)", name, i)
		if i == 7 {
			message = "Failed: access denied"
		}
		c := &explain.Cause{
			Kind: explain.Kind{ID: "svc-lb"}, Object: id, Verdict: explain.Stuck, Summary: say.Plain("the load balancer of " + name + " is there"),
			Evidence: []explain.Evidence{evidence.At("Event", "message", message), evidence.At(id, "status.ip", fmt.Sprint("10.0.0.", i))},
			Remedies: []explain.Remedy{{Risk: explain.Safe, Action: explain.Action{Command: "describe " + name}, Effect: say.Plain("shows " + name)}},
		}
		report.Causes = append(report.Causes, c)
		report.Objects = append(report.Objects, explain.Explanation{Object: id, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c}}})
	}
	got := stuckWide(t, report)
	for i := range 9 {
		title := fmt.Sprintf("\n%d  service/web-%d -n shop: the load balancer of web-%d is there [svc-lb]\nEvidence ", i+1, i, i)
		if is, want := strings.Contains(got, title), i < 5 || i == 7; is != want {
			t.Errorf("web-%d is explained: %t", i, is)
		}
	}
	if want := "\n3 more like 5: service/web-5 -n shop, service/web-6 -n shop, service/web-8 -n shop\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
}
