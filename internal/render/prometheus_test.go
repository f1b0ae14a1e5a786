// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// exposition is the text format, line by line: what a line of each kind may be.
var exposition = regexp.MustCompile(`^(?:# HELP [a-z_]+ [^\n]+|# TYPE [a-z_]+ gauge|[a-z_]+(?:\{[a-z]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\n"])*")*\})? \d+(?:\.\d+)?)\n$`)

func checkExposition(t rapid.TB, text string) {
	t.Helper()
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		if !exposition.MatchString(line) {
			t.Fatalf("line %q", line)
		}
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, _, _ := strings.Cut(help, " ")
			if names[name] || !strings.HasPrefix(name, "kubectl_gc_") {
				t.Fatalf("%s is described twice, or is not ours", name)
			}
			names[name] = true
		}
	}
}

// samplesOf returns the lines that are no comments and hold the word.
func samplesOf(text, word string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestCheckMetrics(t *testing.T) {
	s := newSnapshot()
	forbidWidgets(s)
	for _, namespace := range []string{"a", "b", "b"} {
		s.Add(graph.Object{
			Resource: resources["Pod"], Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "gone", UID: "1"}},
		})
	}
	report := check.Check(graph.New(s), check.Options{})
	var out bytes.Buffer
	if err := render.CheckMetrics(&out, s, report, now); err != nil {
		t.Fatal(err)
	}
	checkExposition(t, out.String())
	want := []string{
		`kubectl_gc_check_findings{namespace="a",rule="owner-absent",severity="error"} 1`,
		`kubectl_gc_check_findings{namespace="b",rule="owner-absent",severity="error"} 2`,
	}
	if diff := cmp.Diff(want, samplesOf(out.String(), "owner-absent")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = []string{`kubectl_gc_check_findings{namespace="",rule="owner-cycle",severity="warning"} 0`}
	if diff := cmp.Diff(want, samplesOf(out.String(), "owner-cycle")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := samplesOf(out.String(), "check_complete"); len(got) != 1 || got[0] != "kubectl_gc_check_complete 0" {
		t.Errorf("got %q", got)
	}
	if got := samplesOf(out.String(), "timestamp"); len(got) != 1 || got[0] != "kubectl_gc_check_timestamp_seconds 1767323045" {
		t.Errorf("got %q", got)
	}
}

func TestStuckMetrics(t *testing.T) {
	s := newSnapshot()
	gone := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "gone", UID: "1"}
	owner := graph.Object{Resource: resources["ConfigMap"], Namespace: "shop", Name: "owner", UID: "2"}
	solid := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "2"}
	s.Add(owner)
	for i, refs := range [][]metav1.OwnerReference{{gone}, {gone, gone}, {gone, solid}, {solid}} {
		s.Add(graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: string(rune('a' + i)), UID: types.UID(fmt.Sprint("pod-", i)), OwnerReferences: refs})
	}
	s.Add(graph.Object{Resource: resources["Pod"], Namespace: "shop", Name: "going", UID: "3", DeletionTimestamp: &metav1.Time{Time: now}, OwnerReferences: []metav1.OwnerReference{gone}})
	cause := &explain.Cause{Kind: explain.Kind{ID: "fin-absent"}, Verdict: explain.Stuck}
	object := func(name string, verdict explain.Verdict, age time.Duration, causes ...*explain.Cause) explain.Explanation {
		e := explain.Explanation{Object: graph.Identity{Namespace: "shop", Name: name}, Verdict: verdict, Since: now.Add(-age)}
		for _, c := range causes {
			e.Findings = append(e.Findings, explain.Finding{Cause: c})
		}
		return e
	}
	report := &explain.Report{Now: now, Objects: []explain.Explanation{
		object("a", explain.Stuck, time.Hour, cause), object("b", explain.Stuck, time.Minute, cause), object("c", explain.Pending, -time.Second), object("d", explain.NotTerminating, 0),
	}}
	report.Objects = append(report.Objects, explain.Explanation{
		Object: graph.Identity{Resource: *resource("v1", "namespaces", "Namespace", false), Name: "closing"}, Verdict: explain.Stuck, Since: now, Findings: []explain.Finding{{Cause: cause}},
	})
	var out bytes.Buffer
	if err := render.StuckMetrics(&out, graph.New(s), report, true); err != nil {
		t.Fatal(err)
	}
	checkExposition(t, out.String())
	want := []string{
		`kubectl_gc_terminating_objects{cause="",namespace="shop",verdict="Pending"} 1`,
		`kubectl_gc_terminating_objects{cause="fin-absent",namespace="closing",verdict="Stuck"} 1`, // the Namespace itself
		`kubectl_gc_terminating_objects{cause="fin-absent",namespace="shop",verdict="Stuck"} 2`,
		`kubectl_gc_terminating_oldest_seconds{cause="",namespace="shop",verdict="Pending"} 0`,
		`kubectl_gc_terminating_oldest_seconds{cause="fin-absent",namespace="closing",verdict="Stuck"} 0`,
		`kubectl_gc_terminating_oldest_seconds{cause="fin-absent",namespace="shop",verdict="Stuck"} 3600`,
		`kubectl_gc_dangling_references 4`,
		`kubectl_gc_garbage_objects 2`,
		`kubectl_gc_controller_manager_lease_held 1`,
		`kubectl_gc_explain_complete 1`,
		`kubectl_gc_explain_timestamp_seconds 1767323045`,
	}
	if diff := cmp.Diff(want, samplesOf(out.String(), "kubectl")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever namespaces and causes are called, each line is one of the format.
func TestMetricsAreText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		report := &explain.Report{Now: now}
		for range rapid.IntRange(0, 3).Draw(t, "objects") {
			c := &explain.Cause{Kind: explain.Kind{ID: rapid.String().Draw(t, "cause")}}
			report.Objects = append(report.Objects, explain.Explanation{
				Object: graph.Identity{Namespace: rapid.String().Draw(t, "namespace")}, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c}},
			})
		}
		var out bytes.Buffer
		if err := render.StuckMetrics(&out, graph.New(newSnapshot()), report, false); err != nil {
			t.Fatal(err)
		}
		checkExposition(t, out.String())
	})
}

// What a report says is what a baseline reads of it.
func TestParseCheckReport(t *testing.T) {
	s := newSnapshot()
	s.Add(graph.Object{
		Resource: resources["Pod"], Namespace: "a", Name: "p", UID: "p",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "gone", UID: "1"}, {APIVersion: "v1", Kind: "Pod", Name: "q", UID: "q"}},
	})
	s.Add(graph.Object{Resource: resources["Pod"], Namespace: "a", Name: "q", UID: "q", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p"}}})
	report := check.Check(graph.New(s), check.Options{})
	data, err := json.Marshal(render.NewCheckReport(s, report))
	if err != nil {
		t.Fatal(err)
	}
	findings, err := render.ParseCheckReport(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != len(report.Findings) || len(report.New(check.NewBaseline(findings)).Findings) != 0 {
		t.Errorf("read %d findings of %d: %+v", len(findings), len(report.Findings), findings)
	}
	for _, bad := range []string{"", "[]", "{}", `{"apiVersion":"kubectl-gc/v1","kind":"Graph"}`, `{"apiVersion":"v1","kind":"CheckReport"}`, "a: b: c",
		`{"apiVersion":"kubectl-gc/v1","kind":"CheckReport","findings":[{"severity":"fatal"}]}`, `{"apiVersion":"kubectl-gc/v1","kind":"CheckReport","findings":3}`} {
		if _, err := render.ParseCheckReport([]byte(bad)); err == nil {
			t.Errorf("%s is taken for a report", bad)
		}
	}
}

// TestAlerts: the alerts of the documentation are about metrics and labels that
// there are.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("../../docs/examples/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string } `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	report := &explain.Report{Now: now, Objects: []explain.Explanation{{Verdict: explain.Stuck}}}
	var out bytes.Buffer
	if err := render.StuckMetrics(&out, graph.New(newSnapshot()), report, true); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			for _, name := range regexp.MustCompile(`kubectl_gc_[a-z_]+(\{verdict="Stuck"\})?`).FindAllString(r.Expr, -1) {
				name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
				if !strings.Contains(out.String(), "\n"+name+" ") && !strings.Contains(out.String(), "\n"+name+"{") || !strings.Contains(out.String(), label) {
					t.Errorf("%s: there is no metric %s with %s", r.Alert, name, label)
				}
			}
		}
	}
	if rules != 2 {
		t.Errorf("%d rules, want 2", rules)
	}
}
