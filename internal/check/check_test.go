// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// clusters draws small clusters in which most references are wrong.
var clusters = rapid.Custom(func(t *rapid.T) *cluster {
	c := newCluster()
	taken := map[string]bool{}
	for i := range rapid.IntRange(1, 6).Draw(t, "objects") {
		r := rapid.SampledFrom(served).Draw(t, "type")
		o := graph.Object{Resource: r, UID: types.UID(fmt.Sprintf("u%d", i)), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")}
		if r.Namespaced {
			o.Namespace = rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "namespace")
		}
		if taken[o.Identity().String()] {
			continue
		}
		taken[o.Identity().String()] = true
		if rapid.IntRange(0, 3).Draw(t, "deleting") == 0 {
			o.DeletionTimestamp = &metav1.Time{}
			o.Finalizers = rapid.SampledFrom([][]string{{"x"}, {"foregroundDeletion"}}).Draw(t, "finalizers")
		}
		c.Objects = append(c.Objects, o)
	}
	for i := range c.Objects {
		for range rapid.IntRange(0, 3).Draw(t, "references") {
			c.Objects[i].OwnerReferences = append(c.Objects[i].OwnerReferences, drawReference(t, c))
		}
	}
	for _, r := range served {
		if rapid.IntRange(0, 9).Draw(t, "unlisted") == 0 {
			c.unlist(r.Resource)
		}
	}
	return c
})

// drawReference starts from a right reference to some object and may spoil any
// part of it.
func drawReference(t *rapid.T, c *cluster) metav1.OwnerReference {
	o := rapid.SampledFrom(c.Objects).Draw(t, "owner")
	ref := metav1.OwnerReference{APIVersion: o.Resource.GroupVersion().String(), Kind: o.Resource.Kind, Name: o.Name, UID: o.UID}
	switch rapid.IntRange(0, 8).Draw(t, "mistake") {
	case 0:
		ref.Name = "typo"
	case 1:
		ref.UID = "gone"
	case 2:
		ref.Kind = "Coupon"
	case 3:
		other := rapid.SampledFrom(served).Draw(t, "other type")
		ref.APIVersion, ref.Kind = other.GroupVersion().String(), other.Kind
	}
	if rapid.Bool().Draw(t, "blocks") {
		yes := true
		ref.BlockOwnerDeletion = &yes
	}
	return ref
}

// read returns the objects that could be read.
func (c *cluster) read() []graph.Object {
	return slices.DeleteFunc(slices.Clone(c.Objects), func(o graph.Object) bool { return c.unlisted[o.Resource.Resource] })
}

// lookup restates where the garbage collector looks for an owner: what is at
// the stated place, and "absent", "unread", "unserved" or "unreachable" where
// there is nothing.
func (c *cluster) lookup(item graph.Object, ref metav1.OwnerReference) (*graph.Object, string) {
	i := slices.IndexFunc(served, func(r *graph.Resource) bool {
		return r.Kind == ref.Kind && (r.GroupVersion().String() == ref.APIVersion || r.Group == "autoscaling" && ref.APIVersion == "autoscaling/v1")
	})
	if i < 0 {
		return nil, "unserved"
	}
	namespace := item.Namespace
	if !served[i].Namespaced {
		namespace = ""
	} else if namespace == "" {
		return nil, "unreachable"
	}
	for _, o := range c.read() {
		if o.Resource == served[i] && o.Namespace == namespace && o.Name == ref.Name {
			return &o, ""
		}
	}
	if c.unlisted[served[i].Resource] {
		return nil, "unread"
	}
	return nil, "absent"
}

// expect restates the rules about single references: what is wrong with each,
// and how bad it is. It is written from the table in docs/check.md.
func (c *cluster) expect(item graph.Object) []string {
	outcome := c.outcome(item)
	var found []string
	for i, ref := range item.OwnerReferences {
		rule := c.wrong(item, ref)
		severity := map[string]string{"deleted": "error", "bereft": "error", "terminating": "info"}[outcome]
		if severity == "" {
			severity = "warning"
		}
		switch {
		case rule == "unresolvable-kind" || rule == "cluster-scoped-dependent":
			severity = "error"
			if outcome == "terminating" {
				continue
			}
		case rule == "":
			continue
		}
		found = append(found, fmt.Sprintf("%s %s %s[%d]", severity, rule, item.Identity(), i))
	}
	return found
}

// wrong returns the rule that the reference breaks by itself.
func (c *cluster) wrong(item graph.Object, ref metav1.OwnerReference) string {
	at, why := c.lookup(item, ref)
	switch {
	case why == "unserved":
		return "unresolvable-kind"
	case why == "unreachable":
		return "cluster-scoped-dependent"
	case why == "unread" || at != nil && at.UID == ref.UID:
		return ""
	}
	for _, o := range c.read() {
		if o.UID == ref.UID {
			if o.Namespace != "" && o.Namespace != item.Namespace {
				return "wrong-namespace"
			}
			return "coordinates-mismatch"
		}
	}
	if at != nil {
		return "uid-mismatch"
	}
	return "owner-absent"
}

// outcome says what the garbage collector does with the object.
func (c *cluster) outcome(item graph.Object) string {
	if item.DeletionTimestamp != nil {
		return "terminating"
	}
	kept := false
	unread := false
	gone := map[types.UID]bool{}
	for _, ref := range item.OwnerReferences {
		at, why := c.lookup(item, ref)
		switch {
		case why == "unserved" || why == "unreachable":
			return "held up"
		case why == "unread":
			unread = true
		case at != nil && at.UID == ref.UID && !(at.DeletionTimestamp != nil && slices.Contains(at.Finalizers, "foregroundDeletion")):
			kept = true
		default:
			gone[ref.UID] = true
		}
	}
	left := 0
	for _, ref := range item.OwnerReferences {
		if !gone[ref.UID] {
			left++
		}
	}
	switch {
	case unread && !kept:
		return "unknown"
	case !kept:
		return "deleted"
	case left == 0:
		return "bereft"
	}
	return "kept"
}

// The findings about single references are those of a naive restatement of the
// rules.
func TestFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusters.Draw(t, "cluster")
		var want, got []string
		for _, o := range c.read() {
			want = append(want, c.expect(o)...)
		}
		report := check.Check(graph.New(c.snapshot()), check.Options{})
		for _, f := range report.Findings {
			switch f.Rule {
			case check.OwnsItself, check.OwnerCycle, check.BlockingCycle, check.RepeatedUID:
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %s[%d]", f.Severity, f.Rule, f.Object, f.Index))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if report.Objects != len(c.read()) {
			t.Fatalf("%d objects, want %d", report.Objects, len(c.read()))
		}
	})
}

// An object is in a circle exactly when it comes back to itself over references
// that keep.
func TestCircles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusters.Draw(t, "cluster")
		want := map[types.UID]bool{}
		for _, o := range c.read() {
			if c.comesBack(o.UID) {
				want[o.UID] = true
			}
		}
		got := map[types.UID]bool{}
		for _, f := range check.Check(graph.New(c.snapshot()), check.Options{}).Findings {
			for _, m := range f.Members {
				got[m.UID] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func (c *cluster) comesBack(start types.UID) bool {
	seen := map[types.UID]bool{}
	for queue := []types.UID{start}; len(queue) > 0; queue = queue[1:] {
		for _, o := range c.read() {
			if o.UID != queue[0] || o.DeletionTimestamp != nil {
				continue
			}
			for _, ref := range o.OwnerReferences {
				at, _ := c.lookup(o, ref)
				if at == nil || at.UID != ref.UID || at.UID == o.UID || at.DeletionTimestamp != nil {
					continue
				}
				if at.UID == start {
					return true
				}
				if !seen[at.UID] {
					seen[at.UID] = true
					queue = append(queue, at.UID)
				}
			}
		}
	}
	return false
}

// Filters take findings away, and nothing else. A circle whose references all
// block is found twice; what says less about it is left out, unless the other is
// not asked for: who asks for owner-cycle alone must be told of it, too.
func TestFilters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := check.Check(graph.New(clusters.Draw(t, "cluster").snapshot()), check.Options{})
		rules := rapid.SliceOf(rapid.SampledFrom(check.RuleIDs())).Draw(t, "rules")
		least := rapid.SampledFrom([]check.Severity{check.Info, check.Warning, check.Error}).Draw(t, "least")
		blocks := func(f check.Finding) bool {
			return (len(rules) == 0 || slices.Contains(rules, check.BlockingCycle)) && slices.ContainsFunc(all.Findings, func(other check.Finding) bool {
				return other.Rule == check.BlockingCycle && slices.Equal(other.Members, f.Members)
			})
		}
		want := slices.DeleteFunc(slices.Clone(all.Findings), func(f check.Finding) bool {
			return f.Severity < least || len(rules) > 0 && !slices.Contains(rules, f.Rule) || f.Rule == check.OwnerCycle && blocks(f)
		})
		got := all.Filtered(rules, least)
		if text(&check.Report{Findings: want}) != text(&check.Report{Findings: got.Findings}) || got.Objects != all.Objects {
			t.Fatalf("want %v, got %v", want, got.Findings)
		}
	})
}

// Without remedies the findings are the same otherwise.
func TestWithoutRemedies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graph.New(clusters.Draw(t, "cluster").snapshot())
		want, got := check.Check(g, check.Options{}), check.Check(g, check.Options{WithoutRemedies: true})
		for i := range want.Findings {
			want.Findings[i].Remedy = nil
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("want %v, got %v", want.Findings, got.Findings)
		}
	})
}

// TestRulesAreDocumented looks for every rule in the table of the
// documentation.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range check.Rules() {
		if !strings.Contains(string(page), "\n| `"+r.ID+"` | ") {
			t.Errorf("docs/check.md has no row for %s", r.ID)
		}
	}
}

// bigGraph returns n pods, 10 to each of their owners, and one object for every
// spoiled that has a dangling reference.
func bigGraph(n, spoiled int) *graph.Graph {
	c := newCluster()
	s := c.snapshot()
	deployment, pod := served[4], served[0]
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)) }
	yes := true
	for i := range n {
		owner := n + i/10
		if i%10 == 0 {
			s.Add(graph.Object{Resource: deployment, Namespace: "shop", Name: fmt.Sprintf("d%07d", i/10), UID: uid(owner)})
		}
		ref := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("d%07d", i/10), UID: uid(owner), BlockOwnerDeletion: &yes}
		if spoiled > 0 && i%spoiled == 0 {
			ref.Name = "gone"
		}
		s.Add(graph.Object{Resource: pod, Namespace: "shop", Name: fmt.Sprintf("p%07d", i), UID: uid(i), OwnerReferences: []metav1.OwnerReference{ref}})
	}
	return graph.New(s)
}

// The memory that a check takes does not follow the number of objects that are
// fine, but for the arrays in which cycles are looked for.
func TestAllocations(t *testing.T) {
	count := func(n int) float64 {
		g := bigGraph(n, 0)
		return testing.AllocsPerRun(3, func() { check.Check(g, check.Options{}) })
	}
	if small, big := count(100), count(20000); big > small+20 {
		t.Errorf("%v allocations for 110 objects, %v for 22000", small, big)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, spoiled := range []int{0, 100} {
		for _, n := range []int{10000, 100000, 1000000} {
			b.Run(fmt.Sprintf("wrong=%d/%d", spoiled, n), func(b *testing.B) {
				g := bigGraph(n, spoiled)
				b.ReportAllocs()
				for b.Loop() {
					check.Check(g, check.Options{})
				}
			})
		}
	}
}
