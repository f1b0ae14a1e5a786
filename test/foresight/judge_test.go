// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// A ref is an object reference of a plan.
type ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// String returns the reference as people read it.
func (r ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// A saying is what a preview says about an object.
type saying struct {
	Object ref    `json:"object"`
	Result string `json:"result"`
	Reason string `json:"reason"`
}

// goes reports whether the preview does not say that the object is to stay.
func (s *saying) goes() bool {
	return s.Result == "Deleted" || s.Result == "Remaining" || s.Result == "Unknown"
}

// A judgement compares a preview with what happened.
type judgement struct {
	// wrong objects were said to go and stayed.
	wrong []saying
	// alarms were said to remain and went.
	alarms []saying
	// unsaid objects were said to stay, and went.
	unsaid []saying
}

// judge takes what a preview says, and the UIDs of what was there in the end.
func judge(sayings []saying, there map[string]bool) judgement {
	var j judgement
	for _, s := range sayings {
		switch stayed := there[s.Object.UID]; {
		case s.Result == "Deleted" && stayed:
			j.wrong = append(j.wrong, s)
		case s.Result == "Remaining" && !stayed:
			j.alarms = append(j.alarms, s)
		case !s.goes() && !stayed:
			j.unsaid = append(j.unsaid, s)
		}
	}
	return j
}

// told says in a few words what a preview says, of what is to go.
func told(sayings []saying) string {
	by := map[string][]ref{}
	for _, s := range sayings {
		if s.goes() {
			by[s.Result] = append(by[s.Result], s.Object)
		}
	}
	var parts []string
	for _, result := range []string{"Remaining", "Unknown"} {
		if refs := by[result]; len(refs) > 0 {
			words := map[string]string{"Remaining": "would get stuck", "Unknown": "may get stuck"}
			parts = append(parts, words[result]+": "+count(refs))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "all goes")
	}
	return strings.Join(parts, "; ")
}

const allGone = "all gone"

// left says in a few words what was there in the end, of what was to go.
func left(sayings []saying, there map[string]bool) string {
	var refs []ref
	for _, s := range sayings {
		if s.goes() && there[s.Object.UID] {
			refs = append(refs, s.Object)
		}
	}
	if len(refs) == 0 {
		return allGone
	}
	return "stays: " + count(refs)
}

// count counts objects by kind, those that people care about first.
func count(refs []ref) string {
	kinds := map[string]int{}
	for _, r := range refs {
		kinds[r.Kind]++
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range order {
		parts = append(parts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return strings.Join(parts, ", ")
}

func rank(kind string) int {
	if i := slices.Index([]string{"Toy", "Gadget", "CustomResourceDefinition", "Namespace"}, kind); i >= 0 {
		return i
	}
	return 4
}

// What counts as wrong is not left to a run on a cluster.
func TestJudge(t *testing.T) {
	said := func(result string) saying {
		return saying{Object: ref{Kind: "Toy", Name: result, UID: result}, Result: result}
	}
	all := []saying{said("Deleted"), said("Remaining"), said("Unknown"), said("Orphaned"), said("OwnerReferenceRemoved"), said("Untouched")}
	names := func(sayings []saying) string {
		var names []string
		for _, s := range sayings {
			names = append(names, s.Object.Name)
		}
		return strings.Join(names, " ")
	}
	for _, test := range []struct {
		there                         []string
		wrong, alarms, unsaid, remain string
	}{
		{nil, "", "Remaining", "Orphaned OwnerReferenceRemoved Untouched", "all gone"},
		{[]string{"Deleted", "Remaining", "Unknown", "Orphaned", "OwnerReferenceRemoved", "Untouched"}, "Deleted", "", "", "stays: 3 Toy"},
		{[]string{"Remaining", "Orphaned", "OwnerReferenceRemoved", "Untouched"}, "", "", "", "stays: 1 Toy"},
	} {
		there := map[string]bool{}
		for _, uid := range test.there {
			there[uid] = true
		}
		j := judge(all, there)
		got := []string{names(j.wrong), names(j.alarms), names(j.unsaid), left(all, there)}
		if diff := gocmp.Diff([]string{test.wrong, test.alarms, test.unsaid, test.remain}, got); diff != "" {
			t.Errorf("with %v left (-want +got):\n%s", test.there, diff)
		}
	}
	if got, want := told(all), "would get stuck: 1 Toy; may get stuck: 1 Toy"; got != want {
		t.Errorf("told: got %q, want %q", got, want)
	}
}
