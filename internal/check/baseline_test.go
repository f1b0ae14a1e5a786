// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

func someFinding(change func(*Finding)) Finding {
	f := Finding{
		Rule: OwnerAbsent, Severity: Warning,
		Object:    graph.Identity{Resource: graph.Resource{Kind: "Secret"}, Namespace: "shop", Name: "session", UID: "1"},
		Reference: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "2"},
	}
	f.Object.Resource.Version = "v1"
	if change != nil {
		change(&f)
	}
	return f
}

// TestBaseline: what is the same by its names is known, unless it is graver now.
func TestBaseline(t *testing.T) {
	circle := []graph.Identity{{Name: "a", UID: "a"}, {Name: "b", UID: "b"}}
	baseline := NewBaseline([]Finding{someFinding(nil), someFinding(func(f *Finding) { f.Rule, f.Members = OwnerCycle, circle })})
	for _, test := range []struct {
		name   string
		change func(*Finding)
		known  bool
	}{
		{"the same", nil, true},
		{"made again", func(f *Finding) { f.Object.UID, f.Reference.UID = "3", "4" }, true},
		{"another version", func(f *Finding) { f.Object.Resource.Version, f.Reference.APIVersion = "v2", "apps/v2" }, true},
		{"another position", func(f *Finding) { f.Index = 3 }, true},
		{"milder", func(f *Finding) { f.Severity = Info }, true},
		{"graver", func(f *Finding) { f.Severity = Error }, false},
		{"another rule", func(f *Finding) { f.Rule = UIDMismatch }, false},
		{"another name", func(f *Finding) { f.Object.Name = "other" }, false},
		{"another namespace", func(f *Finding) { f.Object.Namespace = "other" }, false},
		{"another kind", func(f *Finding) { f.Object.Resource.Kind = "Other" }, false},
		{"another group", func(f *Finding) { f.Object.Resource.Group = "other" }, false},
		{"another owner", func(f *Finding) { f.Reference.Name = "other" }, false},
		{"another kind of owner", func(f *Finding) { f.Reference.Kind = "Other" }, false},
		{"another group of the owner", func(f *Finding) { f.Reference.APIVersion = "other/v1" }, false},
		{"the circle, from another member", func(f *Finding) {
			f.Rule, f.Members, f.Object.Name = OwnerCycle, []graph.Identity{circle[1], circle[0]}, "b"
		}, true},
		{"a circle of others", func(f *Finding) { f.Rule, f.Members = OwnerCycle, circle[:1] }, false},
	} {
		f := someFinding(test.change)
		report := (&Report{Findings: []Finding{f}, Objects: 1}).New(baseline)
		if got := len(report.Findings) == 0; got != test.known || report.Objects != 1 {
			t.Errorf("%s: known %v, want %v", test.name, got, test.known)
		}
	}
}

func TestOlderThan(t *testing.T) {
	now := time.Now()
	r := &Report{}
	for i, created := range []time.Time{{}, now.Add(-time.Hour), now.Add(-time.Minute), now} {
		r.Findings = append(r.Findings, someFinding(func(f *Finding) { f.Index, f.Created = i, created }))
	}
	var got []int
	for _, f := range r.OlderThan(now.Add(-time.Minute)).Findings {
		got = append(got, f.Index)
	}
	if want := []int{0, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(r.Findings) != 4 {
		t.Error("the report was changed")
	}
}
