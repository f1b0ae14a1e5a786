// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// family is a look of objects, each "name" or "name<owner", that is being deleted unless it ends with "!". What was asked for has a
// verdict.
func family(objects string, asked map[string]explain.Verdict) *unstick.Look {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	snapshot := &graph.Snapshot{Mapper: mapper}
	resource := identity("").Resource
	for _, text := range strings.Fields(objects) {
		text, lives := strings.CutSuffix(text, "!")
		name, owner, owned := strings.Cut(text, "<")
		o := graph.Object{Resource: &resource, Namespace: "s", Name: name, UID: types.UID("uid-" + name)}
		if !lives {
			o.DeletionTimestamp = new(metav1.NewTime(time.Unix(0, 0)))
		}
		if owned {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID("uid-" + owner)}}
		}
		snapshot.Add(o)
	}
	l := &unstick.Look{Graph: graph.New(snapshot), Report: reporting(asked)}
	return l
}

func reporting(verdicts map[string]explain.Verdict) *explain.Report {
	r := &explain.Report{}
	for name, verdict := range verdicts {
		r.Objects = append(r.Objects, explain.Explanation{Object: identity(name), Verdict: verdict})
	}
	return r
}

type verdicts = map[string]explain.Verdict

// Freed is what is gone with all that was terminating with it; the run is done when nothing that was asked for is left, nor what followed
// it.
func TestOutcome(t *testing.T) {
	web := "web rs<web pod<rs"
	for name, test := range map[string]struct {
		before string
		asked  verdicts
		// now are the objects of the last look, with what is said of those that were asked for, and behind what is said of the others.
		now    verdicts
		behind verdicts
		freed  string
		want   string
		looks  string
	}{
		"all is gone":                 {web, verdicts{"web": explain.Stuck}, nil, verdicts{"rs": explain.NotFound, "pod": explain.NotFound}, "web", "freed web; done", "pod rs"},
		"its pod hangs":               {web, verdicts{"web": explain.Stuck}, nil, verdicts{"pod": explain.Stuck}, "web", "web without pod", "pod rs"},
		"its pod is still ending":     {web, verdicts{"web": explain.Stuck}, nil, verdicts{"pod": explain.Progressing}, "web", "web without pod", "pod rs"},
		"all hang":                    {web, verdicts{"web": explain.Stuck}, nil, verdicts{"rs": explain.Stuck, "pod": explain.Unknown}, "web", "web without pod rs", "pod rs"},
		"a dependent that lives":      {"web rs<web!", verdicts{"web": explain.Stuck}, nil, nil, "web", "freed web; done", ""},
		"below one that lives":        {"web rs<web! pod<rs", verdicts{"web": explain.Stuck}, nil, nil, "web", "freed web; done", ""},
		"each other's owner":          {"a<b b<a", verdicts{"a": explain.Stuck}, nil, verdicts{"b": explain.Stuck}, "a", "a without b", "b"},
		"the dependent was asked for": {web, verdicts{"web": explain.Stuck, "rs": explain.Stuck, "pod": explain.Stuck}, verdicts{"pod": explain.Stuck}, nil, "web rs", "freed rs web; left pod", ""},
		"one of two":                  {"a b", verdicts{"a": explain.Stuck, "b": explain.Stuck}, verdicts{"b": explain.Stuck}, nil, "a", "freed a; left b", ""},
		"not known":                   {"a", verdicts{"a": explain.Unknown}, verdicts{"a": explain.Unknown}, nil, "", "left a", ""},
		"makes progress":              {"a", verdicts{"a": explain.Stuck}, verdicts{"a": explain.Progressing}, nil, "", "left a", ""},
		"nobody deletes it":           {"a!", verdicts{"a": explain.NotTerminating}, verdicts{"a": explain.NotTerminating}, nil, "", "done", ""},
		"it was recreated":            {"a", verdicts{"a": explain.Stuck}, verdicts{"a": explain.NotTerminating}, nil, "a", "freed a; done", ""},
		"the owner is still there":    {web, verdicts{"web": explain.Stuck}, verdicts{"web": explain.Stuck}, nil, "", "left web", ""},
	} {
		var f unstick.Followers
		f.Note(family(test.before, test.asked))
		last := &unstick.Look{Graph: graph.New(&graph.Snapshot{}), Report: reporting(test.now)}
		f.Note(last)
		var looks []string
		for _, o := range f.Behind(last) {
			looks = append(looks, o.Name)
		}
		if got := strings.Join(looks, " "); got != test.looks {
			t.Errorf("%s: looks at %q, want %q", name, got, test.looks)
		}
		f.Found(last, reporting(test.behind))
		report := &unstick.Report{Last: last}
		for _, name := range strings.Fields(test.freed) {
			report.Freed = append(report.Freed, identity(name))
		}
		report.Freed = append(report.Freed, identity("freed-behind")) // a dependent that was left once
		if got := said(f.Outcome(report)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func said(o *unstick.Outcome) string {
	var parts []string
	names := func(lead string, of []string) {
		if slices.Sort(of); len(of) > 0 {
			parts = append(parts, lead+strings.Join(of, " "))
		}
	}
	var freed, left []string
	for _, id := range o.Freed {
		freed = append(freed, id.Name)
	}
	names("freed ", freed)
	for _, b := range o.Bare {
		var hanging []string
		for _, e := range b.Hanging {
			hanging = append(hanging, e.Object.Name)
		}
		names(fmt.Sprintf("%s without ", b.Object.Name), hanging)
	}
	for _, e := range o.Left {
		left = append(left, e.Object.Name)
	}
	names("left ", left)
	if o.Done() {
		parts = append(parts, "done")
	}
	return strings.Join(parts, "; ")
}
