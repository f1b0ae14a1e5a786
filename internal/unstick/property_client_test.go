// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// client is one run of this program, with what it has read, shown and been allowed.
type client struct {
	p       *play
	name    string
	things  *things
	consent change.Beforehand
	journal *change.Journal
	dir     int // of its journal, among those of the play
	cancel  context.CancelFunc
	// dead: the run was killed. undoes: it takes back alone. stopped: a change could not be kept.
	dead, undoes, stopped bool
	// looked is how much of the history the last look has seen, heard what the garbage collector's work has, and readAt the last read of an
	// object.
	looked, heard int
	reads         map[graph.Identity]*unstructured.Unstructured
	readAt        map[graph.Identity]int
	// intents are those of the changes that were shown, by their keys; agreed those that were agreed to, agreedWork those of the garbage
	// collector.
	intents            map[string]intent
	temporary          map[string]remedy.Op
	agreed, agreedWork map[string]bool
	named, frees       map[types.UID]bool
	work               map[*remedy.Op]int // with what had been heard by then
	// shown is what a plan of delete or collect speaks for, nil for unstick; targets are what it was told to delete.
	shown, targets map[types.UID]bool
	// there is what the last look has seen.
	there map[graph.Identity]*unstructured.Unstructured
}

func (p *play) newClient(name string) *client {
	c := &client{
		p: p, name: name, things: &p.script.World, cancel: func() {}, reads: map[graph.Identity]*unstructured.Unstructured{}, readAt: map[graph.Identity]int{}, intents: map[string]intent{},
		temporary: map[string]remedy.Op{}, agreed: map[string]bool{}, agreedWork: map[string]bool{}, named: map[types.UID]bool{}, frees: map[types.UID]bool{}, work: map[*remedy.Op]int{}, targets: map[types.UID]bool{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j, err := change.NewJournal(p.base, change.Header{Started: time.Now(), Asked: []string{name}})
	if err != nil {
		panic(err)
	}
	c.journal, c.dir = j, len(p.dirs)
	p.dirs = append(p.dirs, j.Dir)
	p.clients = append(p.clients, c)
	return c
}

var errDead = errors.New("killed")

// at makes a request: others act right before, and the play goes on right after. No two are at the same time, so that a case can be
// repeated.
func (c *client) at(kind string, id graph.Identity, carryOut func(n int) error) error {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, c.name, kind, id.Resource.Resource, id.Name)
	time.Sleep(time.Millisecond + time.Duration(hash.Sum32()%999)*time.Microsecond)
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.dead {
		return errDead
	}
	n := p.counts[kind]
	p.counts[kind]++
	p.requests++
	p.deliver(false)
	p.empty(false)
	p.act(kind, n, false)
	if p.faulty(c, kind, n, "kill", false) {
		c.kill()
		return errDead
	}
	if p.faulty(c, kind, n, "interrupt", false) {
		c.cancel()
	}
	err := carryOut(n)
	p.see()
	p.act(kind, n, true)
	if p.faulty(c, kind, n, "interrupt", true) {
		c.cancel()
	}
	if !c.dead && p.faulty(c, kind, n, "kill", true) {
		c.kill()
		return errDead
	}
	return err
}

// kill ends a run: nothing of it gets to the server any more, and what it writes to its journal is not there.
func (c *client) kill() {
	c.p.trace("  %s is killed", c.name)
	c.p.empty(true)
	c.dead = true
	copied := fmt.Sprint(c.p.dirs[c.dir], "-", len(c.p.dirs))
	if err := copyJournal(c.p.dirs[c.dir], copied); err != nil {
		panic(err)
	}
	c.p.dirs[c.dir] = copied
	c.cancel()
}

// fill has the disk of a journal be full for a while: it keeps no more objects.
func (c *client) fill(n int) {
	if dir := c.p.dirs[c.dir]; os.Rename(dir, dir+"-full") == nil {
		c.p.full[dir] = c.p.requests + 3 + n
	}
}

// empty ends that where the time has come.
func (p *play) empty(all bool) {
	for dir, until := range p.full {
		if all || until <= p.requests {
			delete(p.full, dir)
			if err := os.Rename(dir+"-full", dir); err != nil {
				panic(err)
			}
		}
	}
}

// copyJournal copies the files of a journal, which are for their user alone.
func copyJournal(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	err = os.Mkdir(to, 0o700)
	for _, entry := range entries {
		data, readErr := os.ReadFile(filepath.Join(from, entry.Name()))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, entry.Name()), data, 0o600))
	}
	return err
}

func (c *client) read(ctx context.Context, id graph.Identity) (o *unstructured.Unstructured, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	lost := c.at("read", id, func(n int) error {
		if c.p.faulty(c, "read", n, "lost", false) {
			return errLost
		}
		if c.p.faulty(c, "read", n, "500", false) {
			return apierrors.NewInternalError(errLost)
		}
		o, err = c.p.server.Read(ctx, id)
		of := id
		if o != nil {
			of.UID = o.GetUID()
		}
		c.reads[id], c.readAt[id], c.readAt[of] = o, c.p.seen, c.p.seen
		return nil
	})
	if lost != nil {
		return nil, lost
	}
	return o, err
}

func (c *client) do(ctx context.Context, op *remedy.Op) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.at("write", op.Object, func(n int) error {
		p, s := c.p, &send{client: c, op: op, looked: c.looked, heard: c.work[op]}
		p.sent[op] = s
		if _, planned := c.intents[keyOf(op)]; !planned {
			s.looked = c.readAt[op.Object]
		} else if c.stopped && !c.undoes {
			p.fail("%s goes on with %s after its journal could not be written", c.name, op.Object.Name)
		}
		if !c.collects(op) {
			c.journaled(op)
		}
		if p.faulty(c, "write", n, "disk", false) {
			c.fill(n)
		}
		p.trace("%s sends %s", c.name, sentence(op))
		after := false
		switch {
		case p.faulty(c, "write", n, "late", false):
			s.late = true
			p.late = append(p.late, late{op, p.lateness(n)})
			return errLost
		case p.faulty(c, "write", n, "kill in flight", false):
			s.late = true
			p.late = append(p.late, late{op, p.lateness(n)})
			c.kill()
			return errDead
		case p.faulty(c, "write", n, "lost", false):
			return errLost
		case p.faulty(c, "write", n, "429", false):
			return apierrors.NewTooManyRequests("later", 1)
		case p.faulty(c, "write", n, "500", false):
			return apierrors.NewInternalError(errLost)
		case p.faulty(c, "write", n, "invalid", false):
			return apierrors.NewBadRequest("no")
		case p.faulty(c, "write", n, "lost", true), p.faulty(c, "write", n, "500", true):
			after = true
		}
		err := p.apply(op)
		if err != nil {
			p.trace("  %v", err)
		} else if after {
			return errLost
		}
		return err
	})
}

func sentence(op *remedy.Op) string {
	words := fmt.Sprintf("%s %s", op.Verb, op.Object.Name)
	for _, step := range op.Patch {
		words += " " + strings.TrimSuffix(fmt.Sprintf("%s%s=%v", map[string]string{"test": "?", "remove": "-", "add": "+", "replace": "!"}[step.Op], step.Path, step.Value), "=<nil>")
	}
	if op.Replicas != nil {
		words += fmt.Sprint(" ", *op.Replicas)
	}
	return words
}

func (c *client) look(ctx context.Context) (l *unstick.Look, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = c.at("look", graph.Identity{}, func(n int) error {
		c.p.controllers()
		unlisted := ""
		if c.p.faulty(c, "look", n, "unlisted", false) || c.p.faulty(c, "look", n, "unlisted", true) {
			unlisted = []string{"cm", "claim"}[n%2]
		}
		l, c.there = c.things.explained(ctx, c.p.server, unlisted), map[graph.Identity]*unstructured.Unstructured{}
		for _, o := range c.p.server.Objects() {
			c.there[idOf(o)] = o
		}
		c.looked = c.p.seen
		return nil
	})
	return l, err
}

// Show implements unstick.Asker.
func (c *client) Show(p *unstick.Plan, _ *unstick.Look) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for _, w := range p.Writes() {
		for _, each := range append([]unstick.Write{w}, w.Follow()...) {
			key := keyOf(&each.Op)
			if _, known := c.intents[key]; !known {
				c.intents[key] = intentOf(c.there[each.Op.Object], each.Op)
			}
			if each.Temporary() {
				c.temporary[key] = each.Op
			}
		}
		c.p.trace("%s shows %s, %s, then %d", c.name, sentence(&w.Op), w.Risk, len(w.Then))
		if c.consent.Digest != "" && c.consent.Digest == p.Digest || c.consent.Yes && w.Risk == explain.Safe {
			c.allow(&w)
		}
	}
	return nil
}

// allow takes note of what is agreed to, with the data that is said to be lost.
func (c *client) allow(w *unstick.Write) {
	for _, each := range append([]unstick.Write{*w}, w.Follow()...) {
		c.agreed[keyOf(&each.Op)], c.agreedWork[actionOfOp(&each.Op)] = true, true
		c.frees[each.Op.Object.UID] = true
		for _, uid := range each.Frees {
			c.frees[uid] = true
		}
		for _, id := range each.Lets {
			c.frees[id.UID] = true
		}
		for _, loss := range each.Remedy.Loss {
			if loss.Kind == remedy.LosesData {
				c.named[loss.Object.UID] = true
			}
		}
	}
}

// Ask implements unstick.Asker. While a person thinks, others act.
func (c *client) Ask(_ context.Context, q unstick.Question) (string, error) {
	if err := c.at("read", graph.Identity{Name: "question"}, func(int) error { return nil }); err != nil {
		return "", err
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.p.script.No > 0 && c.p.counts["answer"] >= c.p.script.No {
		return "no", nil
	}
	c.p.counts["answer"]++
	for i := range q.Writes {
		c.allow(&q.Writes[i])
	}
	if q.Name == "" {
		return "y", nil
	}
	return q.Name, nil
}

func (c *client) log(e unstick.Event) {
	if e.Wrote == nil || c.dead {
		return
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.trace("%s says %s: %s: %v", c.name, e.Wrote.Result, sentence(&e.Wrote.Write.Op), e.Wrote.Err)
	c.stopped = c.stopped || errors.As(e.Wrote.Err, new(*change.JournalError))
	if e.Wrote.Result == change.NotTakenBack && errors.Is(e.Wrote.Err, context.Canceled) {
		c.p.fail("%s does not take back %s when it is interrupted", c.name, e.Wrote.Write.Op.Object.Name)
	}
	if !e.Wrote.Write.Collected {
		c.told(e.Wrote.Result, &e.Wrote.Write.Op)
	}
}

func (c *client) writer() change.Writer {
	return change.Writer{
		Read: c.read, List: c.p.server.List, Do: c.do, Journal: c.journal, Now: time.Now,
		Resource: func(gvk schema.GroupVersionKind) (graph.Resource, error) { return *served["cm"], nil },
		Wait: func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
	}
}

// collect does the garbage collector's work by the job that the command makes.
func (c *client) collect(ctx context.Context, allowed func(gc.Action, graph.Object) bool, told func(gc.Step)) error {
	j := &change.Job{Graph: graph.New(snapshotOf(c.p.server, "")), Cluster: change.Cluster{
		Reader: everyResource{},
		Server: func(cluster.ServerOptions) (change.Server, error) { return &collecting{client: c, told: c.p.seen}, nil },
	}}
	return j.CollectOnly(ctx, c.journal, allowed, told)
}

type everyResource struct{ change.Reader }

func (everyResource) Resources() []*graph.Resource {
	var all []*graph.Resource
	for _, r := range served {
		all = append(all, r)
	}
	return all
}

// collecting is the server for the garbage collector's work.
type collecting struct {
	*client
	told, round int
}

func (s *collecting) Concern(iter.Seq[types.UID])                               {}
func (s *collecting) Watch(context.Context, *graph.Snapshot, []*graph.Resource) {}
func (s *collecting) AwaitWatches(context.Context, time.Duration)               {}

func (s *collecting) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	o, err := s.read(ctx, graph.Identity{Resource: resource, Namespace: namespace, Name: name})
	if err != nil {
		return graph.Object{}, err
	}
	return metadataOf(o), nil
}

func (s *collecting) works(op *remedy.Op) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.work[op] = s.heard
}

func (s *collecting) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	op := &remedy.Op{Verb: remedy.Delete, Object: id, Options: &options}
	s.works(op)
	return s.do(ctx, op)
}

func (s *collecting) Patch(ctx context.Context, base graph.Object, patch gc.Patch) (graph.Object, error) {
	op := (&gc.Step{Object: base, Patch: patch}).Op()
	op = op.At(base.ResourceVersion)
	s.works(&op)
	if err := s.do(ctx, &op); err != nil {
		return graph.Object{}, err
	}
	for _, v := range slices.Backward(s.p.server.History(0)) {
		if v.Op == &op && v.After != nil {
			return metadataOf(v.After), nil
		}
	}
	base.Finalizers, base.OwnerReferences = patch.Finalizers(base.Finalizers), patch.OwnerReferences(base.OwnerReferences)
	return base, nil
}

// Events implements gc.Server. The cluster is at rest when nothing happens for a second.
func (s *collecting) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	events := s.news()
	for tries := 0; wait && len(events) == 0; tries++ {
		if tries == 10 {
			return nil, gc.ErrAtRest
		}
		if s.writer().Wait(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		events = s.news()
	}
	return events, nil
}

func (s *collecting) news() (events []gc.Event) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for _, v := range s.p.server.History(s.told) {
		if s.told++; v.Object().GetKind() != "" {
			events = append(events, gc.Event{Object: metadataOf(latest(&v.Before, &v.After)), Removed: v.After == nil})
		}
	}
	s.heard = s.p.seen
	if s.round > 0 {
		events = append(events, gc.Event{CaughtUp: s.round})
		s.round = 0
	}
	return events
}

func latest(before, after **unstructured.Unstructured) *unstructured.Unstructured {
	if *after != nil {
		return *after
	}
	return *before
}

func (s *collecting) CatchUp(round int) bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.told == len(s.p.server.History(0)) {
		return true
	}
	s.round = round
	return false
}
