// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// garbage draws the objects of a world: owners in all states of deletion, and their dependents.
var garbage = rapid.Custom(func(t *rapid.T) []string {
	names := []string{"a", "b", "c", "d", "e"}
	var lines []string
	for _, name := range names[:rapid.IntRange(1, 5).Draw(t, "objects")] {
		line := "Widget/s/" + name + rapid.SampledFrom([]string{
			"", "", " deleting finalizers=foregroundDeletion", " deleting finalizers=foregroundDeletion,x/y", " deleting finalizers=orphan", " deleting finalizers=x/y",
		}).Draw(t, "state")
		for _, owner := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}), 0, 2, rapid.ID).Draw(t, "owners") {
			if owner != name {
				line += " owner=Widget/" + owner + rapid.SampledFrom([]string{"", "!"}).Draw(t, "blocks")
			}
		}
		lines = append(lines, line)
	}
	return lines
})

// rescued is a server on which another user keeps the dependents of an owner, before a write.
type rescued struct {
	writer
	mu     sync.Mutex
	writes int
	rescue func(write int)
	// wrote is told each write that was accepted, and whether it was right: decided before others wrote, or by what there is now.
	wrote func(action gc.Action, o graph.Object)
}

func (s *rescued) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.rescue(s.writes)
}

func (s *rescued) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	s.begin()
	before, _ := s.Server.Snapshot().Object(id.UID)
	err := s.Server.Delete(ctx, id, options)
	if err == nil {
		s.wrote(gc.ActionDelete, before)
	}
	return err
}

func (s *rescued) Patch(ctx context.Context, base graph.Object, p gc.Patch) (graph.Object, error) {
	s.begin()
	now, err := s.Server.Patch(ctx, base, p)
	if err == nil {
		action := gc.ActionRemoveFinalizer
		if len(p.RemoveOwners) > 0 {
			action = gc.ActionRemoveOwnerReferences
		} else if p.Unblock {
			action = gc.ActionUnblockOwnerReferences
		}
		s.wrote(action, base)
	}
	return now, err
}

// collecting is a case of the test below.
type collecting struct {
	Objects []string
	// Forbids are what is not allowed, as ACTION NAME. Rescue is the owner whose dependents another user keeps, and When before which write: 0
	// is between the look and the first.
	Forbids []string
	Rescue  string
	When    int
}

// What is not allowed is never written, nor what is not right any more by then; and what is allowed and right is.
func TestCollectOnly(t *testing.T) {
	actions := []gc.Action{gc.ActionDelete, gc.ActionRemoveFinalizer, gc.ActionRemoveOwnerReferences, gc.ActionUnblockOwnerReferences}
	rapid.Check(t, func(rt *rapid.T) {
		c := collecting{
			Objects: garbage.Draw(rt, "objects"), Rescue: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "rescue"), When: rapid.IntRange(0, 3).Draw(rt, "when"),
			Forbids: rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
				return fmt.Sprint(rapid.SampledFrom(actions).Draw(rt, "action"), " ", rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "name"))
			}), 0, 3).Draw(rt, "forbids"),
		}
		w := newWorld(t, append([]string{"Namespace/s"}, c.Objects...)...)
		if wrong := c.run(t, w, c.When); len(wrong) > 0 {
			rt.Fatalf("%s\n%+v", strings.Join(wrong, "\n"), c)
		}
		if c.Rescue != "" || len(c.Forbids) > 0 { // what others begin, and what comes up beside what is not allowed, is left to the next look
			for range c.Objects {
				c.run(t, w, later)
			}
		}
		if wrong := c.run(t, w, nobody); len(wrong) > 0 { // nothing is left of what is allowed
			rt.Fatalf("again: %s\n%+v", strings.Join(wrong, "\n"), c)
		}
		if s, _ := w.Snapshot(t.Context(), cluster.Scope{}); len(c.Forbids) == 0 && !slices.ContainsFunc(c.Objects, func(line string) bool { return strings.Contains(line, "x/y") }) {
			plan, err := gc.New(w.now, graph.New(s), gc.Options{}).Collect(t.Context(), "")
			if err != nil || len(plan.Steps) > 0 {
				rt.Fatalf("left: %v %+v\n%+v", err, plan.Steps, c)
			}
		}
	})
}

// Nobody else acts in a run: later, or at last, when any write is wrong.
const (
	later  = -1
	nobody = -2
)

// run collects once, in a world in which another user acts before a write, and returns what is wrong.
func (c *collecting) run(t *testing.T, w *world, when int) (wrong []string) {
	j := w.job()
	rescuedAt := 0
	server := &rescued{writer: writer{w.now}}
	server.rescue = func(write int) {
		if write == when && c.Rescue != "" {
			rescuedAt = write
			orphan := metav1.DeletePropagationOrphan
			id := graph.Identity{Resource: *w.resources[0], Namespace: "s", Name: c.Rescue, UID: types.UID(c.Rescue)}
			_ = w.now.Delete(t.Context(), id, metav1.DeleteOptions{PropagationPolicy: &orphan})
		}
	}
	server.wrote = func(action gc.Action, o graph.Object) {
		said := fmt.Sprint(action, " ", o.Name)
		switch {
		case when == nobody || slices.Contains(c.Forbids, said):
			wrong = append(wrong, said)
		case action == gc.ActionDelete && (rescuedAt == 0 || when == 0) && c.kept(w, o): // what was decided before others write may be on its way
			wrong = append(wrong, said+", which an owner keeps")
		}
	}
	j.Cluster.Server = func(cluster.ServerOptions) (change.Server, error) { return server, nil }
	server.rescue(0)
	err := j.CollectOnly(t.Context(), nil, func(action gc.Action, o graph.Object) bool {
		return !slices.Contains(c.Forbids, fmt.Sprint(action, " ", o.Name))
	}, func(gc.Step) {})
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// kept reports whether an owner of an object is there, and does not wait for its dependents.
func (c *collecting) kept(w *world, o graph.Object) bool {
	s := w.now.Snapshot()
	return slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool {
		owner, exists := s.Object(r.UID)
		return exists && !(owner.BeingDeleted() && owner.HasFinalizer(metav1.FinalizerDeleteDependents))
	})
}
