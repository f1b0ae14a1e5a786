// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
)

// things is the definition of the instances in scenarios of vanishing.
var things = gctest.Path{Kind: "crd", Name: "things"}

// vanishing draws scenarios in which the definition of what otherwise are widgets
// is dropped before one of the actions, and made again after it or a later one. Then
// everything is looked at.
var vanishing = rapid.Custom(func(t *rapid.T) gctest.Scenario {
	s := scenarios.Draw(t, "scenario")
	s.Objects = append([]gctest.Object{{Path: things}}, s.Objects...)
	s.Actions = slices.DeleteFunc(s.Actions, func(a gctest.Action) bool { return a.In != "" })
	for i := range s.Objects {
		asThing(&s.Objects[i].Path)
		for k := range s.Objects[i].Owners {
			o := &s.Objects[i].Owners[k]
			if uid := o.UIDPath(); o.UID != "" && !o.OfNobody() {
				asThing(&uid)
				o.UID = uid.String()
			}
			if o.Of.Kind == "widget" && o.Kind == "" {
				o.APIVersion = ""
			}
			asThing(&o.Of)
		}
	}
	drop := rapid.IntRange(0, len(s.Actions)-1).Draw(t, "drop")
	again := rapid.IntRange(drop+1, len(s.Actions)).Draw(t, "create")
	for i := range s.Actions {
		for k := range s.Actions[i].Paths {
			asThing(&s.Actions[i].Paths[k])
		}
		if a := &s.Actions[i]; i >= drop && i < again && len(a.Paths) > 0 && a.Paths[0].Kind == "thing" {
			*a = gctest.Action{Verb: gctest.Collect} // who does not see it cannot name it
		}
	}
	s.Actions = slices.Insert(s.Actions, again,
		gctest.Action{Verb: gctest.UserCreate, Paths: []gctest.Path{things}}, gctest.Action{Verb: gctest.Collect})
	s.Actions = slices.Insert(s.Actions, drop, gctest.Action{Verb: gctest.UserDrop, Paths: []gctest.Path{things}})
	return s
})

// asThing makes a thing of a widget.
func asThing(p *gctest.Path) {
	if p.Kind == "widget" {
		p.Kind = "thing"
	}
}

// TestVanishing plays scenarios in which a definition goes without its instances,
// and comes back. What depends on them is kept meanwhile.
func TestVanishing(t *testing.T) {
	for _, workers := range []int{1, 4} {
		rapid.Check(t, func(t *rapid.T) {
			s := vanishing.Draw(t, "scenario")
			play, err := (&memory.World{Workers: workers}).Play(context.Background(), &s)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := follow(play, &s); wrong != "" {
				t.Fatal(wrong)
			}
		})
	}
}
