// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// patience is after how long something that takes a moment has failed.
const patience = time.Minute

// crowdSize is the number of dependents of the owner in a crowd.
const crowdSize = 60

var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
}

// crowd is the text of a scenario with an owner and its dependents, each with
// one of its own. The owner is deleted with the policy. Every third dependent has a
// keeper, too.
func crowd(policy metav1.DeletionPropagation) string {
	kind := func(i int) string { return []string{"configmap", "widget", "secret"}[i%3] }
	var objects, expect strings.Builder
	for i := range crowdSize {
		keeper, left := "", "gone"
		if i%4 == 0 {
			keeper, left = " keeper!", "intact < keeper!"
		}
		if i%4 != 0 && policy == metav1.DeletePropagationOrphan {
			left = "intact <"
		}
		fmt.Fprintf(&objects, "  %s/d%d < owner!%s\n  configmap/g%d < d%d!\n", kind(i), i, keeper, i, i)
		fmt.Fprintf(&expect, "  %s/d%d %s\n  configmap/g%d %s\n", kind(i), i, left, i, strings.Fields(left)[0])
	}
	return fmt.Sprintf("== %s\nobjects\n  configmap/owner\n  configmap/keeper\n%sdelete configmap/owner %s\nexpect\n  configmap/owner gone\n  configmap/keeper intact\n%s",
		policy, &objects, policy, &expect)
}

// collector returns a Collector for the play and what runs its only action.
func collector(ctx context.Context, t *testing.T, play gctest.Play, s *gctest.Scenario, observe gc.Observer) func() (*gc.Report, error) {
	t.Helper()
	g, server, err := play.Collector(ctx)
	if err != nil {
		t.Fatal(err)
	}
	options := play.Options()
	options.Observer = observe
	c := gc.New(server, g, options)
	target := gc.Target{Identity: play.Stage().Identity(s.Actions[0].Paths[0])}
	return func() (*gc.Report, error) {
		return c.Delete(ctx, []gc.Target{target}, gc.DeleteOptions{Policy: s.Actions[0].Policy})
	}
}

// accepted fails the test for every write that was refused.
func accepted(t *testing.T, report *gc.Report) {
	t.Helper()
	for _, step := range report.Steps {
		if step.Err != nil {
			t.Errorf("%s %s was refused: %v", step.Action, step.Object.Identity(), step.Err)
		}
	}
}

// TestTwoCollectors runs two Collectors at once over the same objects.
func TestTwoCollectors(t *testing.T) {
	world := bare(t)
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			play, s := stage(t, world, crowd(policy))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first, second := collector(ctx, t, play, s, nil), collector(ctx, t, play, s, nil)
			var group sync.WaitGroup
			for _, run := range []func() (*gc.Report, error){first, second} {
				group.Go(func() {
					report, err := run()
					if err != nil {
						t.Error(err)
					}
					accepted(t, report)
				})
			}
			group.Wait()
			check(t, play, s)
		})
	}
}

// TestBesideGarbageCollector runs a Collector while the garbage collector does
// the same.
func TestBesideGarbageCollector(t *testing.T) {
	cp := controlplane.Start(t, controlplane.Options{Controllers: "gc"})
	world, err := live.Connect(t.Context(), cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			play, s := stage(t, world, crowd(policy))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			report, err := collector(ctx, t, play, s, nil)()
			if err != nil {
				t.Error(err)
			}
			accepted(t, report)
			_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
				states, err := play.States(ctx) // the garbage collector may still be at it
				return err == nil && s.Check(states) == "", err
			})
			check(t, play, s)
		})
	}
}

// TestCancelled ends a Collector in the middle. Another one completes the work.
func TestCancelled(t *testing.T) {
	world := bare(t)
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			play, s := stage(t, world, crowd(policy))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			report, err := collector(ctx, t, play, s, after(crowdSize/3, cancel))()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the Collector ended with error %v", err)
			}
			accepted(t, report)
			states, err := play.States(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.Check(states) == "" {
				t.Error("the Collector had done everything when it was ended")
			}
			if policy == metav1.DeletePropagationBackground {
				// The owner is gone, and so are some of its dependents: what is
				// theirs has no owner that could be named.
				s.Actions = []gctest.Action{{Verb: gctest.Collect}}
			}
			act(t, play, s, func(server gc.Server) gc.Server { return server })
		})
	}
}

// after returns an observer that does something after so many writes.
func after(writes int, do func()) gc.Observer {
	seen := 0
	return func(gc.Step) {
		if seen++; seen == writes {
			do()
		}
	}
}

// TestKilledAPIServer kills the API server in the middle and starts it again.
// The Collector goes on where it was.
func TestKilledAPIServer(t *testing.T) {
	world, cp := bare(t), shared.cp
	defer func(settle time.Duration) { world.Settle = settle }(world.Settle)
	world.Settle = 3 * time.Second // a server that has just started is slow
	for _, policy := range nightly.Of(policies[:1], policies) {
		t.Run(string(policy), func(t *testing.T) {
			play, s := stage(t, world, crowd(policy))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			restarted := make(chan error, 1)
			report, err := collector(ctx, t, play, s, after(crowdSize/3, func() {
				go func() { restarted <- errors.Join(cp.Kill("apiserver"), cp.Start("apiserver")) }()
			}))()
			if err != nil {
				t.Error(err)
			}
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			accepted(t, report)
			check(t, play, s)
		})
	}
}

// gauge counts the writes in flight.
type gauge struct {
	now, most atomic.Int64
}

func (g *gauge) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			now := g.now.Add(1)
			defer g.now.Add(-1)
			for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
			}
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestInFlight counts the writes that a Collector has in flight.
func TestInFlight(t *testing.T) {
	world, g := bare(t), &shared.requests
	defer func(workers int) { world.Workers = workers }(world.Workers)
	for _, workers := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			world.Workers = workers
			play, s := stage(t, world, crowd(metav1.DeletePropagationForeground))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			run := collector(ctx, t, play, s, nil)
			g.most.Store(0)
			if _, err := run(); err != nil {
				t.Fatal(err)
			}
			if most := g.most.Load(); most > int64(workers) || most == 0 {
				t.Errorf("at most %d writes were in flight at once", most)
			}
			check(t, play, s)
		})
	}
}

// TestBusyWriter runs a Collector while somebody changes labels and owner
// references of the dependents all the time. Nothing that has a solid owner may
// be deleted.
func TestBusyWriter(t *testing.T) {
	world := bare(t)
	play, s := stage(t, world, crowd(metav1.DeletePropagationForeground))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := collector(ctx, t, play, s, nil)
	var follower follower
	follower.start(ctx, t, play)
	writing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { write(writing, t, play, w) })
	}
	report, err := run()
	stop()
	writers.Wait()
	if err != nil {
		t.Error(err)
	}
	accepted(t, report)
	s.Actions = []gctest.Action{{Verb: gctest.Collect}} // of what the writer did last
	allowToggled(s)
	act(t, play, s, func(server gc.Server) gc.Server { return server })
	follower.judge(t, play)
}

// toggled reports whether the keeper of the i-th dependent comes and goes.
func toggled(i int) bool { return i%4 == 1 }

// dependent returns the path of the i-th dependent of a crowd, and of its own.
func dependent(s *gctest.Scenario, i int) (d, g gctest.Path) {
	return s.Objects[2+2*i].Path, s.Objects[3+2*i].Path
}

// write changes every fourth dependent again and again until the context ends:
// the labels of all, and the keeper of some. The owner stays.
func write(ctx context.Context, t *testing.T, play *live.Play, w int) {
	for round := 0; ctx.Err() == nil; round++ {
		for i := w; i < crowdSize && ctx.Err() == nil; i += 4 {
			d, _ := dependent(play.Stage().Scenario, i)
			metadata := map[string]any{"labels": map[string]any{"round": fmt.Sprint(round)}}
			if toggled(i) {
				owners := []gctest.Owner{{Of: path("configmap/owner"), Block: gctest.Blocks}, {Of: path("configmap/keeper")}}
				metadata["ownerReferences"] = play.Stage().OwnerReferences(owners[:1+round%2])
			}
			err := play.PatchMetadata(ctx, d, metadata)
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				t.Errorf("changing %s: %v", d, err)
			}
		}
	}
}

// allowToggled allows for the dependents whose keeper comes and goes what is
// right for the last reference that the writer set.
func allowToggled(s *gctest.Scenario) {
	for i := range crowdSize {
		if toggled(i) {
			d, g := dependent(s, i)
			delete(s.Expect, d)
			delete(s.Expect, g)
		}
	}
}

// follower follows dependents through their lives.
type follower struct {
	mu      sync.Mutex
	last    map[types.UID]*unstructured.Unstructured
	deleted []*unstructured.Unstructured // as they were when they were deleted
}

func (f *follower) start(ctx context.Context, t *testing.T, play *live.Play) {
	f.last = map[types.UID]*unstructured.Unstructured{}
	for _, kind := range []string{"configmap", "widget", "secret"} {
		stream, err := play.Watch(ctx, kind)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for e := range stream.ResultChan() {
				if o, ok := e.Object.(*unstructured.Unstructured); ok {
					f.take(o, e.Type == watch.Deleted)
				}
			}
		}()
	}
}

// take notes an object that begins to be deleted, with its references then.
func (f *follower) take(o *unstructured.Unstructured, removed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.last[o.GetUID()]
	if (removed || o.GetDeletionTimestamp() != nil) && (before == nil || before.GetDeletionTimestamp() == nil) {
		f.deleted = append(f.deleted, o)
	}
	f.last[o.GetUID()] = o
}

func (f *follower) judge(t *testing.T, play *live.Play) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.deleted) < crowdSize/2 {
		t.Errorf("only %d objects were seen to be deleted", len(f.deleted))
	}
	for _, o := range f.deleted {
		for _, ref := range o.GetOwnerReferences() {
			if ref.UID == play.Stage().UIDs[path("configmap/keeper")] {
				t.Errorf("%s %s was deleted although it had a solid owner", o.GetKind(), o.GetName())
			}
		}
	}
}
