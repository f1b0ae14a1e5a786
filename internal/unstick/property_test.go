// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// script is a case.
type script struct {
	World  things
	Events []event
	Allow  explain.Risk
	// Verb is what the first run does, and Rivals what another does: unstick, delete or collect. Targets are the names that delete is given,
	// with the policy, and Safe is its order.
	Verb, Rivals string
	Targets      []string
	Policy       metav1.DeletionPropagation
	Safe         bool
	// Consent is how the plan is agreed to; No is how many questions are answered by yes before one is by no, 0 for all.
	Consent string
	No      int
	// Rival: another run begins so many tenths of a second later, -1 for none. Again: a run follows, which takes back what the first has left.
	// Undo: the first is undone.
	Rival       int
	Again, Undo bool
}

func (s *script) String() string {
	var text strings.Builder
	w := s.World
	fmt.Fprintf(&text, "hooks %v, policy %q, exempts %t, replicas %d\n", w.Hooks, w.Policy, w.Exempts, w.Replicas)
	for _, o := range w.Objects {
		fmt.Fprintf(&text, "%s %s deleted=%q finalizers=%v owners=%v blocks=%t volume=%s %s\n", o.kind(), o.Name, o.Deleted, o.Finalizers, o.Owners, o.Blocks, o.Volume, o.Phase)
	}
	fmt.Fprintf(&text, "%s, rivals %s, targets %v %s, safe %t\n", s.Verb, s.Rivals, s.Targets, s.Policy, s.Safe)
	fmt.Fprintf(&text, "allow %s, consent %s, no %d, rival %d, again %t, undo %t\n", s.Allow, s.Consent, s.No, s.Rival, s.Again, s.Undo)
	for _, e := range s.Events {
		fmt.Fprintln(&text, e)
	}
	return text.String()
}

var scripts = rapid.Custom(func(t *rapid.T) *script {
	s := &script{
		World: thingsGen.Draw(t, "world"), Events: rapid.SliceOfN(eventGen, 0, 8).Draw(t, "events"),
		Allow:   rapid.SampledFrom([]explain.Risk{explain.Dangerous, explain.Disruptive, explain.Safe}).Draw(t, "allow"),
		Consent: rapid.SampledFrom([]string{"ask", "yes", "digest"}).Draw(t, "consent"),
		No:      rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "no"),
		Rival:   rapid.SampledFrom([]int{-1, -1, 0, 3, 10}).Draw(t, "rival"),
		Again:   rapid.Bool().Draw(t, "again"), Undo: rapid.Bool().Draw(t, "undo"),
		Verb: rapid.SampledFrom([]string{"unstick", "delete"}).Draw(t, "verb"), Rivals: rapid.SampledFrom([]string{"unstick", "delete"}).Draw(t, "rivals"),
		Safe: rapid.Bool().Draw(t, "safe"),
	}
	// None at all: what is deleted then is garbage.
	s.Targets = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "p"}), 0, 2, rapid.ID).Draw(t, "targets")
	s.Policy = rapid.SampledFrom([]metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}).Draw(t, "policy")
	return s
})

// play is a case that is played.
type play struct {
	script *script
	server *testapi.Server
	base   string
	dirs   []string // the journals

	mu       sync.Mutex
	counts   map[string]int
	requests int
	late     []late
	calm     bool // no more faults and others
	clients  []*client
	full     map[string]int // directories that cannot be written to, until so many requests

	attempts   []attempt
	begun      int // so many versions has the world
	sent       map[*remedy.Op]*send
	made       []testapi.Version // by us
	seen       int               // of the history
	by         *send             // who made the last version, or is to blame for it
	blame      *send
	ledgers    map[types.UID]*ledger
	removed    map[types.UID]*send
	meddled    map[types.UID]int // when others changed an object last
	deleted    map[types.UID]int // and when they were deleted
	gone       map[types.UID]int // and removed
	lines      []string
	violations []string
}

// late is a change that arrives before a request, or with -1 at the end.
type late struct {
	op  *remedy.Op
	due int
}

func newPlay(s *script, base string) *play {
	p := &play{
		script: s, server: s.World.server(), base: base, counts: map[string]int{}, full: map[string]int{}, sent: map[*remedy.Op]*send{},
		ledgers: map[types.UID]*ledger{}, removed: map[types.UID]*send{}, meddled: map[types.UID]int{}, deleted: map[types.UID]int{}, gone: map[types.UID]int{},
	}
	p.begun = len(p.server.History(0))
	p.seen = p.begun
	return p
}

// say is trace for who does not hold the lock.
func (p *play) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace(format, args...)
}

func (p *play) trace(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf("%4d %s", p.requests, fmt.Sprintf(format, args...)))
}

// act has others do what they do at a request.
func (p *play) act(kind string, n int, after bool) {
	for _, e := range p.script.Events {
		if do := deeds[e.Do]; do != nil && !p.calm && e.at(kind, n, after) {
			p.trace("  %s", e)
			p.blame = nil
			do(p, e.With)
			p.see()
		}
	}
}

// faulty reports whether something becomes of a request.
func (p *play) faulty(c *client, kind string, n int, fault string, after bool) bool {
	is := !p.calm && slices.ContainsFunc(p.script.Events, func(e event) bool {
		return e.Do == fault && e.at(kind, n, after)
	})
	if is {
		p.trace("  %s: %s", c.name, fault)
	}
	return is
}

func (p *play) lateness(n int) int {
	for _, e := range p.script.Events {
		if e.at("write", n, false) && (e.Do == "late" || e.Do == "kill in flight") && e.With < 8 {
			return p.requests + 1 + 2*e.With
		}
	}
	return -1
}

// apply makes a change on the server, unless a guard denies it.
func (p *play) apply(op *remedy.Op) error {
	if op.Object.Namespace == "s" && len(guards(p.server)) > 0 {
		return apierrors.NewForbidden(op.Object.Resource.GroupResource(), op.Object.Name, errors.New("denied"))
	}
	seen := len(p.server.History(0))
	err := p.server.Apply(op)
	p.attempts = append(p.attempts, attempt{op, seen, err})
	return err
}

// deliver makes changes that are late.
func (p *play) deliver(all bool) {
	for i := 0; i < len(p.late); i++ {
		if l := p.late[i]; all || l.due >= 0 && l.due <= p.requests {
			err := p.apply(l.op)
			p.trace("  late: %s: %v", sentence(l.op), err)
			p.late = slices.Delete(p.late, i, i+1)
			i--
			p.see()
		}
	}
}

// unstick is one run of unstick, which takes back first what earlier ones have left.
func (p *play) unstick(ctx context.Context, name string) {
	c := p.newClient(name)
	ctx, c.cancel = context.WithCancel(ctx)
	defer c.cancel()
	p.mu.Lock()
	p.empty(true)
	p.mu.Unlock()
	c.resume(ctx)
	first, err := c.look(ctx)
	options := &unstick.Options{Allow: p.script.Allow}
	if err == nil {
		switch p.script.Consent {
		case "yes":
			c.consent.Yes = true
		case "digest":
			c.consent.Digest = unstick.Choose(first, options).Digest
		}
		e := &unstick.Edges{Writer: c.writer(), Look: c.look, Collect: c.collect, Asker: c, Log: c.log}
		var report *unstick.Report
		report, err = e.Run(ctx, first, options, c.consent)
		p.mu.Lock()
		if !c.dead {
			c.freed(report)
		}
		p.mu.Unlock()
	}
	p.say("%s ends: %v", name, err)
	c.close()
}

func (c *client) close() {
	if err := c.journal.Close(); err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
}

// resume takes back what runs that are over have left.
func (c *client) resume(ctx context.Context) {
	for i, dir := range c.p.dirs {
		r, err := change.ReadJournal(dir)
		if errors.Is(err, os.ErrNotExist) || i == c.dir { // it has changed nothing
			continue
		}
		if err != nil {
			c.p.fail("the journal %d: %v", i, err)
			continue
		}
		if len(r.Open()) == 0 {
			continue
		}
		release, err := r.Claim()
		if err != nil {
			continue
		}
		w := c.writer()
		for _, e := range r.Open() {
			made := r.TakeBack(ctx, &w, &e)
			c.p.say("%s takes back %s: %s, %v", c.name, sentence(e.Op), made.Status, made.Err)
			if c.dead || made.Status != change.TakenBack {
				continue
			}
			c.toldOf(made.Status, &e)
			if err := r.MarkTakenBack(time.Now(), e.Number); err != nil {
				panic(err)
			}
		}
		release()
	}
}

// toldOf is told of a change of another run.
func (c *client) toldOf(status change.Status, e *change.Entry) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for _, other := range c.p.clients {
		if in, known := other.intents[keyOf(e.Op)]; known {
			c.checkTold(status, e.Op, in)
			return
		}
	}
}

// undo takes back the first run.
func (p *play) undo(ctx context.Context) {
	c := p.newClient("undo")
	ctx, c.cancel = context.WithCancel(ctx)
	defer c.cancel()
	defer c.close()
	c.undoes = true
	r, err := change.ReadJournal(p.dirs[0])
	if err != nil { // it has changed nothing
		return
	}
	release, err := r.Claim()
	if err != nil {
		p.fail("the journal of the first run: %v", err)
		return
	}
	defer release()
	w, lost := c.writer(), r.Lost()
	_, all := w.Restore(ctx, r.Dir, w.Restoration(ctx, lost, nil), func(made change.Record) {
		p.say("undo: %s: %s, %v", sentence(&made.Change.Op), made.Status, made.Err)
		if !c.dead && made.Status != change.Done && made.Err == nil {
			p.fail("%s is not made, and it is not said why: %s", sentence(&made.Change.Op), made.Status)
		}
	})
	reversals := r.Undo(ctx, &w, lost)
	if !c.dead && all {
		restored := r.Completed(lost, reversals)
		for _, number := range restored {
			c.toldOf(change.TakenBack, &r.Changes[number-1])
		}
		_ = r.MarkTakenBack(time.Now(), restored...)
	}
	for _, v := range reversals {
		switch {
		case !v.Possible() && v.Obstacle == "":
			p.fail("%s is not undone, and it is not said why", sentence(v.Entry.Op))
		case !v.Possible(), c.dead:
		case v.Ends():
			if made := r.TakeBack(ctx, &w, &v.Entry); !c.dead && made.Status == change.TakenBack {
				c.toldOf(made.Status, &v.Entry)
				_ = r.MarkTakenBack(time.Now(), v.Entry.Number)
			}
		default:
			made := w.Undo(ctx, r, &v)
			p.say("undo of %s: %s, %v", sentence(v.Entry.Op), made.Status, made.Err)
			if !c.dead && made.Status == change.Done {
				c.toldOf(change.TakenBack, &v.Entry)
				_ = r.MarkTakenBack(time.Now(), v.Entry.Number)
			} else if !c.dead && made.Err == nil {
				p.fail("%s is not undone, and it is not said why: %s", sentence(v.Entry.Op), made.Status)
			}
		}
	}
}

// runs is one run, of a verb.
func (p *play) runs(ctx context.Context, verb, name string) {
	if verb == "unstick" {
		p.unstick(ctx, name)
	} else {
		p.deletes(ctx, name)
	}
}

// run plays the case, and returns what was wrong.
func (p *play) run(ctx context.Context) []string {
	var group sync.WaitGroup
	if p.script.Rival >= 0 {
		group.Go(func() {
			time.Sleep(time.Duration(p.script.Rival)*100*time.Millisecond + time.Microsecond)
			p.runs(ctx, p.script.Rivals, "rival")
		})
	}
	p.runs(ctx, p.script.Verb, "first")
	group.Wait()
	if p.script.Again {
		p.runs(ctx, p.script.Verb, "again")
	}
	if p.script.Undo {
		p.undo(ctx)
	}
	p.calm = true
	p.empty(true)
	last := p.newClient("last")
	last.undoes = true
	last.resume(ctx)
	last.close()
	p.deliver(true)
	p.checkEnd()
	return p.violations
}

// Whatever others do between any two requests, and whatever becomes of these: nothing is changed that nobody has agreed to, what others
// have changed is kept, what is temporary is as before in the end, and what is said is so.
func TestProperties(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s := scripts.Draw(rt, "case")
		base, err := os.MkdirTemp(dir, "")
		if err != nil {
			rt.Fatal(err)
		}
		var p *play
		synctest.Test(t, func(t *testing.T) {
			p = newPlay(s, base)
			p.run(t.Context())
		})
		_ = os.RemoveAll(base)
		if len(p.violations) > 0 {
			rt.Fatalf("%s\n\n%s\n%s", strings.Join(p.violations, "\n"), s, strings.Join(p.lines, "\n"))
		}
	})
}
