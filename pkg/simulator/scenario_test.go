// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// TestScenarios runs the scenarios in testdata/*.txt. A file holds cases; a
// case says what is in the cluster (see world.add), then what is done, each
// line with the answer behind a colon:
//
//	delete Pod/shop/p policy=Foreground grace=0: 409 Conflict
//	patch Pod/shop/p remove-finalizer=x: OK        (or: stale, with the object as it was first)
//	get Pod/shop/p: OK
//	events: changed Pod/shop/p                     what happened so far
//	wait: +5s removed Pod/shop/p                   what the actors do next, and when
//	rest: +5s ...; +10s ...                        ... until nothing happens any more
//	due: delete Pod/shop/p ...                     what the actors ask for as it was first (Due)
//	state Pod/shop/p: Terminating at +30s grace 30 [x]
//	    waits Kubelet n1: node n1 does not report
//
// The lines below a state say what the object waits for, with what is unknown
// about it behind a colon, whether its fate is unknown, and the notes.
func TestScenarios(t *testing.T) { scenarios.Run(t, play) }

// play returns the case with the code's answers.
func play(t *testing.T, body string) string {
	w := newWorld()
	var p *player
	var out []string
	for line := range strings.SplitSeq(body, "\n") {
		if strings.HasPrefix(line, "    ") {
			continue // part of an answer
		}
		what, _, _ := strings.Cut(line, ": ")
		words := strings.Fields(strings.TrimSuffix(what, ":"))
		if len(words) == 0 || strings.HasPrefix(line, "#") || actions[words[0]] == nil {
			if err := w.add(words, line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out = append(out, line)
			continue
		}
		if p == nil {
			p = w.player(t)
		}
		answer := actions[words[0]](p, words[1:])
		out = append(out, strings.TrimRight(strings.Join(words, " ")+": "+answer, " "))
	}
	return strings.Join(out, "\n")
}

// player acts on a server.
type player struct {
	t      *testing.T
	world  *world
	server *simulator.Server
	// read is what the events showed, by UID; removed objects stay.
	read map[types.UID]graph.Object
}

func (w *world) player(t *testing.T) *player {
	p := &player{t: t, world: w, server: simulator.New(w.snapshot(), w.options()), read: map[types.UID]graph.Object{}}
	for _, o := range w.Objects {
		p.read[o.UID] = o
	}
	return p
}

var actions = map[string]func(p *player, args []string) string{
	"delete": (*player).delete,
	"patch":  (*player).patch,
	"get":    (*player).get,
	"events": (*player).events,
	"wait":   (*player).wait,
	"rest":   (*player).rest,
	"state":  (*player).state,
	"due":    (*player).due,
}

// result is how a request ended.
func result(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "OK"
	case errors.Is(err, graph.ErrUnlisted):
		return "unlisted"
	case errors.As(err, &status):
		return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
	}
	return err.Error()
}

func (p *player) delete(args []string) string {
	id := p.world.identity(args[0])
	options := metav1.DeleteOptions{}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "policy":
			policy := metav1.DeletionPropagation(value)
			options.PropagationPolicy = &policy
		case "orphan":
			orphan := value == "true"
			options.OrphanDependents = &orphan //nolint:staticcheck // SA1019: served
		case "grace":
			grace, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			options.GracePeriodSeconds = &grace
		case "dryrun":
			options.DryRun = []string{value}
		case "uid":
			uid := types.UID(value)
			precondition(&options).UID = &uid
		case "rv":
			if n, simulated := strings.CutPrefix(value, "sim."); simulated {
				value = simulator.FirstVersion[:len(simulator.FirstVersion)-len(n)] + n
			}
			precondition(&options).ResourceVersion = &value
		default:
			p.t.Fatalf("unknown word %q", arg)
		}
	}
	return result(p.server.Delete(context.Background(), id, options))
}

func precondition(options *metav1.DeleteOptions) *metav1.Preconditions {
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	return options.Preconditions
}

func (p *player) patch(args []string) string {
	id := p.world.identity(args[0])
	base, _ := p.server.Object(id.UID)
	patch := gc.Patch{}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "remove-finalizer":
			patch.RemoveFinalizer = value
		case "remove-owner":
			patch.RemoveOwners = append(patch.RemoveOwners, types.UID(value))
		case "unblock":
			patch.Unblock = true
		case "stale":
			base = p.world.first(id.UID)
		case "uid":
			base.UID = types.UID(value)
		default:
			p.t.Fatalf("unknown word %q", arg)
		}
	}
	after, err := p.server.Patch(context.Background(), base, patch)
	if err != nil {
		return result(err)
	}
	if n, simulated := strings.CutPrefix(after.ResourceVersion, simulator.FirstVersion[:12]); simulated {
		return "OK sim." + strings.TrimLeft(n, "0")
	}
	return "OK " + after.ResourceVersion
}

func (p *player) get(args []string) string {
	id := p.world.identity(args[0])
	_, err := p.server.Get(context.Background(), id.Resource, id.Namespace, id.Name)
	return result(err)
}

// texts writes what events say, and remembers it.
func (p *player) texts(events []gc.Event) string {
	var texts []string
	for _, e := range events {
		p.read[e.Object.UID] = e.Object
		text := "changed "
		switch {
		case e.Removed:
			text = "removed "
		case e.Lost:
			text = "lost "
		}
		texts = append(texts, text+e.Object.Identity().String())
	}
	return strings.Join(texts, ", ")
}

func (p *player) events([]string) string {
	events, err := p.server.Events(context.Background(), false)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.texts(events)
}

func (p *player) wait([]string) string {
	events, err := p.server.Events(context.Background(), true)
	if errors.Is(err, gc.ErrAtRest) {
		return "at rest"
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return since(p.server.Now()) + " " + p.texts(events)
}

func (p *player) rest([]string) string {
	var steps []string
	for {
		step := p.wait(nil)
		if step == "at rest" {
			return strings.Join(steps, "; ")
		}
		steps = append(steps, step)
	}
}

func (p *player) due([]string) string {
	var texts []string
	for _, op := range simulator.Due(p.world.snapshot(), p.world.options()) {
		text := string(op.Verb) + " " + op.Object.String()
		if o := op.Options; o != nil {
			if o.PropagationPolicy != nil {
				text += " policy=" + string(*o.PropagationPolicy)
			}
			if o.GracePeriodSeconds != nil {
				text += fmt.Sprintf(" grace=%d", *o.GracePeriodSeconds)
			}
		}
		for _, step := range op.Patch {
			text += fmt.Sprintf(" %s%v", step.Op, step.Value)
		}
		if op.Value != "" {
			text += " " + op.Value
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func (p *player) state(args []string) string {
	o, fate := p.server.Object(p.world.identity(args[0]).UID)
	text := fate.State.String()
	if o.BeingDeleted() {
		text += " at " + since(o.DeletionTimestamp.Time)
	}
	if o.DeletionGracePeriodSeconds != nil {
		text += fmt.Sprintf(" grace %d", *o.DeletionGracePeriodSeconds)
	}
	if len(o.Finalizers) > 0 {
		text += fmt.Sprint(" ", o.Finalizers)
	}
	for _, ref := range o.OwnerReferences {
		text += " owner=" + ref.Kind + "/" + ref.Name + testworld.Flags(ref)
	}
	for _, w := range fate.Waits {
		text += "\n    waits " + waitText(w)
	}
	for _, unknown := range fate.Unknown {
		text += "\n    unknown: " + unknown.String()
	}
	for _, note := range fate.Notes {
		text += "\n    note: " + note.String()
	}
	return text
}

func waitText(w simulator.Wait) string {
	words := []string{w.Kind.String()}
	if w.Finalizer != "" {
		words = append(words, w.Finalizer)
	}
	if w.Node != "" {
		words = append(words, w.Node, w.NodeState.String())
	}
	words = append(words, "("+w.Actor.String()+")")
	for _, uid := range w.Objects {
		words = append(words, string(uid))
	}
	text := strings.Join(words, " ")
	if !w.Unknown.IsZero() {
		text += ": " + w.Unknown.String()
	}
	return text
}
