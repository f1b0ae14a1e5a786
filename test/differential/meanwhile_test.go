// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/test/differential/memory"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var meanwhileCases = flag.Int("meanwhile", nightly.Of(1000, 6000), "number of generated cases in which something changes between the lists and the run")

// TestMeanwhile: something changes after everything was read, and the watches tell of it up to two seconds
// late. What the engine leaves of each object, with 1 to 32 workers, is what the garbage collector may leave of it after the
// same change, before it, or at the same time, by the model, or what the engine leaves that reads everything after it.
func TestMeanwhile(t *testing.T) {
	played, by := 0, map[string]int{}
	for i := range *meanwhileCases {
		seed := *firstSeed + i
		what, wrong := playMeanwhile(t, seed)
		if wrong != "" {
			t.Errorf("generated with -meanwhile=1 -seed=%d: %s", seed, wrong)
		}
		if what != "" {
			played++
			by[what]++
		}
	}
	fmt.Printf("changes meanwhile: %d cases, %v\n", played, by)
}

// meanwhile is a case in which something changes between the lists and the run.
type meanwhile struct {
	// before is what is read, and after what there is when the run begins.
	before, after gctest.Scenario
	action        gctest.Action
	// what is changed, and deleted the user's delete if it is one.
	what    string
	deleted *gctest.Action
	random  *rand.Rand
}

// drawMeanwhile draws a case, nil when there is nothing to play.
func drawMeanwhile(seed int) *meanwhile {
	c := &meanwhile{random: rand.New(rand.NewPCG(uint64(seed), 450)), before: scenarios.Example(seed)}
	c.action = c.before.Actions[slices.IndexFunc(c.before.Actions, func(a gctest.Action) bool { return a.Verb == gctest.Delete })]
	if c.random.IntN(2) == 0 {
		c.action = gctest.Action{Verb: gctest.Collect}
	}
	c.after = c.before
	c.after.Objects = slices.Clone(c.before.Objects)
	if c.what = change(c.random, &c.before, &c.after, c.action); c.what == "" {
		return nil
	}
	c.deleted = deletedMeanwhile(&c.before, &c.after)
	c.before.Actions, c.after.Actions = nil, []gctest.Action{c.action}
	return c
}

// ends is what the action may lead to, by the model: after the change, which is that of m, before it, and at the same
// time; and what it leads to when it begins after the change.
func (c *meanwhile) ends(t *testing.T, m *model) (outcome, bool) {
	ends, ok := m.collectedBefore(c.action)
	if !ok || !ends.add(c.unheard(m)) {
		return nil, false
	}
	if c.deleted != nil && !ends.add(c.besideDeletion()) {
		return nil, false
	}
	ends.add(c.afresh(t, m, c.action), true) // what was begun before, and is none of the run's business, the model goes on with
	return ends, true
}

// unheard is what there is when the change comes after all that the action leads to: of a run that has not heard of it
// in time that is as if it were so. Before an owner that orphans or is in foreground deletion ends, a run has to have heard of
// what depends on it.
func (c *meanwhile) unheard(m *model) (outcome, bool) {
	before := newModel(&c.before, false)
	ends, ok := before.collectedBefore(c.action)
	all := outcome{}
	for _, worlds := range ends {
		for i := range worlds {
			if w, possible := c.heardOf(m, c.changed(m, before, &worlds[i])); possible {
				text := m.text(m.end(w))
				all[text] = append(all[text], w)
			}
		}
	}
	return all, ok
}

// changed is the world of before after the change.
func (c *meanwhile) changed(m, before *model, was *world) world {
	w := m.begin()
	for i := range m.objects {
		o := m.objects[i].object
		j := before.index(o.Path)
		if j < 0 {
			continue // it is made
		}
		st, declared := was.objects[j], w.objects[i]
		st.refs = declared.refs
		for k, owner := range o.Owners {
			if old := slices.Index(before.objects[j].object.Owners, owner); old >= 0 {
				st.refs[k] = was.objects[j].refs[old]
			}
		}
		if !slices.Equal(o.Finalizers, before.objects[j].object.Finalizers) && !st.deleting { // which keeps new ones off
			st.held, st.foreground, st.orphan = declared.held, declared.foreground, declared.orphan
		}
		w.objects[i] = st
	}
	if c.deleted != nil {
		m.request(&w, m.index(c.deleted.Paths[0]), c.deleted.Policy)
	}
	return w
}

// heardOf takes off what the change has added of references to owners that have orphaned their dependents: that is all that a
// run does about what it has not read. It returns false when such an owner has waited for its dependents.
func (c *meanwhile) heardOf(m *model, w world) (_ world, possible bool) {
	begun := m.begin()
	for i := range m.objects {
		old := c.before.Object(m.objects[i].object.Path)
		for k, r := range m.objects[i].refs {
			added := old == nil || !slices.Contains(old.Owners, r.owner)
			if !added || r.uid < 0 {
				continue
			}
			target := c.action.Policy == metav1.DeletePropagationOrphan && m.objects[r.uid].object.Path == c.action.Paths[0]
			switch owner, now := begun.objects[r.uid], w.objects[r.uid]; {
			case (target || owner.deleting && owner.orphan) && (now.gone || !now.orphan):
				w.objects[i].refs[k] = refGone
			case now.knownForeground && (now.gone || !now.foreground):
				return w, false
			}
		}
	}
	return w, true
}

// besideDeletion is what the action may lead to when somebody deletes an object at any time meanwhile.
func (c *meanwhile) besideDeletion() (outcome, bool) {
	m := newModel(&c.before, false)
	from := []world{m.begin()}
	if c.action.Verb == gctest.Delete {
		collected, ok := m.after(from, gctest.Action{Verb: gctest.Collect})
		if !ok {
			return nil, false
		}
		for _, worlds := range collected {
			from = append(from, worlds...)
		}
	}
	for i := range from {
		from[i].beside = true
	}
	m.beside = c.deleted
	return m.engineAfter(from, c.action)
}

// afresh is what the engine leaves when it begins after the change.
func (c *meanwhile) afresh(t *testing.T, m *model, actions ...gctest.Action) outcome {
	play := begin(t, &memory.World{}, &c.after)
	for _, a := range actions {
		act(t, play, &c.after, a)
	}
	return outcome{m.text(statesOf(t, play)): nil}
}

// describe describes a run that left what it must not.
func (c *meanwhile) describe(workers int, was, left string, ends outcome, steps []string) string {
	return fmt.Sprintf("%s, %d workers:\n%s\nread before\n%s\nwritten\n  %s", c.what, workers, describe(&c.after, c.action, was, left, ends), &c.before, strings.Join(steps, "\n  "))
}

// playMeanwhile plays a case, and returns what was changed, empty when there was nothing to play.
func playMeanwhile(t *testing.T, seed int) (what, wrong string) {
	c := drawMeanwhile(seed)
	if c == nil {
		return "", ""
	}
	synctest.Test(t, func(t *testing.T) {
		w := &memory.World{Workers: 1 + c.random.IntN(32), Delays: c.random, Late: 2 * time.Second}
		old, now := begin(t, w, &c.before), begin(t, w, &c.after)
		m := newModel(&c.after, false)
		ends, ok := c.ends(t, m)
		if !ok {
			return
		}
		what = c.what
		was := m.text(statesOf(t, now))
		g, server := w.Stale(old, now)
		report, err := gctest.Act(t.Context(), gc.New(server, g, gc.Options{Workers: w.Workers}), now.Stage(), c.action)
		if err != nil {
			t.Fatal(err)
		}
		if left := m.text(statesOf(t, now)); !eachIsRight(left, ends) {
			wrong = c.describe(w.Workers, was, left, ends, account(now.Stage(), report))
		}
	})
	return what, wrong
}

// deletedMeanwhile returns the user's delete by which after differs from before, nil if that is something else.
func deletedMeanwhile(before, after *gctest.Scenario) *gctest.Action {
	for i := range after.Objects {
		if o := &after.Objects[i]; len(before.Objects) == len(after.Objects) && o.Deleting != before.Objects[i].Deleting {
			return &gctest.Action{Verb: gctest.Delete, Paths: []gctest.Path{o.Path}, Policy: metav1.DeletionPropagation(o.Deleting)}
		}
	}
	return nil
}

// eachIsRight reports whether each object is left as it is in one of the ends, or is kept though it goes in one of them.
func eachIsRight(left string, ends outcome) bool {
	for line := range strings.Lines(left) {
		name, _, _ := strings.Cut(line, " ")
		kept := name + " intact "
		right, goes := false, false
		for end := range ends {
			right = right || strings.Contains(end, line)
			goes = goes || !strings.Contains(end, kept)
		}
		if !right && !(goes && strings.HasPrefix(line, kept)) {
			return false
		}
	}
	return true
}

// change draws what changes between before and after, and makes it so. It returns what that is, or empty when
// nothing fits.
func change(random *rand.Rand, before, after *gctest.Scenario, a gctest.Action) string {
	kind := random.IntN(5)
	for _, i := range random.Perm(len(after.Objects)) {
		if what := changeOne(random, before, after, a, kind, i); what != "" {
			return what
		}
	}
	return ""
}

// changeOne changes one object, in one of five ways, if that fits.
func changeOne(random *rand.Rand, before, after *gctest.Scenario, a gctest.Action, kind, i int) string {
	o := &after.Objects[i]
	switch {
	case kind == 2 && len(o.Owners) > 0:
		o.Owners = slices.Delete(slices.Clone(o.Owners), 0, 1)
		return "an owner is dropped"
	case kind == 2 || o.Deleting != "":
	case kind == 0 && len(before.Objects) > 1 && !slices.Contains(a.Paths, o.Path) && !isDependedOn(before, o.Path):
		before.Objects = slices.Delete(slices.Clone(before.Objects), i, i+1)
		if random.IntN(2) == 0 {
			addOwner(random, after, a, o)
		}
		return "an object is made"
	case kind == 1 && addOwner(random, after, a, o):
		return "an owner is added"
	case kind == 3 && len(o.Finalizers) == 0:
		o.Finalizers = []string{[]string{hold, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}[random.IntN(3)]}
		return "a finalizer is set"
	case kind == 4:
		o.Deleting = string(policies[random.IntN(len(policies))])
		return "somebody deletes one"
	}
	return ""
}

// isDependedOn reports whether an owner reference leads to the object, or states its UID.
func isDependedOn(s *gctest.Scenario, p gctest.Path) bool {
	return slices.ContainsFunc(s.Objects, func(o gctest.Object) bool {
		return slices.ContainsFunc(o.Owners, func(owner gctest.Owner) bool { return owner.Of == p || owner.UID == p.String() })
	})
}

// addOwner adds an owner, in half of the cases one that the action is about, and reports whether that fits.
func addOwner(random *rand.Rand, s *gctest.Scenario, a gctest.Action, o *gctest.Object) bool {
	of := s.Objects[random.IntN(len(s.Objects))].Path
	if about := slices.DeleteFunc(slices.Clone(s.Objects), func(o gctest.Object) bool {
		return o.Deleting == "" && !slices.Contains(a.Paths, o.Path)
	}); len(about) > 0 && random.IntN(2) == 0 {
		of = about[random.IntN(len(about))].Path
	}
	if of == o.Path || slices.ContainsFunc(o.Owners, func(other gctest.Owner) bool { return other.Of == of }) {
		return false
	}
	o.Owners = append(slices.Clone(o.Owners), gctest.Owner{Of: of, Block: []gctest.Block{gctest.Blocks, gctest.Unset}[random.IntN(2)]})
	return true
}
