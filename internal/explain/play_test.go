// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// effect is what becomes of objects that are being deleted when a change is made. Each is in one of the lists, in the
// order in which they were given.
type effect struct {
	// Frees are those that the API server removes with the change, whoever else works.
	Frees []graph.Identity
	// Follow are those that Kubernetes' own controllers remove then, and would not without the change.
	Follow []graph.Identity
	// Held are those that stay.
	Held []staying
	// Unforeseen would go without the change, by all that the simulation knows: what holds them is not in it, such as a
	// webhook or a kubelet that hangs.
	Unforeseen []graph.Identity
	// ByControllers: the change works through controllers that are not simulated, so that the lists are empty.
	ByControllers bool
}

// staying is an object that stays, and what it waits for then.
type staying struct {
	Object graph.Identity
	Waits  []simulator.Wait
}

// effectsOf plays changes in memory. It is for one goroutine.
type effectsOf struct {
	world preview.World
	// before has what becomes of objects without a change: by the API server alone, and with
	// Kubernetes' controllers.
	before [2]*simulator.Server
}

// neweffectsOf plays what happens without a change to what was read, with the facts of its snapshot.
func newEffects(ctx context.Context, w preview.World) (*effectsOf, error) {
	e := &effectsOf{world: w}
	for i := range e.before {
		server, _, err := e.played(ctx, nil, i == 1)
		if err != nil {
			return nil, err
		}
		e.before[i] = server
	}
	return e, nil
}

// Of returns what becomes of the objects when the change is made. The error is remedy.ErrChanged when its guards do not hold, what
// the API server would answer, or that of the context.
func (e *effectsOf) Of(ctx context.Context, change *remedy.Op, objects []types.UID) (*effect, error) {
	after, left, err := e.played(ctx, change, true)
	switch {
	case err != nil:
		return nil, err
	case left:
		return &effect{ByControllers: true}, nil
	}
	alone, _, err := e.played(ctx, change, false)
	if err != nil {
		return nil, err
	}
	is := &effect{}
	gone := func(server *simulator.Server, uid types.UID) bool {
		_, fate := server.Object(uid)
		return fate.State == simulator.Gone
	}
	for _, uid := range objects {
		o, fate := after.Object(uid)
		switch {
		case fate.State == simulator.Unread:
		case gone(alone, uid) && !gone(e.before[0], uid):
			is.Frees = append(is.Frees, o.Identity())
		case gone(e.before[1], uid):
			is.Unforeseen = append(is.Unforeseen, o.Identity())
		case fate.State == simulator.Gone:
			is.Follow = append(is.Follow, o.Identity())
		default:
			is.Held = append(is.Held, staying{o.Identity(), fate.Waits})
		}
	}
	return is, nil
}

// played returns a server on which the change was made, with what follows from it, by the API server alone or with Kubernetes'
// controllers. It says whether the change works through others, and was left out.
func (e *effectsOf) played(ctx context.Context, change *remedy.Op, controllers bool) (server *simulator.Server, left bool, err error) {
	options := e.world.Options()
	if !controllers {
		options.Actors = simulator.Actors{}
	}
	server = simulator.New(e.world.Graph.Snapshot(), options)
	collected := controllers && e.world.ControllerManager
	if change != nil {
		switch err := server.Do(ctx, change); {
		case errors.Is(err, simulator.ErrNotModelled), errors.Is(err, graph.ErrUnlisted):
			left = true
		case err != nil:
			return nil, false, err
		}
		collected = collected || change.Verb == remedy.Collect
	}
	return server, left, settle(ctx, server, e.world.Graph, collected)
}

// settle lets all act until nothing happens any more: the garbage collector only if it is to.
func settle(ctx context.Context, server *simulator.Server, g *graph.Graph, collected bool) error {
	for happened := true; happened; {
		happened = false
		if collected {
			if _, err := gc.New(server, g, gc.Options{SeesAll: true}).Collect(ctx, ""); err != nil {
				return err
			}
		}
		for {
			_, err := server.Events(ctx, true)
			if errors.Is(err, gc.ErrAtRest) {
				break
			}
			if err != nil {
				return err
			}
			happened = collected
		}
		if happened {
			g = graph.New(server.Snapshot())
		}
	}
	return nil
}
