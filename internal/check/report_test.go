// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What two looks together say, by what each of them saw.
func TestConfirmed(t *testing.T) {
	const absent, kept = "Pod/shop/p uid=p owner=v1:Secret:s:s", "Secret/shop/s uid=s"
	const a, b, c = "ConfigMap/shop/a uid=a owner=v1:ConfigMap:b:b", "ConfigMap/shop/b uid=b owner=v1:ConfigMap:a:a", "ConfigMap/shop/c uid=c owner=v1:ConfigMap:a:a"
	for _, test := range []struct {
		name          string
		first, second []string // lines as in scenarios
		gone          string   // UID of the object that is known not to exist any more
		want          []string
		objects       int
	}{
		{"both have it", []string{absent}, []string{absent}, "", []string{"owner-absent p"}, 1},
		{"the first alone has it", []string{absent}, []string{absent, kept}, "", nil, 2},
		{"the second alone has it", []string{absent, kept}, []string{absent}, "", nil, 1},
		{"by another name", []string{absent}, []string{absent, "Secret/other/s uid=s"}, "", []string{"wrong-namespace p"}, 2},
		{"another reference", []string{absent}, []string{"Pod/shop/p uid=p owner=v1:Secret:s:t"}, "", nil, 1},
		{"another object of that name", []string{absent}, []string{"Pod/shop/p uid=q owner=v1:Secret:s:s"}, "p", nil, 1},

		{"the object is gone", []string{absent}, nil, "p", nil, 0},
		{"the object could not be read", []string{absent}, []string{"unlisted pods"}, "", []string{"owner-absent p"}, 1},
		{"two findings of it", []string{absent + " owner=v1:Secret:t:t"}, []string{"unlisted pods", kept}, "", []string{"owner-absent p", "owner-absent p"}, 2},
		{"the owner could not be read", []string{absent}, []string{absent, "unlisted secrets"}, "", []string{"owner-absent p"}, 1},
		{"another owner could not be read", []string{absent + " owner=v1:ConfigMap:c:c"}, []string{absent + " owner=v1:ConfigMap:c:c", kept, "unlisted configmaps"}, "", []string{"owner-absent p"}, 2},
		{"the owner could not be read, and the object is being deleted", []string{absent}, []string{absent + " deleting", "unlisted secrets"}, "", nil, 1},
		{"the owner could not be read the first time", []string{absent, "unlisted secrets"}, []string{absent}, "", nil, 1},

		{"a finding about the same reference that says something else",
			[]string{absent + " owner=v1:Secret:s:s", kept}, []string{absent + " owner=v1:Secret:s:s"}, "", nil, 1},

		{"a circle", []string{a, b}, []string{a, b}, "", []string{"owner-cycle a b"}, 2},
		{"a circle that has grown, and begins elsewhere", []string{a, b},
			[]string{a, b + " owner=v1:ConfigMap:A:d", "ConfigMap/shop/A uid=d owner=v1:ConfigMap:b:b"}, "", []string{"owner-cycle d a b"}, 3},
		{"a circle was none", []string{a, b}, []string{a, "ConfigMap/shop/b uid=b"}, "", nil, 2},
		{"a new circle with one old member", []string{a, b}, []string{"ConfigMap/shop/a uid=a owner=v1:ConfigMap:c:c", c}, "b", nil, 2},
		{"a circle of which nothing could be read", []string{a, b}, []string{"unlisted configmaps"}, "", []string{"owner-cycle a b"}, 1},
		{"a circle that was a dangling reference", []string{a}, []string{a, b}, "", nil, 2},
		{"a dangling reference that was a circle", []string{a, b}, []string{a}, "b", nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, _ := lookAt(t, test.first)
			second, g := lookAt(t, test.second)
			both := second.Confirmed(first, g, func(id graph.Identity) bool { return string(id.UID) == test.gone })
			var got []string
			for _, f := range both.Filtered(nil, check.Info).Findings {
				got = append(got, fmt.Sprintf("%s %s", f.Rule, strings.Join(uids(f), " ")))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || both.Objects != test.objects {
				t.Errorf("%d objects, want %d; -want +got:\n%s", both.Objects, test.objects, diff)
			}
		})
	}
}

// uids are those of a circle's members, or of the object.
func uids(f check.Finding) []string {
	if f.Members == nil {
		return []string{string(f.Object.UID)}
	}
	var all []string
	for _, m := range f.Members {
		all = append(all, string(m.UID))
	}
	return all
}

func lookAt(t *testing.T, lines []string) (*check.Report, *graph.Graph) {
	t.Helper()
	c := newCluster()
	for _, line := range lines {
		words := strings.Fields(line)
		if words[0] == "unlisted" {
			c.unlist(words[1])
		} else if err := c.add(words); err != nil {
			t.Fatal(err)
		}
	}
	g := graph.New(c.snapshot())
	return check.Check(g, check.Options{}), g
}

// The count of what could not be looked up is that of the worse look.
func TestConfirmedUnchecked(t *testing.T) {
	const p = "Pod/shop/p uid=p owner=v1:Secret:s:s"
	first, _ := lookAt(t, []string{p, "unlisted secrets"})
	second, g := lookAt(t, []string{p})
	if got := second.Confirmed(first, g, func(graph.Identity) bool { return true }); got.Unchecked != 1 || len(second.Findings) != 1 {
		t.Errorf("%d unchecked, want 1; the report itself has %d findings, want 1", got.Unchecked, len(second.Findings))
	}
}

// A look confirms itself; one that reads nothing refutes nothing; and one that
// proves all objects gone refutes everything.
func TestConfirmedByTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusters.Draw(t, "cluster")
		g := graph.New(c.snapshot())
		report := check.Check(g, check.Options{})
		if got := text(report.Confirmed(report, g, nil)); got != text(report) {
			t.Fatalf("by itself:\n%s\nwant:\n%s", got, text(report))
		}
		blind := graph.New(&graph.Snapshot{Mapper: c.snapshot().Mapper})
		nothing := check.Check(blind, check.Options{})
		kept := nothing.Confirmed(report, blind, func(graph.Identity) bool { return false })
		if text(&check.Report{Findings: kept.Findings}) != text(&check.Report{Findings: report.Findings}) {
			t.Fatalf("by nothing:\n%s\nwant:\n%s", text(kept), text(report))
		}
		if kept = nothing.Confirmed(report, blind, func(graph.Identity) bool { return true }); len(kept.Findings) > 0 || kept.Objects > 0 {
			t.Fatalf("all is gone:\n%s", text(kept))
		}
	})
}

// Where nothing has changed, a look at what a report is about, and at the owners of that, has all its
// findings.
func TestStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusters.Draw(t, "cluster")
		clear(c.unlisted)
		g := graph.New(c.snapshot())
		report := check.Check(g, check.Options{})
		few := &graph.Snapshot{Mapper: c.snapshot().Mapper}
		at := map[string]graph.Object{}
		for _, o := range c.Objects {
			at[o.Resource.GroupResource().String()+"/"+o.Namespace+"/"+o.Name] = o
			for _, id := range report.About(g) {
				if id.UID == o.UID {
					few.Add(o)
				}
			}
		}
		for u := few.Undecided(); len(u) > 0; u = few.Undecided() {
			for _, u := range u {
				if o, found := at[u.Resource.GroupResource().String()+"/"+u.Namespace+"/"+u.Name]; found {
					few.Add(o)
				} else {
					few.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
				}
			}
		}
		still, ok := report.Still(check.Check(graph.New(few), check.Options{Partial: true}))
		if !ok {
			t.Fatalf("wrong in another way:\n%s", text(report))
		}
		if got, want := text(&check.Report{Findings: still.Findings}), text(&check.Report{Findings: report.Findings}); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}
