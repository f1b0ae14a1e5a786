// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/diff"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var pods = &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}

// object reads "NAME UID [terminating] [owner=UID] [finalizer=NAME]".
func object(text string) graph.Object {
	words := strings.Fields(text)
	o := graph.Object{Resource: pods, Namespace: "shop", Name: words[0], UID: types.UID(words[1])}
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "terminating":
			o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		case "owner":
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: value, UID: types.UID(value)})
		case "finalizer":
			o.Finalizers = append(o.Finalizers, value)
		}
	}
	return o
}

func snapshot(listed bool, objects ...string) *graph.Snapshot {
	s := &graph.Snapshot{}
	for _, text := range objects {
		s.Add(object(text))
	}
	if listed {
		s.MarkListed(pods.GroupResource(), "", "1")
	}
	return s
}

// said is a report in lines.
func said(r *diff.Report) []string {
	var lines []string
	for _, d := range r.Differences {
		line := fmt.Sprintf("%s %s", d.Object.Name, d.Change)
		if d.Replaces {
			line += " replaces"
		}
		if d.BeganTerminating {
			line += " terminating"
		}
		for _, o := range d.AddedOwners {
			line += " +" + o.Name
		}
		for _, o := range d.RemovedOwners {
			line += " -" + o.Name
		}
		for _, f := range d.AddedFinalizers {
			line += " +" + f
		}
		for _, f := range d.RemovedFinalizers {
			line += " -" + f
		}
		lines = append(lines, line)
	}
	for _, u := range r.Uncompared {
		lines = append(lines, fmt.Sprintf("? %s %d", u.Resource, u.Objects))
	}
	return lines
}

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *graph.Snapshot
		want          []string
	}{
		"the same":          {snapshot(true, "a 1", "b 2"), snapshot(true, "b 2", "a 1"), nil},
		"appeared":          {snapshot(true, "a 1"), snapshot(true, "a 1", "b 2 terminating"), []string{"b Appeared terminating"}},
		"vanished":          {snapshot(true, "a 1"), snapshot(true), []string{"a Vanished"}},
		"replaced":          {snapshot(true, "a 1"), snapshot(true, "a 2"), []string{"a Vanished", "a Appeared replaces"}},
		"began":             {snapshot(true, "a 1"), snapshot(true, "a 1 terminating"), []string{"a Changed terminating"}},
		"was terminating":   {snapshot(true, "a 1 terminating"), snapshot(true, "a 1 terminating"), nil},
		"owners":            {snapshot(true, "a 1 owner=x owner=y"), snapshot(true, "a 1 owner=y owner=z"), []string{"a Changed +z -x"}},
		"finalizers":        {snapshot(true, "a 1 finalizer=x"), snapshot(true, "a 1 finalizer=y"), []string{"a Changed +y -x"}},
		"order alone":       {snapshot(true, "a 1 finalizer=x finalizer=y"), snapshot(true, "a 1 finalizer=y finalizer=x"), nil},
		"unlisted after":    {snapshot(true, "a 1"), snapshot(false), []string{"? pods 1"}},
		"unlisted before":   {snapshot(false), snapshot(true, "a 1"), []string{"? pods 1"}},
		"another in place":  {snapshot(true, "a 1"), snapshot(false, "a 2"), []string{"a Vanished", "a Appeared replaces"}},
		"seen, not listed":  {snapshot(false, "a 1"), snapshot(false, "a 1 terminating"), []string{"a Changed terminating"}},
		"neither was there": {snapshot(false), snapshot(false), nil},
	} {
		if diff := cmp.Diff(test.want, said(diff.Compare(test.before, test.after, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What appeared one way has vanished the other way; nothing differs from itself.
func TestSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *graph.Snapshot {
			s := &graph.Snapshot{}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 6, func(n int) int { return n % 6 }).Draw(t, label) {
				text := fmt.Sprintf("o%d %d", n%6, n)
				if rapid.Bool().Draw(t, "terminating") {
					text += " terminating"
				}
				s.Add(object(text))
			}
			if rapid.Bool().Draw(t, "listed") {
				s.MarkListed(pods.GroupResource(), "", "1")
			}
			return s
		}
		a, b := draw("a"), draw("b")
		there, back := diff.Compare(a, b, nil).Total(), diff.Compare(b, a, nil).Total()
		if there.Appeared != back.Vanished || there.Vanished != back.Appeared {
			t.Fatalf("%+v, and back %+v", there, back)
		}
		if same := diff.Compare(a, a, nil); len(said(same)) > 0 {
			t.Fatalf("it differs from itself: %v", said(same))
		}
	})
}
