// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// stuckWide returns a report as text.
func stuckWide(t *testing.T, report *explain.Report) string {
	t.Helper()
	var out strings.Builder
	text := render.StuckAnswer{Now: time.Now(), Wide: true}
	if err := text.Write(&out, report); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStuckWideEscapes lets everything that comes from a cluster try to drive
// the terminal.
func TestStuckWideEscapes(t *testing.T) {
	const evil = "x\x1b[2J\u202e\n"
	id := graph.Identity{Name: evil, UID: "u"}
	c := &explain.Cause{
		Kind: explain.Kind{ID: "fin-unknown"}, Object: id, Verdict: explain.Unknown, Summary: say.Plain(evil), Blocks: 2,
		Evidence:   []explain.Evidence{evidence.At(evil, evil, evil)},
		Controller: &explain.Controller{Name: say.Plain(evil), Liveness: evil},
		Remedies:   []explain.Remedy{{Risk: explain.Safe, Action: explain.Action{Command: evil}, Effect: say.Plain(evil), Loss: []remedy.Loss{{Kind: remedy.Leaks, What: say.Plain(evil)}}}},
	}
	chain := []explain.Link{{Object: id, Symptom: evil, Because: say.Plain(evil)}, {Object: id, Because: say.Plain(evil)}}
	o := explain.Explanation{Object: id, Verdict: explain.Unknown, Chain: chain, Findings: []explain.Finding{{Cause: c, Chain: chain}}}
	waiting := explain.Explanation{Object: id, Verdict: explain.Pending, Chain: chain}
	for _, objects := range [][]explain.Explanation{{o}, {waiting}, {o, waiting}} {
		report := &explain.Report{Objects: objects, Causes: []*explain.Cause{c}, Unread: []evidence.Gap{{What: say.Plain(evil)}}}
		var out strings.Builder
		text := render.StuckAnswer{Now: time.Now(), Wide: true}
		if err := text.Write(&out, report); err != nil {
			t.Fatal(err)
		}
		if err := render.Unread(&out, report, true); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Contains(out.String(), "x\n") {
			t.Errorf("unescaped: %q", out.String())
		}
	}
}

// TestStuckWideOfMany: of very many causes only the first are shown whole, and none is left out.
func TestStuckWideOfMany(t *testing.T) {
	report := &explain.Report{}
	const many = 100
	for i := range many {
		id := graph.Identity{Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint(i))}
		c := &explain.Cause{
			Kind: explain.Kind{ID: "fin-absent"}, Object: id, Verdict: explain.Stuck, Summary: say.Plain("nothing serves " + strings.Repeat("f", i+1)),
			Remedies: []explain.Remedy{{Risk: explain.Dangerous, Effect: say.Plain("takes it off")}},
		}
		report.Causes = append(report.Causes, c)
		report.Objects = append(report.Objects, explain.Explanation{Object: id, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c}}})
	}
	out := stuckWide(t, report)
	whole := strings.Count(out, "takes it off")
	if !strings.Contains(out, fmt.Sprintf("\n%d more, a line each; -o json explains them:\n%d /o%d: nothing serves f", many-whole, whole+1, whole)) {
		t.Errorf("the first %d are whole:\n%s", whole, out)
	}
	if named := strings.Count(out, "nothing serves"); named != many || strings.Count(out, "\n") > 4*many {
		t.Errorf("%d of %d causes are named:\n%s", named, many, out)
	}
}

// TestStuckWideNotKnown: what could not be found out is no name of something unread.
func TestStuckWideNotKnown(t *testing.T) {
	var out strings.Builder
	if err := render.Unread(&out, &explain.Report{Unread: []evidence.Gap{
		{What: say.Plain("pods in namespace s: forbidden"), Forbidden: true}, {What: say.Plain("whether more would be accepted: too many"), Open: true},
	}}, true); err != nil {
		t.Fatal(err)
	}
	if err := render.Unread(&out, &explain.Report{Unread: []evidence.Gap{
		{What: say.Plain("pods in namespace s: forbidden"), Forbidden: true}, {What: say.Plain("whether a PATCH would be accepted: forbidden"), Open: true, Forbidden: true},
	}}, false); err != nil {
		t.Fatal(err)
	}
	const want = "warning: could not read pods in namespace s: forbidden\nwarning: could not find out whether more would be accepted: too many\n" +
		"warning: the answer is incomplete: more reads or dry runs were forbidden (2); -v=1 lists them\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestStuckReportJSON: the document that is written object after object is the one that the
// printer of cli-runtime writes, whatever is in it.
func TestStuckReportJSON(t *testing.T) {
	const evil = "\"objects\": []<&>\x1b\n\u2028"
	id := graph.Identity{Name: evil, UID: "u"}
	c := &explain.Cause{Kind: explain.Kind{ID: "fin-unknown"}, Object: id, Verdict: explain.Unknown, Summary: say.Plain(evil)}
	o := explain.Explanation{
		Object: id, Verdict: explain.Unknown, Findings: []explain.Finding{{Cause: c}, {Cause: c}}, Chain: []explain.Link{{Object: id, Because: say.Plain(evil)}},
	}
	for n := range 4 {
		report := render.NewStuckReport(&graph.Snapshot{}, &explain.Report{Objects: slices.Repeat([]explain.Explanation{o}, n), Unread: []evidence.Gap{{What: say.Plain(evil)}}})
		var got, want strings.Builder
		if err := report.WriteJSON(&got); err != nil {
			t.Fatal(err)
		}
		if err := (&printers.JSONPrinter{}).PrintObj(report, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%d objects (-printer +got):\n%s", n, diff)
		}
	}
}

// TestStuckReportOrder: a document has its objects in the order of identities,
// which do not go by version.
func TestStuckReportOrder(t *testing.T) {
	var got []string
	report := &explain.Report{}
	for _, o := range []struct{ version, name string }{{"v1", "b"}, {"v1beta1", "a"}, {"v1", "c"}} {
		id := graph.Identity{Name: o.name}
		id.Resource.Kind, id.Resource.Group, id.Resource.Version = "Service", "example.com", o.version
		report.Objects = append(report.Objects, explain.Explanation{Object: id})
	}
	for _, o := range render.NewStuckReport(&graph.Snapshot{}, report).Objects {
		got = append(got, o.Object.Name)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if report.Objects[0].Object.Name != "b" {
		t.Error("the report was changed")
	}
}

// TestStuckWideRemedies says what a remedy does once, however many objects it
// has a command for.
func TestStuckWideRemedies(t *testing.T) {
	id := graph.Identity{Resource: graph.Resource{Kind: "Widget"}, Name: "w", UID: "u"}
	c := &explain.Cause{
		Kind: explain.Kind{ID: "fin-absent"}, Object: id, Verdict: explain.Stuck, Summary: say.Plain("nothing serves it"), Blocks: 2,
		Remedies: []explain.Remedy{
			{Risk: explain.Safe, Effect: say.Plain("install it")},
			{Risk: explain.Dangerous, Action: explain.Action{Command: "patch w1"}, Effect: say.Plain("takes it off"), Loss: []remedy.Loss{{Kind: remedy.Leaks, What: say.Plain("a disk")}}},
			{Risk: explain.Dangerous, Action: explain.Action{Command: "patch w2"}, Effect: say.Plain("takes it off"), Loss: []remedy.Loss{{Kind: remedy.Leaks, What: say.Plain("a disk")}}},
			{Risk: explain.Dangerous, Action: explain.Action{Command: "patch w3"}, Effect: say.Plain("takes it off")},
		},
	}
	o := explain.Explanation{Object: id, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c}}}
	out := stuckWide(t, &explain.Report{Objects: []explain.Explanation{o}, Causes: []*explain.Cause{c}})
	want := `STUCK    widget/w
         nothing serves it [fin-absent]
Next     install it
Or       takes it off (DANGEROUS; might leak: a disk)
           patch w1
           patch w2
         takes it off (DANGEROUS)
           patch w3
Next     install it
`
	if out != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
}
