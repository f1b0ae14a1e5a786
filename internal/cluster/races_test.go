// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// hooked is a server that lets something happen right before a write is sent:
// after the Collector has decided about it.
type hooked struct {
	gc.Server
	before func(write string)
}

// Delete implements gc.Server.
func (h *hooked) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	h.before("Delete " + id.Name)
	return h.Server.Delete(ctx, id, options)
}

// Patch implements gc.Server.
func (h *hooked) Patch(ctx context.Context, base graph.Object, p gc.Patch) (graph.Object, error) {
	switch {
	case len(p.RemoveOwners) > 0:
		h.before("RemoveOwners " + base.Name)
	case p.Unblock:
		h.before("Unblock " + base.Name)
	default:
		h.before("RemoveFinalizer " + base.Name)
	}
	return h.Server.Patch(ctx, base, p)
}

// once returns a hook that does something before the first such write.
func once(write string, do func()) func(string) {
	var first sync.Once
	return func(w string) {
		if w == write {
			first.Do(do)
		}
	}
}

// stage makes the objects of the only scenario in the text.
func stage(t *testing.T, world *live.World, text string) (*live.Play, *gctest.Scenario) {
	t.Helper()
	scenarios, err := gctest.Parse(text)
	if err != nil || len(scenarios) != 1 {
		t.Fatalf("%d scenarios in\n%s\nerror: %v", len(scenarios), text, err)
	}
	play, err := world.Play(t.Context(), &scenarios[0])
	if err == nil {
		err = gctest.Prepare(t.Context(), play, &scenarios[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return play.(*live.Play), &scenarios[0]
}

// act does the scenario's actions with a Collector over the server that wrap
// makes of the play's, and checks what is left and that no write was refused.
func act(t *testing.T, play *live.Play, s *gctest.Scenario, wrap func(gc.Server) gc.Server) {
	t.Helper()
	result, err := gctest.Perform(t.Context(), &wrapped{play, wrap}, &gctest.Scenario{Actions: s.Actions})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range result.Steps(play.Stage()) {
		if strings.HasSuffix(step, "refused") {
			t.Errorf("a write was refused: %s", step)
		}
	}
	check(t, play, s)
}

// check compares what is left with what the scenario expects.
func check(t *testing.T, play *live.Play, s *gctest.Scenario) {
	t.Helper()
	states, err := play.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := s.Check(states); diff != "" {
		t.Errorf("what is left differs (- the scenario says, + this is so):\n%s", diff)
	}
}

// wrapped is a play with another server.
type wrapped struct {
	*live.Play
	wrap func(gc.Server) gc.Server
}

// Collector implements gctest.Play.
func (w *wrapped) Collector(ctx context.Context) (*graph.Graph, gc.Server, error) {
	g, server, err := w.Play.Collector(ctx)
	if err != nil {
		return nil, nil, err
	}
	return g, w.wrap(server), nil
}

// path returns the path of an object in the scenario's namespace.
func path(text string) gctest.Path {
	kind, name, _ := strings.Cut(text, "/")
	return gctest.Path{Kind: kind, Name: name}
}

// user is what somebody else does meanwhile. Everything must succeed.
type user struct {
	t    *testing.T
	play *live.Play
	s    *gctest.Scenario
}

func (u *user) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Error(err)
	}
}

func (u *user) delete(text string, policy metav1.DeletionPropagation) {
	u.t.Helper()
	u.must(u.play.Delete(u.t.Context(), path(text), metav1.DeleteOptions{PropagationPolicy: &policy}))
}

func (u *user) setOwners(text string, owners ...gctest.Owner) {
	u.t.Helper()
	u.must(u.play.Patch(u.t.Context(), path(text), &owners, nil))
}

// recreate deletes an object and creates it again, without owners.
func (u *user) recreate(text string) {
	u.t.Helper()
	if u.play.Stage().UIDs[path(text)] != "" {
		_ = u.play.Delete(u.t.Context(), path(text), metav1.DeleteOptions{}) // it may be gone
	}
	o := *u.s.Object(path(text))
	o.Owners = nil
	u.must(u.play.Create(u.t.Context(), []*gctest.Object{&o}))
}

// races are what happens between the list and a write. The Collector does not
// read an object before it changes it, and so must find out by its
// preconditions.
var races = []struct {
	text string
	// before is the write before which the race is lost.
	before string
	do     func(u *user)
}{
	{
		text: `== an owner reference is added between list and delete
objects
  configmap/owner
  configmap/keeper
  configmap/child      < owner
  configmap/grandchild < child
delete configmap/owner Background
expect
  configmap/owner      gone
  configmap/keeper     intact
  configmap/child      intact < keeper
  configmap/grandchild intact
`,
		before: "Delete child",
		do: func(u *user) {
			u.setOwners("configmap/child", gctest.Owner{Of: path("configmap/owner")}, gctest.Owner{Of: path("configmap/keeper")})
		},
	},
	{
		text: `== an owner reference is added to a custom resource between list and patch
objects
  configmap/owner
  configmap/keeper
  configmap/other
  widget/child < owner! keeper!
delete configmap/owner Foreground
expect
  configmap/owner  gone
  configmap/keeper intact
  configmap/other  intact
  widget/child     intact < keeper! other~
`,
		before: "RemoveOwners child",
		do: func(u *user) {
			u.setOwners("widget/child", gctest.Owner{Of: path("configmap/owner"), Block: gctest.Blocks},
				gctest.Owner{Of: path("configmap/keeper"), Block: gctest.Blocks},
				gctest.Owner{Of: path("configmap/other"), Block: gctest.DoesNotBlock})
		},
	},
	{
		text: `== the owner references are taken away between list and delete
objects
  configmap/owner
  configmap/child < owner!
delete configmap/owner Foreground
expect
  configmap/owner gone
  configmap/child intact <
`,
		before: "Delete child",
		do:     func(u *user) { u.setOwners("configmap/child") },
	},
	{
		text: `== the target is created again under its name before it is deleted
objects
  configmap/owner
  configmap/child < owner
delete configmap/owner Background
expect
  configmap/owner intact
  configmap/child gone
`,
		before: "Delete owner",
		do:     func(u *user) { u.recreate("configmap/owner") },
	},
	{
		text: `== an owner is created again under its name before its dependent is deleted
objects
  configmap/owner
  configmap/child < owner
delete configmap/owner Background
expect
  configmap/owner intact
  configmap/child gone
`,
		before: "Delete child",
		do:     func(u *user) { u.recreate("configmap/owner") },
	},
	{
		text: `== an owner is created again under its name, and adopts the dependent
objects
  configmap/owner
  configmap/child < owner
delete configmap/owner Background
expect
  configmap/owner intact
  configmap/child intact < owner
`,
		before: "Delete child",
		do: func(u *user) {
			u.recreate("configmap/owner")
			u.setOwners("configmap/child", gctest.Owner{Of: path("configmap/owner")})
		},
	},
	{
		text: `== an item is created again under its name before it is deleted
objects
  configmap/owner
  configmap/child < owner!
delete configmap/owner Foreground
expect
  configmap/owner gone
  configmap/child intact <
`,
		before: "Delete child",
		do:     func(u *user) { u.recreate("configmap/child") },
	},
	{
		text: `== an owner that kept an object turns from solid to waiting
objects
  configmap/keeper
  configmap/child      < configmap/ghost{uid=nobody} keeper!
  configmap/grandchild < child
collect
expect
  configmap/keeper     gone
  configmap/child      gone
  configmap/grandchild gone
`,
		before: "RemoveOwners child",
		do:     func(u *user) { u.delete("configmap/keeper", metav1.DeletePropagationForeground) },
	},
	{
		text: `== an owner that kept an object goes
objects
  configmap/keeper
  widget/child < configmap/ghost{uid=nobody} keeper
collect
expect
  configmap/keeper gone
  widget/child     gone
`,
		before: "RemoveOwners child",
		do:     func(u *user) { u.delete("configmap/keeper", metav1.DeletePropagationBackground) },
	},
	{
		text: `== somebody else takes the foreground finalizer off
objects
  configmap/owner finalizers=example.com/hold
  configmap/child < owner!
delete configmap/owner Foreground
expect
  configmap/owner terminating example.com/hold
  configmap/child gone
`,
		before: "RemoveFinalizer owner",
		do: func(u *user) {
			u.must(u.play.Patch(u.t.Context(), path("configmap/owner"), nil, &[]string{"example.com/hold"}))
		},
	},
	{
		text: `== somebody else deletes what is being deleted, with another policy
objects
  configmap/owner
  configmap/child      < owner!
  configmap/grandchild < child
delete configmap/owner Foreground
expect
  configmap/owner      gone
  configmap/child      gone
  configmap/grandchild intact <
`,
		before: "Delete child",
		do:     func(u *user) { u.delete("configmap/child", metav1.DeletePropagationOrphan) },
	},
	{
		text: `== a dependent appears while its owner is in foreground deletion
objects
  configmap/owner
  configmap/child < owner!
  configmap/late  < owner! later
delete configmap/owner Foreground
expect
  configmap/owner gone
  configmap/child gone
  configmap/late  gone
`,
		before: "Delete child",
		do: func(u *user) {
			u.must(u.play.Create(u.t.Context(), []*gctest.Object{u.s.Object(path("configmap/late"))}))
		},
	},
	{
		text: `== a dependent goes while it is being orphaned
objects
  configmap/owner
  configmap/child < owner!
  configmap/other < owner
delete configmap/owner Orphan
expect
  configmap/owner gone
  configmap/child gone
  configmap/other intact <
`,
		before: "RemoveOwners child",
		do:     func(u *user) { u.delete("configmap/child", metav1.DeletePropagationBackground) },
	},
}

// TestChangedAgainAndAgain changes an object before every attempt to delete it,
// and gives it an owner before the one that could have gone by UID alone.
func TestChangedAgainAndAgain(t *testing.T) {
	world := bare(t)
	play, s := stage(t, world, `== an object that changes all the time
objects
  configmap/owner
  configmap/keeper
  configmap/child < owner
delete configmap/owner Background
expect
  configmap/owner  gone
  configmap/keeper intact
  configmap/child  intact < keeper
`)
	u, round := &user{t, play, s}, 0
	act(t, play, s, func(server gc.Server) gc.Server {
		return &hooked{server, func(write string) {
			if write != "Delete child" {
				return
			}
			if round++; round <= 10 {
				label := map[string]any{"labels": map[string]any{"round": fmt.Sprint(round)}}
				u.must(play.PatchMetadata(t.Context(), path("configmap/child"), label))
				return
			}
			u.setOwners("configmap/child", gctest.Owner{Of: path("configmap/owner")}, gctest.Owner{Of: path("configmap/keeper")})
		}}
	})
}

// TestRaces lets something happen between a decision and its write.
func TestRaces(t *testing.T) {
	world := bare(t)
	defer func(settle time.Duration) { world.Settle = settle }(world.Settle)
	world.Settle = 2 * time.Second // what happens comes late on a busy machine
	t.Run("races", func(t *testing.T) {
		for _, race := range races {
			title, _, _ := strings.Cut(strings.TrimPrefix(race.text, "== "), "\n")
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				play, s := stage(t, world, race.text)
				happened := false
				hook := once(race.before, func() {
					happened = true
					race.do(&user{t, play, s})
				})
				act(t, play, s, func(server gc.Server) gc.Server { return &hooked{server, hook} })
				if !happened {
					t.Errorf("the write %q was never sent", race.before)
				}
			})
		}
	})
}

// TestTypeVanishes removes a definition in the middle of a run, so that its
// instances stay in storage: with others of its kind, as deletecollection does,
// which knows no clean-up of instances. What depends on them stays, and when the
// definition is made again they are there.
func TestTypeVanishes(t *testing.T) {
	world := bare(t)
	play, s := stage(t, world, `== a definition vanishes, and its instances do not
objects
  crd/things
  thing/a
  configmap/x
  configmap/child < configmap/x thing/a!
  configmap/grandchild < child
delete configmap/x Background
expect
  crd/things gone
  thing/a    gone
  configmap/x gone
  configmap/child intact
  configmap/grandchild intact
`)
	u := &user{t, play, s}
	var server *cluster.Server
	hook := once("Delete x", func() {
		u.must(play.Client.Resource(gctest.CRDs).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{
			FieldSelector: "metadata.name=" + play.Stage().NameOf(path("crd/things")),
		}))
		u.must(wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return !server.Tells(play.Stage().Kind("thing").GroupResource(), play.Stage().Prefix), nil
		}))
	})
	act(t, play, s, func(of gc.Server) gc.Server {
		server = live.Unwrap(of)
		return &hooked{of, hook}
	})
	uid := play.Stage().UIDs[path("thing/a")]
	u.must(play.Create(t.Context(), []*gctest.Object{s.Object(path("crd/things"))}))
	states, err := play.States(t.Context())
	if err != nil || states[path("thing/a")].Fate != gctest.Intact || play.Stage().UIDs[path("thing/a")] != uid {
		t.Errorf("the instance is %s, error %v", states[path("thing/a")], err)
	}
}
