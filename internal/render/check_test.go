// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// checkedCluster is a cluster with something wrong of every severity.
func checkedCluster() *graph.Graph {
	s := newSnapshot()
	forbidWidgets(s)
	add := func(kind, namespace, name string, refs ...metav1.OwnerReference) {
		s.Add(graph.Object{
			Resource: resources[kind], Namespace: namespace, Name: name, UID: types.UID(kind + "-" + name), OwnerReferences: refs,
		})
	}
	owner := func(apiVersion, kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid)}
	}
	for i := range 12 {
		add("ConfigMap", "shop", fmt.Sprintf("cm-%02d", i), owner("apps/v1", "Deployment", "web", "old"))
	}
	add("Secret", "shop", "a", owner("v1", "Secret", "b", "Secret-b"))
	add("Secret", "shop", "b", owner("v1", "Secret", "a", "Secret-a"))
	add("Pod", "shop", "twice", owner("v1", "Secret", "a", "Secret-a"), owner("v1", "Secret", "a", "Secret-a"))
	add("Pod", "shop", "unread", owner("example.com/v1", "Widget", "w", "w"))
	add("ClusterRole", "", "r", owner("v1", "Secret", "a", "Secret-a"))
	return graph.New(s)
}

func checkedReport(g *graph.Graph) *check.Report {
	return check.Check(g, check.Options{Kubectl: "kubectl", Plugin: "kubectl gc"}).Filtered(nil, check.Info)
}

func TestCheckText(t *testing.T) {
	var out strings.Builder
	report := checkedReport(checkedCluster())
	if err := render.CheckText(&out, render.Style{Width: 80}, nil, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "check.txt", out.String())
	out.Reset()
	if err := render.CheckDetails(&out, render.Style{}, nil, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "check-wide.txt", out.String())
	out.Reset()
	if err := render.CheckNames(&out, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "check-names.txt", out.String())
}

func TestCheckDocument(t *testing.T) {
	g := checkedCluster()
	out, err := json.MarshalIndent(render.NewCheckReport(g.Snapshot(), checkedReport(g)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "check.json", string(out)+"\n")
}

func TestSARIF(t *testing.T) {
	g := checkedCluster()
	var out bytes.Buffer
	if err := render.SARIF(&out, "v1.2.3", g.Snapshot(), checkedReport(g)); err != nil {
		t.Fatal(err)
	}
	golden(t, "check.sarif", out.String())
}

// Many findings that are the same are one paragraph, and none is left out of
// the count.
func TestCheckTextOfMany(t *testing.T) {
	s := newSnapshot()
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "gone", UID: "gone"}
	for i := range 5000 {
		s.Add(graph.Object{
			Resource: resources["Pod"], Namespace: "shop", Name: fmt.Sprintf("p%04d", i), UID: types.UID(fmt.Sprintf("u%d", i)),
			OwnerReferences: []metav1.OwnerReference{ref},
		})
	}
	var out strings.Builder
	report := checkedReport(graph.New(s))
	if err := render.CheckText(&out, render.Style{}, nil, report); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `LEVEL    OBJECT                   PROBLEM
error    pod/p0000 +4999 -n shop  owner secret/gone not found; will be deleted
5000 errors in 5000 objects; 5000 objects will be garbage-collected.
Rules, references and patches: -o wide
`; got != want {
		t.Errorf("got %s", got)
	}
	out.Reset()
	if err := render.CheckDetails(&out, render.Style{}, nil, report); err != nil {
		t.Fatal(err)
	}
	const title = "error: 5000 Pod in namespace shop: p0000, p0001, p0002, p0003, p0004, and 4995 more [owner-absent]\n"
	if got := out.String(); !strings.HasPrefix(got, title) || strings.Count(got, "\n") > 10 || !strings.Contains(got, "\n5000 errors in 5000 objects.\n") {
		t.Errorf("got %s", got)
	}
}

// Names and kinds in owner references are free text, and must not drive the
// terminal.
func TestCheckTextEscapes(t *testing.T) {
	const evil = "x\x1b[2J\u202e\n; y"
	id := graph.Identity{Name: evil, Namespace: evil, UID: evil, Resource: graph.Resource{Kind: evil}}
	f := check.Finding{
		Rule: check.OwnerAbsent, Object: id, Sentences: []string{evil}, Problem: evil, Remedy: &check.Remedy{Effect: evil, Command: evil},
		Reference: metav1.OwnerReference{APIVersion: evil, Kind: evil, Name: evil, UID: evil},
	}
	for _, findings := range [][]check.Finding{{f}, {f, f}} {
		var out strings.Builder
		report := &check.Report{Findings: findings}
		if err := render.CheckText(&out, render.Style{}, nil, report); err != nil {
			t.Fatal(err)
		}
		if err := render.CheckDetails(&out, render.Style{}, nil, report); err != nil {
			t.Fatal(err)
		}
		if err := render.CheckNames(&out, report); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Contains(out.String(), "x\n") {
			t.Errorf("unescaped: %q", out.String())
		}
		if !strings.Contains(out.String(), `\n; y`+"\n") {
			t.Errorf("a sentence is not on one line: %q", out.String())
		}
	}
}

// Alike findings in many namespaces are one row, in a few one each.
func TestCheckTextOfNamespaces(t *testing.T) {
	for namespaces, want := range map[int]string{
		2: "error    pod/a -n ns-0  no kind Thing in gone.example/v1\nerror    pod/a -n ns-1  no kind Thing in gone.example/v1\n",
		9: "error    pod/a +8 in 9 namespaces  no kind Thing in gone.example/v1\n",
	} {
		report := &check.Report{Objects: namespaces}
		for i := range namespaces {
			report.Findings = append(report.Findings, check.Finding{
				Rule: check.UnresolvableKind, Severity: check.Error, Problem: "no kind Thing in gone.example/v1", Outcome: check.Never,
				Object: graph.Identity{Resource: *resources["Pod"], Namespace: fmt.Sprintf("ns-%d", i), Name: "a", UID: types.UID(fmt.Sprint(i))},
			})
		}
		var out strings.Builder
		if err := render.CheckText(&out, render.Style{Width: 80}, nil, report); err != nil {
			t.Fatal(err)
		}
		_, rows, _ := strings.Cut(out.String(), "\n")
		if !strings.HasPrefix(rows, want) || !strings.Contains(rows, fmt.Sprintf("%d objects are never garbage-collected.\n", namespaces)) {
			t.Errorf("%d namespaces: got\n%s", namespaces, out.String())
		}
	}
}

// A name that has no room beside its problem stands above it.
func TestCheckTextOfLongNames(t *testing.T) {
	name := strings.Repeat("long-", 10)
	report := &check.Report{Objects: 2, Findings: []check.Finding{
		{Severity: check.Warning, Problem: "owns itself", Object: graph.Identity{Resource: *resources["Pod"], Namespace: "shop", Name: name + "x"}},
		{Severity: check.Info, Problem: strings.Repeat("word ", 20) + "end", Object: graph.Identity{Resource: *resources["Pod"], Namespace: "shop", Name: "p"}},
	}}
	var out strings.Builder
	if err := render.CheckText(&out, render.Style{Width: 80}, nil, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "check-long.txt", out.String())
}

// TestJUnit: what objects are called does not end an attribute, and the numbers are those of the cases.
func TestJUnit(t *testing.T) {
	g := graph.New(newSnapshot())
	report := &check.Report{Findings: []check.Finding{
		{Rule: "owner-absent", Severity: check.Error, Object: graph.Identity{Resource: graph.Resource{Kind: "Pod"}, Name: `"><x`}, Problem: `a "b" <c>`, Sentences: []string{"]]>\x00"}},
		{Rule: "repeated-uid", Severity: check.Info, Object: graph.Identity{Resource: graph.Resource{Kind: "Pod"}, Name: "p"}},
	}}
	var out strings.Builder
	if err := render.JUnit(&out, nil, []string{"owner-absent", "repeated-uid", "owner-cycle"}, g.Snapshot(), report); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(out.String()), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 3 || suite.Failures != 1 || len(suite.Cases) != 3 || suite.Cases[1].Name != `pod/"><x` || suite.Cases[1].Failure.Message != `a "b" <c>` || suite.Cases[2].Failure != nil {
		t.Errorf("%+v\n%s", suite, out.String())
	}
}
